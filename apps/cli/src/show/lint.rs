//! The warnings of `inspect`: protocol violations and portability problems of servers.
//!
//! Each warning has a stable code, so that scripts can ignore some.

use crate::show::describe;
use linchpin::client::Refusal;
use linchpin::types::prompt::Prompt;
use linchpin::types::tool::Tool;
use linchpin_core::{Features, exact};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// A problem.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Warning {
    /// The stable code of the kind of problem.
    pub(crate) code: &'static str,
    /// The subject: a tool's name, or empty for the server itself.
    pub(crate) about: String,
    /// The description of the problem.
    pub(crate) message: String,
}

fn warning(code: &'static str, about: &str, message: impl Into<String>) -> Warning {
    Warning { code, about: about.to_owned(), message: message.into() }
}

/// How the token cost is estimated.
pub(crate) const TOKENS_METHOD: &str = "bytes of the tool list as compact JSON, divided by 4";

/// Token cost of a tool list above which there is a warning.
const TOKENS_LIST_MAX: usize = 10_000;
/// The same for a single tool.
const TOKENS_TOOL_MAX: usize = 1_500;

/// Estimates the token cost of a tool's definition, output schema and hints included, by [`TOKENS_METHOD`].
pub(crate) fn tokens(tool: &Tool) -> usize {
    serde_json::to_string(tool).unwrap_or_default().len().div_ceil(4)
}

/// Checks all tools of a server that speaks a revision with these features.
pub(crate) fn tools(tools: &[Tool], refused: &[Refusal], features: &Features) -> Vec<Warning> {
    let mut out = Vec::new();
    for refusal in refused {
        out.push(warning("refused", &refusal.name, format!("cannot be used: {}", refusal.why)));
    }
    doubles(&mut out, "tool", tools.iter().map(|tool| tool.name.as_str()));
    for tool in tools {
        name(&mut out, &tool.name);
        let described = tool.description.as_deref().is_some_and(|d| !d.trim().is_empty());
        if !described {
            out.push(warning("no-description", &tool.name, "has no description: models must guess what it does"));
        }
        annotations(&mut out, tool);
        schema(&mut out, &tool.name, "inputSchema", &describe::input(tool), true, true);
        if let Some(output) = &tool.output_schema {
            let output = serde_json::from_str(output.get()).unwrap_or_default();
            schema(&mut out, &tool.name, "outputSchema", &output, false, !features.structured_any);
        }
        let cost = tokens(tool);
        if cost > TOKENS_TOOL_MAX {
            out.push(warning("token-cost", &tool.name, format!("costs about {cost} tokens in every conversation")));
        }
    }
    let cost: usize = tools.iter().map(tokens).sum();
    if cost > TOKENS_LIST_MAX {
        let message = format!(
            "the tool list costs about {cost} tokens in every conversation; offer fewer tools or shorten their descriptions"
        );
        out.push(warning("token-cost", "", message));
    }
    out
}

fn doubles<'a>(out: &mut Vec<Warning>, kind: &str, names: impl Iterator<Item = &'a str>) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for name in names {
        let times = seen.entry(name).or_default();
        *times += 1;
        if *times == 2 {
            out.push(warning("duplicate", name, format!("is the name of several {kind}s; one hides the others")));
        }
    }
}

/// Checks prompts and resources.
pub(crate) fn others(prompts: &[Prompt], uris: &[&str]) -> Vec<Warning> {
    let mut out = Vec::new();
    doubles(&mut out, "prompt", prompts.iter().map(|p| p.name.as_str()));
    doubles(&mut out, "resource", uris.iter().copied());
    for prompt in prompts.iter().filter(|p| p.description.as_deref().is_none_or(|d| d.trim().is_empty())) {
        out.push(warning("no-description", &prompt.name, "has no description: users must guess its purpose"));
    }
    out
}

/// Checks names against the specification and the limits of model APIs.
fn name(out: &mut Vec<Warning>, name: &str) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !(1..=128).contains(&name.chars().count()) || name.contains(|c: char| !plain(c) && c != '.') {
        let message = "is not a valid name: the specification allows 1 to 128 of A-Z a-z 0-9 _ - .";
        out.push(warning("name", name, message));
    } else if name.len() > 64 || name.contains('.') {
        out.push(warning(
            "name-not-portable",
            name,
            "is not portable: OpenAI and Anthropic models accept only 1 to 64 of A-Z a-z 0-9 _ -",
        ));
    }
}

fn annotations(out: &mut Vec<Warning>, tool: &Tool) {
    match &tool.annotations {
        None => {
            let message = "has no annotations: hosts must assume that it is destructive and open world";
            out.push(warning("no-annotations", &tool.name, message));
        }
        Some(hints) if hints.read_only_hint.is_none() => {
            out.push(warning("no-annotations", &tool.name, "does not set readOnlyHint"));
        }
        Some(hints) if hints.read_only_hint == Some(true) && hints.destructive_hint == Some(true) => {
            let message = "sets both readOnlyHint and destructiveHint, which contradict each other";
            out.push(warning("annotations-conflict", &tool.name, message));
        }
        Some(_) => {}
    }
}

