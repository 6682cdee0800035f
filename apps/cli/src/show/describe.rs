//! Describes tools, prompts and resources for display.

use super::schema;
use crate::show::out::{Style, indent, summary};
use linchpin::types::prompt::Prompt;
use linchpin::types::tool::{TaskSupport, Tool};
use linchpin_core::exact;
use serde_json::{Map, Value};

/// The most characters of a description's first sentence in lists, which wrap it.
const SENTENCE: usize = 240;

/// Returns the arguments of a schema, in its order, and whether each is required.
fn arguments(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let needed: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let all = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    all.map(|(name, schema)| (name.as_str(), schema, needed.contains(&name.as_str()))).collect()
}

/// Returns a tool's input schema.
pub(crate) fn input(tool: &Tool) -> Value {
    exact::read(tool.input_schema.get()).unwrap_or_default()
}

/// Returns the usage line `name a=INTEGER [b=STRING]`, as typed after `call`.
pub(crate) fn usage(tool: &Tool) -> String {
    let schema = input(tool);
    let mut out = tool.name.clone();
    for (name, argument, needed) in arguments(&schema) {
        // Values of an enumeration are typed as they are.
        let kind = match values(argument, &schema) {
            Some(values) => values,
            None => kind(argument, &schema).to_ascii_uppercase(),
        };
        let word = format!("{name}={kind}");
        out.push_str(&if needed { format!(" {word}") } else { format!(" [{word}]") });
    }
    out
}

/// Returns the name of a type.
fn kind(schema: &Value, root: &Value) -> String {
    let kinds = schema::kinds(schema, root);
    match values(schema, root) {
        Some(values) => values,
        None if kinds.is_empty() => "any".to_owned(),
        None => kinds.join("|"),
    }
}

/// Returns the strings that a type is limited to, if they are few.
fn values(schema: &Value, root: &Value) -> Option<String> {
    let values = schema::resolved(root, schema).get("enum")?.as_array()?;
    let fit = values.len() <= 6 && values.iter().all(Value::is_string);
    fit.then(|| values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"))
}

/// Formats a tool on one line.
pub(crate) fn tool_line(tool: &Tool, style: Style) -> String {
    let schema = input(tool);
    let names: Vec<String> = arguments(&schema)
        .into_iter()
        .map(|(name, _, needed)| if needed { name.to_owned() } else { format!("[{name}]") })
        .collect();
    let head = match names.as_slice() {
        [] => style.bold(&tool.name),
        names => format!("{} {}", style.bold(&tool.name), names.join(" ")),
    };
    let about = tool.description.as_deref().map(|d| summary(d, SENTENCE)).filter(|d| !d.is_empty());
    about.map_or(head.clone(), |about| format!("{head}\n{}", indent(&about, 4)))
}

/// Formats a tool with its arguments.
pub(crate) fn tool(tool: &Tool, style: Style) -> String {
    let schema = input(tool);
    let mut out = style.bold(&tool.name);
    let hints = hints(tool);
    if !hints.is_empty() {
        out.push_str(&style.dim(&format!("  ({})", hints.join(", "))));
    }
    let title = Some(tool.display_title()).filter(|title| *title != tool.name);
    for text in title.into_iter().chain(tool.description.as_deref()) {
        out.push('\n');
        out.push_str(&indent(text.trim(), 2));
    }
    for (name, argument, needed) in arguments(&schema) {
        let about = argument.get("description").and_then(Value::as_str).map(|d| format!("  {}", summary(d, SENTENCE)));
        let kind = kind(argument, &schema);
        let default = argument.get("default").map_or(String::new(), |d| format!(", default {}", exact::text(d)));
        let needed = if needed { "" } else { ", optional" };
        let note = style.dim(&format!("<{kind}{needed}{default}>"));
        out.push_str(&format!("\n    {name} {note}{}", about.unwrap_or_default()));
    }
    if let Some(output) = &tool.output_schema {
        let schema = exact::read(output.get()).unwrap_or_default();
        let members: Vec<&str> = arguments(&schema).into_iter().map(|(name, ..)| name).collect();
        out.push_str(&format!("\n    {} {}", style.dim("returns"), members.join(", ")));
    }
    out
}

fn hints(tool: &Tool) -> Vec<&'static str> {
    let hints = tool.annotations.clone().unwrap_or_default();
    let task = tool.execution.and_then(|execution| execution.task_support);
    [
        (hints.read_only_hint == Some(true), "read-only"),
        (hints.read_only_hint != Some(true) && hints.destructive_hint == Some(true), "destructive"),
        (hints.idempotent_hint == Some(true) && hints.read_only_hint != Some(true), "idempotent"),
        (hints.open_world_hint == Some(true), "open world"),
        (task == Some(TaskSupport::Optional), "may be a task"),
        (task == Some(TaskSupport::Required), "a task"),
    ]
    .into_iter()
    .filter_map(|(on, word)| on.then_some(word))
    .collect()
}

/// Formats a prompt with its arguments.
pub(crate) fn prompt(prompt: &Prompt, style: Style) -> String {
    let mut out = style.bold(&prompt.name);
    for argument in &prompt.arguments {
        let name = &argument.name;
        out.push_str(&if argument.required == Some(true) { format!(" {name}") } else { format!(" [{name}]") });
    }
    if let Some(about) = prompt.description.as_deref().filter(|d| !d.trim().is_empty()) {
        out.push_str(&format!("\n{}", indent(&summary(about, SENTENCE), 4)));
    }
    out
}

/// Formats a resource or resource template: URI, name, media type and description.
pub(crate) fn resource(
    uri: &str,
    name: &str,
    mime_type: Option<&str>,
    description: Option<&str>,
    style: Style,
) -> String {
    let mut out = style.bold(uri);
    let more: Vec<&str> = [Some(name).filter(|n| *n != uri), mime_type].into_iter().flatten().collect();
    if !more.is_empty() {
        out.push_str(&style.dim(&format!("  {}", more.join(", "))));
    }
    if let Some(about) = description.filter(|d| !d.trim().is_empty()) {
        out.push_str(&format!("\n{}", indent(&summary(about, SENTENCE), 4)));
    }
    out
}
