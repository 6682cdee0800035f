"""A server with sessions that writes what a terminal would obey into everything it says. Its argument is how it misbehaves."""
import json
import sys
import time

sys.stdin.reconfigure(encoding="utf-8")
sys.stdout.reconfigure(encoding="utf-8")
sys.stderr.reconfigure(encoding="utf-8")

BAD = "\x1b]0;PWN\x07\x1b[2J\x1b[31m\x9b31m\x7f\x85\u202e\u2066\u200b\u200d\u2060\ufeff\u00ad\U000e0041\r"
MODE = sys.argv[1]


def bad(tag):
    return f"\u00ab{tag}\u00bb{BAD}"


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


asked = 0


def ask(method, params):
    global asked
    asked += 1
    send({"id": f"ask-{asked}", "method": method, "params": params})
    return json.loads(sys.stdin.readline())


INPUT = {
    "type": "object",
    "properties": {
        bad("argument"): {
            "type": "string",
            "description": bad("about-argument"),
            "enum": [bad("choice"), "x"],
            "default": bad("default"),
        },
        "argu\u200bment": {"type": bad("type")},
    },
    "required": [bad("argument"), bad("required")],
}
TOOLS = [
    {"name": "good", "title": bad("tool-title"), "description": bad("tool-about"), "inputSchema": INPUT,
     "outputSchema": {"type": "object", "properties": {bad("member"): {}}}},
    {"name": "closed", "inputSchema": {**INPUT, "additionalProperties": False}},
    {"name": bad("tool"), "inputSchema": {"type": "object"}},
    {"name": "e\u009bcho", "inputSchema": {"type": "object"}},
    {"name": bad("refused"), "inputSchema": 7},
]
if MODE == "other":
    TOOLS = TOOLS[1:] + [{"name": bad("added"), "inputSchema": {"type": "object", "title": bad("changed")}}]
    TOOLS[0]["description"] = bad("described")
RESOURCES = [{"uri": "x:/" + bad("uri"), "name": bad("resource"), "mimeType": bad("mime"), "description": bad("about-resource")},
             {"uri": "x:/no\u202ete", "name": "n"}]
TEMPLATES = [{"uriTemplate": "x:/{a}" + bad("template"), "name": bad("template-name"), "description": bad("about-template")}]
PROMPTS = [{"name": bad("prompt"), "description": bad("about-prompt"), "arguments": [{"name": bad("prompt-argument"), "required": True}]},
           {"name": "gre\x7fet"}, {"name": "hello", "arguments": [{"name": bad("prompt-argument")}]}]
FORM = {"mode": "form", "message": bad("question"), "requestedSchema": {"type": "object", "required": [bad("field")], "properties": {
    bad("field"): {"type": "string", "title": bad("field-title"), "description": bad("about-field"), "default": bad("field-default")},
    bad("picked"): {"type": "string", "enum": [bad("pick")]}}}}
CONTENT = [
    {"type": "text", "text": bad("text")},
    {"type": "image", "data": "AAAA", "mimeType": bad("image")},
    {"type": "resource_link", "uri": "x:/" + bad("link"), "name": bad("link-name"), "mimeType": bad("link-mime")},
    {"type": "resource", "resource": {"uri": "x:/y", "blob": "AAAA", "mimeType": bad("blob")}},
    {"type": "resource", "resource": {"uri": "x:/y", "text": bad("embedded")}},
]


def call(name, m):
    token = m["params"].get("_meta", {}).get("progressToken")
    if name == "good":
        return {"content": CONTENT}
    if name == "structured":
        return {"content": [], "structuredContent": {bad("structured"): 1}}
    if name == "fails":
        return {"content": [{"type": "text", "text": bad("failure")}], "isError": True}
    if name == "slow":
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 2, "message": bad("progress")}})
        send({"method": "notifications/message", "params": {"level": "error", "logger": bad("logger"), "data": bad("log")}})
    if name == "form":
        ask("elicitation/create", FORM)
    if name == "url":
        ask("elicitation/create", {"mode": "url", "message": bad("visit"), "url": "https://x.example/" + "a", "elicitationId": "e"})
    if name == "sample":
        ask("sampling/createMessage", {"maxTokens": 5, "systemPrompt": bad("system"),
                                       "messages": [{"role": "user", "content": {"type": "text", "text": bad("sampled")}}]})
    return {"content": []}


def answer(m):
    method, params = m["method"], m.get("params", {})
    if MODE == "slow" and method in ("ping", "tools/list", "resources/read", "prompts/get"):
        time.sleep(1.3)
    if MODE == "refuses":
        raise ValueError(bad("connect"))
    if method == "initialize":
        can = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}, "completions": {}, "experimental": {bad("capability"): {}}}
        return {"protocolVersion": "2025-11-25", "capabilities": can, "instructions": bad("instructions"),
                "serverInfo": {"name": bad("server"), "title": bad("title"), "version": bad("version")}}
    if method == "tools/list" and MODE != "broken":
        return {"tools": TOOLS}
    if method == "tools/call" and params["name"] in ("good", "structured", "fails", "slow", "form", "url", "sample"):
        return call(params["name"], m)
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": TEMPLATES}
    if method == "resources/read" and params["uri"] == "x:/text":
        return {"contents": [{"uri": "x:/text", "text": bad("contents")}, {"uri": "x:/b", "blob": "AAAA", "mimeType": bad("contents-mime")}]}
    if method == "prompts/list":
        return {"prompts": PROMPTS}
    if method == "prompts/get" and params["name"] == "said":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": bad("message")}}]}
    if method == "completion/complete":
        return {"completion": {"values": [bad("completed")], "hasMore": True}}
    if method in ("ping", "logging/setLevel", "resources/subscribe"):
        return {}
    raise ValueError(bad("error"))


if MODE == "dies":
    sys.stderr.write(bad("stderr") + "\n")
    sys.exit(3)
for line in sys.stdin:
    m = json.loads(line)
    if "method" not in m:
        continue
    if "id" not in m:
        if m["method"] == "notifications/initialized" and MODE == "talks":
            sys.stderr.write(bad("stderr") + "\n")
            sys.stdout.write(bad("garbage") + "\n")
            send({"method": bad("notification"), "params": {bad("param"): bad("value")}})
        continue
    try:
        if m["method"] == "server/discover":
            send({"id": m["id"], "error": {"code": -32601, "message": "unknown"}})
        else:
            send({"id": m["id"], "result": answer(m)})
    except ValueError as why:
        send({"id": m["id"], "error": {"code": -32602, "message": str(why)}})