/// The schema with its numbers as machines hold them.
fn plain(schema: &Value) -> Value {
    // What no machine can hold is large, and nothing else.
    serde_json::from_str(&exact::text(schema)).unwrap_or_else(|_| json_without_marks(schema))
}

fn json_without_marks(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(json_without_marks).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), json_without_marks(value))).collect())
        }
        value if exact::number(value).is_some() => f64::MAX.into(),
        value => value.clone(),
    }
}

/// Maximum depth of the schema checks.
const DEPTH_MAX: usize = 64;

/// `object`: the revision requires a schema of an object.
fn schema(out: &mut Vec<Warning>, tool: &str, which: &str, schema: &Value, input: bool, object: bool) {
    if object && schema.get("type") != Some(&Value::String("object".to_owned())) {
        let code = "schema-not-object";
        out.push(warning(
            code,
            tool,
            format!("{which} has no top-level \"type\": \"object\", which the specification requires"),
        ));
    }
    if let Err(e) = jsonschema::meta::validate(&plain(schema)) {
        let at = e.instance_path().to_string();
        out.push(warning("schema-invalid", tool, format!("{which}{at} is not a valid JSON Schema: {e}")));
    }
    if input {
        for combined in ["oneOf", "anyOf", "allOf", "not", "enum"].iter().filter(|k| schema.get(**k).is_some()) {
            let message = format!("{which} has a top-level {combined}, which OpenAI and Anthropic models reject");
            out.push(warning("schema-not-portable", tool, message));
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let silent = |(_, s): &(&String, &Value)| {
                s.get("description").is_none() && s.get("title").is_none() && s.get("$ref").is_none()
            };
            let silent: Vec<&str> = properties.iter().filter(silent).map(|(name, _)| name.as_str()).collect();
            if !silent.is_empty() {
                let message = format!("has arguments without a description: {}", silent.join(", "));
                out.push(warning("argument-no-description", tool, message));
            }
        }
        for needed in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if schema.get("properties").and_then(|p| p.get(needed)).is_none() {
                out.push(warning(
                    "required-unknown",
                    tool,
                    format!("requires `{needed}`, which is not one of its properties"),
                ));
            }
        }
    }
    let mut seen = Vec::new();
    walk(out, &mut seen, tool, which, schema, schema, &mut String::new(), (0, input));
}

/// Keywords that Google models reject or drop; other hosts pass them on without effect.
const NOT_PORTABLE: [&str; 14] = [
    "if",
    "then",
    "else",
    "not",
    "patternProperties",
    "propertyNames",
    "dependentSchemas",
    "dependentRequired",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "prefixItems",
    "$dynamicRef",
    "$recursiveRef",
];

