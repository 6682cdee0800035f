//! Tool arguments, with lenient parsing of types that models get wrong: `"3"` for 3, `"true"` for true.

use linchpin_kit::ToolError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// The largest integer that every JSON parser represents exactly.
const NUMBER_MAX: u64 = 9_007_199_254_740_991;
/// Maximum bytes of a branch id; every result repeats it.
const BRANCH_ID_BYTES_MAX: usize = 256;

/// Arguments of `sequentialthinking`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThinkArgs {
    /// Your current thinking step
    thought: String,
    /// Whether another thought step is needed
    next_thought_needed: Switch,
    /// Current thought number, from 1
    thought_number: Number,
    /// Estimated total thoughts needed
    total_thoughts: Number,
    /// Whether this revises previous thinking
    #[serde(default)]
    is_revision: Option<Switch>,
    /// Its number
    #[serde(default)]
    revises_thought: Option<Number>,
    /// The thought it branches from
    #[serde(default)]
    branch_from_thought: Option<Number>,
    /// Branch identifier
    #[serde(default)]
    branch_id: Option<String>,
    /// If more thoughts are needed
    #[serde(default)]
    needs_more_thoughts: Option<Switch>,
    /// From the previous result; omit it to start
    #[serde(default)]
    pub(crate) session_id: Option<String>,
}

/// The parsed arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) thought: String,
    pub(crate) next_thought_needed: bool,
    pub(crate) number: u64,
    pub(crate) total: u64,
    pub(crate) is_revision: bool,
    pub(crate) revises: Option<u64>,
    pub(crate) branch_from: Option<u64>,
    pub(crate) branch_id: Option<String>,
}

impl ThinkArgs {
    /// Parses numbers and booleans; raises a total below the number to it.
    ///
    /// # Errors
    /// When a value is invalid or too long. The first line names the argument.
    pub(crate) fn understood(self, thought_bytes_max: usize) -> Result<Step, ToolError> {
        let number = self.thought_number.read("thoughtNumber")?;
        let total = self.total_thoughts.read("totalThoughts")?.max(number);
        let next_thought_needed = self.next_thought_needed.read("nextThoughtNeeded")?;
        let switch = |name: &str, given: Option<Switch>| given.map_or(Ok(false), |given| given.read(name));
        let whole = |name: &str, given: Option<Number>| given.map(|given| given.read(name)).transpose();
        let is_revision = switch("isRevision", self.is_revision)?;
        switch("needsMoreThoughts", self.needs_more_thoughts)?;
        let revises = whole("revisesThought", self.revises_thought)?;
        let branch_from = whole("branchFromThought", self.branch_from_thought)?;
        // As in the published server: a branch without a name is ignored.
        let branch_id = self.branch_id.filter(|id| !id.is_empty());
        if self.thought.len() > thought_bytes_max {
            return Err(ToolError::new(format!(
                "thought: {} bytes exceed the limit of {thought_bytes_max}",
                self.thought.len()
            ))
            .hint("Write less, or split it into several thoughts."));
        }
        if let Some(id) = branch_id.as_ref().filter(|id| id.len() > BRANCH_ID_BYTES_MAX) {
            return Err(ToolError::new(format!(
                "branchId: {} bytes exceed the limit of {BRANCH_ID_BYTES_MAX}",
                id.len()
            ))
            .hint("Use a short name for the branch."));
        }
        let thought = self.thought;
        Ok(Step { thought, next_thought_needed, number, total, is_revision, revises, branch_from, branch_id })
    }
}

/// The numeric arguments, and whether each is required.
const NUMBERS: [(&str, bool); 4] =
    [("thoughtNumber", true), ("totalThoughts", true), ("revisesThought", false), ("branchFromThought", false)];
/// The boolean arguments, and whether each is required.
const SWITCHES: [(&str, bool); 3] = [("nextThoughtNeeded", true), ("isRevision", false), ("needsMoreThoughts", false)];

