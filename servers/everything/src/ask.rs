//! Tools with server requests during a call: elicitation, sampling, roots.

use crate::Everything;
use linchpin::Features;
use linchpin::prelude::*;
use linchpin::types::elicit::{ElicitAction, ElicitResult};
use linchpin::types::sample::{CreateMessageRequestParams, SamplingMessage};
use linchpin::{Elicited, UrlElicited};
use linchpin_kit::{Alias, ToolSet, ToolSpec};
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};

const fn asks(name: &'static str, title: &'static str, description: &'static str) -> ToolSpec {
    ToolSpec::writes(name, title, "asks", description)
}

pub(crate) const ROOTS: ToolSpec =
    ToolSpec::reads("get-roots-list", "Roots", "asks", "Lists the roots of the client. Requires a client with roots.")
        .aliases(&[Alias::of("listRoots")]);
pub(crate) const FORM: ToolSpec = asks(
    "trigger-elicitation-request",
    "Form",
    "Elicits a form with every kind of field from the user. Requires a client with elicitation.",
)
.aliases(&[Alias::of("startElicitation")]);
pub(crate) const OPEN_URL: ToolSpec = asks(
    "trigger-url-elicitation",
    "Open a URL",
    "Asks the user to open a URL. Requires a client with URL elicitation. With `errorPath`, the first call for a URL in a \
     session fails with a URLElicitationRequired error (sessions of 2025-11-25 only); a second one succeeds.",
)
.outside();
pub(crate) const SAMPLE: ToolSpec = asks(
    "trigger-sampling-request",
    "Sampling",
    "Requests a completion from the client's model. Requires a client with sampling.",
)
.aliases(&[Alias::of("sampleLLM")])
.outside();
pub(crate) const TWO_QUESTIONS: ToolSpec = asks(
    "everything_two_questions",
    "Two questions",
    "Elicits two answers, one after the other, and runs a step between them only once.",
);

/// Adds the tools.
pub(crate) fn add(tools: ToolSet<Everything>) -> ToolSet<Everything> {
    tools
        .tool(&ROOTS, roots)
        .tool(&FORM, form)
        .tool(&OPEN_URL, open_url)
        .tool(&SAMPLE, sample)
        .tool(&TWO_QUESTIONS, two_questions)
}

async fn roots(_: &Everything, cx: &Cx, _: NoArgs) -> Result<String> {
    let roots = cx.roots("roots").await?;
    let lines = roots
        .iter()
        .enumerate()
        .map(|(i, root)| format!("\n{}. {}: {}", i + 1, root.name.as_deref().unwrap_or("unnamed"), root.uri));
    Ok(format!("The client has {} roots.{}", roots.len(), lines.collect::<String>()))
}

/// A form with every kind of field that the revision supports.
fn every_field(wire: &Features) -> Value {
    let choices = ["First", "Second", "Third"];
    let titled: Vec<Value> =
        choices.iter().map(|c| json!({ "const": c.to_lowercase(), "title": format!("{c} choice") })).collect();
    let mut form = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Name", "description": "Your name", "minLength": 1, "maxLength": 100 },
            "check": { "type": "boolean", "title": "Agree", "description": "Whether you agree", "default": false },
            "firstLine": { "type": "string", "title": "First line", "description": "The first line of a song", "default": "Once upon a time" },
            "email": { "type": "string", "title": "E-mail", "description": "An e-mail address", "format": "email" },
            "homepage": { "type": "string", "title": "Home page", "description": "A URL", "format": "uri" },
            "birthdate": { "type": "string", "title": "Birth date", "description": "A date", "format": "date" },
            "integer": { "type": "integer", "title": "Integer", "description": "From 1 to 100", "minimum": 1, "maximum": 100, "default": 42 },
            "number": { "type": "number", "title": "Number", "description": "From 0 to 1000", "minimum": 0, "maximum": 1000, "default": 2.5 },
            "untitledSingleSelectEnum": { "type": "string", "title": "One of three", "enum": choices, "default": "First" },
            "untitledMultipleSelectEnum": {
                "type": "array", "title": "Some of three", "minItems": 1, "maxItems": 3,
                "items": { "type": "string", "enum": choices }, "default": ["First"]
            },
            "titledSingleSelectEnum": { "type": "string", "title": "One of three, with titles", "oneOf": titled, "default": "first" },
            "titledMultipleSelectEnum": {
                "type": "array", "title": "Some of three, with titles", "minItems": 1, "maxItems": 3,
                "items": { "anyOf": titled }, "default": ["first"]
            },
            "legacyTitledEnum": {
                "type": "string", "title": "One of three, the old way", "enum": ["a", "b", "c"],
                "enumNames": ["Choice A", "Choice B", "Choice C"], "default": "a"
            }
        },
        "required": ["name"]
    });
    if !wire.icons
        && let Some(fields) = form["properties"].as_object_mut()
    {
        // Multi-select enums exist since the revision with icons; the SDK would refuse the whole form.
        fields.retain(|_, field| field["type"] != "array");
    }
    form
}

