//! The inputs and results of handlers, as a client sees them: content, progress, logs, completion, layers.

use crate::common;

use common::{ALL, LEGACY, MODERN, Peer, code, failed, service, text, until};
use linchpin::Completion;
use linchpin::prelude::*;
use linchpin::types::prompt::GetPromptResult;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Serialize, JsonSchema)]
struct Report {
    city: String,
    degrees: i64,
}

#[tokio::test]
async fn unknown_tools_and_prompts_are_errors_with_a_near_miss() {
    let server =
        Server::new("x", "1").tool("forecast", |_: NoArgs| async { "x" }).prompt("briefing", |_: NoArgs| async { "x" });
    let mut peer = Peer::plain(server, MODERN).await;
    for (method, name, near) in [("tools/call", "forcast", "forecast"), ("prompts/get", "brifing", "briefing")] {
        let answer = peer.ask(method, json!({ "name": name })).await;
        assert_eq!(code(&answer), -32602);
        assert!(answer["error"]["message"].as_str().unwrap().contains(&format!("did you mean `{near}`")), "{answer}");
    }
    let far = peer.call(&"x".repeat(10_000), json!({})).await;
    assert!(far["error"]["message"].as_str().unwrap().len() < 200, "a name that a peer chose is cut");
}

#[tokio::test]
async fn failures_of_the_tool_are_results_and_protocol_errors_are_errors() {
    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the table could not be read")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let server = Server::new("x", "1")
        .tool("tool_error", |_: NoArgs| async { Err::<String, _>(Error::tool("no such day")) })
        .tool("any_error", |_: NoArgs| async { Err::<String, _>("just words".to_owned()) })
        .tool("chain", |_: NoArgs| async {
            Err::<String, Error>("x".parse::<i32>().map_err(Outer).unwrap_err().into())
        })
        .tool("protocol", |_: NoArgs| async {
            Err::<String, _>(Error::protocol_with(4711, "own code", json!({ "x": 1 })))
        })
        .resource("a:b", |_: NoArgs| async { Err::<String, _>(Error::tool("disk on fire")) })
        .prompt("p", |_: NoArgs| async { Err::<String, _>("no prompt today".to_owned()) });
    let mut peer = Peer::plain(server, "2025-11-25").await;
    assert_eq!(failed(&peer.call("tool_error", json!({})).await), "no such day");
    assert_eq!(failed(&peer.call("any_error", json!({})).await), "just words");
    assert_eq!(failed(&peer.call("chain", json!({})).await), "the table could not be read", "causes stay in the log");
    let answer = peer.call("protocol", json!({})).await;
    assert_eq!((code(&answer), &answer["error"]["data"]), (4711, &json!({ "x": 1 })));
    assert_eq!(code(&peer.ask("resources/read", json!({ "uri": "a:b" })).await), -32603);
    assert_eq!(code(&peer.ask("prompts/get", json!({ "name": "p" })).await), -32603);
}

