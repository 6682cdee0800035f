//! The words themselves: dates, levels, codes and keys are what the revisions say, and constructors write them.

use linchpin_types::RawValue;
use linchpin_types::content::{Annotations, ContentBlock, ResourceContents, Role};
use linchpin_types::error::code;
use linchpin_types::logging::LoggingLevel;
use linchpin_types::meta::{Meta, key};
use linchpin_types::tool::{CallToolResult, Tool};
use linchpin_types::version::Revision;

#[test]
fn revisions_are_dates_in_order() {
    let dates = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    assert_eq!(Revision::ALL.map(Revision::as_str), dates);
    assert!(Revision::ALL.is_sorted());
    assert_eq!(Revision::LATEST, Revision::ALL[4]);
    for (revision, date) in Revision::ALL.into_iter().zip(dates) {
        assert_eq!(Revision::parse(date), Some(revision));
        assert_eq!(date.parse(), Ok(revision));
        assert_eq!(revision.to_string(), date);
        assert_eq!(serde_json::to_string(&revision).unwrap(), format!("{date:?}"));
        assert_eq!(serde_json::from_str::<Revision>(&format!("{date:?}")).unwrap(), revision);
    }
}

#[test]
fn other_dates_are_no_revisions() {
    for text in ["", "2025-06-19", " 2025-06-18", "2025-06-18 ", "2025-6-18", "DRAFT-2026-v1", "9999-12-31"] {
        assert_eq!(Revision::parse(text), None, "{text:?}");
        let why = serde_json::from_str::<Revision>(&format!("{text:?}")).unwrap_err().to_string();
        assert!(why.contains("2024-11-05, 2025-03-26"), "{why}");
    }
}

#[test]
fn levels_rise_from_debug_to_emergency() {
    let words = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    assert_eq!(LoggingLevel::ALL.map(LoggingLevel::as_str), words);
    assert!(LoggingLevel::ALL.is_sorted());
    for (level, word) in LoggingLevel::ALL.into_iter().zip(words) {
        assert_eq!(LoggingLevel::parse(word), Some(level));
        assert_eq!(serde_json::to_string(&level).unwrap(), format!("{word:?}"));
    }
    assert!(LoggingLevel::parse("Warning").is_none() && LoggingLevel::parse("warn").is_none());
}

