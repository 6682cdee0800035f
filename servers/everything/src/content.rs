//! Tools without server requests: text, numbers, images, audio, resources, structured content, progress.

use crate::{EXPOSE_ENV, Everything, offers};
use linchpin::prelude::*;
use linchpin::types::content::{Annotations, Icon, Role};
use linchpin_kit::{Alias, ToolSet, ToolSpec};
use serde_json::{Map, Value};
use std::time::Duration;

/// An image of 16 by 16 pixels, in base64.
pub(crate) const PNG: &str = concat!(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAYAAAAf8/9hAAAAKUlEQVR42mNgoBWQz3/9HxlTpJkkQ3ApJtqQYWAAxYFIlWgcNWCo",
    "GQAAWjueAUzf/LAAAAAASUVORK5CYII=",
);
/// A twentieth of a second of a quiet tone, WAV in base64.
const WAV: &str = concat!(
    "UklGRrQBAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YZABAACAjZmip6ejmo6Bc2deWFhcZHB9i5ehpqeknJGDdmlf",
    "WVhbYm16iJWfpqelnpOGeGthWlhaYWt4hpOepaemn5WIem1iW1hZX2l2g5GcpKemoZeLfXBkXFhYXmdzgY6ao6enopmNf3JmXVhY",
    "XGVxfoyYoaeno5uPgnRoXllYW2NufImWoKanpJ2ShXdqYFlYWmFseYeUnqWopZ6Uh3lsYVpYWWBqd4WSnaSnpqCWiXxuY1tYWV5o",
    "dIKPm6Onp6GYjH5xZVxYWF1mcoCNmaKnp6OajoFzZ15YWFxkcH2Ll6Gmp6SckYN2aV9ZWFtibXqIlZ+mp6Wek4Z4a2FaWFpha3iG",
    "k56lp6aflYh6bWJbWFlfaXaDkZykp6ahl4t9cGRcWFheZ3OBjpqjp6eimY2AcmZdWFhcZXF+jJihp6ejm4+CdGheWVhbY258iZag",
    "pqeknZKFd2pgWVhaYWx5h5SepailnpSHeWxhWlhZYGp3hZKdpKemoJaJfG5jW1hZXmh0go+bo6enoZiMfnFlXFhYXWZy",
);

/// The server's icon.
pub(crate) fn icon() -> Icon {
    Icon::new(format!("data:image/png;base64,{PNG}")).with_mime_type("image/png").with_sizes(["16x16"])
}

const fn answers(name: &'static str, title: &'static str, description: &'static str) -> ToolSpec {
    ToolSpec::reads(name, title, "answers", description)
}

pub(crate) const ECHO: ToolSpec = answers("echo", "Echo", "Returns a message unchanged.");
pub(crate) const ANNOTATED: ToolSpec =
    answers("get-annotated-message", "Annotated message", "Returns content with annotations of audience and priority.")
        .aliases(&[Alias::of("annotatedMessage")]);
pub(crate) const ENV: ToolSpec =
    answers("get-env", "Environment", "Lists the names of the server's environment variables. Values are not shown.")
        .aliases(&[Alias::of("printEnv")])
        .needs(EXPOSE_ENV);
pub(crate) const LINKS: ToolSpec = answers(
    "get-resource-links",
    "Resource links",
    "Returns links to text resources (even numbers) and binary resources (odd numbers).",
)
.aliases(&[Alias::of("getResourceLinks")]);
pub(crate) const REFERENCE: ToolSpec =
    answers("get-resource-reference", "Resource reference", "Returns an embedded resource.")
        .aliases(&[Alias::of("getResourceReference")]);
pub(crate) const STRUCTURED: ToolSpec =
    answers("get-structured-content", "Structured content", "Returns made-up weather as structured content.")
        .aliases(&[Alias::of("structuredContent")]);
pub(crate) const SUM: ToolSpec = answers("get-sum", "Sum", "Adds two numbers.").aliases(&[Alias::of("add")]);
pub(crate) const IMAGE: ToolSpec =
    answers("get-tiny-image", "Tiny image", "Returns an image.").aliases(&[Alias::of("getTinyImage")]);
pub(crate) const LONG_OPERATION: ToolSpec = answers(
    "trigger-long-running-operation",
    "Long operation",
    "Runs for some time and reports progress if requested.",
)
.aliases(&[Alias::of("longRunningOperation")]);
pub(crate) const AUDIO: ToolSpec = answers("everything_tiny_audio", "Tiny audio", "Returns a short tone.");
pub(crate) const MIRRORED: ToolSpec = answers(
    "everything_mirrored_argument",
    "Mirrored argument",
    "Has an argument that clients also send in the HTTP header `Mcp-Param-Region`.",
);

