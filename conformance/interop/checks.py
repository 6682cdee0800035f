"""What every Python client is asked to do with the everything server.

The twin of checks.mjs: the same names, the same expectations. `client` is the small face that
py_1.py and py_2.py give to their SDK; results are plain dictionaries in the wire's own words.
"""

import asyncio
import base64
import json
import sys
import traceback

CHECK_S_MAX = 25
UPDATE_S_MAX = 9
ROOT = {"uri": "file:///interop/root", "name": "interop root"}
TEXT = "demo://resource/dynamic/text/"
BLOB = "demo://resource/dynamic/blob/"


class LeftOut(Exception):
    """Raised by a check that the client or the revision cannot do; the message says why."""


def text(result):
    return "\n".join(block.get("text") or "" for block in result["content"])


async def until(condition, seconds, what):
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{what} did not come within {seconds} s")


async def fails(call):
    """A call that must fail: as a tool error or as a JSON-RPC error."""
    try:
        result = await call
    except Exception as error:  # noqa: BLE001 - each SDK has its own classes
        assert str(error)
        return str(error)
    assert result.get("isError") is True, f"no error: {str(result)[:200]}"
    assert text(result), "an error without words"
    return text(result)


async def refused(call):
    try:
        result = await call
    except Exception as error:  # noqa: BLE001
        assert str(error)
        return
    raise AssertionError(f"no error: {str(result)[:200]}")


async def connect(client, lane):
    assert client.version() == lane["revision"], client.version()
    assert client.server_name()


async def ping(client, lane):
    if lane["modern"]:
        raise LeftOut("2026-07-28 has no ping")
    await client.ping()


async def tools_list(client, lane):
    tools = {tool["name"]: tool for tool in await client.tools()}
    for name in ["echo", "get-sum", "get-structured-content", "get-tiny-image"]:
        assert tools[name]["inputSchema"]["type"] == "object"


async def resources_list(client, lane):
    resources = await client.resources()
    assert resources and all(item["uri"] and item["name"] for item in resources)


async def templates_list(client, lane):
    uris = [template["uriTemplate"] for template in await client.templates()]
    assert TEXT + "{resourceId}" in uris and BLOB + "{resourceId}" in uris, uris


async def prompts_list(client, lane):
    prompts = {prompt["name"]: prompt for prompt in await client.prompts()}
    arguments = {item["name"]: item for item in prompts["args-prompt"]["arguments"]}
    assert arguments["city"]["required"] is True
    assert "simple-prompt" in prompts


async def call_text(client, lane):
    message = 'grüße 你好 \U0001f600 "quoted" \\ \u2028 end'
    assert text(await client.call("echo", {"message": message})) == f"Echo: {message}"


async def call_numbers(client, lane):
    assert "42" in text(await client.call("get-sum", {"a": 2, "b": 40}))


async def call_structured(client, lane):
    result = await client.call("get-structured-content", {"location": "Chicago"})
    told = json.loads(text(result))
    assert isinstance(told["temperature"], (int, float))
    if lane["revision"] >= "2025-06-18":
        assert result["structuredContent"] == told
    elif not lane.get("reference"):
        assert result.get("structuredContent") is None


async def call_image(client, lane):
    content = (await client.call("get-tiny-image", {}))["content"]
    image = next(block for block in content if block["type"] == "image")
    assert image["mimeType"] == "image/png"
    assert base64.b64decode(image["data"])[1:4] == b"PNG"


async def call_embedded(client, lane):
    result = await client.call("get-resource-reference", {"resourceType": "Text", "resourceId": 1})
    block = next(block for block in result["content"] if block["type"] == "resource")
    assert block["resource"]["uri"] == TEXT + "1" and block["resource"]["text"]


async def call_links(client, lane):
    content = (await client.call("get-resource-links", {"count": 2}))["content"]
    links = [block for block in content if block["type"] == "resource_link"]
    if lane["revision"] >= "2025-06-18":
        assert len(links) == 2
    elif not lane.get("reference"):
        assert not links, "resource_link came with 2025-06-18"