#[expect(clippy::too_many_arguments, reason = "the place of a recursion, and where its findings go")]
fn walk(
    out: &mut Vec<Warning>,
    seen: &mut Vec<String>,
    tool: &str,
    which: &str,
    root: &Value,
    schema: &Value,
    path: &mut String,
    (depth, input): (usize, bool),
) {
    let Some(members) = schema.as_object() else { return };
    if depth > DEPTH_MAX {
        return;
    }
    let mut once = |code: &'static str, key: &str, message: String| {
        let key = format!("{code} {key}");
        if !seen.contains(&key) {
            seen.push(key);
            out.push(warning(code, tool, message));
        }
    };
    if let Some(Value::String(to)) = members.get("$ref") {
        match to.strip_prefix('#') {
            None => once("schema-elsewhere", to, format!("{which}{path} references {to}, which hosts do not fetch")),
            Some(inside) if (inside.is_empty() || inside.starts_with('/')) && root.pointer(inside).is_none() => {
                once("schema-invalid", to, format!("{which}{path} references {to}, which does not exist"));
            }
            Some(_) => {}
        }
    }
    if input {
        for keyword in NOT_PORTABLE.iter().filter(|k| members.contains_key(**k)) {
            once(
                "schema-not-portable",
                keyword,
                format!("{which}{path} uses {keyword}, which Google models do not support and others do not enforce"),
            );
        }
        if members.get("type").is_some_and(Value::is_array) {
            let message = format!("{which}{path} has several types; some Google models support only one");
            once("schema-not-portable", "type", message);
        }
        if members.contains_key("$ref") {
            let message = format!("{which}{path} uses $ref, which some hosts do not resolve before they call a model");
            once("schema-not-portable", "$ref", message);
        }
        if members.get("type").and_then(Value::as_str) == Some("array") && !members.contains_key("items") {
            let message = format!("{which}{path} is an array without items, which OpenAI and Google models reject");
            once("schema-not-portable", "items", message);
        }
    }
    for (name, inner) in members {
        let length = path.len();
        let mut into = |step: &str, schema: &Value| {
            path.push('/');
            path.push_str(step);
            walk(out, seen, tool, which, root, schema, path, (depth + 1, input));
            path.truncate(length);
        };
        match (name.as_str(), inner) {
            ("properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas", Value::Object(all)) => {
                all.iter().for_each(|(step, schema)| into(&format!("{name}/{step}"), schema));
            }
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                all.iter().enumerate().for_each(|(at, schema)| into(&format!("{name}/{at}"), schema));
            }
            ("items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains", schema) => {
                into(name, schema)
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A revision whose structured results are objects, or may be anything.
    fn features(structured_any: bool) -> &'static Features {
        Features::all().find(|features| features.structured && features.structured_any == structured_any).unwrap()
    }

    fn codes(tool: Value) -> Vec<&'static str> {
        let tool: Tool = serde_json::from_value(tool).unwrap();
        tools(&[tool], &[], features(false)).into_iter().map(|w| w.code).collect()
    }

    #[test]
    fn an_output_schema_of_a_list_is_fine_where_the_revision_has_it() {
        let tool = json!({ "name": "a", "description": "d", "annotations": { "readOnlyHint": true }, "inputSchema": { "type": "object" },
            "outputSchema": { "type": "array" } });
        assert_eq!(codes(tool.clone()), ["schema-not-object"]);
        let tool: Tool = serde_json::from_value(tool).unwrap();
        assert!(tools(&[tool], &[], features(true)).is_empty());
    }

    #[test]
    fn each_mistake_has_its_warning_and_a_good_tool_has_none() {
        let hints = json!({ "readOnlyHint": true });
        let good = json!({ "name": "ok", "description": "d", "annotations": hints, "inputSchema": {
            "type": "object", "properties": { "a": { "type": "string", "description": "d" } }, "required": ["a"] } });
        assert_eq!(codes(good.clone()), [""; 0]);
        let with = |at: &str, value: Value| {
            let mut tool = good.clone();
            let (outer, last) = at.rsplit_once('/').unwrap();
            tool.pointer_mut(outer).unwrap()[last] = value;
            tool
        };
        for (at, value, want) in [
            ("/name", json!("ns.tool"), &["name-not-portable"][..]),
            ("/name", json!("a b"), &["name"]),
            ("/description", json!(" "), &["no-description"]),
            ("/annotations", Value::Null, &["no-annotations"]),
            ("/annotations", json!({ "readOnlyHint": true, "destructiveHint": true }), &["annotations-conflict"]),
            ("/inputSchema/type", json!("array"), &["schema-not-object", "schema-not-portable"]),
            ("/inputSchema/properties/a", json!({ "type": "strin", "description": "d" }), &["schema-invalid"]),
            ("/inputSchema/properties/a", json!({ "type": "string" }), &["argument-no-description"]),
            (
                "/inputSchema/properties/a",
                json!({ "$ref": "https://x/y.json" }),
                &["schema-elsewhere", "schema-not-portable"],
            ),
            (
                "/inputSchema/properties/a",
                json!({ "$ref": "#/$defs/none" }),
                &["schema-invalid", "schema-not-portable"],
            ),
            (
                "/inputSchema/properties/a",
                json!({ "type": ["string", "null"], "description": "d" }),
                &["schema-not-portable"],
            ),
            ("/inputSchema/properties/a", json!({ "type": "array", "description": "d" }), &["schema-not-portable"]),
            ("/inputSchema/anyOf", json!([{ "required": ["a"] }]), &["schema-not-portable"]),
            ("/inputSchema/patternProperties", json!({ "^x": {} }), &["schema-not-portable"]),
            ("/inputSchema/required", json!(["b"]), &["required-unknown"]),
            ("/outputSchema", json!({ "type": "string" }), &["schema-not-object"]),
            ("/outputSchema", json!({ "type": "object", "description": "x".repeat(8000) }), &["token-cost"]),
            ("/description", json!("x".repeat(8000)), &["token-cost"]),
        ] {
            assert_eq!(codes(with(at, value.clone())), want, "{at} {value}");
        }
    }

    #[test]
    fn several_of_one_name_and_refused_ones_are_pointed_out() {
        let tool: Tool = serde_json::from_value(json!({ "name": "a", "description": "d", "annotations": { "readOnlyHint": true }, "inputSchema": { "type": "object" } })).unwrap();
        let refused = [Refusal::new("b", "w")];
        let found: Vec<_> =
            tools(&[tool.clone(), tool.clone(), tool], &refused, features(false)).into_iter().map(|w| w.code).collect();
        assert_eq!(found, ["refused", "duplicate"]);
    }
}
