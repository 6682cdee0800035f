//! A small table in the manner of GitHub's API: links to pages, PATCH, a PUT that merges, a restriction to repositories, a
//! call of several steps. What must be true of every table is tried on it.

use linchpin_kit::{Service, ToolError};
use linchpin_rest::testing::Suite;
use linchpin_rest::{
    Answer, Api, Arg, Args, Ask, Call, Key, Limits, Pages, Problems, Reset, Rest, Scope, get, int, list, object,
    one_of, patch, post, put, segment, segments, specs, text,
};
use serde_json::json;

const OWNER: Arg = segment("owner");
const REPO: Arg = segment("repo");
const NUMBER: Arg = int("issue_number").range(1, i64::MAX);
const ISSUE: &str = "number title state user.login labels.name body:4000 html_url";

pub(crate) const CALLS: &[Call] =
    &[
        get("list_issues", "List issues", "issues", "Lists issues.", "/repos/{owner}/{repo}/issues")
            .args(&[
                OWNER,
                REPO,
                one_of("state", &["open", "closed", "all"]).default("open"),
                list("labels").comma().opt(),
                int("perPage").wire("per_page").range(1, 100).default("30").aliases(&["per_page"]),
            ])
            .list("")
            .keep("number title user.login")
            .trusted(|issue| matches!(issue["author_association"].as_str(), Some("OWNER" | "MEMBER" | "COLLABORATOR"))),
        get("get_issue", "Get an issue", "issues", "Reads an issue.", "/repos/{owner}/{repo}/issues/{issue_number}")
            .args(&[OWNER, REPO, NUMBER])
            .keep(ISSUE)
            .fields(),
        post("create_issue", "Create an issue", "issues", "Creates an issue.", "/repos/{owner}/{repo}/issues")
            .args(&[OWNER, REPO, text("title"), text("body").opt(), list("labels").opt(), int("milestone").opt()])
            .keep(ISSUE),
        patch(
            "update_issue",
            "Update an issue",
            "issues",
            "Changes an issue.",
            "/repos/{owner}/{repo}/issues/{issue_number}",
        )
        .args(&[OWNER, REPO, NUMBER, text("title").opt(), one_of("state", &["open", "closed"]).opt()])
        .keep(ISSUE),
        put(
            "merge_pull_request",
            "Merge",
            "pulls",
            "Merges a pull request.",
            "/repos/{owner}/{repo}/pulls/{pull_number}/merge",
        )
        .args(&[
            OWNER,
            REPO,
            int("pull_number").aliases(&["pullNumber"]),
            one_of("merge_method", &["merge", "squash"]).opt(),
        ])
        .once(),
        get("get_file_contents", "Get a file", "repos", "Reads a file.", "/repos/{owner}/{repo}/contents/{path}")
            .args(&[OWNER, REPO, segments("path"), text("branch").wire("ref").opt()]),
        get("search_issues", "Search issues", "search", "Searches issues.", "/search/issues")
            .args(&[text("q").chars(256), int("page").range(1, 100).opt()])
            .list("items")
            .beside("total_count")
            .keep(ISSUE)
            .narrowed(
                |ask, only| {
                    let asked = ask.query_of("q").unwrap_or_default().to_owned();
                    let repos: String = only.iter().map(|repo| format!(" repo:{repo}")).collect();
                    ask.set_query("q", format!("{asked}{repos}"))
                },
                |issue, only| {
                    let repo = issue["repository_url"].as_str().unwrap_or_default();
                    only.iter().any(|one| repo.ends_with(&format!("/repos/{one}")))
                },
            ),
        get("get_me", "Who am I", "users", "Reads who the token is.", "/user").keep("login id").always(),
        post("push_file", "Push a file", "repos", "Commits a file.", "")
            .args(&[OWNER, REPO, text("branch"), object("file", FILE), text("message")])
            .destructive()
            .run(|rest, args| Box::pin(push_file(rest, args))),
    ];

const FILE: &str = r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#;

pub(crate) const API: Api = Api::new("github", "GitHub", "https://api.github.example", CALLS)
    .base_variables(&["GITHUB_API_URL"])
    .key(Key::bearer(&["GITHUB_PERSONAL_ACCESS_TOKEN", "GITHUB_TOKEN"]).obtain("Create one in the settings."))
    .headers(&[("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")])
    .pages(Pages::Link(&["page", "after"]))
    .limits(Limits {
        statuses: &[403],
        size: "x-ratelimit-limit",
        remaining: "x-ratelimit-remaining",
        reset: Reset::At("x-ratelimit-reset"),
        pace_ms: 0,
    })
    .problems(
        Problems::PLAIN
            .words(&[
                (404, "Not Found: it does not exist, or the token cannot see it"),
                (422, "Validation Error"),
                (429, "Rate Limit Exceeded"),
                (0, "GitHub API Error: {status} {reason}"),
            ])
            .message(&["message", "errors"]),
    )
    .scope(Scope::Segments(&["owner", "repo"]))
    .authors("users of GitHub");

pub(crate) const SERVICE: Service = Service { name: "github", tools: &specs::<{ CALLS.len() }>(CALLS) };

/// Reads the tip of the branch, commits on it, and moves the branch: never by force.
async fn push_file(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    const REF: &str = "/repos/{owner}/{repo}/git/refs/{ref}";
    let branch = format!("heads/{}", args.text("branch"));
    let tip = rest.send(Ask::get(REF).fill(&args).segments("ref", branch.as_str())).await?.json()?;
    let Some(sha) = tip.pointer("/object/sha").and_then(|sha| sha.as_str()) else {
        return Err(ToolError::not_found("The branch has no commit"));
    };
    let file = args.get("file").cloned().unwrap_or_default();
    let tree =
        json!({ "base_tree": sha, "tree": [{ "path": file["path"], "mode": "100644", "content": file["content"] }] });
    let tree = rest.send(Ask::post("/repos/{owner}/{repo}/git/trees").fill(&args).json(tree)).await?.json()?;
    let commit = json!({ "message": args.text("message"), "tree": tree["sha"], "parents": [sha] });
    let commit = rest.send(Ask::post("/repos/{owner}/{repo}/git/commits").fill(&args).json(commit)).await?.json()?;
    let moved = Ask::patch(REF).fill(&args).segments("ref", branch).json(json!({ "sha": commit["sha"] }));
    Ok(rest.send(moved).await?.json()?.into())
}

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/github.json"))
}

#[tokio::test]
async fn every_row_makes_requests_that_the_description_allows() {
    suite().contract().await;
}

#[tokio::test]
async fn no_argument_leads_a_request_elsewhere() {
    suite().hostile_arguments().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_every_row_says_what_happened() {
    suite().faults().await;
}
