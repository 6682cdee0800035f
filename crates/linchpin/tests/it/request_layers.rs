//! Middleware around requests of every method.

use crate::common::{ALL, MODERN, Peer, code, failed, service, text, until};
use linchpin::prelude::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

#[derive(Deserialize, JsonSchema)]
struct Sure {
    yes: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Word {
    word: String,
}

async fn ask(cx: &Cx) -> Result<String> {
    let sure: Sure = cx.elicit("sure", "Really?").await?;
    cx.progress(1.0, None);
    Ok(format!("sure: {}", sure.yes))
}

async fn wait(cx: &Cx) -> &'static str {
    cx.progress(1.0, None);
    std::future::pending().await
}

fn words() -> Server {
    Server::new("words", "1")
        .tool("ask", ask)
        .tool("wait", wait)
        .tool("echo", |q: Word| q.word)
        .resource("words://all", || "a, b")
        .prompt(Prompt::new("echo", "").complete("word", || vec!["a"]), |q: Word| q.word)
        .method("example.com/echo", |q: Word| Json(json!({ "word": q.word })))
}

type Log = Arc<Mutex<Vec<String>>>;

/// A layer that notes each request, and how it ended.
fn noted(server: Server) -> (Server, Log) {
    let log = Log::default();
    let kept = log.clone();
    let layer = move |call: Call, next: Next| {
        let (log, what) = (log.clone(), format!("{} {}", call.method(), call.name()).trim_end().to_owned());
        async move {
            log.lock().unwrap().push(what.clone());
            let reply = next.run(call).await;
            log.lock().unwrap().push(format!("{what}: {:?}", reply.kind()));
            reply
        }
    };
    (server.layer_requests(layer), kept)
}

#[tokio::test]
async fn every_request_passes_the_layer_and_its_answer_is_unchanged() {
    for revision in ALL {
        let (layered, log) = noted(words());
        let (mut plain, mut layered) = (Peer::plain(words(), revision).await, Peer::plain(layered, revision).await);
        let mut methods = vec![
            ("tools/list", json!({})),
            ("tools/call", json!({ "name": "echo", "arguments": { "word": "a" } })),
            ("tools/call", json!({ "name": "no such tool" })),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({ "uri": "words://all" })),
            ("prompts/list", json!({})),
            ("prompts/get", json!({ "name": "echo", "arguments": { "word": "a" } })),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "echo" }, "argument": { "name": "word", "value": "" } }),
            ),
            ("example.com/echo", json!({ "word": "a" })),
        ];
        if revision == MODERN {
            methods.push(("server/discover", json!({})));
        } else {
            methods.extend([
                ("ping", json!({})),
                ("logging/setLevel", json!({ "level": "error" })),
                ("resources/subscribe", json!({ "uri": "words://all" })),
                ("resources/unsubscribe", json!({ "uri": "words://all" })),
            ]);
        }
        for (method, params) in &methods {
            let (bare, answer) = (plain.ask(method, params.clone()).await, layered.ask(method, params.clone()).await);
            assert_eq!(answer, bare, "{method} in {revision}");
        }
        let seen = log.lock().unwrap().clone();
        let initialize = usize::from(revision != MODERN);
        assert_eq!(seen.len(), 2 * (methods.len() + initialize), "{seen:?}");
        for (method, _) in methods {
            assert!(seen.iter().any(|line| line.starts_with(method)), "{method}: {seen:?}");
        }
        assert!(seen.contains(&"tools/call no such tool: Error(-32602)".to_owned()), "{seen:?}");
    }
}

