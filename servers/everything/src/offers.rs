//! Resources and prompts.

use crate::{Everything, INSTRUCTIONS};
use linchpin::Completion;
use linchpin::prelude::*;
use linchpin_kit::{ToolChoice, ToolSet};

/// Adds the resources.
pub(crate) fn resources(server: Server<Everything>, choice: &ToolChoice) -> Server<Everything> {
    templates(documents(server, choice), choice)
}

/// Text or binary data.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
pub(crate) enum Type {
    #[default]
    Text,
    Blob,
}

/// A made-up resource for a number.
pub(crate) fn dynamic(choice: &ToolChoice, kind: Type, id: u32) -> ResourceContents {
    let uri = uri(choice, kind, id);
    match kind {
        Type::Text => ResourceContents::text(uri, format!("Resource {id}: made-up text for this number."))
            .with_mime_type("text/plain"),
        Type::Blob => {
            let bytes = format!("Resource {id}: made-up bytes for this number.");
            ResourceContents::blob(uri, bytes.as_bytes()).with_mime_type("application/octet-stream")
        }
    }
}

fn uri(choice: &ToolChoice, kind: Type, id: u32) -> String {
    match kind {
        Type::Text => choice.uri(&format!("demo://resource/dynamic/text/{id}")),
        Type::Blob => choice.uri(&format!("demo://resource/dynamic/blob/{id}")),
    }
}

/// A link to a resource: a text for even numbers, binary data for odd ones.
pub(crate) fn link(choice: &ToolChoice, id: u32) -> ContentBlock {
    let (kind, word, mime) = match id % 2 {
        0 => (Type::Text, "Text", "text/plain"),
        _ => (Type::Blob, "Blob", "application/octet-stream"),
    };
    linchpin::types::content::ResourceLink::new(uri(choice, kind, id), format!("{word} Resource {id}"))
        .with_description(format!("Made up for the number {id}"))
        .with_mime_type(mime)
        .into()
}

/// The static documents: file name and text.
const DOCUMENTS: [(&str, &str); 7] = [
    (
        "architecture.md",
        "# Architecture\n\nOne process, with no state except that of its sessions. Handlers are plain async functions.\n",
    ),
    (
        "extension.md",
        "# Extension\n\nMount `Everything` on a server of your own with `add_to`, and add your own items.\n",
    ),
    (
        "features.md",
        "# Features\n\nTools, prompts, resources, templates, completions, subscriptions, logs, progress, forms, sampling, roots.\n",
    ),
    (
        "how-it-works.md",
        "# How it works\n\nEach tool shows one feature. The same code serves clients with sessions and stateless requests.\n",
    ),
    ("instructions.md", INSTRUCTIONS),
    ("startup.md", "# Start\n\n    linchpin serve everything\n"),
    (
        "structure.md",
        "# Structure\n\n`content`: tools that return content. `ask`: server requests. `session`: session state. `gzip`: compression. `offers`: \
         resources and prompts.\n",
    ),
];

/// The URIs of the static documents.
pub(crate) fn static_uris(choice: &ToolChoice) -> impl Iterator<Item = String> {
    DOCUMENTS.iter().map(|(name, _)| document_uri(choice, name))
}

fn document_uri(choice: &ToolChoice, name: &str) -> String {
    choice.uri(&format!("demo://resource/static/document/{name}"))
}

