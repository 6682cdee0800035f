"""The servers of APIs: each asks a double on loopback that answers at once, so that what is measured is the server.

The published ones have their host in their code: `servers/rest/src/testing/lead.cjs` leads what they ask it to the double. Ours get
its address as --api-url.
"""
import base64
import json
import os

from pair import Pair, double, npm
from peers import REPO

LEAD = os.path.join(REPO, "servers", "rest", "src", "testing", "lead.cjs")
JSON = "application/json; charset=utf-8"
AT = "2026-11-20T08:00:00Z"


def words(n, count=40):
    """Text of an issue, a message or a passage."""
    return " ".join(f"word{(n * 7 + k) % 100}" for k in range(count))


def api(name, stack, tool, arguments, answers, expected, host=None, base="", env=None, program=None, ours=(), **more):
    """A pair whose double has these answers, by words of the request's target."""
    site = double(stack, *((where, JSON, json.dumps(value)) for where, value in answers.items()))
    led = {"NODE_OPTIONS": f"--require={LEAD}", "LED_HOST": host, "LED_TO": site} if host else {}
    own = {key: value.replace("{site}", site) for key, value in (env or {}).items()}
    program = program or npm(name)
    ours = ["--api-url", site + base, *ours]
    return Pair(name, program, tool, arguments, expected, env=lambda side: dict(own, **led) if side == "published" else own, ours=ours, **more)


def github(_, stack):
    url = "https://api.github.com/repos/octocat/hello"
    person = lambda n: {
        "login": f"user{n}", "id": n, "node_id": f"U_{n}", "avatar_url": f"https://avatars.example/{n}", "html_url": f"https://github.com/user{n}",
        "url": f"https://api.github.com/users/user{n}", "type": "User", "site_admin": False,
    }
    label = {"id": 1, "node_id": "L_1", "url": url + "/labels/bug", "name": "bug", "color": "f29513", "default": True, "description": "Broken"}
    issue = lambda n: {
        "id": n, "node_id": f"I_{n}", "number": n, "title": f"Issue {n}", "state": "open", "locked": False, "url": f"{url}/issues/{n}",
        "repository_url": url, "labels_url": f"{url}/issues/{n}/labels", "comments_url": f"{url}/issues/{n}/comments",
        "events_url": f"{url}/issues/{n}/events", "html_url": f"https://github.com/octocat/hello/issues/{n}", "user": person(n), "labels": [label],
        "assignee": None, "assignees": [person(n + 1)], "milestone": None, "comments": 3, "created_at": AT, "updated_at": AT, "closed_at": None,
        "author_association": "MEMBER", "body": words(n, 60),
    }
    call = {"owner": "octocat", "repo": "hello", "state": "open", "per_page": 10}
    answers = {"/issues": [issue(n) for n in range(1, 11)]}
    return api(
        "github", stack, "list_issues", call, answers, '"Issue 10"', "api.github.com", env={"GITHUB_PERSONAL_ACCESS_TOKEN": "key"},
        program="github/" + npm("github"), ours=["--toolsets", "original"],
    )


def gitlab(_, stack):
    text = "\n".join(words(n, 8) for n in range(60))
    file = {
        "file_name": "a.txt", "file_path": "src/a.txt", "size": len(text), "encoding": "base64", "content": base64.b64encode(text.encode()).decode(),
        "content_sha256": "4c29", "ref": "main", "blob_id": "79f7", "commit_id": "d5a3", "last_commit_id": "570e", "execute_filemode": False,
    }
    call = {"project_id": "group/project", "file_path": "src/a.txt", "ref": "main"}
    env = {"GITLAB_PERSONAL_ACCESS_TOKEN": "key", "GITLAB_API_URL": "{site}/api/v4"}
    return api("gitlab", stack, "get_file_contents", call, {"/repository/files/": file}, words(59, 8), base="/api/v4", env=env)