#[tokio::test]
async fn a_layer_refuses_replaces_and_rewrites() {
    let layer = |mut call: Call, next: Next| async move {
        match (call.method(), call.name()) {
            ("resources/list", _) => call.refuse("not today"),
            ("tools/call", "wait") => call.refuse("not today"),
            ("resources/read", _) => call.refuse_protocol(-32_000, "not at all"),
            ("prompts/list", _) => call.respond(json!({ "prompts": [{ "name": "other" }] })),
            ("tools/list", _) => {
                let mut reply = next.run(call).await;
                reply.edit(|list| list["tools"] = json!([]));
                reply
            }
            ("tools/call" | "prompts/get" | "example.com/echo", _) => {
                assert!(call.params().contains("\"a\""));
                call.set_arguments(r#"{ "word": "b" }"#);
                next.run(call).await
            }
            _ => next.run(call).await,
        }
    };
    for revision in ALL {
        let mut peer = Peer::plain(words().layer_requests(layer), revision).await;
        let refused = peer.ask("resources/list", json!({})).await;
        assert_eq!((code(&refused), &refused["error"]["message"]), (-32600, &json!("not today")));
        assert_eq!(failed(&peer.call("wait", json!({})).await), "not today");
        assert_eq!(code(&peer.ask("resources/read", json!({ "uri": "words://all" })).await), -32000);
        let prompts = peer.ask("prompts/list", json!({})).await;
        assert_eq!(prompts["result"]["prompts"], json!([{ "name": "other" }]));
        assert_eq!(prompts["result"]["resultType"].as_str(), (revision == MODERN).then_some("complete"));
        assert_eq!(peer.ask("tools/list", json!({})).await["result"]["tools"], json!([]));
        assert_eq!(text(&peer.call("echo", json!({ "word": "a" })).await), "b");
        let got = peer.ask("prompts/get", json!({ "name": "echo", "arguments": { "word": "a" } })).await;
        assert_eq!(got["result"]["messages"][0]["content"]["text"], "b");
        assert_eq!(peer.ask("example.com/echo", json!({ "word": "a" })).await["result"]["word"], "b");
    }
}

#[tokio::test]
async fn what_a_call_sends_and_asks_passes_the_layer() {
    let capabilities = json!({ "elicitation": {} });
    let (server, _) = noted(words());
    let mut peer = Peer::of(service(server), "2025-11-25", capabilities.clone()).await;
    peer.meta = json!({ "progressToken": "p" });
    let id = peer.start("ask", json!({})).await;
    let question = peer.said("elicitation/create").await;
    peer.reply(&question, json!({ "action": "accept", "content": { "yes": true } })).await;
    peer.said("notifications/progress").await;
    assert_eq!(text(&peer.answer(id).await), "sure: true");

    let (server, _) = noted(words());
    let mut peer = Peer::of(service(server), MODERN, capabilities).await;
    let asked = peer.call("ask", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let answers = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    let retry = json!({
        "name": "ask", "arguments": {}, "requestState": asked["result"]["requestState"], "inputResponses": answers
    });
    assert_eq!(text(&peer.ask("tools/call", retry).await), "sure: true");
}

#[tokio::test]
async fn a_layer_may_ask_the_client_itself() {
    let layer = |call: Call, next: Next| async move {
        if call.name() != "echo" {
            return next.run(call).await;
        }
        match call.cx().elicit::<Sure>("may", "May it?").await {
            Ok(sure) if sure.yes => next.run(call).await,
            Ok(_) => call.refuse("it may not"),
            Err(error) => call.refuse(&error.to_string()),
        }
    };
    let mut peer = Peer::of(service(words().layer_requests(layer)), MODERN, json!({ "elicitation": {} })).await;
    for (yes, want) in [(true, "a"), (false, "it may not")] {
        let asked = peer.call("echo", json!({ "word": "a" })).await;
        let answers = json!({ "may": { "action": "accept", "content": { "yes": yes } } });
        let retry = json!({
            "name": "echo", "arguments": { "word": "a" },
            "requestState": asked["result"]["requestState"], "inputResponses": answers
        });
        assert_eq!(text(&peer.ask("tools/call", retry).await), want);
    }
}

#[tokio::test]
async fn answers_to_a_layer_and_to_the_handler_behind_it_are_kept_from_round_to_round() {
    let layer = |call: Call, next: Next| async move {
        if call.name() != "ask" {
            return next.run(call).await;
        }
        let cx = call.cx().clone();
        match cx.elicit::<Sure>("before", "May it?").await {
            Ok(_) => {}
            Err(error) => return call.refuse(&error.to_string()),
        }
        let mut reply = next.run(call).await;
        if reply.kind() == linchpin_core::ReplyKind::Complete
            && let Ok(sure) = cx.elicit::<Sure>("after", "Was it right?").await
        {
            reply.edit(|result| result["content"][0]["text"] = format!("right: {}", sure.yes).into());
        }
        reply
    };
    let mut peer = Peer::of(service(words().layer_requests(layer)), MODERN, json!({ "elicitation": {} })).await;
    let mut asked = peer.call("ask", json!({})).await;
    for key in ["before", "sure", "after"] {
        let questions = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
        assert_eq!(questions.keys().collect::<Vec<_>>(), [key]);
        let retry = json!({
            "name": "ask", "arguments": {}, "requestState": asked["result"]["requestState"],
            "inputResponses": { key: { "action": "accept", "content": { "yes": true } } }
        });
        asked = peer.ask("tools/call", retry).await;
    }
    assert_eq!(text(&asked), "right: true");
}

#[tokio::test]
async fn cancelling_reaches_the_handler_through_the_layer() {
    struct Dropped(Arc<Mutex<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let dropped = Arc::new(Mutex::new(false));
    let seen = dropped.clone();
    async fn hold(dropped: &Mutex<Arc<Mutex<bool>>>, cx: &Cx) {
        let _dropped = Dropped(dropped.lock().unwrap().clone());
        cx.progress(1.0, None);
        std::future::pending::<()>().await;
    }
    let (server, log) = noted(words().state(Mutex::new(dropped)).tool("hold", hold).state(()));
    let mut peer = Peer::plain(server, "2025-11-25").await;
    peer.meta = json!({ "progressToken": "p" });
    let id = peer.start("hold", json!({})).await;
    peer.said("notifications/progress").await;
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })).await;
    until("the handler is dropped", || *seen.lock().unwrap()).await;
    peer.alive().await;
    assert!(!log.lock().unwrap().iter().any(|line| line.starts_with("tools/call hold:")), "it has no answer");
}

