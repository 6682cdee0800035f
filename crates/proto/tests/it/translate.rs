//! What a bridge makes of messages, as transcripts: what came, and what is sent on.

use bytes::Bytes;
use linchpin_core::message::{Kind, Message, Request};
use linchpin_core::{Caller, ClientCaps, ClientLimits, Features, Id, Limits, Session, exact};
use linchpin_proto::translate::{self, Claims, ask, error, notice, open, result};
use linchpin_proto::{engine, frame};
use linchpin_types::version::Revision;
use std::sync::Arc;

fn session(revision: Revision) -> Arc<Session> {
    Arc::new(Session::new(Features::of(revision), ClientCaps::default(), "{}", ""))
}

fn asked(text: &str, revision: Revision) -> Arc<Request> {
    let message = frame::message(Bytes::copy_from_slice(text.as_bytes()), &Limits::default()).unwrap();
    engine::open(&message, Some(&session(revision))).unwrap()
}

fn heard(text: &str) -> Message {
    let mut found = None;
    frame::hear(Bytes::copy_from_slice(text.as_bytes()), &ClientLimits::default(), &mut |m| found = Some(m)).unwrap();
    found.unwrap()
}

const OLD: Revision = Revision::V2024_11_05;
const LAST: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;

#[test]
fn requests_change_their_id_their_token_and_their_claims() {
    let said = translate::claims(Features::of(NEW), r#"{"x":1.0}"#, Some(r#"{"name":"c"}"#), None);
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{"x":1.0}"#;
    assert_eq!(String::from_utf8_lossy(&said), meta);
    let claimed = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"k":1}"#;
    let rows: &[(&str, Claims<'_>, String)] = &[
        (r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#, Claims::Keep, r#""method":"tools/list""#.into()),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#,
            Claims::Say(&said),
            format!(r#""method":"tools/list","params":{{"_meta":{{{meta}}}}}"#),
        ),
        (
            "{\"params\":{\"cursor\":\n\"\",\"_meta\":{\"progressToken\":5}},\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/y\"}",
            Claims::Say(&said),
            format!(r#""method":"x/y","params":{{"cursor": "","_meta":{{{meta},"progressToken":7}}}}"#),
        ),
        (
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x/y","params":{{"_meta":{claimed},"a":1.0}}}}"#),
            Claims::Drop,
            r#""method":"x/y","params":{"_meta":{"k":1},"a":1.0}"#.into(),
        ),
        (
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x/y","params":{{"_meta":{claimed},"a":1.0}}}}"#),
            Claims::Say(&said),
            format!(r#""method":"x/y","params":{{"_meta":{{{meta},"k":1}},"a":1.0}}"#),
        ),
    ];
    for (text, claims, want) in rows {
        let out = translate::request(&asked(text, LAST), 7, Features::of(NEW), *claims, &[]);
        assert_eq!(String::from_utf8_lossy(&out.frame), format!(r#"{{"jsonrpc":"2.0","id":7,{want}}}"#), "{text}");
    }
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t\u0065"}}"#;
    let out = translate::request(&asked(call, LAST), 7, Features::of(NEW), Claims::Keep, &[("requestState", "\"s\"")]);
    assert_eq!(out.about.as_deref(), Some("te"));
    assert!(String::from_utf8_lossy(&out.frame).ends_with(r#""params":{"requestState":"s","name":"t\u0065"}}"#));
}

#[test]
fn results_have_what_the_clients_era_has() {
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}"#;
    let list = r#"{"jsonrpc":"2.0","id":"c","method":"tools/list"}"#;
    let rows = [
        (
            call,
            LAST,
            r#"{"resultType":"complete","content":[],"_meta":{"a":1.0}}"#,
            r#"{"content":[],"_meta":{"a":1.0}}"#,
        ),
        (
            list,
            Revision::V2025_03_26,
            r#"{"tools":[{"name":"n","title":"T","inputSchema":{"maximum":12345678901234567890123,"default":1.10,"x":1e400}}]}"#,
            r#"{"tools":[{"name":"n","inputSchema":{"maximum":12345678901234567890123,"default":1.10,"x":1e400},"annotations":{"title":"T"}}]}"#,
        ),
        (list, LAST, r#"{"tools":[],"ttlMs":5,"cacheScope":"public","resultType":"complete"}"#, r#"{"tools":[]}"#),
        (call, LAST, r#"{"content":[],"structuredContent":[1.0]}"#, r#"{"content":[{"text":"[1.0]","type":"text"}]}"#),
        (
            call,
            LAST,
            r#"{"content":[{"type":"audio"}],"structuredContent":{"a":1.0}}"#,
            r#"{"content":[{"type":"audio"}],"structuredContent":{"a":1.0}}"#,
        ),
        (
            call,
            OLD,
            r#"{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource_link","name":"n","uri":"a:b"}]}"#,
            r#"{"content":[{"text":"[audio, audio/wav, 4 bytes in base64: this client's protocol revision has no audio]","type":"text"},{"text":"n: a:b","type":"text"}]}"#,
        ),
    ];
    let sorted = |text: &str| exact::read(text).unwrap();
    for (request, revision, came, want) in rows {
        let message = heard(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{came}}}"#));
        let Kind::Response { outcome: Ok(span), .. } = message.kind else { panic!("{came}") };
        let reply = result::to_session(&asked(request, revision), &message, span);
        assert_eq!(sorted(reply.body()), sorted(want), "{came}");
        assert!(reply.frame().starts_with(br#"{"jsonrpc":"2.0","id":"c","result":"#));
    }
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let list = format!(r#"{{"jsonrpc":"2.0","id":"c","method":"tools/list","params":{{{meta}}}}}"#);
    let message = heard(r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[1.0],"_meta":{}}}"#);
    let Kind::Response { outcome: Ok(span), .. } = message.kind else { panic!() };
    let reply = result::to_stateless(&asked(&list, LAST), &message, span, Some(r#"{"name":"s"}"#));
    assert_eq!(
        reply.body(),
        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[1.0],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#
    );
    // Whether a tool is a task is for the client to decide in the other era only.
    let message = heard(
        r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"execution":{},"name":"a","n":1e400},1,{"m":2.0,"execution":{"a":[]}}]}}"#,
    );
    let Kind::Response { outcome: Ok(span), .. } = message.kind else { panic!() };
    let reply = result::to_stateless(&asked(&list, LAST), &message, span, None);
    assert!(reply.body().ends_with(r#""tools":[{"name":"a","n":1e400},1,{"m":2.0}]}"#), "{}", reply.body());
}

#[test]
fn results_that_are_no_objects_become_an_error_that_says_so() {
    let list = asked(r#"{"jsonrpc":"2.0","id":"c","method":"tools/list"}"#, LAST);
    let stateless = asked(
        r#"{"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        LAST,
    );
    let want = r#"{"code":-32603,"message":"the upstream's result is not an object"}"#;
    for came in ["[1]", "[]", r#""x""#, "null", "1.0", "true", "[{\"resultType\":1}]"] {
        let message = heard(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{came}}}"#));
        let Kind::Response { outcome: Ok(span), .. } = message.kind else { panic!("{came}") };
        assert_eq!(result::to_stateless(&stateless, &message, span, Some("{}")).body(), want, "{came}");
        assert_eq!(result::to_session(&list, &message, span).body(), want, "{came}");
        // Between sides of one era it passes as it came.
        assert_eq!(result::listened(&list.id, &message, span).body(), came);
    }
}

#[test]
fn questions_keep_their_parameters_and_states_their_bytes() {
    let result = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","n":1.0}},"l":{"method":"roots/list"}},"requestState":"a\/b"}"#;
    let message = heard(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#));
    let round = ask::read(&message, result::asks(&message).unwrap(), &mut || "e1".to_owned()).unwrap();
    assert_eq!(round.state.as_deref(), Some(r#""a\/b""#));
    let questions = round.questions.unwrap();
    assert_eq!(questions[0].params, r#"{"elicitationId":"e1","mode":"url","n":1.0}"#);
    assert_eq!((questions[1].method.as_str(), questions[1].params.as_str()), ("roots/list", "{}"));
    assert_eq!(ask::for_stateless("elicitation/create", &questions[0].params), r#"{"mode":"url","n":1.0}"#);
    assert_eq!(ask::for_stateless("elicitation/create", r#"{"n":1.0}"#), r#"{"mode":"form","n":1.0}"#);
    let keyed = r#"{"_meta":{"linchpin/key":"k"},"n":1.0}"#;
    assert_eq!(ask::key(keyed).as_deref(), Some("k"));
    assert_eq!(ask::for_stateless("elicitation/create", keyed), r#"{"mode":"form","n":1.0}"#);
    assert_eq!(ask::for_stateless("roots/list", keyed), r#"{"n":1.0}"#);
    let answers = [("k".to_owned(), r#"{"action":"accept","n":1.0}"#.to_owned())];
    assert_eq!(ask::responses(&answers), r#"{"k":{"action":"accept","n":1.0}}"#);
    let neither = heard(r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required"}}"#);
    assert!(ask::read(&neither, result::asks(&neither).unwrap(), &mut String::new).is_err());
}

#[test]
fn errors_have_the_codes_of_the_clients_era() {
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}"#;
    let rows = [
        (
            LAST,
            r#"{"code":-32602,"message":"m","data":{"uri":"a:b"}}"#,
            r#"{"code":-32002,"message":"m","data":{"uri":"a:b"}}"#,
        ),
        (
            LAST,
            r#"{"code":-32602,"message":"m","data":{"uri":"a:c"}}"#,
            r#"{"code":-32602,"message":"m","data":{"uri":"a:c"}}"#,
        ),
        (LAST, r#"{"code":-32020,"message":"m"}"#, r#"{"code":-32603,"message":"m","data":{"code":-32020}}"#),
        // The code is among the details, or beside those that have no room for it.
        (
            LAST,
            r#"{"code":-32020,"message":"m","data":{"a":1.0}}"#,
            r#"{"code":-32603,"message":"m","data":{"code":-32020,"a":1.0}}"#,
        ),
        (
            LAST,
            r#"{"code":-32020,"message":"m","data":{ }}"#,
            r#"{"code":-32603,"message":"m","data":{"code":-32020 }}"#,
        ),
        (
            LAST,
            r#"{"code":-32020,"message":"m","data":null}"#,
            r#"{"code":-32603,"message":"m","data":{"code":-32020}}"#,
        ),
        (
            LAST,
            r#"{"code":-32020,"message":"m","data":[1.0]}"#,
            r#"{"code":-32603,"message":"m","data":{"code":-32020,"data":[1.0]}}"#,
        ),
        (
            LAST,
            r#"{"code":-32020,"message":"m","data":{"code":1}}"#,
            r#"{"code":-32603,"message":"m","data":{"code":-32020,"data":{"code":1}}}"#,
        ),
        (LAST, r#"{"code":5,"message":"\u0061","data":1.0}"#, r#"{"code":5,"message":"\u0061","data":1.0}"#),
    ];
    for (revision, came, want) in rows {
        let message = heard(&format!(r#"{{"jsonrpc":"2.0","id":7,"error":{came}}}"#));
        let Kind::Response { outcome: Err(span), .. } = message.kind else { panic!("{came}") };
        assert_eq!(error::translated(&asked(read, revision), &message, span).body(), want);
    }
}

#[test]
fn notifications_change_their_token_or_the_id_of_their_stream() {
    let told =
        heard(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1.0}}"#);
    let want = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.0}}"#;
    assert_eq!(notice::progress(&told, "\"t\"", true), want);
    assert_eq!(notice::for_retry(&notice::same(&told), Some("\"t\"")).unwrap(), want);
    assert_eq!(notice::for_retry(&notice::same(&told), None), None);
    // The last of two members counts, as it does where the notification is read.
    let twice = want.replace("{\"progressToken\":\"t\"", "{\"progressToken\":1,\"progressToken\":2");
    assert_eq!(notice::for_retry(&twice.clone().into(), Some("\"t\"")).unwrap(), twice.replace(":2", ":\"t\""));
    assert_eq!(notice::for_retry(&twice.into(), None), None);
    let text = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"uri":"a:b"}}"#;
    assert_eq!(notice::for_retry(&notice::same(&heard(text)), None).unwrap(), text);
    assert_eq!(notice::subscribed(&heard(text), &Id::from_json("\"s\"").unwrap()), text.replace(":7}", ":\"s\"}"));
    assert_eq!(
        notice::to_session(&heard(text)),
        text.replace(r#""_meta":{"io.modelcontextprotocol/subscriptionId":7},"#, "")
    );
    let more = text.replace(":7}", r#":7,"x":1.0}"#);
    let want = text.replace(r#"{"io.modelcontextprotocol/subscriptionId":7}"#, r#"{"x":1.0}"#);
    assert_eq!(notice::to_session(&heard(&more)), want);
}

#[test]
fn an_opening_of_one_era_becomes_that_of_the_other() {
    let agreed = |revision, result: &str| linchpin_core::Agreed::new(Features::of(revision), result);
    let own = r#"{"serverInfo":{"name":"s","n":1.0}, "protocolVersion" : "2025-11-25","capabilities":{}}"#;
    assert_eq!(open::initialized(Features::of(OLD), &agreed(LAST, own)), own.replace("2025-11-25", "2024-11-05"));
    let found = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"completions":{},"extensions":{"x":{}}},"instructions":"i","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    let made: serde_json::Value =
        serde_json::from_str(&open::initialized(Features::of(OLD), &agreed(NEW, found))).unwrap();
    let want = serde_json::json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {}, "logging": {} },
        "serverInfo": { "name": "s", "version": "1" }, "instructions": "i" });
    assert_eq!(made, want);
    let served = [Features::of(NEW), Features::of(OLD)];
    let made: serde_json::Value = serde_json::from_str(&open::discovered(&agreed(LAST, own), &served)).unwrap();
    assert_eq!(made["supportedVersions"], serde_json::json!(["2026-07-28", "2024-11-05"]));
    assert_eq!(made["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "s");
}

#[test]
fn a_caller_of_a_request_is_the_same_in_both_forms() {
    let caller =
        Caller::of_session(Arc::new(Session::new(Features::of(LAST), ClientCaps::default(), "{}", r#"{"name":"c"}"#)));
    assert_eq!(caller.client_info_json(), Some(r#"{"name":"c"}"#));
    assert_eq!(Caller::of_session(session(LAST)).client_info_json(), None);
}

#[test]
fn older_clients_get_no_newer_forms_and_texts() {
    let told = heard(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5,"message":"half"}}"#,
    );
    let plain = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}}"#;
    assert_eq!(notice::progress(&told, "\"t\"", false), plain);

    let form = |required: &str| {
        format!(
            r#"{{"mode":"form","message":"m","requestedSchema":{{"type":"object","properties":{{"several":{{"type":"array"}},"one":{{"type":"string","default":"a","oneOf":[{{"const":"a","title":"A"}}]}},"sure":{{"type":"boolean","default":true}}}},"required":["{required}"]}}}}"#
        )
    };
    let caps = ClientCaps::default();
    let ask = |params: &str, revision| ask::for_session("elicitation/create", params, Features::of(revision), &caps);
    let older = ask(&form("one"), Revision::V2025_06_18).unwrap();
    let want = serde_json::json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {
        "one": { "type": "string", "enum": ["a"], "enumNames": ["A"] }, "sure": { "type": "boolean", "default": true } }, "required": ["one"] } });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&older).unwrap(), want);
    assert!(ask(&form("several"), Revision::V2025_06_18).unwrap_err().contains("several"));
    assert_eq!(ask(&form("several"), LAST).unwrap(), form("several"));
}

#[test]
fn sampling_is_cut_to_what_the_client_has_or_refused() {
    let text = r#"{"type":"text","text":"a","n":1.0}"#;
    let of = |content: &str, more: &str| {
        format!(r#"{{"messages":[{{"role":"user","content":{content}}}],"maxTokens":5{more}}}"#)
    };
    let (plain, one) = (of(text, ""), of(&format!("[{text}]"), ""));
    let several = of(&format!("[{text},{text}]"), "");
    let tools = of(text, r#","tools":[{"name":"t"}],"toolChoice":{"mode":"auto"}"#);
    let must = of(text, r#","tools":[{"name":"t"}],"toolChoice":{"mode":"required"}"#);
    let used = of(r#"[{"type":"tool_use","id":"1","name":"t","input":{}}]"#, "");
    let context = of(text, r#","includeContext":"allServers""#);
    let none = of(text, r#","includeContext":"none""#);
    let audio = of(r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#, "");
    let (middle, has) = (Revision::V2025_06_18, r#"{"sampling":{}}"#);
    let all = r#"{"sampling":{"tools":{},"context":{}}}"#;
    for (params, revision, declared, want) in [
        (&plain, middle, has, Ok(&plain)),
        (&one, middle, has, Ok(&plain)),
        (&one, LAST, has, Ok(&one)),
        (&several, LAST, has, Ok(&several)),
        (&several, middle, has, Err("2 blocks")),
        (&of("[]", ""), middle, has, Err("0 blocks")),
        (&tools, middle, has, Ok(&plain)),
        // Its revision has none, whatever it declared.
        (&tools, middle, all, Ok(&plain)),
        (&tools, LAST, has, Ok(&plain)),
        (&tools, LAST, all, Ok(&tools)),
        (&must, LAST, has, Err("is to use a tool")),
        (&used, LAST, has, Err("use of a tool")),
        (&used, LAST, all, Ok(&used)),
        (&context, middle, has, Ok(&plain)),
        (&context, LAST, all, Ok(&context)),
        (&none, middle, has, Ok(&none)),
        (&audio, OLD, has, Err("audio")),
        (&audio, middle, has, Ok(&audio)),
    ] {
        let caps = ClientCaps::read(declared).unwrap();
        let made = ask::for_session("sampling/createMessage", params, Features::of(revision), &caps);
        match want {
            Ok(want) => assert_eq!(exact::read(&made.unwrap()).unwrap(), exact::read(want).unwrap(), "{params}"),
            Err(why) => assert!(made.as_ref().is_err_and(|said| said.contains(why)), "{params}: {made:?}"),
        }
    }
}

#[test]
fn a_client_is_asked_what_it_declared_and_its_revision_has() {
    let (form, url) = ("{}", r#"{"mode":"url"}"#);
    let all = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
    for (method, params, revision, declared, want) in [
        ("elicitation/create", form, LAST, all, true),
        ("elicitation/create", form, LAST, r#"{"sampling":{}}"#, false),
        ("elicitation/create", form, LAST, r#"{"elicitation":{}}"#, true),
        ("elicitation/create", form, OLD, all, false),
        ("elicitation/create", url, LAST, all, true),
        ("elicitation/create", url, LAST, r#"{"elicitation":{}}"#, false),
        ("elicitation/create", url, Revision::V2025_06_18, all, false),
        ("sampling/createMessage", "{}", OLD, all, true),
        ("sampling/createMessage", "{}", OLD, "{}", false),
        ("roots/list", "{}", OLD, all, true),
        ("roots/list", "{}", OLD, "{}", false),
        ("odd/ask", "{}", LAST, all, false),
    ] {
        let caps = ClientCaps::read(declared).unwrap();
        let may = ask::is_declared(method, params, Features::of(revision), &caps);
        assert_eq!(may, want, "{method} {params} {declared}");
    }
}
