//! What a client writes, and what it makes of what servers write.

use bytes::Bytes;
use linchpin_core::ClientLimits;
use linchpin_core::message::Kind;
use linchpin_proto::era;
use linchpin_proto::frame;
use linchpin_proto::message_writer::{Extras, Writer};
use linchpin_types::capability::ClientCapabilities;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::LoggingLevel;
use linchpin_types::meta::Meta;
use proptest::prelude::*;

fn hear(text: &[u8]) -> Result<String, String> {
    let limits = ClientLimits::default().with(|limits| {
        limits.messages.depth_max = 20;
        limits.messages.per_batch_max = 3;
    });
    let mut told = Vec::new();
    frame::hear(Bytes::copy_from_slice(text), &limits, &mut |message| {
        told.push(match &message.kind {
            Kind::Request { id, method } => format!("asks {id} {} {}", method.as_str(), message.params_text()),
            Kind::Notification { method } => format!("tells {} {}", method.as_str(), message.params_text()),
            Kind::Response { id, outcome: Ok(span) } => format!("{:?} = {}", id.as_number(), message.text(*span)),
            Kind::Response { id, outcome: Err(span) } => format!("{:?} ! {}", id.as_number(), message.text(*span)),
        });
    })?;
    Ok(told.join("; "))
}