fn documents(server: Server<Everything>, choice: &ToolChoice) -> Server<Everything> {
    DOCUMENTS.iter().fold(server, |server, &(name, text)| {
        let document = Resource::new(document_uri(choice, name)).name(name).title(name);
        let document = document.description(format!("About this server: {name}"));
        server
            .resource(document.mime_type("text/markdown").size(text.len() as u64), move |_: NoArgs| async move { text })
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ById {
    resource_id: u32,
}

/// The `choices` with the typed prefix, case-insensitive.
fn beginning<T: ToString>(typed: &Completion, choices: impl IntoIterator<Item = T>) -> Vec<String> {
    let begins = |choice: &String| choice.to_lowercase().starts_with(&typed.value.to_lowercase());
    choices.into_iter().map(|choice| choice.to_string()).filter(begins).collect()
}

fn numbers(typed: &Completion) -> Vec<String> {
    beginning(typed, 1..=20)
}

fn templates(server: Server<Everything>, choice: &ToolChoice) -> Server<Everything> {
    let template = |kind: &str, name: &str, description: &str| {
        Resource::new(choice.uri(&format!("demo://resource/dynamic/{kind}/{{resourceId}}")))
            .name(name)
            .title(name)
            .description(description)
            .complete("resourceId", |typed: Completion| async move { numbers(&typed) })
    };
    let text = template("text", "Dynamic Text Resource", "Made-up text for a number.").mime_type("text/plain");
    let blob = template("blob", "Dynamic Blob Resource", "Made-up binary data for a number.")
        .mime_type("application/octet-stream");
    server.resource(text, dynamic_text).resource(blob, dynamic_blob)
}

async fn dynamic_text(s: &Everything, at: ById) -> ResourceContents {
    dynamic(&s.shared.options.tools, Type::Text, at.resource_id)
}

async fn dynamic_blob(s: &Everything, at: ById) -> ResourceContents {
    dynamic(&s.shared.options.tools, Type::Blob, at.resource_id)
}

#[derive(Deserialize, JsonSchema)]
struct CityState {
    /// The name of a city.
    city: String,
    /// The state it is in.
    state: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Lead {
    /// The department.
    department: String,
    /// Its new head; the choices depend on the department.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct About {
    /// Text or Blob.
    resource_type: Type,
    /// The number of the resource.
    resource_id: u32,
}

/// Departments and their people.
const TEAMS: [(&str, [&str; 3]); 4] = [
    ("Engineering", ["Alice", "Bob", "Charlie"]),
    ("Marketing", ["Grace", "Henry", "Iris"]),
    ("Sales", ["David", "Eve", "Frank"]),
    ("Support", ["John", "Kim", "Lee"]),
];

/// The people of the chosen department; all people if none is chosen.
fn people(typed: &Completion) -> Vec<String> {
    let chosen = typed.context.get("department");
    let teams = TEAMS.iter().filter(|(department, _)| chosen.is_none_or(|chosen| chosen == department));
    beginning(typed, teams.flat_map(|(_, names)| *names))
}

/// Adds the prompts.
pub(crate) fn prompts(tools: ToolSet<Everything>) -> ToolSet<Everything> {
    tools
        .prompt(
            "simple-prompt",
            "A prompt without arguments.",
            |prompt| prompt.title("Simple"),
            |_: NoArgs| async { "This is a simple prompt without arguments." },
        )
        .prompt(
            "args-prompt",
            "A prompt with a required and an optional argument.",
            |prompt| prompt.title("Arguments"),
            |q: CityState| async move {
                let place = q.state.map_or(q.city.clone(), |state| format!("{}, {state}", q.city));
                format!("What's the weather like in {place}?")
            },
        )
        .prompt(
            "completable-prompt",
            "A prompt whose second argument is completed depending on the first.",
            |prompt| {
                prompt
                    .title("Team")
                    .complete("department", |typed: Completion| async move {
                        beginning(&typed, TEAMS.map(|(department, _)| department))
                    })
                    .complete("name", |typed: Completion| async move { people(&typed) })
            },
            |q: Lead| async move { format!("Please make {} the head of the {} team.", q.name, q.department) },
        )
        .prompt(
            "resource-prompt",
            "A prompt with an embedded resource.",
            |prompt| {
                prompt
                    .title("Resource")
                    .complete("resourceType", |typed: Completion| async move { beginning(&typed, ["Text", "Blob"]) })
                    .complete("resourceId", |typed: Completion| async move { numbers(&typed) })
            },
            about,
        )
}

async fn about(s: &Everything, q: About) -> Vec<PromptMessage> {
    let text = format!("This prompt is about resource {}. Please analyze it:", q.resource_id);
    let resource = dynamic(&s.shared.options.tools, q.resource_type, q.resource_id);
    vec![PromptMessage::user(text), PromptMessage::user(ContentBlock::resource(resource))]
}
