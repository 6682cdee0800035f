//! Tools that ask the client in the middle of a call. For stateless requests the suite has tools of its own, see `mrtr`; these
//! ask them too, for sessions behind a bridge.

use linchpin::prelude::*;
use linchpin::types::elicit::ElicitResult;
use linchpin::types::sample::{CreateMessageRequestParams, CreateMessageResult, SamplingMessage};
use serde_json::{Value, json};

/// Adds the tools.
pub(crate) fn add(server: Server) -> Server {
    let fixture = |name: &str, title: &str, description: &str| {
        Tool::new(name, description).title(title).read_only().open_world(true)
    };
    server
        .tool(fixture("test_sampling", "Sampling", "Asks the client's model."), sampling)
        .tool(fixture("test_elicitation", "Elicitation", "Asks the user for a name and an address."), elicitation)
        .tool(
            fixture("test_elicitation_sep1034_defaults", "Form defaults", "Asks with a form that has defaults."),
            defaults,
        )
        .tool(
            fixture("test_elicitation_sep1330_enums", "Form choices", "Asks with a form of every kind of choice."),
            enums,
        )
}

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    /// What to ask the model.
    prompt: String,
}

/// A request of one user message.
pub(crate) fn ask_model(prompt: &str, max_tokens: u64) -> CreateMessageRequestParams {
    CreateMessageRequestParams::new([SamplingMessage::user(prompt)], max_tokens)
}

/// The text of a model's answer.
pub(crate) fn said(result: &CreateMessageResult) -> &str {
    result.content.iter().find_map(|block| block.as_text()).unwrap_or("(no text)")
}

async fn sampling(_: &(), cx: &Cx, q: Prompt) -> Result<String> {
    let result = cx.sample("answer", ask_model(&q.prompt, 100)).await?;
    Ok(format!("LLM response: {}", said(&result)))
}

#[derive(Deserialize, JsonSchema)]
struct PromptMessage {
    /// What to say to the user.
    message: String,
}

fn as_json(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}

fn action(result: &ElicitResult) -> String {
    as_json(result.action).trim_matches('"').to_owned()
}

async fn elicitation(_: &(), cx: &Cx, q: PromptMessage) -> Result<String> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "The user's name" },
            "email": { "type": "string", "description": "The user's e-mail address" }
        },
        "required": ["username", "email"]
    });
    let result = cx.elicit_raw("user", &q.message, schema).await?;
    Ok(format!("User response: action={}, content={}", action(&result), as_json(&result.content)))
}

async fn complete(cx: &Cx, message: &str, properties: Value) -> Result<String> {
    let schema = json!({ "type": "object", "properties": properties, "required": [] });
    let result = cx.elicit_raw("form", message, schema).await?;
    Ok(format!("Elicitation completed: action={}, content={}", action(&result), as_json(&result.content)))
}

async fn defaults(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let properties = json!({
        "name": { "type": "string", "description": "A name", "default": "John Doe" },
        "age": { "type": "integer", "description": "An age", "default": 30 },
        "score": { "type": "number", "description": "A score", "default": 95.5 },
        "status": { "type": "string", "description": "A status", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "description": "Whether it is verified", "default": true }
    });
    complete(cx, "Please review the prefilled form.", properties).await
}

async fn enums(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let titled = |what: &str| {
        let numbers = ["First", "Second", "Third"];
        let choices = numbers
            .iter()
            .zip(1..)
            .map(|(n, i)| json!({ "const": format!("value{i}"), "title": format!("{n} {what}") }));
        Value::from(choices.collect::<Vec<_>>())
    };
    let properties = json!({
        "untitledSingle": { "type": "string", "description": "One choice", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "description": "One choice with titles", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string", "description": "One choice with names",
            "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]
        },
        "untitledMulti": {
            "type": "array", "description": "Several choices",
            "items": { "type": "string", "enum": ["option1", "option2", "option3"] }
        },
        "titledMulti": { "type": "array", "description": "Several choices with titles", "items": { "anyOf": titled("Choice") } }
    });
    complete(cx, "Please choose.", properties).await
}
