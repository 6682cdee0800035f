//! What is read is what is written: every kind of object survives reading and writing, byte for byte.

use linchpin_types::RawValue;
use linchpin_types::capability::{ClientCapabilities, ServerCapabilities};
use linchpin_types::complete::{CompleteRequestParams, CompleteResult};
use linchpin_types::content::{ContentBlock, Icon, ResourceContents};
use linchpin_types::elicit::{ElicitRequestParams, ElicitResult, PrimitiveSchemaDefinition};
use linchpin_types::error::ErrorObject;
use linchpin_types::jsonrpc::{CancelledNotificationParams, JSONRPCMessage, RequestId};
use linchpin_types::lifecycle::{DiscoverResult, InitializeRequestParams, InitializeResult};
use linchpin_types::logging::{LoggingMessageNotificationParams, SetLevelRequestParams};
use linchpin_types::meta::Meta;
use linchpin_types::mrtr::{InputRequest, InputRequiredResult, InputResponse};
use linchpin_types::page::{CacheableResult, PaginatedRequestParams};
use linchpin_types::progress::ProgressNotificationParams;
use linchpin_types::prompt::{GetPromptRequestParams, GetPromptResult, ListPromptsResult};
use linchpin_types::request_meta::RequestMetaObject;
use linchpin_types::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceRequestParams, ReadResourceResult,
};
use linchpin_types::root::ListRootsResult;
use linchpin_types::sample::{CreateMessageRequestParams, CreateMessageResult};
use linchpin_types::subscribe::{SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenResult};
use linchpin_types::tool::{CallToolRequestParams, CallToolResult, ListToolsResult, Tool};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads each line as a `T`, writes it, and wants the same bytes; the same again by way of `serde_json::Value`.
#[track_caller]
fn survive<T: DeserializeOwned + Serialize>(lines: &[&str]) {
    for line in lines {
        let value: T = serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(serde_json::to_string(&value).unwrap(), *line);

        let tree: serde_json::Value = serde_json::from_str(line).unwrap();
        let from_tree: T = serde_json::from_value(tree.clone()).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(serde_json::to_value(&from_tree).unwrap(), tree);
    }
}

