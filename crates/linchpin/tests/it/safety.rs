//! The defaults, and the effect of changing limits: the rows of `docs/LIMITS.md` for one pipe.

use crate::common;

use common::{ALL, LEGACY, Logged, MODERN, Peer, code, failed, service, text, until};
use linchpin::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Say {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u64,
}

/// Counts the running calls.
#[derive(Clone, Default)]
struct Gauge(Arc<AtomicUsize>);
impl Gauge {
    fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
    fn enter(&self) -> Running {
        self.0.fetch_add(1, Ordering::SeqCst);
        Running(self.clone())
    }
}
struct Running(Gauge);
impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn server(gauge: &Gauge) -> Server {
    let gauge = gauge.clone();
    Server::new("safety", "1")
        .tool(("add", "Adds."), |q: Add| async move { (q.a + q.b).to_string() })
        .tool(("say", "Repeats."), |q: Say| async move { q.text })
        .tool(("sleep", "Waits."), move |q: Sleep| {
            let running = gauge.enter();
            async move {
                tokio::time::sleep(Duration::from_millis(q.ms)).await;
                drop(running);
                "slept"
            }
        })
        .tool(("panic_now", "Panics at once."), |_: NoArgs| async move {
            if true {
                panic!("secret detail");
            }
            ""
        })
        .tool(("panic_later", "Panics after a wait."), |_: NoArgs| async move {
            tokio::task::yield_now().await;
            if true {
                panic!("secret detail");
            }
            ""
        })
        .resource("bad://page", |_: NoArgs| async move {
            if true {
                panic!("secret detail");
            }
            ""
        })
}

#[tokio::test]
async fn a_panicking_handler_is_an_error_and_the_server_lives() {
    for revision in ["2025-11-25", MODERN] {
        let mut peer = Peer::plain(server(&Gauge::default()), revision).await;
        for tool in ["panic_now", "panic_later"] {
            let answer = peer.call(tool, json!({})).await;
            assert!(failed(&answer).contains("stopped unexpectedly"), "{answer}");
            assert!(!answer.to_string().contains("secret detail"), "{answer}");
        }
        let answer = peer.ask("resources/read", json!({ "uri": "bad://page" })).await;
        assert_eq!(code(&answer), -32603);
        assert_eq!(text(&peer.call("add", json!({ "a": 1, "b": 2 })).await), "3");
    }
}

#[tokio::test]
async fn a_call_past_its_deadline_is_dropped_and_answered() {
    let gauge = Gauge::default();
    let mut peer = Peer::plain(server(&gauge).limits(|l| l.calls.run_ms_max = 40), "2025-11-25").await;
    let answer = peer.call("sleep", json!({ "ms": 60_000 })).await;
    assert!(failed(&answer).contains("limit of 40 ms"), "{answer}");
    assert_eq!(gauge.now(), 0, "the handler's future is gone");
    peer.alive().await;
}

#[tokio::test]
async fn calls_in_flight_are_bounded_for_each_peer_and_in_all() {
    let gauge = Gauge::default();
    let ran = Gauge::default();
    let counter = ran.clone();
    let server = server(&gauge).tool("count", move |_: NoArgs| {
        std::mem::forget(counter.enter());
        async { "counted" }
    });
    let service = service(server.limits(|l| (l.calls.per_peer_max, l.calls.concurrent_max) = (2, 3)));
    let mut one = Peer::of(service.clone(), "2025-11-25", json!({})).await;
    let mut two = Peer::of(service, MODERN, json!({})).await;
    one.start("sleep", json!({ "ms": 60_000 })).await;
    one.start("sleep", json!({ "ms": 60_000 })).await;
    let refused = one.call("sleep", json!({ "ms": 60_000 })).await;
    assert_eq!(code(&refused), -32603);
    assert!(refused["error"]["message"].as_str().unwrap().contains("limit 2"), "{refused}");
    two.start("sleep", json!({ "ms": 60_000 })).await;
    until("three run", || gauge.now() == 3).await;
    let refused = two.call("sleep", json!({ "ms": 1 })).await;
    assert_eq!(code(&refused), -32603);
    assert!(refused["error"]["message"].as_str().unwrap().contains("limit of 3"), "{refused}");
    let counted = two.call("count", json!({})).await;
    assert_eq!((code(&counted), ran.now()), (-32603, 0), "refused before it runs, so that it can be tried again");
    two.alive().await;
    // A freed slot can be used again.
    one.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } })).await;
    until("one was dropped", || gauge.now() == 2).await;
    assert_eq!(text(&two.call("sleep", json!({ "ms": 1 })).await), "slept");
    assert_eq!((text(&two.call("count", json!({})).await), ran.now()), ("counted", 1));
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_never_answered() {
    for revision in ALL {
        let gauge = Gauge::default();
        let mut peer = Peer::plain(server(&gauge), revision).await;
        let id = peer.start("sleep", json!({ "ms": 60_000 })).await;
        until("it runs", || gauge.now() == 1).await;
        // Unknown ids, malformed ones and a second cancellation are ignored.
        for requested in [json!(id), json!(id), json!("never"), json!(null), json!({})] {
            let reason = json!({ "requestId": requested, "reason": "test" });
            peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": reason })).await;
        }
        for params in [json!([]), json!([id]), json!(null), json!("x"), json!({ "requestId": [] }), json!({})] {
            for name in ["notifications/cancelled", "notifications/of_the_future"] {
                peer.send(json!({ "jsonrpc": "2.0", "method": name, "params": params })).await;
            }
        }
        until("it was dropped", || gauge.now() == 0).await;
        peer.quiet().await;
        peer.alive().await;
    }
}

