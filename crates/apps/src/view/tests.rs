use super::*;

use linchpin_types::tool::Tool;

fn tool(name: &str, visibility: Value) -> Tool {
    let meta = match visibility {
        Value::Null => json!({}),
        visibility => json!({ "ui": { "resourceUri": "ui://a", "visibility": visibility } }),
    };
    let tool = json!({ "name": name, "inputSchema": { "type": "object" }, "_meta": meta });
    serde_json::from_value(tool).unwrap()
}

fn grant() -> Grant {
    let tools = [
        tool("both", Value::Null),
        tool("tick", json!(["app"])),
        tool("think", json!(["model"])),
        tool("odd", json!(7)),
    ];
    Grant::new().tools(&tools).links(true).messages(true).resources(true)
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }).to_string()
}

fn note(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

fn sent(acts: &[Act]) -> Vec<Value> {
    let text = |act: &Act| match act {
        Act::Send(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    };
    acts.iter().filter_map(text).collect()
}

/// A view whose page is ready.
fn ready(grant: Grant) -> View {
    let mut view = View::new(&PageMeta::default(), grant);
    let now = Instant::now();
    let hello =
        json!({ "protocolVersion": VERSION, "appCapabilities": { "availableDisplayModes": ["inline", "fullscreen"] } });
    let answer = sent(&view.receive(now, &request(0, "ui/initialize", hello))).remove(0);
    assert_eq!((&answer["result"]["protocolVersion"], &answer["id"]), (&json!(VERSION), &json!(0)));
    assert!(matches!(view.receive(now, &note("ui/notifications/initialized", json!({})))[..], [Act::Ready]));
    view.heard.clear();
    view
}

fn code(view: &mut View, text: &str) -> Value {
    let acts = view.receive(Instant::now(), text);
    view.heard.clear();
    assert!(acts.iter().any(|act| matches!(act, Act::Refused(_))), "{text}: {acts:?}");
    sent(&acts).first().map_or(Value::Null, |answer| answer["error"]["code"].clone())
}

#[test]
fn nothing_is_sent_before_the_handshake_and_input_comes_once_and_before_the_result() {
    let mut view = View::new(&PageMeta::default(), grant());
    let result = to_raw_value(&json!({ "content": [] })).unwrap();
    view.context(json!({ "theme": "dark" }).as_object().unwrap());
    // However many parts there are, the latest is told and nothing else is lost.
    for n in 0..1_000 {
        assert!(view.tell_partial(&json!({ "n": n })).is_empty());
    }
    for acts in [
        view.tell_partial(&json!({ "a": 0 })),
        view.tell_partial(&json!({ "a": 1 })),
        view.tell_input(&json!({ "a": 1, "b": 2 })),
        view.tell_partial(&json!({ "late": 1 })),
        view.tell_input(&json!({ "twice": 1 })),
        view.tell_result(&result),
        view.tell_result(&result),
        view.tell_cancelled("late"),
    ] {
        assert!(acts.is_empty(), "{acts:?}");
    }
    let now = Instant::now();
    let early = sent(&view.receive(now, &request(1, "tools/call", json!({ "name": "both" }))));
    assert_eq!(early[0]["error"]["code"], INVALID_REQUEST);
    assert!(matches!(view.receive(now, &note("ui/notifications/initialized", json!({})))[..], [Act::Refused(_)]));
    let answer = sent(&view.receive(now, &request("i", "ui/initialize", json!({})))).remove(0);
    assert_eq!(answer["result"]["hostContext"]["theme"], "dark");
    assert_eq!(
        answer["result"]["hostCapabilities"],
        json!({ "logging": {}, "openLinks": {}, "serverTools": {}, "serverResources": {} })
    );
    let told = sent(&view.receive(now, &note("ui/notifications/initialized", json!({}))));
    let methods: Vec<_> = told.iter().map(|told| told["method"].as_str().unwrap()).collect();
    assert_eq!(
        methods,
        ["tool-input-partial", "tool-input", "tool-result"].map(|name| format!("ui/notifications/{name}"))
    );
    assert_eq!(told[0]["params"]["arguments"], json!({ "a": 1 }));
    assert_eq!(told[1]["params"]["arguments"], json!({ "a": 1, "b": 2 }));
    // A result without arguments is still preceded by them.
    let mut view = ready(grant());
    let methods: Vec<_> = sent(&view.tell_result(&result)).iter().map(|told| told["method"].clone()).collect();
    assert_eq!(methods, ["ui/notifications/tool-input", "ui/notifications/tool-result"]);
}

#[test]
fn a_page_calls_the_tools_of_its_server_that_are_for_apps_and_nothing_else() {
    let mut view = ready(grant());
    let now = Instant::now();
    for name in ["both", "tick"] {
        let acts = view.receive(now, &request(name, "tools/call", json!({ "name": name, "arguments": { "a": 1 } })));
        assert!(
            matches!(&acts[..], [Act::CallTool { name: called, arguments, .. }] if called == name && arguments["a"] == 1)
        );
        let answer = sent(&view.answer(&json!(name), &to_raw_value(&json!({ "content": [] })).unwrap()));
        assert_eq!(answer[0], json!({ "jsonrpc": "2.0", "id": name, "result": { "content": [] } }));
        assert!(view.agree(&json!(name)).is_empty(), "it was answered");
    }
    for (text, expected) in [
        (request(1, "tools/call", json!({ "name": "think" })), INVALID_PARAMS),
        (request(1, "tools/call", json!({ "name": "odd" })), INVALID_PARAMS),
        (request(1, "tools/call", json!({ "name": "of_another_server" })), INVALID_PARAMS),
        (request(1, "tools/call", json!({ "name": 7 })), INVALID_PARAMS),
        (request(1, "initialize", json!({})), METHOD_NOT_FOUND),
        (request(1, "tools/list", json!({})), METHOD_NOT_FOUND),
        (request(1, "tasks/cancel", json!({ "taskId": "tk_x" })), METHOD_NOT_FOUND),
        (request(1, "sampling/createMessage", json!({})), METHOD_NOT_FOUND),
        (request(1, "ui/initialize", json!({})), INVALID_REQUEST),
        (request(1, "ui/open-link", json!({ "url": "javascript:alert(1)" })), REFUSED),
        (request(1, "ui/open-link", json!({ "url": "https://a.example/ b" })), REFUSED),
        (request(1, "ui/request-display-mode", json!({ "mode": "pip" })), INVALID_PARAMS),
    ] {
        assert_eq!(code(&mut view, &text), expected, "{text}");
    }
    let mut view = ready(Grant::new());
    for method in ["resources/read", "ui/open-link", "ui/message", "ui/update-model-context"] {
        let params = json!({ "uri": "a://b", "url": "https://a.example" });
        assert_eq!(code(&mut view, &request(1, method, params)), REFUSED, "{method}");
    }
    assert_eq!(code(&mut view, &request(1, "tools/call", json!({ "name": "both" }))), INVALID_PARAMS);
}

#[test]
fn what_the_user_decides_is_passed_to_the_page() {
    let mut view = ready(grant());
    let now = Instant::now();
    let link = view.receive(now, &request(1, "ui/open-link", json!({ "url": "https://a.example" })));
    assert!(matches!(&link[..], [Act::OpenLink { url, .. }] if url == "https://a.example"));
    assert_eq!(sent(&view.refuse(&json!(1)))[0]["error"]["code"], REFUSED);
    assert!(matches!(view.receive(now, &request(2, "ui/message", json!({ "role": "user" })))[..], [Act::Say { .. }]));
    assert_eq!(sent(&view.agree(&json!(2)))[0]["result"], json!({}));
    let context = view.receive(now, &request(3, "ui/update-model-context", json!({ "content": [] })));
    assert!(matches!(context[..], [Act::ModelContext(_), Act::Send(_)]));
    let mode = view.receive(now, &request(4, "ui/request-display-mode", json!({ "mode": "fullscreen" })));
    assert!(matches!(&mode[..], [Act::DisplayMode { mode, .. }] if mode == "fullscreen"));
    assert!(matches!(
        view.receive(now, &request(5, "resources/read", json!({ "uri": "a://b" })))[..],
        [Act::ReadResource { .. }]
    ));
    assert_eq!(sent(&view.receive(now, &request(6, "ping", json!({}))))[0]["result"], json!({}));
    let size = view.receive(now, &note("ui/notifications/size-changed", json!({ "width": 400, "height": 300.5 })));
    assert!(matches!(size[..], [Act::Resize { width: Some(_), height: Some(_) }]));
    assert!(matches!(view.receive(now, &note("notifications/message", json!({ "level": "info" })))[..], [Act::Log(_)]));
}

#[test]
fn a_page_that_floods_lies_or_sends_too_much_is_cut_once_and_stays_cut() {
    let now = Instant::now();
    let mut view = ready(grant());
    let cut = (0..200).map(|_| view.receive(now, &request(1, "ping", json!({})))).collect::<Vec<_>>();
    assert_eq!(cut.iter().filter(|acts| matches!(acts[..], [Act::Refused(_), Act::Remove])).count(), 1);
    assert!(cut[150..].iter().all(Vec::is_empty) && view.tell_input(&json!({})).is_empty());
    // Slower is fine.
    let mut view = ready(grant());
    for n in 0..300_u32 {
        assert_eq!(view.receive(now + Duration::from_millis(11) * n, &request(1, "ping", json!({}))).len(), 1);
    }
    let mut view = ready(grant());
    let large = request(1, "ui/message", json!({ "text": "x".repeat(10 << 20) }));
    assert!(matches!(view.receive(now, &large)[..], [Act::Refused(_), Act::Remove]));

    let mut view = ready(grant());
    for text in [
        "",
        "7",
        "null",
        "[]",
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"ui/notifications/size-changed","params":{"width":-1}}"#,
        r#"{"jsonrpc":"2.0","method":"ui/notifications/size-changed","params":{"width":1e999}}"#,
        r#"{"jsonrpc":"2.0","method":"ui/notifications/sandbox-proxy-ready"}"#,
        r#"{"jsonrpc":"2.0","method":"ui/notifications/tool-result"}"#,
    ] {
        assert!(matches!(view.receive(now, text)[..], [Act::Refused(_)]), "{text}");
    }
    view.heard.clear();
    for n in 0..REQUESTS_MAX {
        assert_eq!(view.receive(now, &request(n, "tools/call", json!({ "name": "both" }))).len(), 1);
    }
    assert_eq!(code(&mut view, &request(8, "tools/call", json!({ "name": "both" }))), REFUSED);
    assert_eq!(code(&mut view, &request(7, "ping", json!({}))), INVALID_REQUEST, "the id is in use");
    view.agree(&json!(7));
    assert_eq!(view.receive(now, &request(8, "tools/call", json!({ "name": "both" }))).len(), 1);
}

#[test]
fn a_page_is_removed_when_it_has_answered_or_after_two_seconds() {
    let now = Instant::now();
    let mut view = ready(grant());
    let ask = sent(&view.teardown(now, "closed")).remove(0);
    assert_eq!((&ask["method"], &ask["params"]["reason"]), (&json!("ui/resource-teardown"), &json!("closed")));
    assert!(view.teardown(now, "again").is_empty());
    let response = json!({ "jsonrpc": "2.0", "id": ask["id"], "result": {} }).to_string();
    assert!(matches!(view.receive(now, &response)[..], [Act::Remove]));
    assert_eq!(view.deadline(), None);

    let mut view = ready(grant());
    view.teardown(now, "closed");
    assert!(view.tick(now + Duration::from_millis(1_999)).is_empty());
    assert!(matches!(view.tick(view.deadline().unwrap())[..], [Act::Remove]));
    assert!(view.tick(now + Duration::from_secs(9)).is_empty());
    assert!(matches!(View::new(&PageMeta::default(), grant()).teardown(now, "early")[..], [Act::Remove]));
}

proptest::proptest! {
    #[test]
    fn whatever_a_page_says_only_what_is_granted_is_done(texts in proptest::collection::vec(".{0,60}", 0..8), methods in proptest::collection::vec("[a-z/-]{0,24}", 0..20)) {
        let mut view = ready(Grant::new());
        let now = Instant::now();
        for text in texts.into_iter().chain(methods.iter().map(|method| request(1, method, json!({ "name": "both" })))) {
            for act in view.receive(now, &text) {
                proptest::prop_assert!(matches!(act, Act::Send(_) | Act::Refused(_) | Act::Log(_) | Act::Resize { .. } | Act::Remove), "{act:?}");
            }
        }
    }
}