#[tokio::test]
async fn every_kind_of_answer_is_written_as_its_schema_says() {
    let server = Server::new("content", "1")
        .tool("text", |_: NoArgs| async { "plain" })
        .tool("nothing", |_: NoArgs| async {})
        .tool("image", |_: NoArgs| async { ContentBlock::image_base64("iVBORw0=", "image/png") })
        .tool("json", |_: NoArgs| async { Json(Report { city: "Oslo \"x\"".into(), degrees: -3 }) })
        .tool("structured", |_: NoArgs| async {
            Structured { text: "cold".into(), value: Report { city: "Oslo".into(), degrees: -3 } }
        })
        .tool("bare", |_: NoArgs| async {
            let value = serde_json::value::to_raw_value(&json!({ "degrees": 7 })).expect("JSON");
            CallToolResult::default().with_structured_content(value)
        })
        .resource("a:text", |_: NoArgs| async { "t" })
        .resource("a:bytes", |_: NoArgs| async { vec![0_u8, 255, 16] })
        .resource("a:markdown", |_: NoArgs| async { Markdown("# x".into()) })
        .resource(Resource::new("a:typed").mime_type("text/css"), |_: NoArgs| async { "x" })
        .resource("a:nothing", |_: NoArgs| async { Vec::<ResourceContents>::new() });
    let mut peer = Peer::plain(server, "2025-11-25").await;
    let content = |answer: Value| answer["result"]["content"].clone();
    assert_eq!(content(peer.call("text", json!({})).await), json!([{ "type": "text", "text": "plain" }]));
    assert_eq!(content(peer.call("nothing", json!({})).await), json!([]));
    assert_eq!(
        content(peer.call("image", json!({})).await),
        json!([{ "type": "image", "data": "iVBORw0=", "mimeType": "image/png" }])
    );
    let answer = peer.call("json", json!({})).await;
    assert_eq!(answer["result"]["structuredContent"], json!({ "city": "Oslo \"x\"", "degrees": -3 }));
    assert_eq!(
        serde_json::from_str::<Value>(text(&answer)).unwrap(),
        answer["result"]["structuredContent"],
        "the same as text"
    );
    let answer = peer.call("structured", json!({})).await;
    assert_eq!((text(&answer), &answer["result"]["structuredContent"]["degrees"]), ("cold", &json!(-3)));
    let answer = peer.call("bare", json!({})).await;
    assert_eq!((text(&answer), &answer["result"]["structuredContent"]), (r#"{"degrees":7}"#, &json!({ "degrees": 7 })));
    let listed = peer.ask("tools/list", json!({})).await["result"]["tools"].clone();
    let output = &listed[3]["outputSchema"];
    assert_eq!((&output["type"], &output["required"]), (&json!("object"), &json!(["city", "degrees"])));
    assert!(listed.as_array().unwrap().iter().all(|t| t["inputSchema"]["type"] == "object"));
    #[cfg(feature = "validate")]
    assert!(!output.to_string().contains("int64"), "no format that only Rust knows: {output}");
    let rows = [
        ("a:text", json!({ "uri": "a:text", "text": "t" })),
        ("a:bytes", json!({ "uri": "a:bytes", "blob": "AP8Q" })),
        ("a:markdown", json!({ "uri": "a:markdown", "text": "# x", "mimeType": "text/markdown" })),
        ("a:typed", json!({ "uri": "a:typed", "text": "x", "mimeType": "text/css" })),
    ];
    for (uri, expected) in rows {
        assert_eq!(peer.ask("resources/read", json!({ "uri": uri })).await["result"]["contents"], json!([expected]));
    }
    assert_eq!(code(&peer.ask("resources/read", json!({ "uri": "a:nothing" })).await), -32002, "never empty contents");
}

#[tokio::test]
async fn templates_take_uris_apart_and_refuse_what_does_not_fit() {
    #[derive(Deserialize, JsonSchema)]
    struct At {
        city: String,
        day: u8,
    }
    let server = Server::new("x", "1")
        .resource("weather://{city}/{day}", |at: At| async move { format!("{} {}", at.city, at.day) })
        .resource("weather://Oslo/7", |_: NoArgs| async { "the very one" });
    let mut peer = Peer::plain(server, MODERN).await;
    let mut read = async |uri: &str| peer.ask("resources/read", json!({ "uri": uri })).await;
    assert_eq!(read("weather://S%C3%A3o%20Paulo/3").await["result"]["contents"][0]["text"], "São Paulo 3");
    assert_eq!(read("weather://Oslo/7").await["result"]["contents"][0]["text"], "the very one");
    for bad in ["weather://Oslo/seven", "weather://Oslo/300", "weather://Oslo", "weather://a/b/c", "weather:///../3"] {
        assert_eq!(code(&read(bad).await), -32602, "{bad}");
    }
}

#[tokio::test]
async fn a_handler_takes_any_of_state_context_and_arguments_async_or_not() {
    struct App(&'static str);
    #[derive(Deserialize, JsonSchema)]
    struct Q {
        n: i64,
    }
    impl App {
        fn plain(&self, cx: &Cx, q: Q) -> String {
            format!("{} {} {}", self.0, cx.is_cancelled(), q.n)
        }
        async fn later(&self, cx: &Cx, q: Q) -> String {
            tokio::task::yield_now().await;
            self.plain(cx, q)
        }
    }
    async fn nothing() -> &'static str {
        "nothing"
    }
    fn fails(q: Q) -> Result<String> {
        Err(Error::tool(format!("not {}", q.n)))
    }
    fn panics() -> String {
        panic!("in a plain function")
    }
    let server = Server::new("x", "1")
        .state(App("app"))
        .tool("nothing", nothing)
        .tool("nothing_closure", || async { "nothing" })
        .tool("nothing_plain", || "nothing")
        .tool("args", |q: Q| async move { q.n.to_string() })
        .tool("args_plain", |q: Q| q.n.to_string())
        .tool("state", async |app: &App| app.0)
        .tool("state_plain", |app: &App| app.0.to_owned())
        .tool("cx", async |cx: &Cx| cx.is_cancelled().to_string())
        .tool("cx_plain", |cx: &Cx| cx.is_cancelled().to_string())
        .tool("state_cx", async |app: &App, cx: &Cx| format!("{} {}", app.0, cx.is_cancelled()))
        .tool("state_cx_plain", |app: &App, cx: &Cx| format!("{} {}", app.0, cx.is_cancelled()))
        .tool("state_args", async |app: &App, q: Q| format!("{} {}", app.0, q.n))
        .tool("state_args_plain", |app: &App, q: Q| format!("{} {}", app.0, q.n))
        .tool("cx_args", async |cx: &Cx, q: Q| format!("{} {}", cx.is_cancelled(), q.n))
        .tool("cx_args_plain", |cx: &Cx, q: Q| format!("{} {}", cx.is_cancelled(), q.n))
        .tool("state_cx_args", App::later)
        .tool("state_cx_args_plain", App::plain)
        .tool("fails", fails)
        .tool("panics", panics)
        .resource("app://name", |app: &App| app.0.to_owned())
        .prompt("greet", |app: &App| PromptMessage::user(app.0))
        .state(());
    let mut peer = Peer::plain(server, MODERN).await;
    let cases = [
        ("nothing", "nothing"),
        ("nothing_closure", "nothing"),
        ("nothing_plain", "nothing"),
        ("args", "7"),
        ("args_plain", "7"),
        ("state", "app"),
        ("state_plain", "app"),
        ("cx", "false"),
        ("cx_plain", "false"),
        ("state_cx", "app false"),
        ("state_cx_plain", "app false"),
        ("state_args", "app 7"),
        ("state_args_plain", "app 7"),
        ("cx_args", "false 7"),
        ("cx_args_plain", "false 7"),
        ("state_cx_args", "app false 7"),
        ("state_cx_args_plain", "app false 7"),
    ];
    for (name, want) in cases {
        assert_eq!(text(&peer.call(name, json!({ "n": 7 })).await), want, "{name}");
        if name.contains("args") {
            assert!(failed(&peer.call(name, json!({ "n": "x" })).await).contains("expected an integer"), "{name}");
        }
    }
    assert_eq!(failed(&peer.call("fails", json!({ "n": 7 })).await), "not 7");
    assert!(failed(&peer.call("panics", json!({})).await).contains("stopped unexpectedly"));
    let listed = peer.ask("tools/list", json!({})).await["result"]["tools"].clone();
    assert_eq!(listed[0]["inputSchema"], json!({ "type": "object", "properties": {} }));
    assert_eq!(listed[16]["inputSchema"]["required"], json!(["n"]));
    let read = peer.ask("resources/read", json!({ "uri": "app://name" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "app");
    let got = peer.ask("prompts/get", json!({ "name": "greet" })).await;
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "app");
}

#[tokio::test]
async fn a_resource_knows_the_uri_that_was_asked_for() {
    #[derive(Deserialize, JsonSchema)]
    struct Page {
        name: String,
    }
    let server = Server::new("x", "1")
        .tool("tool", |cx: &Cx| format!("{:?}", cx.uri()))
        .resource("notes://all", |cx: &Cx| format!("{:?}", cx.uri()))
        .resource("notes://{name}/page", |cx: &Cx, page: Page| format!("{:?} {}", cx.uri(), page.name));
    let mut peer = Peer::plain(server, "2025-11-25").await;
    for (uri, want) in
        [("notes://all", r#"Some("notes://all")"#), ("notes://S%C3%A3o/page", r#"Some("notes://S%C3%A3o/page") São"#)]
    {
        let read = peer.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["result"]["contents"][0], json!({ "uri": uri, "text": want }), "{read}");
    }
    // A URI may contain JSON escapes.
    let escaped = r#"{"jsonrpc":"2.0","id":"e","method":"resources/read","params":{"uri":"notes:\/\/all"}}"#;
    peer.send_line(escaped.as_bytes()).await;
    assert_eq!(peer.answer("e").await["result"]["contents"][0]["text"], r#"Some("notes://all")"#);
    assert_eq!(text(&peer.call("tool", json!({})).await), "None");
}

#[tokio::test]
async fn arguments_of_prompts_can_be_declared_at_run_time() {
    use std::collections::BTreeMap;

    #[derive(Deserialize, JsonSchema)]
    struct Named {
        /// As the type has it.
        name: String,
    }
    let given = |given: BTreeMap<String, String>| format!("{given:?}");
    let read = Prompt::new("read", "").argument("file", "Which file.", true).argument("line", "", false);
    let server = Server::new("x", "1")
        .prompt(read.complete("file", |asked: Completion| async move { asked.filter(["a.rs"]) }), given)
        .prompt(Prompt::new("typed", "").argument("name", "Said anew.", true), |q: Named| q.name);
    let mut peer = Peer::plain(server, "2025-11-25").await;
    let listed = peer.ask("prompts/list", json!({})).await["result"]["prompts"].clone();
    let file = json!({ "name": "file", "description": "Which file.", "required": true });
    assert_eq!(listed[0]["arguments"], json!([file, { "name": "line", "required": false }]));
    assert_eq!(listed[1]["arguments"], json!([{ "name": "name", "description": "Said anew.", "required": true }]));
    let missing = peer.ask("prompts/get", json!({ "name": "read", "arguments": { "line": "3" } })).await;
    assert_eq!(code(&missing), -32602);
    let got = peer.ask("prompts/get", json!({ "name": "read", "arguments": { "file": "a.rs", "line": "3" } })).await;
    assert_eq!(got["result"]["messages"][0]["content"]["text"], r#"{"file": "a.rs", "line": "3"}"#);

    let wrong = Server::new("x", "1").prompt(Prompt::new("typed", "").argument("nmae", "", true), |q: Named| q.name);
    let why = wrong.serve(memory().0).await.unwrap_err().to_string();
    assert!(why.contains("declares the argument `nmae`, which its handler does not take"), "{why}");
}

#[tokio::test]
async fn a_layer_changes_what_an_answer_says() {
    async fn redacted(call: Call, next: Next) -> Reply {
        let name = call.name().to_owned();
        let mut reply = next.run(call).await;
        reply.map_text(|text| text.contains("secret").then(|| text.replace("secret", &name)));
        reply
    }
    #[derive(Serialize, JsonSchema)]
    struct Found {
        word: &'static str,
    }
    let server = Server::new("x", "1")
        .layer(redacted)
        .tool("text", || "the secret word")
        .tool("json", || Json(Found { word: "secret" }))
        .tool("fails", || Err::<String, _>("no secret"))
        .resource("a:b", || "secret");
    let mut peer = Peer::plain(server, MODERN).await;
    assert_eq!(text(&peer.call("text", json!({})).await), "the text word");
    let found = peer.call("json", json!({})).await;
    assert_eq!(
        (text(&found), &found["result"]["structuredContent"]),
        (r#"{"word":"json"}"#, &json!({ "word": "json" }))
    );
    assert_eq!(failed(&peer.call("fails", json!({})).await), "no fails");
    let read = peer.ask("resources/read", json!({ "uri": "a:b" })).await;
    assert_eq!(
        (&read["result"]["contents"][0]["text"], &read["result"]["resultType"]),
        (&json!("a:b"), &json!("complete"))
    );
}

#[derive(Default)]
struct Works;
impl Works {
    async fn count(&self, cx: &Cx, _: NoArgs) -> &'static str {
        for done in [1.0, 2.0, 2.0, 1.0, f64::NAN, f64::INFINITY, 3.5] {
            cx.progress_with(done, Some(4.0), "one more");
        }
        let late = cx.clone();
        tokio::spawn(async move {
            late.cancelled().await;
            late.progress(4.0, None);
            late.log(LoggingLevel::Error, "too late");
        });
        "done"
    }

    async fn speak(&self, cx: &Cx, _: NoArgs) -> &'static str {
        cx.log(LoggingLevel::Debug, "fine print");
        cx.log_as(LoggingLevel::Warning, Some("db"), json!({ "rows": 3 }));
        cx.log(LoggingLevel::Emergency, "fire");
        "done"
    }

    async fn flood(&self, cx: &Cx, _: NoArgs) -> String {
        for n in 0..1_000 {
            cx.progress(f64::from(n), None);
        }
        tokio::task::yield_now().await;
        "done".into()
    }

    async fn who(&self, cx: &Cx, _: NoArgs) -> String {
        let client = cx.client().map(|c| c.name).unwrap_or_default();
        let (trace, who) = (cx.trace().map(|t| t.traceparent), cx.principal().map(|who| who.subject()));
        format!("{client} {} {trace:?} {who:?}", cx.revision().as_str())
    }
}

fn works() -> Server {
    fn register(s: Server) -> Server {
        struct All;
        impl Register for All {
            fn register(server: Server<All>) -> Server<All> {
                server
                    .tool("count", |_: &All, cx: &Cx, a: NoArgs| {
                        let cx = cx.clone();
                        async move { Works.count(&cx, a).await }
                    })
                    .tool("speak", |_: &All, cx: &Cx, a: NoArgs| {
                        let cx = cx.clone();
                        async move { Works.speak(&cx, a).await }
                    })
                    .tool("flood", |_: &All, cx: &Cx, a: NoArgs| {
                        let cx = cx.clone();
                        async move { Works.flood(&cx, a).await }
                    })
                    .tool("who", |_: &All, cx: &Cx, a: NoArgs| {
                        let cx = cx.clone();
                        async move { Works.who(&cx, a).await }
                    })
            }
        }
        s.with(All)
    }
    register(Server::new("works", "1"))
}

#[tokio::test]
async fn progress_grows_goes_to_its_token_and_stops_with_the_answer() {
    for token in [json!("abc"), json!(7)] {
        for revision in ALL {
            let mut peer = Peer::plain(works(), revision).await;
            peer.meta = json!({ "progressToken": token });
            let id = peer.start("count", json!({})).await;
            for done in [json!(1), json!(2), json!(3.5)] {
                let params = peer.said("notifications/progress").await["params"].clone();
                assert_eq!(
                    (&params["progress"], &params["total"], &params["progressToken"]),
                    (&done, &json!(4), &token)
                );
            }
            assert_eq!(peer.message().await["id"], id, "nothing after the last but the answer");
            peer.quiet().await;
        }
    }
    let mut peer = Peer::plain(works(), MODERN).await;
    peer.call("count", json!({})).await;
    assert!(peer.aside.is_empty(), "nobody asked: {:?}", peer.aside);
}

#[tokio::test]
async fn a_flood_of_progress_is_dropped_oldest_first() {
    let mut peer = Peer::plain(works().limits(|l| l.messages.queued_max = 10), MODERN).await;
    peer.meta = json!({ "progressToken": 1 });
    peer.call("flood", json!({})).await;
    let seen: Vec<_> = peer.aside.drain(..).map(|m| m["params"]["progress"].as_u64().unwrap()).collect();
    assert_eq!(seen, (990..1_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn sessions_set_their_level_and_hear_no_less_than_info_before() {
    for revision in LEGACY {
        let mut peer = Peer::plain(works(), revision).await;
        for (level, expected) in [
            ("", vec!["warning", "emergency"]),
            ("debug", vec!["debug", "warning", "emergency"]),
            ("alert", vec!["emergency"]),
        ] {
            if !level.is_empty() {
                assert!(peer.ask("logging/setLevel", json!({ "level": level })).await["result"].is_object());
            }
            peer.call("speak", json!({})).await;
            let said: Vec<_> = peer.aside.drain(..).collect();
            let levels: Vec<_> = said.iter().map(|m| m["params"]["level"].as_str().unwrap()).collect();
            assert_eq!(levels, expected, "{revision} {level}");
        }
        for bad in [json!({}), json!({ "level": "loud" }), json!({ "level": 7 })] {
            assert_eq!(code(&peer.ask("logging/setLevel", bad).await), -32602);
        }
    }
}

#[tokio::test]
async fn a_request_that_stands_alone_hears_logs_only_if_it_asked() {
    let mut peer = Peer::plain(works(), MODERN).await;
    peer.call("speak", json!({})).await;
    assert!(peer.aside.is_empty(), "{:?}", peer.aside);
    peer.meta = json!({ "io.modelcontextprotocol/logLevel": "warning" });
    peer.call("speak", json!({})).await;
    let said: Vec<_> = peer.aside.drain(..).collect();
    assert_eq!(said.len(), 2);
    assert_eq!(said[0]["params"], json!({ "level": "warning", "logger": "db", "data": { "rows": 3 } }));
    peer.meta = json!({});
    peer.call("speak", json!({})).await;
    assert!(peer.aside.is_empty(), "it is not remembered");
}

#[tokio::test]
async fn logs_never_go_to_a_listen_stream() {
    let service = service(works());
    let mut listener = Peer::of(service.clone(), MODERN, json!({})).await;
    listener.request("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })).await;
    listener.said("notifications/subscriptions/acknowledged").await;
    let mut peer = Peer::of(service, MODERN, json!({})).await;
    peer.meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    peer.call("speak", json!({})).await;
    assert_eq!(peer.aside.len(), 3);
    listener.quiet().await;
}

#[tokio::test]
async fn a_handler_knows_the_client_its_revision_and_trace() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut peer = Peer::plain(works(), "2025-11-25").await;
    peer.meta = json!({ "traceparent": trace });
    assert_eq!(text(&peer.call("who", json!({})).await), format!("t 2025-11-25 Some(\"{trace}\") None"));
    let mut peer = Peer::plain(works(), MODERN).await;
    peer.meta = json!({ "traceparent": trace, "io.modelcontextprotocol/clientInfo": { "name": "m", "version": "1" } });
    assert_eq!(text(&peer.call("who", json!({})).await), format!("m 2026-07-28 Some(\"{trace}\") None"));
}

#[tokio::test]
async fn suggestions_are_sorted_bounded_and_know_what_is_decided() {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Place {
        country: String,
        city: Option<String>,
    }
    let cities = |c: Completion| async move {
        match c.context.get("country").map(String::as_str) {
            Some("no") => c.filter(["Bergen", "Oslo", "Molde"]),
            _ => c.filter((0..250).map(|n| format!("City {n}"))),
        }
    };
    let server = Server::new("x", "1")
        .prompt(Prompt::new("trip", "").complete("city", cities), |q: Place| async move { q.country })
        .resource(
            Resource::new("map://{country}/{city}")
                .complete("country", |c: Completion| async move { c.filter(["Norway", "Oman"]) }),
            |q: Place| async move { q.country },
        )
        .prompt(
            Prompt::new("sad", "").complete("country", |_: Completion| async { Err::<Vec<String>, _>("no atlas") }),
            |q: Place| async move { q.country },
        );
    let mut peer = Peer::plain(server, "2025-11-25").await;
    let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
    let complete = |reference: Value, argument: &str, value: &str, context: Value| json!({ "ref": reference, "argument": { "name": argument, "value": value }, "context": { "arguments": context } });
    let values = |answer: Value| answer["result"]["completion"].clone();
    let oslo = peer.ask("completion/complete", complete(prompt("trip"), "city", "o", json!({ "country": "no" }))).await;
    assert_eq!(values(oslo), json!({ "values": ["Oslo", "Molde"], "total": 2, "hasMore": false }), "beginnings first");
    let many = values(peer.ask("completion/complete", complete(prompt("trip"), "city", "", json!({}))).await);
    assert_eq!(
        (many["values"].as_array().unwrap().len(), &many["total"], &many["hasMore"]),
        (100, &json!(250), &json!(true))
    );
    let map = json!({ "type": "ref/resource", "uri": "map://{country}/{city}" });
    let country = values(peer.ask("completion/complete", complete(map.clone(), "country", "n", json!({}))).await);
    assert_eq!(country["values"], json!(["Norway", "Oman"]));
    let none = values(peer.ask("completion/complete", complete(prompt("trip"), "country", "n", json!({}))).await);
    assert_eq!(none["values"], json!([]), "an argument without suggestions");
    let rows = [
        (complete(prompt("nope"), "city", "", json!({})), -32602),
        (complete(prompt("trip"), "nope", "", json!({})), -32602),
        (complete(json!({ "type": "ref/resource", "uri": "nope://{x}" }), "x", "", json!({})), -32602),
        (json!({ "ref": prompt("trip") }), -32602),
        (json!({ "ref": { "type": "ref/tool", "name": "x" }, "argument": { "name": "a", "value": "" } }), -32602),
        (complete(prompt("sad"), "country", "", json!({})), -32603),
    ];
    for (params, expected) in rows {
        assert_eq!(code(&peer.ask("completion/complete", params.clone()).await), expected, "{params}");
    }
}

#[tokio::test]
async fn prompts_check_their_arguments_and_answer_messages() {
    #[derive(Deserialize, JsonSchema)]
    struct Brief {
        /// Whom to brief.
        name: String,
        days: Option<u8>,
    }
    let server = Server::new("x", "1")
        .prompt(("brief", "A briefing."), |q: Brief| async move { format!("{} {}", q.name, q.days.unwrap_or(1)) })
        .prompt("whole", |_: NoArgs| async {
            let contents = ResourceContents::text("a:b", "x").with_mime_type("text/plain");
            let messages = vec![
                PromptMessage::user(ContentBlock::image_base64("AAAA", "image/png")),
                PromptMessage::assistant(ContentBlock::resource(contents)),
            ];
            GetPromptResult::new(messages)
        });
    let mut peer = Peer::plain(server, "2025-11-25").await;
    let listed = peer.ask("prompts/list", json!({})).await["result"]["prompts"][0]["arguments"].clone();
    assert_eq!(listed[0], json!({ "name": "name", "description": "Whom to brief.", "required": true }));
    assert_eq!(listed[1]["required"], false);
    let good = peer.ask("prompts/get", json!({ "name": "brief", "arguments": { "name": "Ada", "days": "3" } })).await["result"].clone();
    assert_eq!(good["messages"], json!([{ "role": "user", "content": { "type": "text", "text": "Ada 3" } }]));
    assert_eq!(good["description"], "A briefing.");
    for bad in
        [json!({}), json!({ "days": "3" }), json!({ "name": "Ada", "days": "three" }), json!({ "name": 7 }), json!([1])]
    {
        let answer = peer.ask("prompts/get", json!({ "name": "brief", "arguments": bad })).await;
        assert_eq!(code(&answer), -32602, "{bad}: {answer}");
    }
    let whole = peer.ask("prompts/get", json!({ "name": "whole" })).await["result"]["messages"].clone();
    assert_eq!(whole[0]["content"], json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" }));
    assert_eq!(whole[1]["content"]["resource"], json!({ "uri": "a:b", "mimeType": "text/plain", "text": "x" }));
}

#[tokio::test]
async fn layers_run_outside_in_and_may_refuse_change_and_measure() {
    #[derive(Deserialize, JsonSchema)]
    struct Say {
        text: String,
    }
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |word: &'static str| {
        let seen = seen.clone();
        move |call: Call, next: Next| {
            let seen = seen.clone();
            async move {
                seen.lock().unwrap().push(format!("{word} {} {}", call.method(), call.name()));
                let reply: Reply = next.run(call).await;
                seen.lock().unwrap().push(format!("{word} {:?}", reply.kind()));
                reply
            }
        }
    };
    async fn loud(mut call: Call, next: Next) -> Reply {
        let text = call.arguments().to_uppercase().replace("TEXT", "text");
        call.set_arguments(text);
        next.run(call).await
    }
    async fn locked(call: Call, _: Next) -> Reply {
        if call.cx().client().is_some() { call.refuse("not for you") } else { call.refuse_protocol(4711, "locked") }
    }
    let server = Server::new("x", "1")
        .layer(note("inner"))
        .layer(note("outer"))
        .tool(Tool::new("say", "").layer(loud), |q: Say| async move { q.text })
        .tool(Tool::new("vault", "").layer(locked), |_: NoArgs| async { "gold" })
        .resource("a:b", |_: NoArgs| async { "x" });
    let mut peer = Peer::plain(server, "2025-11-25").await;
    assert_eq!(text(&peer.call("say", json!({ "text": "hi" })).await), "HI");
    let order = seen.lock().unwrap().drain(..).collect::<Vec<_>>();
    assert_eq!(order, ["outer tools/call say", "inner tools/call say", "inner Complete", "outer Complete"]);
    assert_eq!(failed(&peer.call("vault", json!({})).await), "not for you");
    peer.ask("resources/read", json!({ "uri": "a:b" })).await;
    assert!(seen.lock().unwrap().contains(&"outer resources/read a:b".to_owned()));
}

#[tokio::test]
async fn arguments_that_a_layer_replaces_may_be_strings_as_they_came_or_json() {
    #[derive(Deserialize, JsonSchema)]
    struct Stay {
        city: String,
        days: u8,
        late: Option<bool>,
    }
    async fn in_rome(mut call: Call, next: Next) -> Reply {
        let given = call.arguments().replace("Paris", "Rome");
        call.set_arguments(given.as_str());
        if given.contains("json") {
            call.set_arguments(r#"{ "city": "Oslo", "days": 4, "late": "true" }"#);
        }
        next.run(call).await
    }
    let stay = |q: Stay| format!("{} {} {:?}", q.city, q.days, q.late);
    let server = Server::new("x", "1")
        .prompt(Prompt::new("stay", "").layer(in_rome), stay)
        .resource(Resource::new("stay://{city}/{days}").layer(in_rome), stay);
    let mut peer = Peer::plain(server, "2025-11-25").await;
    for (city, days, want) in [("Paris", "3", "Rome 3 None"), ("json", "3", "Oslo 4 Some(true)")] {
        let arguments = json!({ "city": city, "days": days });
        let prompt = peer.ask("prompts/get", json!({ "name": "stay", "arguments": arguments })).await;
        assert_eq!(prompt["result"]["messages"][0]["content"]["text"], want, "{prompt}");
        let read = peer.ask("resources/read", json!({ "uri": format!("stay://{city}/{days}") })).await;
        assert_eq!(read["result"]["contents"][0]["text"], want, "{read}");
    }
    let bad = peer.ask("prompts/get", json!({ "name": "stay", "arguments": { "city": "Paris", "days": "x" } })).await;
    assert!(bad["error"]["message"].as_str().unwrap().contains("`days` must be a whole number"), "{bad}");
}

#[tokio::test]
async fn a_layer_that_panics_is_caught_and_one_that_drops_the_call_cancels_it() {
    let alive = Arc::new(AtomicUsize::new(0));
    struct Guard(Arc<AtomicUsize>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let count = alive.clone();
    async fn hasty(call: Call, next: Next) -> Reply {
        let running = next.run(call);
        match tokio::time::timeout(Duration::from_millis(20), running).await {
            Ok(reply) => reply,
            Err(_) => panic!("reconnect attempts exhausted"),
        }
    }
    let server = Server::new("x", "1").tool(Tool::new("slow", "").layer(hasty), move |_: NoArgs| {
        count.fetch_add(1, Ordering::SeqCst);
        let guard = Guard(count.clone());
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            "never"
        }
    });
    let mut peer = Peer::plain(server, MODERN).await;
    assert!(failed(&peer.call("slow", json!({})).await).contains("stopped unexpectedly"));
    until("it was dropped", || alive.load(Ordering::SeqCst) == 0).await;
    peer.alive().await;
}

#[tokio::test]
async fn a_session_can_be_told_something_after_its_call_is_over() {
    let peers = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = peers.clone();
    let server = Server::new("x", "1")
        .resource("a:b", |_: NoArgs| async { "x" })
        .tool("keep", move |_: NoArgs| async { "kept" });
    let server = server.layer(move |call: Call, next: Next| {
        kept.lock().unwrap().extend(call.cx().peer());
        next.run(call)
    });
    let mut peer = Peer::plain(server, "2025-11-25").await;
    peer.call("keep", json!({})).await;
    peer.ask("resources/subscribe", json!({ "uri": "a:b" })).await;
    let session = peers.lock().unwrap()[0].clone();
    assert!(session.is_open() && session.log(LoggingLevel::Warning, Some("later"), "still here"));
    assert_eq!(
        peer.said("notifications/message").await["params"],
        json!({ "level": "warning", "logger": "later", "data": "still here" })
    );
    assert!(session.log(LoggingLevel::Debug, None, "below its level"));
    assert_eq!(session.subscriptions().len(), 1);
    assert!(session.resource_updated("a:b") && session.resource_updated("a:c"));
    assert_eq!(peer.said("notifications/resources/updated").await["params"]["uri"], "a:b");
    peer.quiet().await;
    peer.end().await;
    assert_eq!(peer.line().await, None);
    until("the session is gone", || !session.is_open()).await;
    assert!(!session.log(LoggingLevel::Emergency, None, "nobody"));
    // A stateless client has no session.
    let all = peers.lock().unwrap().len();
    assert_eq!(all, 1);
}

#[tokio::test]
async fn the_meta_of_a_prompt_is_sent_and_the_cause_of_an_internal_error_is_not() {
    use linchpin::types::error::ErrorObject;
    let server = Server::new("x", "1")
        .prompt("told", |_: NoArgs| async {
            GetPromptResult::new([PromptMessage::user("hello")]).with_meta(json!({ "a.example/n": 1 }))
        })
        .prompt("broken", |_: NoArgs| async {
            Err::<String, _>(Error::internal(ErrorObject::new(-32099, "/srv/secret")))
        });
    let mut peer = Peer::plain(server, "2025-11-25").await;
    let told = peer.ask("prompts/get", json!({ "name": "told" })).await;
    assert_eq!(told["result"]["_meta"]["a.example/n"], 1, "{told}");
    let broken = peer.ask("prompts/get", json!({ "name": "broken" })).await;
    assert!(code(&broken) == -32603 && !broken.to_string().contains("secret"), "{broken}");
}