#[tokio::test]
async fn a_subscription_goes_through_the_layer_and_ends_as_without_it() {
    let (server, log) = noted(words().limits(|limits| limits.calls.run_ms_max = 1));
    let handle = server.handle();
    let service = service(server);
    let mut peer = Peer::of(service.clone(), MODERN, json!({})).await;
    let id = peer.request("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })).await;
    peer.said("notifications/subscriptions/acknowledged").await;
    handle.tools().disable("echo").unwrap();
    peer.said("notifications/tools/list_changed").await;
    service.close();
    assert!(peer.answer(id).await["result"].is_object());
    assert!(log.lock().unwrap().contains(&"subscriptions/listen: Complete".to_owned()));
}

#[tokio::test]
async fn a_layer_that_panics_is_an_error_and_the_server_goes_on() {
    let layer = |call: Call, next: Next| async move {
        assert_ne!(call.method(), "tools/list", "as the test wants");
        next.run(call).await
    };
    let mut peer = Peer::plain(words().layer_requests(layer), "2025-11-25").await;
    assert_eq!(code(&peer.ask("tools/list", json!({})).await), -32603);
    peer.alive().await;
}

#[tokio::test]
async fn a_layer_that_panics_before_its_future_is_an_error_and_the_server_goes_on() {
    let layer = |method: &'static str| {
        move |call: Call, next: Next| {
            assert_ne!(call.method(), method, "as the test wants");
            next.run(call)
        }
    };
    let server = words().layer(layer("resources/read")).layer_requests(layer("tools/list"));
    let mut peer = Peer::plain(server, "2025-11-25").await;
    assert_eq!(code(&peer.ask("tools/list", json!({})).await), -32603);
    assert_eq!(code(&peer.ask("resources/read", json!({ "uri": "words://all" })).await), -32603);
    peer.alive().await;
}

#[tokio::test]
async fn layers_of_requests_do_not_take_places_of_calls() {
    let (server, _) = noted(words().limits(|limits| limits.calls.concurrent_max = 1));
    let mut peer = Peer::plain(server, MODERN).await;
    peer.meta = json!({ "progressToken": "p" });
    let _ = peer.start("wait", json!({})).await;
    peer.said("notifications/progress").await;
    let busy: Value = peer.call("echo", json!({ "word": "a" })).await;
    assert!(busy["error"]["message"].as_str().unwrap().contains("limit of 1 calls"), "{busy}");
}

#[tokio::test]
async fn the_method_decides_which_member_is_the_name() {
    let server = words().resource("cx://{rest}", |cx: &Cx| cx.uri().unwrap_or("none").to_owned());
    let (server, log) = noted(server.tool("uri", |cx: &Cx| cx.uri().unwrap_or("none").to_owned()));
    let mut peer = Peer::plain(server, MODERN).await;
    let read = peer.ask("resources/read", json!({ "uri": "cx://a", "name": "harmless" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "cx://a");
    let called = peer.ask("tools/call", json!({ "name": "uri", "arguments": {}, "uri": "cx://a" })).await;
    assert_eq!(text(&called), "none");
    peer.ask("tools/list", json!({ "name": "harmless" })).await;
    peer.ask("example.com/echo", json!({ "word": "a", "uri": "cx://a" })).await;
    let seen = log.lock().unwrap().clone();
    let started: Vec<_> = seen.iter().step_by(2).collect();
    assert_eq!(started, ["resources/read cx://a", "tools/call uri", "tools/list", "example.com/echo"]);
}

#[tokio::test]
async fn what_a_layer_memoizes_around_a_call_that_asks_is_done_once() {
    let charged = Arc::new(Mutex::new(0));
    let counter = charged.clone();
    let server = words().layer_requests(move |call: Call, next: Next| {
        let counter = counter.clone();
        async move {
            if call.method() == "tools/call" {
                let charge = call
                    .cx()
                    .memoize("charge", async {
                        *counter.lock().unwrap() += 1;
                        Ok(())
                    })
                    .await;
                assert!(charge.is_ok());
            }
            next.run(call).await
        }
    });
    let mut peer = Peer::of(service(server), MODERN, json!({ "elicitation": {} })).await;
    let asked = peer.call("ask", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let responses = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    let state = asked["result"]["requestState"].clone();
    let again = json!({ "name": "ask", "arguments": {}, "inputResponses": responses, "requestState": state });
    assert_eq!(text(&peer.ask("tools/call", again).await), "sure: true");
    assert_eq!(*charged.lock().unwrap(), 1);
}