#[test]
fn codes_and_keys_are_pinned() {
    let codes = [
        (code::PARSE_ERROR, -32700),
        (code::INVALID_REQUEST, -32600),
        (code::METHOD_NOT_FOUND, -32601),
        (code::INVALID_PARAMS, -32602),
        (code::INTERNAL_ERROR, -32603),
        (code::RESOURCE_NOT_FOUND, -32002),
        (code::URL_ELICITATION_REQUIRED, -32042),
        (code::HEADER_MISMATCH, -32020),
        (code::MISSING_REQUIRED_CLIENT_CAPABILITY, -32021),
        (code::UNSUPPORTED_PROTOCOL_VERSION, -32022),
    ];
    for (ours, theirs) in codes {
        assert_eq!(ours, theirs);
    }
    let keys = [
        (key::PROTOCOL_VERSION, "io.modelcontextprotocol/protocolVersion"),
        (key::CLIENT_INFO, "io.modelcontextprotocol/clientInfo"),
        (key::CLIENT_CAPABILITIES, "io.modelcontextprotocol/clientCapabilities"),
        (key::LOG_LEVEL, "io.modelcontextprotocol/logLevel"),
        (key::SUBSCRIPTION_ID, "io.modelcontextprotocol/subscriptionId"),
        (key::SERVER_INFO, "io.modelcontextprotocol/serverInfo"),
        (key::RELATED_TASK, "io.modelcontextprotocol/related-task"),
        (key::MODEL_IMMEDIATE_RESPONSE, "io.modelcontextprotocol/model-immediate-response"),
        (key::PROGRESS_TOKEN, "progressToken"),
        (key::TRACEPARENT, "traceparent"),
        (key::TRACESTATE, "tracestate"),
        (key::BAGGAGE, "baggage"),
    ];
    for (ours, theirs) in keys {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn constructors_write_the_wire() {
    let for_people = Annotations::new().with_audience([Role::User]).with_priority(0.5);
    let cases = [
        (ContentBlock::text("t"), r#"{"type":"text","text":"t"}"#),
        (ContentBlock::from("t"), r#"{"type":"text","text":"t"}"#),
        (ContentBlock::image_base64("AA==", "image/png"), r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#),
        (ContentBlock::audio_base64("AA==", "audio/wav"), r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#),
        (ContentBlock::link("a:b", "n"), r#"{"type":"resource_link","uri":"a:b","name":"n"}"#),
        (
            ContentBlock::resource(ResourceContents::text("a:b", "t").with_mime_type("text/plain")),
            r#"{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","text":"t"}}"#,
        ),
        (
            ContentBlock::resource(ResourceContents::blob("a:b", &[0])).with_annotations(for_people.clone()),
            r#"{"type":"resource","resource":{"uri":"a:b","blob":"AA=="},"annotations":{"audience":["user"],"priority":0.5}}"#,
        ),
        (
            ContentBlock::link("a:b", "n").with_annotations(for_people),
            r#"{"type":"resource_link","uri":"a:b","name":"n","annotations":{"audience":["user"],"priority":0.5}}"#,
        ),
    ];
    for (block, written) in cases {
        assert_eq!(serde_json::to_string(&block).unwrap(), written);
    }
    assert_eq!(
        serde_json::to_string(&CallToolResult::error("no")).unwrap(),
        r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#
    );
    let mut tool = Tool::default();
    tool.name = "n".into();
    assert_eq!(serde_json::to_string(&tool).unwrap(), r#"{"name":"n","inputSchema":{"type":"object"}}"#);
}

#[test]
fn meta_is_a_map_of_raw_json() {
    let mut meta = Meta::new();
    assert!(meta.is_empty());
    assert!(meta.insert("x.org/raw", RawValue::from_string("{ }".into()).unwrap()).is_none());
    meta.insert_as(key::PROGRESS_TOKEN, "p").unwrap();
    assert_eq!(meta.get("x.org/raw").map(RawValue::get), Some("{ }"));
    assert_eq!(meta.get_as::<String>(key::PROGRESS_TOKEN).unwrap().as_deref(), Some("p"));
    assert!(meta.get_as::<u8>(key::PROGRESS_TOKEN).is_err());
    assert_eq!(meta.get_as::<u8>("absent").unwrap(), None);
    let before = meta.insert("x.org/raw", RawValue::from_string("1".into()).unwrap());
    assert_eq!(before.as_deref().map(RawValue::get), Some("{ }"));
    assert_eq!(serde_json::to_string(&meta).unwrap(), r#"{"progressToken":"p","x.org/raw":1}"#);
    assert_ne!(meta, Meta::new());
    assert_eq!(meta, meta.clone());
    assert_eq!(meta.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["progressToken", "x.org/raw"]);
    assert!(meta.remove("x.org/raw").is_some() && meta.len() == 1);
}

#[test]
fn structs_that_can_grow_are_non_exhaustive() {
    // The envelopes are those of JSON-RPC 2.0, and these errors have no members to see.
    const CLOSED: [&str; 7] = [
        "JSONRPCErrorResponse",
        "JSONRPCNotification",
        "JSONRPCRequest",
        "JSONRPCResultResponse",
        "MetaError",
        "UnknownLoggingLevel",
        "UnknownRevision",
    ];
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let (mut open, mut closed) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let mut marked = false;
            for line in text.lines() {
                if let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
                    match marked {
                        true => open += 1,
                        false => closed.push(name.to_owned()),
                    }
                }
                marked = line == "#[non_exhaustive]" || (marked && line.starts_with("#["));
            }
        }
    }
    closed.sort();
    assert_eq!(closed, CLOSED);
    assert!(open > 90, "{open}");
}

#[test]
fn meta_is_made_of_json_and_of_nothing_but_objects() {
    use serde_json::json;
    for wrong in [json!(null), json!(true), json!(1), json!("a"), json!([{}])] {
        assert!(Meta::try_from(wrong.clone()).is_err(), "{wrong}");
        let set = std::panic::catch_unwind(|| CallToolResult::text("t").with_meta(wrong.clone()));
        assert!(set.is_err(), "{wrong}");
    }
    let (whole, serde_json::Value::Object(map)) = (json!({ "b": [1], "a": null }), json!({ "b": [1], "a": null }))
    else {
        unreachable!()
    };
    let want = r#"{"content":[{"type":"text","text":"t"}],"_meta":{"a":null,"b":[1]}}"#;
    for result in [
        CallToolResult::text("t").with_meta(whole.clone()),
        CallToolResult::text("t").with_meta(map),
        CallToolResult::text("t").with_meta(Meta::try_from(whole).unwrap()),
    ] {
        assert_eq!(serde_json::to_string(&result).unwrap(), want);
    }
}