#[test]
fn content_blocks() {
    survive::<ContentBlock>(&[
        r#"{"type":"text","text":"Møte kl. 9 \"sharp\""}"#,
        r#"{"type":"text","text":"","annotations":{"audience":["user","assistant"],"priority":0.25,"lastModified":"2026-02-01T08:00:00Z"},"_meta":{"x.org/n":1}}"#,
        r#"{"type":"image","data":"iVBORw==","mimeType":"image/png"}"#,
        r#"{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","annotations":{"audience":["user"]}}"#,
        r#"{"type":"resource_link","uri":"note:///7","name":"seven","title":"Seven","description":"d","mimeType":"text/plain","size":12,"icons":[{"src":"https://x.org/i.png","mimeType":"image/png","sizes":["48x48","any"],"theme":"dark"}]}"#,
        r#"{"type":"resource","resource":{"uri":"note:///7","mimeType":"text/plain","text":"hei"}}"#,
        r#"{"type":"resource","resource":{"uri":"note:///8","blob":"AAEC","_meta":{"a":null}},"annotations":{"priority":0.5},"_meta":{"b":[1,2]}}"#,
    ]);
    survive::<ResourceContents>(&[r#"{"uri":"a:b","text":""}"#, r#"{"uri":"a:b","mimeType":"x/y","blob":""}"#]);
    survive::<Icon>(&[r#"{"src":"data:image/gif;base64,R0lG","theme":"light"}"#]);
}

#[test]
fn tools() {
    survive::<Tool>(&[
        r#"{"name":"n","inputSchema":{"type":"object"}}"#,
        r#"{"name":"n","title":"N","description":"d","icons":[{"src":"https://x.org/a.svg"}],"inputSchema":{"type":"object","required":["b"],"properties":{"b":{"type":"number"},"a":{}}},"outputSchema":{"type":"array"},"annotations":{"title":"t","readOnlyHint":false,"destructiveHint":true,"idempotentHint":true,"openWorldHint":false},"execution":{"taskSupport":"optional"},"_meta":{"k":true}}"#,
    ]);
    survive::<ListToolsResult>(&[
        r#"{"tools":[]}"#,
        r#"{"tools":[{"name":"n","inputSchema":{"type":"object"}}],"nextCursor":"p2","ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{}}"#,
    ]);
    survive::<CallToolRequestParams>(&[
        r#"{"name":"n"}"#,
        r#"{"name":"n","arguments":{"z":1,"a":[{}]},"inputResponses":{"sure":{"action":"decline"}},"requestState":"s","_meta":{"progressToken":4}}"#,
        r#"{"name":"n","arguments":{},"task":{"ttl":60000}}"#,
    ]);
    survive::<CallToolResult>(&[
        r#"{"content":[]}"#,
        r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#,
        r#"{"content":[],"structuredContent":{"b":1,"a":2},"isError":false,"resultType":"complete"}"#,
        r#"{"content":[],"structuredContent":[1,"2",null]}"#,
        r#"{"content":[],"structuredContent":null}"#,
    ]);
}

#[test]
fn resources_and_prompts() {
    survive::<ListResourcesResult>(&[
        r#"{"resources":[{"uri":"f:1","name":"one","size":0,"annotations":{"priority":0.1}}],"nextCursor":""}"#,
    ]);
    survive::<ListResourceTemplatesResult>(&[
        r#"{"resourceTemplates":[{"uriTemplate":"f:{n}","name":"all","title":"All","mimeType":"text/css"}],"ttlMs":1500,"cacheScope":"public"}"#,
    ]);
    survive::<ReadResourceRequestParams>(&[r#"{"uri":"f:1","requestState":"q"}"#]);
    survive::<ReadResourceResult>(&[
        r#"{"contents":[{"uri":"f:1","text":"t"},{"uri":"f:1/2","blob":"AA=="}],"ttlMs":9,"cacheScope":"private","resultType":"complete"}"#,
    ]);
    survive::<ListPromptsResult>(&[
        r#"{"prompts":[{"name":"p","title":"P","description":"d","arguments":[{"name":"who","title":"Who","required":true}]},{"name":"q"}]}"#,
    ]);
    survive::<GetPromptRequestParams>(&[r#"{"name":"p"}"#, r#"{"name":"p","arguments":{"a":"1","b":""}}"#]);
    survive::<GetPromptResult>(&[
        r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"?"}},{"role":"assistant","content":{"type":"image","data":"AA==","mimeType":"image/gif"}}]}"#,
    ]);
    survive::<CompleteRequestParams>(&[
        r#"{"ref":{"type":"ref/prompt","name":"p","title":"P"},"argument":{"name":"a","value":"x"}}"#,
        r#"{"ref":{"type":"ref/resource","uri":"f:{n}"},"argument":{"name":"n","value":""},"context":{"arguments":{"m":"1"}},"_meta":{"a":1}}"#,
    ]);
    survive::<CompleteResult>(&[
        r#"{"completion":{"values":["a","b"],"total":7,"hasMore":true}}"#,
        r#"{"completion":{"values":[]},"resultType":"complete"}"#,
    ]);
}

#[test]
fn meeting_and_capabilities() {
    survive::<InitializeRequestParams>(&[
        r#"{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"host","version":"3"}}"#,
        r#"{"protocolVersion":"1999-01-01","capabilities":{"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"host","title":"Host","version":"3","description":"d","websiteUrl":"https://x.org","icons":[{"src":"https://x.org/i"}]},"_meta":{}}"#,
    ]);
    survive::<InitializeResult>(&[
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":false}},"serverInfo":{"name":"s","version":"1"},"instructions":"read me"}"#,
    ]);
    survive::<DiscoverResult>(&[
        r#"{"supportedVersions":["2026-07-28","2025-06-18"],"capabilities":{},"ttlMs":3600000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
    ]);
    survive::<ClientCapabilities>(&[
        r#"{"roots":{},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"tasks":{"list":{},"cancel":{}},"extensions":{"org.x/ui":{"mimeTypes":["text/html"]}},"experimental":{"y":{"z":[]}}}"#,
    ]);
    survive::<ServerCapabilities>(&[
        r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},"prompts":{},"logging":{},"completions":{},"tasks":{},"extensions":{"org.x/ui":{}},"experimental":{"y":{}}}"#,
    ]);
}

#[test]
fn questions_and_answers() {
    survive::<ElicitRequestParams>(&[
        r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"z":{"type":"boolean"},"a":{"type":"string"}},"required":["z"]}}"#,
        r#"{"mode":"form","message":"Who?","requestedSchema":{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","properties":{}}}"#,
        r#"{"mode":"url","message":"Sign in","url":"https://x.org/a?b=c","elicitationId":"e-1","task":{"ttl":1}}"#,
        r#"{"mode":"url","message":"Sign in","url":"https://x.org/"}"#,
    ]);
    survive::<PrimitiveSchemaDefinition>(&[
        r#"{"type":"string","title":"T","description":"D","minLength":1,"maxLength":9,"format":"date-time","default":"x"}"#,
        r#"{"type":"integer","minimum":-3,"maximum":12,"default":0}"#,
        r#"{"type":"number","title":"T","minimum":0.5,"maximum":100}"#,
        r#"{"type":"boolean","default":false}"#,
        r#"{"type":"string","enum":["a","b"],"default":"a"}"#,
        r#"{"type":"string","oneOf":[{"const":"a","title":"Ah"}],"default":"a"}"#,
        r#"{"type":"string","enum":["a","b"],"enumNames":["Ah","Be"]}"#,
        r#"{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a"]},"default":["a"]}"#,
        r#"{"type":"array","title":"T","items":{"anyOf":[{"const":"a","title":"Ah"}]},"default":[]}"#,
    ]);
    survive::<ElicitResult>(&[
        r#"{"action":"cancel"}"#,
        r#"{"action":"accept","content":{"a":"1","b":2,"c":2.5,"d":true,"e":["x","y"]}}"#,
    ]);
    survive::<CreateMessageRequestParams>(&[
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}"#,
        r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"u1","name":"n","input":{"b":1,"a":2}},{"type":"text","text":"t"}],"_meta":{"k":0}},{"role":"user","content":{"type":"tool_result","toolUseId":"u1","content":[{"type":"resource_link","uri":"f:1","name":"1"}],"structuredContent":{"z":[]},"isError":false}}],"modelPreferences":{"hints":[{"name":"small"},{}],"costPriority":0.5,"speedPriority":0.25,"intelligencePriority":0.75},"systemPrompt":"be brief","includeContext":"thisServer","temperature":0.5,"maxTokens":100,"stopSequences":["\n"],"metadata":{"seed":7},"tools":[{"name":"n","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}"#,
    ]);
    survive::<CreateMessageResult>(&[
        r#"{"role":"assistant","content":{"type":"audio","data":"AA==","mimeType":"audio/ogg"},"model":"m-1","stopReason":"endTurn"}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"model":"m-1"}"#,
    ]);
    survive::<ListRootsResult>(&[
        r#"{"roots":[{"uri":"file:///w","name":"work","_meta":{"a":1}},{"uri":"file:///v"}]}"#,
    ]);
}