def slack(_, stack):
    message = lambda n: {
        "type": "message", "user": "U0123456789", "text": words(n, 20), "ts": f"17000000{n:02}.000100", "team": "T0123456789",
        "blocks": [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": words(n, 20)}]}]}],
    }
    channel = {"id": "C0123456789", "name": "general", "is_channel": True, "is_private": False, "is_archived": False, "is_member": True}
    answers = {
        "/conversations.history": {"ok": True, "messages": [message(n) for n in range(10)], "has_more": False, "pin_count": 0},
        "/conversations.info": {"ok": True, "channel": channel},
    }
    env = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_TEAM_ID": "T0123456789", "SLACK_CHANNEL_IDS": "C0123456789"}
    call = {"channel_id": "C0123456789", "limit": 10}
    return api("slack", stack, "slack_get_channel_history", call, answers, words(9, 20), "slack.com", "/api", env)


def brave_search(_, stack):
    result = lambda n: {
        "title": f"Result <strong>{n}</strong>", "url": f"https://site{n}.example/page", "description": words(n), "age": "3 days ago", "language": "en",
        "profile": {"name": f"Site {n}", "url": f"https://site{n}.example", "long_name": f"site{n}.example"}, "family_friendly": True,
    }
    answers = {"/web/search": {"type": "search", "query": {"original": "boats"}, "web": {"type": "search", "results": [result(n) for n in range(10)]}}}
    # The published server allows itself one call a second, and nothing can change that.
    return api(
        "brave-search", stack, "brave_web_search", {"query": "boats"}, answers, "site9.example", "api.search.brave.com", "/res/v1",
        {"BRAVE_API_KEY": "key"}, load=False,
    )


def google_maps(_, stack):
    part = lambda kind: {"long_name": kind, "short_name": kind[:2], "types": [kind, "political"]}
    place = {
        "formatted_address": "1 Main St, Springfield", "place_id": "ChIJ1", "types": ["street_address"],
        "geometry": {"location": {"lat": 37.42, "lng": -122.08}, "location_type": "ROOFTOP"},
        "address_components": [part(kind) for kind in ("street_number", "route", "locality", "country", "postal_code")],
    }
    answers = {"/geocode/json": {"status": "OK", "results": [place]}}
    call, env = {"address": "1 Main St, Springfield"}, {"GOOGLE_MAPS_API_KEY": "key"}
    return api("google-maps", stack, "maps_geocode", call, answers, "ChIJ1", "maps.googleapis.com", "/maps/api", env)


def everart(_, stack):
    image = {
        "id": "12", "model_id": "5000", "status": "SUCCEEDED", "image_url": "https://cdn.everart.ai/12.png", "type": "txt2img", "createdAt": AT,
        "updatedAt": AT,
    }
    # It is asked again after the start; where the image is there at once, no side waits.
    answers = {"/models/": {"generations": [dict(image, status="STARTING", image_url=None)]}, "/generations/": {"generation": image}}
    call = {"prompt": "a lighthouse in the snow", "model": "5000"}
    return api("everart", stack, "generate_image", call, answers, "cdn.everart.ai", "api.everart.ai", "/v1", {"EVERART_API_KEY": "key"})


def aws_kb(_, stack):
    passage = lambda n: {
        "content": {"type": "TEXT", "text": words(n, 120)}, "score": 0.9 - n / 100, "metadata": {"x-amz-bedrock-kb-chunk-id": f"chunk{n}"},
        "location": {"type": "S3", "s3Location": {"uri": f"s3://documents/guide_{n}.txt"}},
    }
    env = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "key"}
    return api(
        "aws-kb", stack, "retrieve_from_aws_kb", {"query": "holidays", "knowledgeBaseId": "ABCDE12345", "n": 5},
        {"/retrieve": {"retrievalResults": [passage(n) for n in range(5)]}}, words(4, 120), "bedrock-agent-runtime.us-east-1.amazonaws.com", env=env,
        program=npm("aws-kb-retrieval"),
    )


APIS = {
    "github": github,
    "gitlab": gitlab,
    "slack": slack,
    "brave-search": brave_search,
    "google-maps": google_maps,
    "everart": everart,
    "aws-kb": aws_kb,
}