async fn form(_: &Everything, cx: &Cx, _: NoArgs) -> Result<String> {
    let schema = every_field(Features::of(cx.revision()));
    let ElicitResult { action, content, .. } =
        cx.elicit_raw("form", "Please fill in this form; only the name is required.", schema).await?;
    Ok(match action {
        ElicitAction::Accept => {
            let fields = content.unwrap_or_default();
            let lines = fields
                .iter()
                .map(|(name, value)| format!("\n- {name}: {}", serde_json::to_string(value).unwrap_or_default()));
            format!("The user submitted the form:{}", lines.collect::<String>())
        }
        ElicitAction::Decline => "The user declined to fill in the form.".into(),
        ElicitAction::Cancel => "The user cancelled the form.".into(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OpenUrl {
    /// The URL to open, starting with `https://` or `http://`.
    url: String,
    /// The message for the user.
    #[serde(default = "please")]
    message: String,
    /// The id in the error of `errorPath`. Default: a random one.
    elicitation_id: Option<String>,
    /// Whether to return a URLElicitationRequired error.
    #[serde(default)]
    error_path: bool,
}

fn please() -> String {
    "Please open this page.".into()
}

async fn open_url(s: &Everything, cx: &Cx, q: OpenUrl) -> Result<String> {
    if !["https://", "http://"].iter().any(|scheme| q.url.starts_with(scheme)) {
        return Err(Error::tool("`url` must start with https:// or http://"));
    }
    if q.error_path
        && cx.caps().elicitation_url
        && Features::of(cx.revision()).icons
        && cx.peer().is_some()
        && s.session.first_time(&q.url)
    {
        let id = q.elicitation_id.unwrap_or_else(|| format!("{:016x}", RandomState::new().build_hasher().finish()));
        let elicitation = json!({ "mode": "url", "message": q.message, "url": q.url, "elicitationId": id });
        let data = json!({ "elicitations": [elicitation] });
        return Err(Error::protocol_with(URL_ELICITATION_REQUIRED, "open the page, then call again", data));
    }
    let answer: UrlElicited = cx.elicit_url("url", &q.message, &q.url).await?;
    Ok(match answer {
        Elicited::Accepted(()) => "The user agreed to open the page.",
        Elicited::Declined => "The user declined to open the page.",
        Elicited::Cancelled => "The user cancelled the request.",
    }
    .into())
}

/// A URL must be opened first. The code belongs to revision 2025-11-25 alone.
const URL_ELICITATION_REQUIRED: i32 = -32042;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Sample {
    /// The prompt for the model.
    prompt: String,
    /// Maximum length of the completion in tokens.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1))]
    max_tokens: u64,
}

fn hundred() -> u64 {
    100
}

async fn sample(_: &Everything, cx: &Cx, q: Sample) -> Result<String> {
    let request = CreateMessageRequestParams::new([SamplingMessage::user(q.prompt)], q.max_tokens)
        .with_system_prompt("You reply to a server that tests its client.");
    let answer = cx.sample("answer", request).await?;
    let text: Vec<&str> = answer.content.iter().filter_map(|block| block.as_text()).collect();
    Ok(format!("The model {} replied: {}", answer.model, text.join("\n")))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    /// Your favourite colour.
    color: String,
}

async fn two_questions(_: &Everything, cx: &Cx, _: NoArgs) -> Result<String> {
    let user: Name = cx.elicit("name", "What is your name?").await?;
    // Without `memoize` each retry would draw another number, because the handler runs again from its start.
    let draw = async { Ok(RandomState::new().build_hasher().finish() % 1_000) };
    let number = cx.memoize("number", draw).await?;
    let favourite: Color =
        cx.elicit("color", &format!("{}, your number is {number}. What is your favourite colour?", user.name)).await?;
    Ok(format!("{} has the number {number} and likes {}.", user.name, favourite.color))
}