async def call_error(client, lane):
    assert "message" in await fails(client.call("echo", {}))


async def call_unknown(client, lane):
    assert "no-such-tool" in await fails(client.call("no-such-tool", {}))


async def read_text(client, lane):
    [content] = (await client.read(TEXT + "7"))["contents"]
    assert content["uri"] == TEXT + "7" and "7" in content["text"]


async def read_blob(client, lane):
    [content] = (await client.read(BLOB + "8"))["contents"]
    assert base64.b64decode(content["blob"])


async def read_listed(client, lane):
    uri = (await client.resources())[0]["uri"]
    assert (await client.read(uri))["contents"][0]["uri"] == uri


async def read_unknown(client, lane):
    await refused(client.read("demo://no/such/resource"))


async def prompt_simple(client, lane):
    message = (await client.prompt("simple-prompt"))["messages"][0]
    assert message["role"] == "user" and message["content"]["text"]


async def prompt_args(client, lane):
    result = await client.prompt("args-prompt", {"city": "Oslo", "state": "Viken"})
    said = result["messages"][0]["content"]["text"]
    assert "Oslo" in said and "Viken" in said
    await refused(client.prompt("args-prompt", {}))


async def prompt_resource(client, lane):
    result = await client.prompt("resource-prompt", {"resourceType": "Text", "resourceId": "3"})
    blocks = [message["content"] for message in result["messages"]]
    block = next(block for block in blocks if block["type"] == "resource")
    assert block["resource"]["uri"] == TEXT + "3"


async def complete_prompt(client, lane):
    ref = {"type": "ref/prompt", "name": "completable-prompt"}
    first = await client.complete(ref, {"name": "department", "value": "E"})
    assert first["completion"]["values"] == ["Engineering"]
    if lane["revision"] >= "2025-06-18":
        argument = {"name": "name", "value": "D"}
        second = await client.complete(ref, argument, {"department": "Sales"})
        assert second["completion"]["values"] == ["David"]


async def complete_template(client, lane):
    ref = {"type": "ref/resource", "uri": TEXT + "{resourceId}"}
    found = await client.complete(ref, {"name": "resourceId", "value": "7"})
    assert found["completion"]["values"] == ["7"]


async def log_level(client, lane):
    if lane["modern"]:
        raise LeftOut("2026-07-28 has no logging/setLevel; see log-per-request")
    await client.level("debug")
    before = len(client.logs)
    await client.call("toggle-simulated-logging", {})
    await until(lambda: len(client.logs) > before, UPDATE_S_MAX, "a log message")
    await client.call("toggle-simulated-logging", {})
    assert client.logs[-1]["level"]
    await client.level("emergency")
    quiet = len(client.logs)
    await client.call("toggle-simulated-logging", {})
    await asyncio.sleep(0.3)
    await client.call("toggle-simulated-logging", {})
    assert all(message["level"] == "emergency" for message in client.logs[quiet:])


async def log_per_request(client, lane):
    if not lane["modern"]:
        raise LeftOut("a legacy session sets its level once; see log-level")
    before = len(client.logs)
    await client.call("toggle-simulated-logging", {})
    await client.call("toggle-simulated-logging", {})
    await asyncio.sleep(0.2)
    assert len(client.logs) == before, "a message that no request asked for"
    meta = {"io.modelcontextprotocol/logLevel": "debug"}
    await client.call("toggle-simulated-logging", {}, meta=meta)
    await until(lambda: len(client.logs) > before, UPDATE_S_MAX, "a log message")
    await client.call("toggle-simulated-logging", {})


async def progress(client, lane):
    steps = []

    async def on_progress(progress, total, message):
        steps.append((progress, total))

    name = "trigger-long-running-operation"
    result = await client.call(name, {"duration": 1, "steps": 4}, on_progress=on_progress)
    assert "Long running operation completed" in text(result)
    assert len(steps) >= 3, f"{len(steps)} notifications"
    assert all(total == 4 for _, total in steps)
    assert steps == sorted(set(steps)), "progress must rise"


