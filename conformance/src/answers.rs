//! Tools that answer by themselves: every kind of content, logs, progress, errors, schemas.

use crate::{PNG, WAV};
use linchpin::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

/// Adds the tools; `test_simple_text` comes first.
pub(crate) fn add(server: Server) -> Server {
    let server = content(server);
    let server = during(server);
    schemas(server)
}

fn fixture(name: &str, title: &str, description: &str) -> Tool {
    Tool::new(name, description).title(title).read_only().idempotent().open_world(false)
}

fn content(server: Server) -> Server {
    server
        .tool(fixture("test_simple_text", "Simple text", "Answers with one text."), |_: NoArgs| async {
            "This is a simple text response for testing."
        })
        .tool(fixture("test_image_content", "Image", "Answers with one image."), |_: NoArgs| async {
            ContentBlock::image_base64(PNG, "image/png")
        })
        .tool(fixture("test_audio_content", "Audio", "Answers with one piece of audio."), |_: NoArgs| async {
            ContentBlock::audio_base64(WAV, "audio/wav")
        })
        .tool(fixture("test_embedded_resource", "Embedded resource", "Answers with one resource."), |_: NoArgs| async {
            let text = ResourceContents::text("test://embedded-resource", "This is an embedded resource content.");
            ContentBlock::resource(text.with_mime_type("text/plain"))
        })
        .tool(
            fixture("test_multiple_content_types", "Several kinds", "Answers with text, an image and a resource."),
            |_: NoArgs| async {
                let data = ResourceContents::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
                vec![
                    ContentBlock::text("Multiple content types test:"),
                    ContentBlock::image_base64(PNG, "image/png"),
                    ContentBlock::resource(data.with_mime_type("application/json")),
                ]
            },
        )
        .tool(fixture("test_error_handling", "Error", "Always fails."), |_: NoArgs| async {
            Err::<String, _>("This tool intentionally returns an error for testing")
        })
}

fn during(server: Server) -> Server {
    server
        .tool(fixture("test_tool_with_logging", "Logging", "Logs three messages while it runs."), logging)
        .tool(fixture("test_logging_tool", "Logging on request", "Logs if the request asks for it."), log_once)
        .tool(fixture("test_tool_with_progress", "Progress", "Reports progress three times."), progress)
        .tool(fixture("test_reconnection", "Reconnection", "Closes its stream and answers on the next."), reconnection)
        .tool(
            fixture("slow_compute", "Slow compute", "Takes as long as it is told to; can be cancelled.").task(),
            slow_compute,
        )
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn logging(_: &(), cx: &Cx, _: NoArgs) -> &'static str {
    cx.log(LoggingLevel::Info, "Tool execution started");
    pause().await;
    cx.log(LoggingLevel::Info, "Tool processing data");
    pause().await;
    cx.log(LoggingLevel::Info, "Tool execution completed");
    "Logged three messages."
}

async fn log_once(_: &(), cx: &Cx, _: NoArgs) -> &'static str {
    cx.log(LoggingLevel::Info, "The tool ran.");
    "Logged if asked to."
}

async fn progress(_: &(), cx: &Cx, _: NoArgs) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        cx.progress(done, Some(100.0));
        // Also after the last report: clients drop a notification that races its answer.
        pause().await;
    }
    "Progress reported."
}

async fn reconnection(_: &(), cx: &Cx, _: NoArgs) -> &'static str {
    const RETRY_MS: u64 = 500;
    cx.close_sse_stream(RETRY_MS);
    tokio::time::sleep(Duration::from_millis(RETRY_MS + 300)).await;
    "Answered after the stream was closed."
}

#[derive(Deserialize, JsonSchema)]
struct SlowCompute {
    /// How long to compute, in seconds. Default 0.5.
    #[schemars(range(min = 0.0, max = 60.0))]
    seconds: Option<f64>,
    /// What to call the result.
    label: Option<String>,
}

async fn slow_compute(q: SlowCompute) -> String {
    let seconds = q.seconds.unwrap_or(0.5);
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    format!("{} finished after {seconds} s", q.label.as_deref().unwrap_or("Computation"))
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct CustomHeader {
    /// Mirrored in the header `Mcp-Param-Value`.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

fn schemas(server: Server) -> Server {
    server
        .tool(
            fixture(
                "json_schema_2020_12_tool",
                "JSON Schema",
                "Has an input schema that uses much of JSON Schema 2020-12.",
            )
            .input_schema(contact_schema()),
            |contact: serde_json::Map<String, Value>| async move {
                format!("Took a contact with {} fields.", contact.len())
            },
        )
        .tool(
            fixture("test_custom_header", "Mirrored argument", "Has an argument that a header repeats."),
            |q: CustomHeader| async move { format!("The value has {} characters.", q.value.chars().count()) },
        )
        .tool(fixture("greet", "Greet", "Greets somebody."), |q: Greet| async move { format!("Hello, {}!", q.name) })
}

/// The schema that must come out of `tools/list` unchanged.
fn contact_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    })
}