#[test]
fn what_real_servers_send_is_understood() {
    let rows = [
        (r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#, r#"Some(7) = {"a":1}"#),
        ("  {\"jsonrpc\":\"2.0\" , \"id\" : 7 ,\t\"result\":{}}\r", "Some(7) = {}"),
        (r#"{"id":7,"result":{}}"#, "Some(7) = {}"),
        (r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, "Some(7) = {}"),
        (r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#, "Some(7) = {}"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"error":null}"#, "Some(7) = {}"),
        (r#"{"jsonrpc":"2.0","id":7,"error":{"code":1},"result":null}"#, r#"Some(7) ! {"code":1}"#),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#, r#"None ! {"code":1}"#),
        (r#"{"jsonrpc":"2.0","error":{"code":1}}"#, r#"None ! {"code":1}"#),
        (r#"{"jsonrpc":"2.0","id":7,"id":8,"result":{}}"#, "Some(8) = {}"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"extra":[1]}"#, "Some(7) = {}"),
        (
            r#"{"jsonrpc":"2.0","method":"n","params":{"_meta":{},"name":1,"name":2}}"#,
            r#"tells n {"_meta":{},"name":1,"name":2}"#,
        ),
        (r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#, r#"asks "x" ping {}"#),
        (r#"[{"id":1,"result":{}},{"method":"n"}]"#, "Some(1) = {}; tells n {}"),
        ("[]", ""),
    ];
    for (text, want) in rows {
        assert_eq!(hear(text.as_bytes()).as_deref(), Ok(want), "{text}");
    }
    let bad: [&[u8]; 15] = [
        br#"{"level":"error","error":"x"}"#,
        br#"{"level":"error","error":{"code":1}}"#,
        br#"{"jsonrpc":"2.0","id":1,"error":"text"}"#,
        b"",
        b"{",
        b"null",
        b"7",
        b"Server started on port 3000",
        b"{\"jsonrpc\":\"2.0\"}",
        b"{\"id\":1}",
        b"{\"id\":true,\"result\":1}",
        b"{\"method\":7}",
        b"\xff\xfe",
        b"{\"id\":1,\"result\":{}} trailing",
        b"[{\"id\":1,\"result\":{}},{\"id\":2,\"result\":{}},{\"id\":3,\"result\":{}},{\"id\":4,\"result\":{}}]",
    ];
    for text in bad {
        assert!(hear(text).is_err(), "{:?}", String::from_utf8_lossy(text));
    }
    let deep = format!("{{\"id\":1,\"result\":{}{}}}", "[".repeat(50), "]".repeat(50));
    assert!(hear(deep.as_bytes()).is_err());
}

#[test]
fn requests_are_written_as_their_revision_wants() {
    let info = Implementation::new("h", "1");
    let (old, new) = (era::named("2025-11-25").unwrap(), era::named("2026-07-28").unwrap());
    let old = Writer::new(old, &info, &ClientCapabilities::default());
    let new = Writer::new(new, &info, &ClientCapabilities::default());
    let text = |out: linchpin_core::Outgoing| String::from_utf8(out.frame.to_vec()).unwrap();
    let claims = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"h","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#;
    assert_eq!(text(old.request(1, "ping", Extras::default(), |_| {})), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(
        text(old.request(2, "tools/call", Extras { progress: true, log: Some(LoggingLevel::Info), meta: None }, |m| {
            m.text("name", "a\"b");
            m.raw("arguments", "{}");
        })),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a\"b","arguments":{},"_meta":{"progressToken":2}}}"#
    );
    assert_eq!(
        text(new.request(3, "tools/list", Extras::default(), |_| {})),
        format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{{"_meta":{{{claims}}}}}}}"#)
    );
    let mut meta = Meta::new();
    meta.insert_as("traceparent", "00-1").unwrap();
    meta.insert_as("progressToken", "stolen").unwrap();
    meta.insert_as("io.modelcontextprotocol/protocolVersion", "1900-01-01").unwrap();
    let extras = Extras { progress: true, log: Some(LoggingLevel::Error), meta: Some(&meta) };
    assert_eq!(
        text(new.request(4, "x", extras, |_| {})),
        format!(
            r#"{{"jsonrpc":"2.0","id":4,"method":"x","params":{{"_meta":{{{claims},"progressToken":4,"io.modelcontextprotocol/logLevel":"error","traceparent":"00-1"}}}}}}"#
        )
    );
    assert_eq!(text(new.notification("n", |m| m.raw("a", "1"))), r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#);
    assert_eq!(text(old.answer("\"q\"", Ok("{}"))), r#"{"jsonrpc":"2.0","id":"q","result":{}}"#);
    assert_eq!(
        text(old.answer("5", Err((-1, "a\nb")))),
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"a\nb"}}"#
    );
}

#[test]
fn params_of_any_shape_are_spread_on_one_line_and_their_meta_taken_out() {
    let writer = Writer::opening();
    let mut taken = (None, None);
    let out = writer.notification("n", |m| {
        taken = m.spread("{ \"a\" : [1,\n2], \"_meta\": {\"k\": 1}, \"b\\n\": \"x\\ny\" }", Some("b\n")).unwrap();
    });
    assert_eq!(out.frame, r#"{"jsonrpc":"2.0","method":"n","params":{"a":[1, 2],"b\n":"x\ny"}}"#);
    assert_eq!(taken.0.unwrap().get("k").unwrap().get(), "1");
    assert_eq!(taken.1.as_deref(), Some("x\ny"));
    writer.notification("n", |m| assert!(m.spread("[1]", None).is_err()));
}

proptest! {
    #[test]
    fn whatever_is_written_is_one_line_of_valid_json(id in any::<u64>(), method in ".{0,20}", name in ".{0,20}", text in ".{0,40}", progress in any::<bool>()) {
        let writer = Writer::new(era::named("2026-07-28").unwrap(), &Implementation::new(name.clone(), text.clone()), &ClientCapabilities::default());
        let out = writer.request(id, method.clone(), Extras { progress, ..Extras::default() }, |m| m.text(&name, &text));
        let value: serde_json::Value = serde_json::from_slice(&out.frame).unwrap();
        prop_assert!(!out.frame.contains(&b'\n'));
        prop_assert_eq!(value["id"].as_u64(), Some(id));
        prop_assert_eq!(value["method"].as_str(), Some(method.as_str()));
        if name != "_meta" {
            prop_assert_eq!(value["params"][&name].as_str(), Some(text.as_str()));
        }
    }

    #[test]
    fn no_bytes_of_a_server_make_hearing_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = hear(&bytes);
    }
}

const RESULT: [&str; 10] = [
    "resultType",
    "_meta",
    "content",
    "structuredContent",
    "isError",
    "ttlMs",
    "cacheScope",
    "inputRequests",
    "requestState",
    "nextCursor",
];
const PARAMS: [&str; 12] = [
    "name",
    "arguments",
    "_meta",
    "uri",
    "cursor",
    "inputResponses",
    "requestState",
    "task",
    "taskId",
    "requestId",
    "progressToken",
    "other",
];
const META: [&str; 10] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/related-task",
    "traceparent",
    "tracestate",
    "baggage",
    "progressToken",
];

fn value() -> impl Strategy<Value = String> {
    let scalar =
        prop::sample::select(vec!["null", "true", "-1.5e3", "\"a\"", "\"\\u0041\\\"\"", "[1,{\"uri\":2}]", "{}"]);
    let meta = object(&META, prop::sample::select(vec!["1", "\"x\"", "{ }"]).prop_map(str::to_owned));
    prop_oneof![3 => scalar.prop_map(str::to_owned), 2 => meta]
}

/// An object as text: with members repeated, names escaped, and blanks.
fn object(names: &'static [&'static str], value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let blank = prop::sample::select(vec!["", " ", "\n\t"]);
    let member =
        (prop::sample::select(names), any::<bool>(), blank, value).prop_map(|(name, escaped, blank, value)| {
            let name = match escaped {
                true => format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]),
                false => name.to_owned(),
            };
            format!("{blank}\"{name}\"{blank}:{blank}{value}{blank}")
        });
    prop::collection::vec(member, 0..8).prop_map(|members| format!("{{{}}}", members.join(",")))
}

proptest! {
    #[test]
    fn the_members_of_results_and_parameters_are_those_that_serde_json_finds(
        result in prop_oneof![5 => object(&RESULT, value()), 1 => value()],
        params in prop_oneof![5 => object(&PARAMS, value()), 1 => value()],
        blank in prop::sample::select(vec!["", " "]),
    ) {
        use serde_json::Value;
        let limits = ClientLimits::default();
        let read = |text: &str| {
            let mut heard = Vec::new();
            frame::hear(Bytes::copy_from_slice(text.as_bytes()), &limits, &mut |message| heard.push(message)).unwrap();
            heard.pop().unwrap()
        };
        let response = read(&format!("{{\"id\":1,{blank}\"result\":{blank}{result}}}"));
        let expected: Value = serde_json::from_str(&result).unwrap();
        let mut members = *response.result();
        for name in RESULT {
            let found = members.slot(name).unwrap().map(|span| serde_json::from_str(response.text(span)).unwrap());
            prop_assert_eq!(found.as_ref(), expected.get(name), "{} {}", name, result);
        }
        if let Kind::Response { outcome: Ok(span), .. } = response.kind {
            let mut within = members.within(span);
            for name in RESULT {
                let (inner, outer) = (*within.slot(name).unwrap(), *members.slot(name).unwrap());
                prop_assert_eq!(inner.map(|s| s.of(response.text(span))), outer.map(|s| response.text(s)));
            }
        }

        let told = read(&format!("{{\"method\":\"n\",{blank}\"params\":{blank}{params}}}"));
        let expected: Value = serde_json::from_str(&params).unwrap();
        let p = *told.params();
        let all: Value = serde_json::from_str(told.text(p.all.unwrap())).unwrap();
        prop_assert_eq!(&all, &expected);
        let found = [
            p.name, p.arguments, p.meta, p.uri, p.cursor, p.input_responses, p.request_state, p.task, p.task_id, p.request_id,
            p.progress_token,
        ];
        for (name, span) in PARAMS.into_iter().zip(found) {
            let found: Option<Value> = span.map(|span| serde_json::from_str(told.text(span)).unwrap());
            prop_assert_eq!(found.as_ref(), expected.get(name), "{} {}", name, params);
        }
        let c = p.claims;
        let found = [
            c.version, c.capabilities, c.info, c.log, c.subscription, c.related_task, c.traceparent, c.tracestate, c.baggage,
            c.progress_token,
        ];
        for (name, span) in META.into_iter().zip(found) {
            let found: Option<Value> = span.map(|span| serde_json::from_str(told.text(span)).unwrap());
            prop_assert_eq!(found.as_ref(), expected.get("_meta").and_then(|meta| meta.get(name)), "{} {}", name, params);
        }
    }
}