/// Converts numeric strings in the arguments to numbers: the schema says `integer` with bounds, as the published one
/// does, but models also send strings. `None` if there is nothing to convert.
///
/// # Errors
/// When an argument is not a number, or not a boolean; the message is shorter than that of schema validation.
pub(crate) fn with_plain_numbers(arguments: &str) -> Result<Option<String>, ToolError> {
    // Anything but an object is rejected later.
    let Ok(mut arguments) = serde_json::from_str::<serde_json::Map<String, Value>>(arguments) else { return Ok(None) };
    let mut changed = false;
    for (name, required) in NUMBERS {
        let Some(value) = arguments.get_mut(name).filter(|value| required || !value.is_null()) else { continue };
        let number = Number(value.clone()).read(name)?;
        if value.as_u64() != Some(number) {
            *value = number.into();
            changed = true;
        }
    }
    for (name, required) in SWITCHES {
        if let Some(value) = arguments.get(name).filter(|value| required || !value.is_null()) {
            Switch(value.clone()).read(name)?;
        }
    }
    Ok(changed.then(|| Value::Object(arguments).to_string()))
}

/// Arguments of the additional tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResetArgs {
    /// The sessionId of an earlier result
    #[serde(default)]
    pub(crate) session_id: Option<String>,
}

/// Arguments of `sequentialthinking_export`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExportArgs {
    /// The sessionId of an earlier result
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    /// next_cursor of the previous page; omit it for the first page
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// A number, or a string that contains one. The schema is that of the number: strings are a mistake of models.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Number(Value);

/// A boolean, or a string that contains one.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Switch(Value);

impl Number {
    fn read(&self, name: &str) -> Result<u64, ToolError> {
        let whole =
            |float: f64| (float.fract() == 0.0 && (1.0..=NUMBER_MAX as f64).contains(&float)).then_some(float as u64);
        let found = match &self.0 {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
            Value::String(text) => {
                let text = text.trim();
                let plain =
                    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b"+.eE".contains(&byte));
                text.parse().ok().or_else(|| text.parse().ok().filter(|_| plain).and_then(whole))
            }
            _ => None,
        };
        found.filter(|number| (1..=NUMBER_MAX).contains(number)).ok_or_else(|| {
            let got = shown(&self.0);
            ToolError::new(format!("{name}: expected an integer from 1 to {NUMBER_MAX}, got {got}"))
        })
    }
}

impl Switch {
    fn read(&self, name: &str) -> Result<bool, ToolError> {
        match &self.0 {
            Value::Bool(on) => Ok(*on),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            other => Err(ToolError::new(format!("{name}: expected true or false, got {}", shown(other)))),
        }
    }
}

/// A value for errors: short ones whole, others by type.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > 40 => "a string".to_owned(),
        other => other.to_string(),
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1 })
    }
}

impl JsonSchema for Switch {
    fn schema_name() -> Cow<'static, str> {
        "Switch".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["boolean", "string"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_read_from_numbers_and_texts() {
        for (value, expected) in [
            (json!(1), Some(1)),
            (json!(3.0), Some(3)),
            (json!("3"), Some(3)),
            (json!(" 3 "), Some(3)),
            (json!("3.0"), Some(3)),
            (json!("1e2"), Some(100)),
            (json!(NUMBER_MAX), Some(NUMBER_MAX)),
            (json!(NUMBER_MAX + 1), None),
            (json!(u64::MAX), None),
            (json!(1e300), None),
            (json!(0), None),
            (json!(-1), None),
            (json!(1.5), None),
            (json!("1.5"), None),
            (json!("0"), None),
            (json!("-1"), None),
            (json!(""), None),
            (json!("inf"), None),
            (json!("NaN"), None),
            (json!("three"), None),
            (json!("0x10"), None),
            (json!(true), None),
            (json!(null), None),
            (json!([3]), None),
        ] {
            assert_eq!(Number(value.clone()).read("n").ok(), expected, "{value}");
        }
    }
}
