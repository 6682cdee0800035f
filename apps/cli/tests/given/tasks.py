"""A server of 2026-07-28 that keeps nothing: the identifier of a task says where it is."""

import json
import sys

DONE = {"content": [{"type": "text", "text": "the report"}], "isError": False}
FORM = {
    "method": "elicitation/create",
    "params": {
        "message": "Publish it?",
        "requestedSchema": {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]},
    },
}
MORE = {
    "t-done": {"status": "completed", "result": DONE},
    "t-bad": {"status": "completed", "result": {"content": [{"type": "text", "text": "no paper"}], "isError": True}},
    "t-failed": {"status": "failed", "statusMessage": "no ink", "error": {"code": -32000, "message": "out of ink"}},
    "t-gone": {"status": "cancelled", "statusMessage": "by the boss"},
    "t-slow": {"status": "working", "statusMessage": "one of two"},
    "t-ask": {"status": "input_required", "statusMessage": "asks", "inputRequests": {"publish": FORM}},
}


def task(name):
    at = "2026-08-01T10:30:00.000Z"
    return {"taskId": name, "createdAt": at, "lastUpdatedAt": at, "ttlMs": 60000, "pollIntervalMs": 100}


def answer(method, params):
    name = params.get("taskId")
    if method == "server/discover":
        extensions = {"io.modelcontextprotocol/tasks": {}}
        capabilities = {"tools": {}, "extensions": extensions}
        return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "public"}
    if method == "tools/list":
        tools = [{"name": "report", "inputSchema": {"type": "object", "properties": {"as": {"type": "string"}}}}]
        return {"tools": tools, "ttlMs": 0, "cacheScope": "public"}
    if method == "tools/call":
        named = params.get("arguments", {}).get("as", "t-done")
        return {**task(named), "status": "working", "resultType": "task"}
    if method == "tasks/get" and name in MORE:
        return {**task(name), **MORE[name]}
    if method in ("tasks/update", "tasks/cancel") and name in MORE:
        return {}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        code = -32602 if message["method"].startswith("tasks/") else -32601
        reply["error"] = {"code": code, "message": "there is no such task"}
    else:
        reply["result"] = {"resultType": "complete", **result}
    print(json.dumps(reply), flush=True)