async def cancel(client, lane):
    call = client.call("trigger-long-running-operation", {"duration": 60, "steps": 60})
    await client.cancelled_after(0.4, call)
    since = asyncio.get_running_loop().time()
    assert text(await client.call("echo", {"message": "next"})) == "Echo: next"
    assert asyncio.get_running_loop().time() - since < 3, "the next call had to wait"


def form(params):
    assert params["requestedSchema"]["type"] == "object"
    assert len(params["requestedSchema"]["properties"]) >= 8
    assert params["message"]


async def elicit_accept(client, lane):
    if lane["revision"] < "2025-06-18":
        raise LeftOut("elicitation came with 2025-06-18")

    def answer(params):
        form(params)
        return "accept", {"name": "Ada Lovelace", "check": True, "integer": 42}

    client.answer_elicit = answer
    result = await client.call("trigger-elicitation-request", {})
    assert not result.get("isError"), text(result)
    assert "Ada Lovelace" in text(result), text(result)


async def elicit_decline(client, lane):
    if lane["revision"] < "2025-06-18":
        raise LeftOut("elicitation came with 2025-06-18")
    client.answer_elicit = lambda params: ("decline", None)
    result = await client.call("trigger-elicitation-request", {})
    assert not result.get("isError"), text(result)
    assert "declin" in text(result).lower(), text(result)


async def sampling(client, lane):
    def answer(params):
        assert "a question" in json.dumps(params["messages"])
        assert params["maxTokens"] == 50
        return "sampled words"

    client.answer_sample = answer
    result = await client.call("trigger-sampling-request", {"prompt": "a question", "maxTokens": 50})
    assert "sampled words" in text(result), text(result)


async def roots(client, lane):
    result = await client.call("get-roots-list", {})
    assert ROOT["uri"] in text(result), text(result)


async def subscribe(client, lane):
    if lane["modern"]:
        raise LeftOut("2026-07-28 has subscriptions/listen; see listen")
    # Where its clients have no sessions, the server announces listed resources only.
    uri = (await client.resources())[0]["uri"] if lane.get("through") == "modern" else TEXT + "11"
    await client.subscribe(uri)
    await client.call("toggle-subscriber-updates", {})
    await until(lambda: uri in client.updated, UPDATE_S_MAX, "an update")
    await client.call("toggle-subscriber-updates", {})
    await client.unsubscribe(uri)


async def listen(client, lane):
    if not lane["modern"]:
        raise LeftOut("subscriptions/listen came with 2026-07-28")
    uri = (await client.resources())[0]["uri"]
    await client.listen(uri, UPDATE_S_MAX)


async def list_changed(client, lane):
    if lane.get("reference"):
        raise LeftOut("the reference has no tool that changes the list")

    async def has():
        return "everything_extra" in [tool["name"] for tool in await client.tools()]

    async with client.told_of_tools():
        before = await has()
        for expected in [not before, before]:
            told = client.tools_changed
            await client.call("everything_toggle_extra", {})
            await until(lambda: client.tools_changed > told, UPDATE_S_MAX, "a change")
            assert await has() == expected


async def parallel(client, lane):
    async def one(index):
        if index % 10 == 0:
            await client.call("trigger-long-running-operation", {"duration": 0.5, "steps": 2})
        result = await client.call("echo", {"message": f"number {index}"})
        assert text(result) == f"Echo: number {index}"

    await asyncio.gather(*(one(index) for index in range(40)))


RESEARCH = "simulate-research-query"
RELATED = "io.modelcontextprotocol/related-task"


def tasks_of(client, lane):
    """The face for tasks, where client and revision have them."""
    if lane["revision"] != "2025-11-25":
        raise LeftOut("tasks of this form are of 2025-11-25")
    if not hasattr(client, "tasks"):
        raise LeftOut("this client has no tasks")
    if lane.get("through") == "modern":
        raise LeftOut("a bridge does not translate tasks between eras")
    return client.tasks


