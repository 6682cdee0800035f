//! Reading forgives what does no harm, refuses the rest by name, and never guesses.

use linchpin_types::RawValue;
use linchpin_types::capability::{ClientCapabilities, ServerCapabilities};
use linchpin_types::complete::CompleteRequestParams;
use linchpin_types::content::{ContentBlock, ResourceContents};
use linchpin_types::elicit::{
    ElicitRequestParams, ElicitRequestURLParams, ElicitResult, ElicitValue, PrimitiveSchemaDefinition, RequestedSchema,
};
use linchpin_types::error::ErrorObject;
use linchpin_types::jsonrpc::{JSONRPCMessage, RequestId};
use linchpin_types::lifecycle::InitializeResult;
use linchpin_types::mrtr::{InputRequest, InputRequiredResult};
use linchpin_types::page::{CacheableResult, PaginatedResult, ResultType};
use linchpin_types::prompt::{GetPromptRequestParams, ListPromptsResult};
use linchpin_types::resource::ReadResourceResult;
use linchpin_types::sample::{CreateMessageRequestParams, CreateMessageResult, SamplingMessage};
use linchpin_types::tool::{CallToolResult, ListToolsResult, Tool};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// Reads each first line as a `T` and wants the second one written.
#[track_caller]
fn become_<T: DeserializeOwned + Serialize>(cases: &[(&str, &str)]) {
    for (sent, written) in cases {
        assert_eq!(serde_json::to_string(&read::<T>(sent)).unwrap(), *written, "sent: {sent}");
    }
}

/// Wants reading as a `T` to fail with an error that says the second line.
#[track_caller]
fn refuse<T: DeserializeOwned>(cases: &[(&str, &str)]) {
    for (sent, said) in cases {
        match serde_json::from_str::<T>(sent) {
            Ok(_) => panic!("{sent} was accepted"),
            Err(why) => assert!(why.to_string().contains(said), "{sent}: {why}"),
        }
    }
}