#[tokio::test]
async fn messages_of_the_wrong_shape_are_answered_with_their_own_id() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(300));
    let seven = Some(7);
    let rows: &[(&[u8], Option<i64>, i64)] = &[
        (br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#, seven, -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":"x"}"#, seven, -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":42}"#, seven, -32600),
        (br#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, seven, -32600),
        (br#"{"id":7,"method":"ping"}"#, seven, -32600),
        (br#"{"jsonrpc":"2.0","id":7}"#, seven, -32600),
        // Names are case-sensitive: these members are not the ones of the protocol.
        (br#"{"jsonrpc":"2.0","id":7,"Method":"ping"}"#, seven, -32600),
        (br#"{"JSONRPC":"2.0","id":7,"method":"ping"}"#, seven, -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":"PING"}"#, seven, -32601),
        (br#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}"#, seven, -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{},"params":{}}"#, seven, -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","name":"say"}}"#, seven, -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":"#, seven, -32700),
        (br#"{"jsonrpc":"2.0","id":7,"method":"ping"}trailing"#, seven, -32700),
        (br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":7}}"#, seven, -32602),
        (br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":[1]}}"#, seven, -32602),
        (br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","_meta":7}}"#, seven, -32602),
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"x","arguments":{"n":7}}}"#,
            seven,
            -32601,
        ),
        (deep.as_bytes(), seven, -32600),
        (long_id.as_bytes(), None, -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None, -32600),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None, -32600),
        (br#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, None, -32600),
        (br#"{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}"#, None, -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None, -32600),
        // Without a version or a name it is not a notification, so it gets a response as JSON-RPC requires.
        (br#"{"method":"notifications/cancelled","params":[]}"#, None, -32600),
        (br#"{"jsonrpc":"2.0","method":42,"params":[]}"#, None, -32600),
        (b"42", None, -32600),
        (b"\"ping\"", None, -32600),
        (b"[]", None, -32600),
        (b"{", None, -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\xfe\"}", None, -32700),
        (b"\xc3\x28", None, -32700),
    ];
    let mut peer = Peer::plain(server(&Gauge::default()), "2025-11-25").await;
    for (line, id, expected) in rows {
        peer.send_line(line).await;
        let answer = peer.message().await;
        let shown = String::from_utf8_lossy(line).chars().take(120).collect::<String>();
        assert_eq!(code(&answer), *expected, "{shown}: {answer}");
        assert_eq!(answer.get("id").and_then(Value::as_i64), *id, "{shown}: {answer}");
        assert!(answer["error"]["message"].is_string(), "{shown}: {answer}");
    }
    peer.alive().await;
}

#[tokio::test]
async fn responses_that_match_nothing_are_not_answered() {
    let error = || json!({ "code": -32600, "message": "x" });
    for revision in ["2025-03-26", "2025-11-25", MODERN] {
        let mut peer = Peer::plain(server(&Gauge::default()), revision).await;
        let responses = [
            json!({ "jsonrpc": "2.0", "error": error() }),
            json!({ "jsonrpc": "2.0", "id": null, "error": error() }),
            json!({ "jsonrpc": "2.0", "id": 7, "error": error() }),
            json!({ "jsonrpc": "2.0", "id": null, "result": {} }),
            json!({ "id": 7, "result": {} }),
        ];
        for response in &responses {
            peer.send(response.clone()).await;
        }
        if revision == "2025-03-26" {
            peer.send(json!(responses)).await;
        }
        peer.quiet().await;
        peer.alive().await;
    }
}

#[tokio::test]
async fn a_byte_order_mark_counts_only_before_the_first_line() {
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let mut peer = Peer::silent(service(server(&Gauge::default())));
    peer.send_line(format!("\u{feff}{ping}").as_bytes()).await;
    assert_eq!(peer.message().await, json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    peer.send_line(format!("\u{feff}{ping}").as_bytes()).await;
    assert_eq!(code(&peer.message().await), -32700);
}

#[tokio::test]
async fn numbers_beyond_the_type_are_refused_in_words() {
    let mut peer = Peer::plain(server(&Gauge::default()), MODERN).await;
    for number in ["1e999", "9223372036854775808", "-1e400", "0.5"] {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"add","arguments":{{"a":{number},"b":1}},"_meta":{meta}}}}}"#
        );
        peer.send_line(line.as_bytes()).await;
        let answer = peer.answer(7).await;
        assert!(failed(&answer).contains("invalid arguments for `add`"), "{number}: {answer}");
    }
}

#[tokio::test]
async fn unknown_members_are_ignored_everywhere() {
    let mut peer = Peer::plain(server(&Gauge::default()), "2025-11-25").await;
    peer.send_line(br#"{"x":1,"jsonrpc":"2.0","id":7,"Method":"no","method":"tools/call","params":{"name":"add","Name":"x","more":[{}],"arguments":{"a":1,"b":2},"_meta":{"com.example/x":{"y":null}}}}"#)
        .await;
    assert_eq!(text(&peer.answer(7).await), "3");
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/of_the_future", "params": { "x": 1 } })).await;
    peer.send(json!({ "jsonrpc": "2.0", "id": 999, "result": {} })).await;
    peer.quiet().await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_the_next_one_works() {
    let mut peer =
        Peer::plain(server(&Gauge::default()).limits(|l| l.messages.frame_bytes_max = 1_000), "2025-11-25").await;
    for bytes in [1_001, 5_000, 50_000] {
        peer.send_line("x".repeat(bytes).as_bytes()).await;
        let answer = peer.message().await;
        assert_eq!(code(&answer), -32600);
        let wanted = "the message is longer than the limit of 1000 bytes; send less at once, in several messages";
        assert_eq!(answer["error"]["message"], wanted);
        peer.alive().await;
    }
    // Blank lines are ignored, and a carriage return before the line feed is not part of the message.
    peer.send_line(b"").await;
    peer.send_line(b"  \r").await;
    peer.send_line(b"{\"jsonrpc\":\"2.0\",\"id\":70,\"method\":\"ping\"}\r").await;
    assert!(peer.answer(70).await["result"].is_object());
}

#[tokio::test]
async fn blank_lines_after_a_message_do_not_delay_its_answer() {
    let gauge = Gauge::default();
    for revision in ALL {
        let mut peer = Peer::plain(server(&gauge).limits(|l| l.messages.frame_bytes_max = 4_000), revision).await;
        for blanks in ["", "\n", "\r\n \t\r", " \n \n  \n\t"] {
            // Everything arrives in one read, and nothing after it.
            let call = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
            let line = peer.render("tools/call", call).to_string() + "\n" + blanks;
            peer.send_line(line.as_bytes()).await;
            let answer = peer.message().await;
            assert_eq!(text(&answer), "3", "{revision}, {blanks:?}: {answer}");
            // A line that is too long is also answered at the end of input.
            peer.send_line(format!("{{\"x\":\"{}\"}}\n{blanks}", "x".repeat(5_000)).as_bytes()).await;
            assert_eq!(code(&peer.message().await), -32600, "{revision}, {blanks:?}");
        }
        if revision == "2025-03-26" {
            peer.send_line(b"[{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}]\n\n").await;
            assert_eq!(peer.message().await[0]["id"], "b");
        }
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_is_answered_under_its_own_id() {
    let x = "x".repeat(5_000);
    let call = r#""method":"tools/call","params":{"name":"say","arguments":{"id":9,"text":""#;
    for (line, id) in [
        (format!(r#"{{"jsonrpc":"2.0","id":7,{call}{x}"}}}}}}"#), json!(7)),
        (format!(r#"{{"id":"seven",{call}{x}"}}}},"jsonrpc":"2.0"}}"#), json!("seven")),
        // As the TypeScript SDK writes it.
        (format!(r#"{{{call}{x}"}}}},"jsonrpc":"2.0","id":8}}"#), json!(8)),
        (format!("{{{call}{x}\"}}}},\"jsonrpc\":\"2.0\",\"id\": \"eight\" }}\r"), json!("eight")),
        // Its id is in the part that is not kept, or it has none.
        (format!(r#"{{"a":"{x}","id":7,{call}{x}"}}}}}}"#), Value::Null),
        (format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"a":"{x}"}}}}"#), Value::Null),
    ] {
        let mut peer =
            Peer::plain(server(&Gauge::default()).limits(|l| l.messages.frame_bytes_max = 1_000), "2025-11-25").await;
        peer.send_line(line.as_bytes()).await;
        let answer = peer.message().await;
        assert_eq!((code(&answer), &answer["id"]), (-32600, &id), "{answer}");
        peer.alive().await;
        peer.quiet().await;
    }
}

/// The response of a client may be too long as well: the call that waits for it ends.
#[tokio::test]
async fn an_answer_that_is_too_long_ends_the_call_that_waits_for_it() {
    let asking = || {
        let tool = |_: &(), cx: &Cx, _: NoArgs| {
            let cx = cx.clone();
            async move { cx.roots("roots").await.map(|roots| format!("{} roots", roots.len())) }
        };
        Server::new("asking", "1")
            .state(())
            .limits(|l| l.messages.frame_bytes_max = 1_000)
            .tool(("count", "Counts."), tool)
    };
    let x = "x".repeat(5_000);
    for id_first in [true, false] {
        let mut peer = Peer::of(service(asking()), "2025-11-25", json!({ "roots": {} })).await;
        let call = peer.start("count", json!({})).await;
        let question = peer.said("roots/list").await;
        let (id, result) = (&question["id"], format!(r#""result":{{"roots":[{{"uri":"file:///{x}"}}]}}"#));
        let line = match id_first {
            true => format!(r#"{{"jsonrpc":"2.0","id":{id},{result}}}"#),
            false => format!(r#"{{{result},"jsonrpc":"2.0","id":{id}}}"#),
        };
        peer.send_line(line.as_bytes()).await;
        let answer = peer.answer(call).await;
        assert!(answer.to_string().contains("longer than the limit of 1000 bytes"), "{answer}");
        assert!(!answer.to_string().contains("send less"), "who reads this did not send it: {answer}");
        peer.alive().await;
    }
}

#[tokio::test]
async fn nesting_is_bounded_where_the_knob_says() {
    let mut peer = Peer::plain(server(&Gauge::default()).limits(|l| l.messages.depth_max = 10), "2025-11-25").await;
    let at = |depth: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":{}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    peer.send_line(at(8).as_bytes()).await;
    assert!(peer.answer(7).await["result"].is_object());
    peer.send_line(at(9).as_bytes()).await;
    assert_eq!(code(&peer.answer(7).await), -32600);
}

#[tokio::test]
async fn an_answer_over_the_limit_becomes_an_error_that_says_so() {
    let mut peer =
        Peer::plain(server(&Gauge::default()).limits(|l| l.messages.result_bytes_max = 2_000), "2025-11-25").await;
    let answer = peer.call("say", json!({ "text": "x".repeat(3_000) })).await;
    assert_eq!(code(&answer), -32603);
    assert!(answer["error"]["message"].as_str().unwrap().contains("2000"), "{answer}");
    assert_eq!(text(&peer.call("say", json!({ "text": "short" })).await), "short");
}

#[tokio::test]
async fn each_message_is_one_line_of_json_whatever_the_text() {
    let mut peer = Peer::plain(server(&Gauge::default()), "2025-11-25").await;
    let hostile = "a\nb\r\nc\u{2028}d\u{0}e\"}\\\n{\"jsonrpc\":\"2.0\"}";
    let id = peer.start("say", json!({ "text": hostile })).await;
    let line = peer.line().await.expect("an answer");
    let answer: Value = serde_json::from_str(&line).expect("one line is one message");
    assert_eq!((answer["id"].as_u64(), text(&answer)), (Some(id), hostile));
    peer.quiet().await;
}

#[tokio::test]
async fn the_end_of_the_input_ends_the_server_after_running_calls() {
    for revision in ALL {
        let gauge = Gauge::default();
        let mut peer = Peer::plain(server(&gauge), revision).await;
        let id = peer.start("sleep", json!({ "ms": 60 })).await;
        until("it runs", || gauge.now() == 1).await;
        peer.end().await;
        assert_eq!(text(&peer.answer(id).await), "slept");
        assert_eq!(peer.line().await, None, "then the output ends");
        peer.served.await.expect("no panic").expect("no error");
    }
}

#[tokio::test]
async fn calls_that_never_end_are_drained_only_up_to_the_limit() {
    let gauge = Gauge::default();
    let mut peer = Peer::plain(server(&gauge).limits(|l| l.calls.drain_ms_max = 50), "2025-11-25").await;
    peer.start("sleep", json!({ "ms": 600_000 })).await;
    until("it runs", || gauge.now() == 1).await;
    peer.end().await;
    assert_eq!(peer.line().await, None);
    peer.served.await.expect("no panic").expect("no error");
    until("the call was dropped", || gauge.now() == 0).await;
}

#[tokio::test]
async fn what_a_client_declares_for_its_session_is_bounded() {
    let server = Server::new("s", "1").tool("who", |_: &(), cx: &Cx, _: NoArgs| {
        let info = cx.client();
        async move { serde_json::to_string(&info).unwrap() }
    });
    let service = service(server);
    let long = "x".repeat(9_000);
    let hello = |capabilities: Value, info: Value| json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
    let mut peer = Peer::silent(service.clone());
    let refused = peer
        .ask("initialize", hello(json!({ "experimental": { "x": long } }), json!({ "name": "t", "version": "0" })))
        .await;
    assert_eq!(code(&refused), -32602);
    assert_eq!(refused["error"]["message"], "`capabilities` are longer than 8192 bytes; declare less");
    // A long icon is valid, and no reason to reject a client.
    let info =
        json!({ "name": "t".repeat(100), "version": "0", "title": "T", "icons": [{ "src": format!("data:{long}") }] });
    let answer = peer.ask("initialize", hello(json!({}), info)).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
    let kept: Value = serde_json::from_str(text(&peer.ask("tools/call", json!({ "name": "who" })).await)).unwrap();
    assert_eq!(kept, json!({ "name": "t".repeat(80), "version": "0", "title": "T" }));
}

#[tokio::test]
async fn batches_are_answered_as_one_array_in_the_one_revision_that_has_them() {
    let batch = json!([
        { "jsonrpc": "2.0", "id": 70, "method": "tools/call", "params": { "name": "sleep", "arguments": { "ms": 5 } } },
        { "jsonrpc": "2.0", "method": "notifications/of_the_future" },
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": [] },
        { "jsonrpc": "2.0", "id": 71, "method": "ping" },
        { "jsonrpc": "2.0", "id": 72, "method": "nope" },
        7
    ]);
    for revision in LEGACY {
        let server = server(&Gauge::default()).tool("asks", async |cx: &Cx| cx.roots("roots").await.map(|_| ()));
        let mut peer = Peer::of(service(server), revision, json!({ "roots": {} })).await;
        peer.send(batch.clone()).await;
        let answer = peer.message().await;
        if revision != "2025-03-26" {
            assert_eq!(code(&answer), -32600, "{revision}");
            continue;
        }
        let answers = answer.as_array().expect("one array").clone();
        let of = |id: u64| answers.iter().find(|a| a["id"] == id).unwrap_or_else(|| panic!("{id} in {answers:?}"));
        assert_eq!(text(of(70)), "slept");
        assert!(of(71)["result"].is_object());
        assert_eq!(code(of(72)), -32601);
        assert_eq!(answers.len(), 4, "the notifications have no answer, the number has one: {answers:?}");
        peer.send(json!([{ "jsonrpc": "2.0", "method": "notifications/of_the_future" }])).await;
        peer.quiet().await;
        // A question that is withdrawn is no answer.
        let asks = peer.start("asks", json!({})).await;
        let question = peer.message().await;
        peer.send(json!([
            { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": asks } },
            { "jsonrpc": "2.0", "id": 73, "method": "ping" }
        ]))
        .await;
        let (one, other) = (peer.message().await, peer.message().await);
        let (withdrawn, answers) = if one.is_array() { (other, one) } else { (one, other) };
        assert_eq!(withdrawn["params"]["requestId"], question["id"], "{withdrawn}");
        assert_eq!(answers, json!([{ "jsonrpc": "2.0", "id": 73, "result": {} }]));
        let many: Vec<Value> = (0..65).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).collect();
        peer.send(many.into()).await;
        assert_eq!(code(&peer.message().await), -32600, "65 are one more than the limit");
    }
    // A batch before the session is rejected, also with `initialize` in it.
    let mut peer = Peer::silent(service(server(&Gauge::default())));
    peer.send(json!([{ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } } }]))
        .await;
    assert_eq!(code(&peer.message().await), -32600);
}

#[tokio::test]
async fn a_batch_that_still_runs_when_the_input_ends_is_answered() {
    let mut peer = Peer::plain(server(&Gauge::default()), "2025-03-26").await;
    let call = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "sleep", "arguments": { "ms": 50 } } });
    peer.send(json!([call(70), call(71)])).await;
    peer.end().await;
    let answers = peer.message().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    assert_eq!(peer.line().await, None);
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_the_first_call_is_answered_once() {
    let mut peer = Peer::plain(server(&Gauge::default()), "2025-11-25").await;
    let call = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": { "name": "sleep", "arguments": { "ms": 50 } } });
    peer.send(call.clone()).await;
    peer.send(call).await;
    assert_eq!(code(&peer.message().await), -32600);
    assert_eq!(text(&peer.message().await), "slept");
    peer.quiet().await;
}

#[tokio::test]
async fn a_busy_server_answers_every_id_exactly_once() {
    let mut peer = Peer::plain(server(&Gauge::default()).limits(|l| l.calls.per_peer_max = 2_000), MODERN).await;
    let mut open = std::collections::BTreeSet::new();
    for n in 0..500_u64 {
        let id = match n % 2 {
            0 => peer.start("add", json!({ "a": n, "b": 1 })).await,
            _ => peer.start("sleep", json!({ "ms": n % 7 })).await,
        };
        open.insert(id);
    }
    while !open.is_empty() {
        let answer = peer.message().await;
        assert!(open.remove(&answer["id"].as_u64().expect("an id")), "twice, or never asked: {answer}");
    }
    peer.quiet().await;
}

#[tokio::test]
async fn what_clients_send_is_never_logged() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let secret = "hunter2-and-more";
    for revision in ["2025-03-26", MODERN] {
        let mut peer = Peer::plain(server(&Gauge::default()), revision).await;
        peer.meta = json!({ "com.example/token": secret });
        peer.call("say", json!({ "text": secret })).await;
        peer.call("add", json!({ "a": secret, "b": 1 })).await;
        peer.call("panic_later", json!({})).await;
        peer.ask("resources/read", json!({ "uri": format!("bad://{secret}") })).await;
        peer.ask("nope", json!({ "x": secret })).await;
        peer.send_line(format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"{secret}").as_bytes()).await;
        peer.message().await;
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/of_the_future", "params": { "x": secret } }))
            .await;
        peer.alive().await;
    }
    let logged = logged.text();
    assert!(logged.contains("a handler panicked") && logged.contains("panic_later"), "the log works: {logged}");
    assert!(!logged.contains(secret), "{logged}");
}

#[cfg(feature = "http")]
#[tokio::test]
async fn an_http_server_says_where_it_listens_and_warns_where_nobody_will_get_in() {
    for (ip, allows, warns) in [("127.0.0.1", false, false), ("0.0.0.0", false, true), ("0.0.0.0", true, false)] {
        let logged = Logged::default();
        let _guard = tracing::subscriber::set_default(logged.clone());
        let listener = std::net::TcpListener::bind((ip, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let place = http(listener);
        let place = if allows { place.allow_host("mcp.example") } else { place };
        let serving = tokio::spawn(server(&Gauge::default()).serve(place));
        while !logged.text().contains("listening on") {
            tokio::task::yield_now().await;
        }
        serving.abort();
        let logged = logged.text();
        let reached = format!("listening on http://127.0.0.1:{}/mcp", addr.port());
        assert!(logged.contains(&reached), "{logged}");
        let hint = logged.contains(".allow_host(") && logged.contains("--accept-host");
        assert_eq!(hint, warns, "{ip}: {logged}");
    }
}