/// Adds the tools.
pub(crate) fn add(tools: ToolSet<Everything>) -> ToolSet<Everything> {
    tools
        .tool(&ECHO, |q: Echo| async move { format!("Echo: {}", q.message) })
        .tool(&ANNOTATED, annotated)
        .tool(&ENV, env)
        .tool(&LINKS, links)
        .tool(&REFERENCE, reference)
        .tool(&STRUCTURED, |q: Place| async move { Json(q.location.weather()) })
        .tool(&SUM, |q: Sum| async move { format!("The sum of {} and {} is {}.", q.a, q.b, q.a + q.b) })
        .tool_as(
            &IMAGE,
            |tool| tool.icon(icon()),
            |_: NoArgs| async {
                vec![
                    ContentBlock::text("Here is an image:"),
                    ContentBlock::image_base64(PNG, "image/png"),
                    ContentBlock::text("It shows a linchpin."),
                ]
            },
        )
        .tool(&LONG_OPERATION, long_operation)
        .tool(&AUDIO, |_: NoArgs| async {
            vec![ContentBlock::text("Here is a tone:"), ContentBlock::audio_base64(WAV, "audio/wav")]
        })
        .tool(&MIRRORED, |q: Mirrored| async move { format!("The region is {}.", q.region) })
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// The message to return.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    /// Any word.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Error,
    Success,
    Debug,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Annotated {
    /// The kind of message.
    message_type: Kind,
    /// Whether to include an image.
    #[serde(default)]
    include_image: bool,
}

fn mark(audience: &[Role], priority: f64) -> Annotations {
    Annotations::new().with_audience(audience.iter().copied()).with_priority(priority)
}

async fn annotated(q: Annotated) -> Vec<ContentBlock> {
    let (text, marks) = match q.message_type {
        Kind::Error => ("Error: something went wrong (not really)", mark(&[Role::User, Role::Assistant], 1.0)),
        Kind::Success => ("Success: it worked", mark(&[Role::User], 0.7)),
        Kind::Debug => ("Debug: 42 items checked", mark(&[Role::Assistant], 0.3)),
    };
    let mut answer = vec![ContentBlock::text(text).with_annotations(marks)];
    if q.include_image {
        answer.push(ContentBlock::image_base64(PNG, "image/png").with_annotations(mark(&[Role::User], 0.5)));
    }
    answer
}

async fn env(_: NoArgs) -> Result<String> {
    // Names only: a value may be a secret, and the caller need not be the operator.
    let names = std::env::vars_os().map(|(name, _)| (name.to_string_lossy().into_owned(), Value::from("(redacted)")));
    Ok(serde_json::to_string_pretty(&names.collect::<Map<_, _>>())?)
}

#[derive(Deserialize, JsonSchema)]
struct Links {
    /// Number of links.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 10))]
    count: u32,
}

fn three() -> u32 {
    3
}

async fn links(s: &Everything, q: Links) -> Vec<ContentBlock> {
    let text = ContentBlock::text(format!("{} links to resources of this server:", q.count));
    std::iter::once(text).chain((1..=q.count).map(|id| offers::link(&s.shared.options.tools, id))).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Reference {
    /// Text or binary data.
    #[serde(default)]
    resource_type: offers::Type,
    /// The number of the resource.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    resource_id: u32,
}

fn one() -> u32 {
    1
}

async fn reference(s: &Everything, q: Reference) -> Vec<ContentBlock> {
    let resource = offers::dynamic(&s.shared.options.tools, q.resource_type, q.resource_id);
    let uri = resource.uri().to_owned();
    vec![
        ContentBlock::text(format!("Resource {} is embedded in this result:", q.resource_id)),
        ContentBlock::resource(resource),
        ContentBlock::text(format!("It can also be read at {uri}.")),
    ]
}

#[derive(Deserialize, JsonSchema)]
enum City {
    #[serde(rename = "New York")]
    NewYork,
    Chicago,
    #[serde(rename = "Los Angeles")]
    LosAngeles,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The city.
    location: City,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Weather {
    /// Temperature in degrees Celsius.
    temperature: f64,
    /// Weather conditions.
    conditions: &'static str,
    /// Humidity in percent.
    humidity: f64,
}

impl City {
    fn weather(&self) -> Weather {
        let (temperature, conditions, humidity) = match self {
            City::NewYork => (11.0, "Cloudy", 74.0),
            City::Chicago => (4.5, "Light rain", 82.0),
            City::LosAngeles => (23.0, "Sunny", 48.0),
        };
        Weather { temperature, conditions, humidity }
    }
}

#[derive(Deserialize, JsonSchema)]
struct LongOperation {
    /// Duration in seconds.
    #[serde(default = "ten")]
    #[schemars(range(min = 0.0, max = 300.0))]
    duration: f64,
    /// Number of steps.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000))]
    steps: u32,
}

fn ten() -> f64 {
    10.0
}

fn five() -> u32 {
    5
}

async fn long_operation(_: &Everything, cx: &Cx, q: LongOperation) -> String {
    for step in 1..=q.steps {
        tokio::time::sleep(Duration::from_secs_f64(q.duration / f64::from(q.steps))).await;
        cx.progress_with(step.into(), Some(q.steps.into()), &format!("Step {step} of {}", q.steps));
    }
    format!("Long running operation completed. Duration: {} seconds, Steps: {}.", q.duration, q.steps)
}