#[test]
fn unknown_fields_are_ignored_and_null_is_absent() {
    become_::<ContentBlock>(&[
        (r#"{"text":"late tag","new":{"deep":[]},"type":"text"}"#, r#"{"type":"text","text":"late tag"}"#),
        (
            r#"{"type":"text","text":"t","annotations":null,"_meta":null,"size":"not of text"}"#,
            r#"{"type":"text","text":"t"}"#,
        ),
        (
            r#"{"type":"resource","resource":{"uri":"a:b","text":null,"blob":"AA==","x":1}}"#,
            r#"{"type":"resource","resource":{"uri":"a:b","blob":"AA=="}}"#,
        ),
    ]);
    become_::<Tool>(&[(
        r#"{"name":"n","title":null,"icons":null,"inputSchema":{},"outputSchema":null,"annotations":{"newHint":true},"execution":{}}"#,
        r#"{"name":"n","inputSchema":{},"annotations":{},"execution":{}}"#,
    )]);
    become_::<ListPromptsResult>(&[(
        r#"{"prompts":[{"name":"p","arguments":null,"icons":[]}],"nextCursor":null,"ttlMs":null}"#,
        r#"{"prompts":[{"name":"p"}]}"#,
    )]);
    become_::<GetPromptRequestParams>(&[(r#"{"name":"p","arguments":null}"#, r#"{"name":"p"}"#)]);
    become_::<InitializeResult>(&[(
        r#"{"protocolVersion":"v","capabilities":{"logging":{"future":1},"tools":null,"experimental":null,"unheard":{}},"serverInfo":{"name":"s","version":"1","mood":"good"}}"#,
        r#"{"protocolVersion":"v","capabilities":{"logging":{}},"serverInfo":{"name":"s","version":"1"}}"#,
    )]);
}

#[test]
fn how_long_a_result_may_be_kept_is_never_negative() {
    let at = |ms: &str| format!(r#"{{"contents":[],"ttlMs":{ms}}}"#);
    for (sent, kept) in
        [("5", Some(5)), ("0", Some(0)), ("-5", Some(0)), ("-0.5", Some(0)), ("7.9", Some(7)), ("null", None)]
    {
        assert_eq!(read::<ReadResourceResult>(&at(sent)).ttl_ms, kept, "{sent}");
    }
    refuse::<ReadResourceResult>(&[(&at("\"5\""), "invalid type")]);
}

#[test]
fn presence_of_a_capability_survives_unknown_members() {
    let client: ClientCapabilities =
        read(r#"{"elicitation":{"voice":{}},"sampling":{},"extensions":{"a.b/c":{"d":1}}}"#);
    assert!(client.elicitation.is_some_and(|it| it.form.is_none() && it.url.is_none()));
    assert!(client.sampling.is_some() && client.roots.is_none());
    assert_eq!(client.extensions["a.b/c"].get(), r#"{"d":1}"#);

    let server: ServerCapabilities = read(r#"{"resources":{"subscribe":true,"watch":{}},"completions":{"max":5}}"#);
    assert_eq!(server.resources.and_then(|it| it.subscribe), Some(true));
    assert!(server.completions.is_some() && server.tools.is_none());
}

#[test]
fn a_tool_without_a_schema_takes_any_object() {
    become_::<ListToolsResult>(&[(
        r#"{"tools":[{"name":"n"}]}"#,
        r#"{"tools":[{"name":"n","inputSchema":{"type":"object"}}]}"#,
    )]);
}

#[test]
fn an_answer_of_null_is_not_an_absent_answer() {
    let answer = |text: &str| read::<CallToolResult>(text).structured_content.map(|raw| raw.get().to_owned());
    assert_eq!(answer(r#"{"content":[],"structuredContent":null}"#).as_deref(), Some("null"));
    assert_eq!(answer(r#"{"content":[]}"#), None);
    assert!(read::<CallToolResult>(r#"{"structuredContent":1}"#).content.is_empty());
}

#[test]
fn one_block_or_an_array_of_blocks_is_the_same_content() {
    let one: SamplingMessage = read(r#"{"role":"user","content": {"type":"text","text":"a"} }"#);
    let many: SamplingMessage = read(r#"{"role":"user","content": [ {"type":"text","text":"a"} ] }"#);
    assert_eq!(one, many);
    assert_eq!(one.content[0].as_text(), Some("a"));
    assert!(read::<CreateMessageResult>(r#"{"role":"assistant","content":[],"model":"m"}"#).content.is_empty());
    refuse::<SamplingMessage>(&[
        (r#"{"role":"user","content":"plain"}"#, "neither a block nor an array"),
        (r#"{"role":"user"}"#, "missing field `content`"),
        (r#"{"role":"system","content":[]}"#, "unknown variant `system`"),
    ]);
}

#[test]
fn unknown_kinds_are_named_in_the_error() {
    refuse::<ContentBlock>(&[
        (r#"{"type":"video","data":"AA=="}"#, r#"unknown content type "video""#),
        (r#"{"type":"tool_use","id":"u","name":"n","input":{}}"#, r#"unknown content type "tool_use""#),
        (r#"{"text":"t"}"#, "missing field `type`"),
        (r#"{"type":"text"}"#, "missing field `text`"),
        (r#"{"type":"image","data":"AA=="}"#, "missing field `mimeType`"),
        (r#""text""#, "expected struct"),
    ]);
    refuse::<CallToolResult>(&[(r#"{"content":[{"type":"hologram"}]}"#, "hologram")]);
    refuse::<CreateMessageResult>(&[(
        r#"{"role":"assistant","content":{"type":"resource_link","uri":"a:b","name":"n"},"model":"m"}"#,
        "resource_link",
    )]);
    refuse::<ResourceContents>(&[(r#"{"uri":"a:b"}"#, "neither text nor blob")]);
    refuse::<InputRequest>(&[
        (r#"{"method":"tools/call","params":{}}"#, r#"unknown method "tools/call""#),
        (r#"{"method":"elicitation/create"}"#, "missing field `params`"),
    ]);
    refuse::<CompleteRequestParams>(&[(
        r#"{"ref":{"type":"ref/tool","name":"n"},"argument":{"name":"a","value":""}}"#,
        "ref/tool",
    )]);
}

#[test]
fn a_peers_long_type_does_not_become_a_long_message() {
    let sent = format!(r#"{{"type":"{}"}}"#, "x".repeat(100_000));
    let why = serde_json::from_str::<ContentBlock>(&sent).unwrap_err().to_string();
    assert!(why.len() < 200, "{} bytes", why.len());
}

#[test]
fn roots_need_no_parameters() {
    become_::<InputRequest>(&[
        (r#"{"method":"roots/list"}"#, r#"{"method":"roots/list","params":{}}"#),
        (r#"{"params":null,"method":"roots/list"}"#, r#"{"method":"roots/list","params":{}}"#),
    ]);
}

#[test]
fn elicitation_without_a_mode_is_a_form() {
    let form: ElicitRequestParams = read(r#"{"message":"?","requestedSchema":{"properties":{}}}"#);
    assert!(matches!(form, ElicitRequestParams::Form(_)));
    become_::<ElicitRequestURLParams>(&[(
        r#"{"message":"go","url":"https://x.org"}"#,
        r#"{"mode":"url","message":"go","url":"https://x.org"}"#,
    )]);
    refuse::<ElicitRequestParams>(&[
        (r#"{"mode":"fax","message":"?"}"#, "neither form nor url"),
        (r#"{"mode":"url","message":"?"}"#, "missing field `url`"),
    ]);
}

#[test]
fn form_fields_keep_their_order_and_are_found_by_name() {
    let schema: RequestedSchema =
        read(r#"{"type":"object","properties":{"z":{"type":"boolean"},"a":{"type":"integer"},"m":{"type":"string"}}}"#);
    let names: Vec<_> = schema.properties.0.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["z", "a", "m"]);
    assert!(matches!(schema.properties.get("a"), Some(PrimitiveSchemaDefinition::Number(_))));
    assert!(schema.properties.get("b").is_none());
}

#[test]
fn the_kinds_of_fields_are_told_apart() {
    use PrimitiveSchemaDefinition as Field;
    assert!(matches!(read(r#"{"enum":["a"],"type":"string"}"#), Field::UntitledSingleSelectEnum(_)));
    assert!(matches!(read(r#"{"enum":["a"],"enumNames":["A"],"type":"string"}"#), Field::LegacyTitledEnum(_)));
    assert!(matches!(read(r#"{"oneOf":[],"type":"string"}"#), Field::TitledSingleSelectEnum(_)));
    assert!(matches!(read(r#"{"items":{"anyOf":[]},"type":"array"}"#), Field::TitledMultiSelectEnum(_)));
    assert!(matches!(read(r#"{"items":{"enum":[]},"type":"array"}"#), Field::UntitledMultiSelectEnum(_)));
    assert!(matches!(read(r#"{"type":"string","pattern":"^a"}"#), Field::String(_)));
    refuse::<Field>(&[
        (r#"{"type":"object"}"#, "type of a form field"),
        (r#"{"type":"array"}"#, "missing field `items`"),
    ]);
}

#[test]
fn blank_form_fields_sent_as_null_are_left_out() {
    let result: ElicitResult = read(r#"{"action":"accept","content":{"a":null,"n":3,"f":3.5,"big":1e300}}"#);
    let content = result.content.unwrap();
    assert_eq!(content.keys().collect::<Vec<_>>(), ["big", "f", "n"]);
    assert_eq!(content["n"], ElicitValue::Integer(3));
    assert_eq!(content["f"], ElicitValue::Number(3.5));
    assert_eq!(read::<ElicitResult>(r#"{"action":"decline","content":null}"#), ElicitResult::decline());
    refuse::<ElicitResult>(&[(r#"{"action":"maybe"}"#, "maybe")]);
}

#[test]
fn ids_are_strings_or_whole_numbers() {
    assert_eq!(read::<RequestId>("7.0"), RequestId::Number(7));
    assert_ne!(read::<RequestId>("7"), read::<RequestId>(r#""7""#));
    refuse::<RequestId>(&[
        ("7.5", "whole number"),
        ("18446744073709551615", "2^63"),
        ("1e300", "whole number"),
        ("null", "string or a whole number"),
        ("true", "string or a whole number"),
        ("[1]", "string or a whole number"),
    ]);
}

#[test]
fn messages_are_told_apart_by_their_members() {
    use JSONRPCMessage as Message;
    assert!(matches!(read(r#"{"id":1,"method":"m","jsonrpc":"2.0"}"#), Message::Request(_)));
    assert!(matches!(read(r#"{"method":"m","jsonrpc":"2.0","params":null}"#), Message::Notification(_)));
    assert!(matches!(read(r#"{"result":null,"id":1,"jsonrpc":"2.0"}"#), Message::Result(_)));
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#),
        Message::Error(error) if error.id.is_none()
    ));
    refuse::<Message>(&[
        (r#"{"jsonrpc":"2.0","id":1}"#, "none of method, result and error"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, "jsonrpc"),
        (r#"{"id":1,"method":"m"}"#, "missing field `jsonrpc`"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "string or a whole number"),
    ]);
}

#[test]
fn results_say_whether_they_are_the_end() {
    assert_eq!(read::<PaginatedResult>(r#"{"tools":[]}"#).result_type.unwrap_or_default(), ResultType::Complete);
    let later: CacheableResult = read(r#"{"resultType":"org.x/later"}"#);
    assert_eq!(later.result_type, Some(ResultType::Other("org.x/later".into())));
    let asked: InputRequiredResult = read(r#"{"resultType":"input_required","requestState":"s","new":1}"#);
    assert_eq!(asked.result_type, ResultType::InputRequired);
}

#[test]
fn a_bad_answer_does_not_spoil_the_others() {
    let params: linchpin_types::tool::CallToolRequestParams =
        read(r#"{"name":"n","inputResponses":{"good":{"action":"accept","content":{}},"bad":42}}"#);
    let answers = params.input_responses.unwrap();
    let parse = |key: &str| serde_json::from_str::<ElicitResult>(RawValue::get(&answers[key]));
    assert!(parse("good").is_ok() && parse("bad").is_err());
}

#[test]
fn an_error_without_a_message_is_still_an_error() {
    let error: ErrorObject = read(r#"{"code":-32000,"data":{"secret":"s"}}"#);
    assert_eq!(error.message, "");
    let shown = ErrorObject::new(-32000, "sorry").with_data(error.data.unwrap()).to_string();
    assert_eq!(shown, "sorry (-32000)");
}

#[test]
fn deep_json_in_raw_places_is_carried_without_a_stack() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let result: CallToolResult = read(&format!(r#"{{"content":[],"structuredContent":{deep}}}"#));
    assert_eq!(result.structured_content.unwrap().get().len(), deep.len());
    let sampling: Result<CreateMessageRequestParams, _> =
        serde_json::from_str(&format!(r#"{{"messages":{deep},"maxTokens":1}}"#));
    assert!(sampling.is_err());
}
