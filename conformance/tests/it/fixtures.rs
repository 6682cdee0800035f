//! What the suite takes for granted about its fixtures, so that a slip is found without running the suite.

use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin_testing::TestClient;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::DuplexStream;

/// A client that answers whatever it is asked.
async fn client(revision: Revision) -> TestClient<DuplexStream> {
    let (ours, theirs) = memory();
    tokio::spawn(linchpin_conformance::server().serve(ours));
    let mut client = TestClient::new(theirs, revision)
        .answer("elicitation/create", |params| {
            let fields = params["requestedSchema"]["properties"].as_object().unwrap();
            let value = |field: &Value| match field["type"].as_str() {
                Some("boolean") => Some(json!(true)),
                Some("string") if field.get("enum").is_none() && field.get("oneOf").is_none() => Some(json!("word")),
                _ => None,
            };
            let content: serde_json::Map<_, _> =
                fields.iter().filter_map(|(name, field)| Some((name.clone(), value(field)?))).collect();
            json!({ "action": "accept", "content": content })
        })
        .answer(
            "sampling/createMessage",
            |_| json!({ "role": "assistant", "model": "none", "content": { "type": "text", "text": "Paris" } }),
        )
        .answer("roots/list", |_| json!({ "roots": [{ "uri": "file:///work" }] }));
    client.open().await;
    client
}

/// Tool, arguments, and what its answer contains.
fn cases() -> Vec<(&'static str, Value, &'static str)> {
    let round = |what: &'static str| (what, json!({}));
    let mut cases = vec![
        ("test_simple_text", json!({}), "This is a simple text response for testing."),
        ("test_image_content", json!({}), "image/png"),
        ("test_audio_content", json!({}), "audio/wav"),
        ("test_embedded_resource", json!({}), "This is an embedded resource content."),
        ("test_multiple_content_types", json!({}), "test://mixed-content-resource"),
        ("test_error_handling", json!({}), "This tool intentionally returns an error for testing"),
        ("test_tool_with_logging", json!({}), "Logged"),
        ("test_logging_tool", json!({}), "Logged"),
        ("test_tool_with_progress", json!({}), "Progress"),
        ("test_reconnection", json!({}), "Answered"),
        ("slow_compute", json!({ "seconds": 0 }), "finished"),
        ("json_schema_2020_12_tool", json!({ "phone": "1", "contactMethod": "phone" }), "2 fields"),
        ("json_schema_2020_12_tool", json!({ "email": "a@b", "contactMethod": "phone" }), "isError"),
        ("test_custom_header", json!({ "value": "test-default" }), "12 characters"),
        ("greet", json!({ "name": "Ada" }), "Hello, Ada!"),
        ("test_sampling", json!({ "prompt": "?" }), "LLM response: Paris"),
        ("test_elicitation", json!({ "message": "?" }), "User response: action=accept, content="),
        ("test_elicitation_sep1034_defaults", json!({}), "Elicitation completed: action=accept, content="),
        ("test_elicitation_sep1330_enums", json!({}), "Elicitation completed: action=accept, content="),
        ("test_streaming_elicitation", json!({}), "Hello, word!"),
        ("test_missing_capability", json!({}), "can sample"),
        ("test_trigger_tool_change", json!({}), "announced: true"),
        ("test_trigger_prompt_change", json!({}), "announced: true"),
    ];
    let rounds = [
        (round("test_input_required_result_elicitation"), "Hello, word!"),
        (round("test_input_required_result_sampling"), "Paris"),
        (round("test_input_required_result_list_roots"), "file:///work"),
        (round("test_input_required_result_request_state"), "state-ok"),
        (round("test_input_required_result_multiple_inputs"), "Paris To: word. Roots: file:///work"),
        (round("test_input_required_result_multi_round"), "word likes word."),
        (round("test_input_required_result_tampered_state"), "state-ok"),
        (round("test_input_required_result_capabilities"), "Paris To: word. Roots: file:///work"),
    ];
    cases.extend(rounds.map(|((name, arguments), says)| (name, arguments, says)));
    cases
}

/// Tools whose calls are or become tasks: the suite's scenarios of tasks call them, and clients that know tasks only.
const TASKS: &[&str] = &["failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"];

#[tokio::test]
async fn every_tool_answers_soon_and_as_the_suite_expects() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut client = client(revision).await;
        let list = client.request("tools/list", json!({})).await.unwrap();
        let names: Vec<_> =
            list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names[0], "test_simple_text", "the suite calls the first tool without arguments");
        for name in &names {
            assert!(TASKS.contains(name) || cases().iter().any(|case| case.0 == *name), "{name} has no case");
        }
        for (tool, arguments, says) in cases() {
            let begin = Instant::now();
            let result = client.call(tool, arguments).await.unwrap();
            assert!(begin.elapsed() < Duration::from_secs(2), "{revision} {tool} took {:?}", begin.elapsed());
            assert!(result.to_string().contains(says), "{revision} {tool}: {result}");
        }
    }
}

#[tokio::test]
async fn clients_of_older_revisions_are_never_sent_what_those_lack() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        let mut client = client(revision).await;
        for (tool, arguments, ..) in cases() {
            let result = client.call(tool, arguments).await.unwrap();
            let kinds = result["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect::<Vec<_>>();
            assert!(client.features().audio || !kinds.contains(&&json!("audio")), "{revision} {tool}: {result}");
        }
        let forms = client.questions().iter().filter(|method| *method == "elicitation/create").count();
        assert_eq!(forms > 0, client.features().elicitation, "{revision}");
    }
}

#[tokio::test]
async fn the_schema_of_the_suite_comes_out_as_it_went_in() {
    let mut client = client(Revision::V2026_07_28).await;
    let list = client.request("tools/list", json!({})).await.unwrap();
    let tool =
        list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "json_schema_2020_12_tool").unwrap();
    let schema = &tool["inputSchema"];
    for (pointer, want) in [
        ("/$schema", json!("https://json-schema.org/draft/2020-12/schema")),
        ("/$defs/address/$anchor", json!("addressDef")),
        ("/properties/address/$ref", json!("#/$defs/address")),
        ("/allOf/0/anyOf/1/required", json!(["email"])),
        ("/if/properties/contactMethod/const", json!("phone")),
        ("/then/required", json!(["phone"])),
        ("/else/required", json!(["email"])),
        ("/additionalProperties", json!(false)),
    ] {
        assert_eq!(schema.pointer(pointer), Some(&want), "{pointer}");
    }
}