async def task(client, lane):
    tasks = tasks_of(client, lane)
    made = (await tasks.make(RESEARCH, {"topic": "otters"}))["task"]
    assert made["status"] == "working" and made["ttl"] > 0 and made["pollInterval"] > 0, made
    looked = await tasks.get(made["taskId"])
    assert (looked["taskId"], looked["createdAt"]) == (made["taskId"], made["createdAt"]), looked
    # Over HTTP nobody has logged in, and there is no list; behind a bridge is a pipe.
    if lane["transport"] == "stdio" or lane.get("through") or lane.get("reference"):
        listed = (await tasks.list())["tasks"]
        assert made["taskId"] in [one["taskId"] for one in listed], listed
    else:
        await refused(tasks.list())
    for _ in range(2):
        result = await tasks.result(made["taskId"])
        assert "otters" in text(result), text(result)
        assert result["_meta"][RELATED]["taskId"] == made["taskId"], result
    assert (await tasks.get(made["taskId"]))["status"] == "completed"


async def task_ask(client, lane):
    tasks, asked, seen = tasks_of(client, lane), [], []

    def answer(params):
        asked.append(params)
        return "accept", {"interpretation": "snake"}

    client.answer_elicit = answer
    result = await tasks.whole(RESEARCH, {"topic": "python", "ambiguous": True}, seen.append)
    assert "Clarification**: snake" in text(result), text(result)
    assert "python" in asked[0]["message"], asked
    assert asked[0]["_meta"][RELATED]["taskId"], "the question names no task"
    assert "input_required" in seen, seen


async def task_cancel(client, lane):
    tasks = tasks_of(client, lane)
    made = (await tasks.make(RESEARCH, {"topic": "otters"}))["task"]
    assert (await tasks.cancel(made["taskId"]))["status"] == "cancelled"
    assert (await tasks.get(made["taskId"]))["status"] == "cancelled"
    await refused(tasks.cancel(made["taskId"]))
    await refused(tasks.result(made["taskId"]))
    await refused(tasks.get("never-was"))


CHECKS = [
    connect,
    ping,
    tools_list,
    resources_list,
    templates_list,
    prompts_list,
    call_text,
    call_numbers,
    call_structured,
    call_image,
    call_embedded,
    call_links,
    call_error,
    call_unknown,
    read_text,
    read_blob,
    read_listed,
    read_unknown,
    prompt_simple,
    prompt_args,
    prompt_resource,
    complete_prompt,
    complete_template,
    log_level,
    log_per_request,
    progress,
    cancel,
    elicit_accept,
    elicit_decline,
    sampling,
    roots,
    subscribe,
    listen,
    list_changed,
    parallel,
    task,
    task_ask,
    task_cancel,
]


def report(check, status, detail=""):
    name = check if isinstance(check, str) else check.__name__
    line = {"check": name.replace("_", "-"), "status": status, "detail": str(detail)[:600]}
    print(json.dumps(line), flush=True)


async def make_all(client, lane):
    for check in CHECKS:
        try:
            await asyncio.wait_for(check(client, lane), CHECK_S_MAX)
            report(check, "pass")
        except LeftOut as left_out:
            report(check, "skip", left_out)
        except Exception as error:  # noqa: BLE001 - a failing check is a result
            said = f"{type(error).__name__}: {error}"
            report(check, "fail", said if str(error) else traceback.format_exc(limit=-2))


def run(connected):
    """Connects with `connected(lane)`, an async context manager, and makes every check."""
    lane = json.loads(sys.argv[1])
    lane["modern"] = lane["revision"] >= "2026"

    async def main():
        started = False
        try:
            async with connected(lane) as client:
                started = True
                await make_all(client, lane)
            report("close", "pass")
        except BaseException as error:  # noqa: BLE001 - task groups raise groups
            report("close" if started else "connect", "fail", "".join(traceback.format_exception(error))[-600:])

    asyncio.run(main())