#[test]
fn rounds_and_streams() {
    survive::<InputRequest>(&[
        r#"{"method":"elicitation/create","params":{"message":"ok?","requestedSchema":{"type":"object","properties":{}}}}"#,
        r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"metadata":{"a":1}}}"#,
        r#"{"method":"roots/list","params":{}}"#,
    ]);
    survive::<InputResponse>(&[
        r#"{"action":"accept","content":{"yes":true}}"#,
        r#"{"roots":[]}"#,
        r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}"#,
    ]);
    survive::<InputRequiredResult>(&[
        r#"{"resultType":"input_required","requestState":"opaque"}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}},"b":{"method":"elicitation/create","params":{"mode":"url","message":"go","url":"https://x.org"}}},"requestState":"s","_meta":{}}"#,
    ]);
    survive::<SubscriptionsAcknowledgedNotificationParams>(&[
        r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourcesListChanged":true,"resourceSubscriptions":["f:1"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"s1"}}"#,
    ]);
    survive::<SubscriptionsListenResult>(&[
        r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":9}}"#,
    ]);
}

#[test]
fn messages_and_small_parts() {
    survive::<JSONRPCMessage>(&[
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":1,"a":2}}"#,
        r#"{"jsonrpc":"2.0","method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":"x","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":-4,"error":{"code":-32601,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no","data":[1]}}"#,
    ]);
    survive::<RequestId>(&["0", "-1", "9223372036854775807", r#""""#, r#""7""#]);
    survive::<CancelledNotificationParams>(&[r#"{"requestId":"r","reason":"changed my mind"}"#, "{}"]);
    survive::<ErrorObject>(&[r#"{"code":7,"message":"m","data":{"k":"v"}}"#]);
    survive::<LoggingMessageNotificationParams>(&[
        r#"{"level":"warning","logger":"db","data":"slow"}"#,
        r#"{"level":"emergency","data":{"b":1,"a":[]}}"#,
    ]);
    survive::<SetLevelRequestParams>(&[r#"{"level":"notice"}"#]);
    survive::<ProgressNotificationParams>(&[
        r#"{"progressToken":"t","progress":1,"total":3,"message":"one of three"}"#,
        r#"{"progressToken":5,"progress":0.5}"#,
    ]);
    survive::<PaginatedRequestParams>(&["{}", r#"{"cursor":"c","_meta":{"a":{}}}"#]);
    survive::<CacheableResult>(&[r#"{"ttlMs":5,"cacheScope":"public","resultType":"org.x/later"}"#]);
    survive::<RequestMetaObject>(&[
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"h","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/logLevel":"debug","progressToken":"p"}"#,
    ]);
    survive::<Meta>(&["{}", r#"{"a":{"z":1,"y":2},"traceparent":"00-0af7-b7ad-01"}"#]);
}

#[test]
fn raw_json_keeps_its_very_bytes() {
    // Blanks, key order, escapes and number spellings that a tree would lose.
    let odd = r#"{ "b" : 1.0e2,"a":"\u0041", "n":12345678901234567890123 }"#;
    let line = |before: &str, after: &str| format!("{before}{odd}{after}");

    let params: CallToolRequestParams = serde_json::from_str(&line(r#"{"name":"n","arguments":"#, "}")).unwrap();
    assert_eq!(params.arguments.as_deref().map(RawValue::get), Some(odd));

    let result: CallToolResult = serde_json::from_str(&line(r#"{"content":[],"structuredContent":"#, "}")).unwrap();
    assert_eq!(serde_json::to_string(&result).unwrap(), line(r#"{"content":[],"structuredContent":"#, "}"));

    // Through two unions: a message's content, and the block of a tool's use in it.
    let message = line(r#"{"role":"assistant","content":{"type":"tool_use","id":"u","name":"n","input":"#, "}}");
    let read: linchpin_types::sample::SamplingMessage = serde_json::from_str(&message).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), message);

    let block = line(r#"{"type":"text","text":"t","_meta":{"x.org/odd":"#, "}}");
    let read: ContentBlock = serde_json::from_str(&block).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), block);
}
