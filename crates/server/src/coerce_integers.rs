//! Integers sent as floats: for JSON Schema `1.0` is an integer, for many decoders it is not.

use serde_json::{Number, Value};

/// The largest integer that a float represents unambiguously.
pub(crate) const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Limits on visited schema nodes, so that recursive schemas terminate, and on nesting, for the stack.
const STEPS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 256;

/// Replaces `1.0` and `1e2` by `1` and `100` wherever `schema` requires an integer. Returns whether anything changed.
pub(crate) fn settle(schema: &Value, value: &mut Value) -> bool {
    Settle { root: schema, steps: STEPS_MAX, depth: 0 }.at(schema, value)
}

struct Settle<'a> {
    root: &'a Value,
    steps: usize,
    depth: usize,
}

impl<'a> Settle<'a> {
    fn at(&mut self, schema: &'a Value, value: &mut Value) -> bool {
        if self.steps == 0 || self.depth == DEPTH_MAX {
            return false;
        }
        self.steps -= 1;
        self.depth += 1;
        let changed = self.node(schema, value);
        self.depth -= 1;
        changed
    }

    fn node(&mut self, schema: &'a Value, value: &mut Value) -> bool {
        let target = schema["$ref"].as_str().and_then(|r| r.strip_prefix('#')).and_then(|at| self.root.pointer(at));
        if let Some(target) = target {
            return self.at(target, value);
        }
        let mut changed = false;
        let forms = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
        let forms: Vec<&Value> = forms.collect();
        match value {
            Value::Number(number) => {
                if wanted(schema)
                    || forms.iter().any(|form| wants(form, "integer"))
                        && !forms.iter().any(|form| wants(form, "number"))
                {
                    changed = settle_number(number);
                }
                return changed;
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let property = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                    changed |= self.at(property, member);
                }
            }
            Value::Array(items) => {
                for item in items {
                    changed |= self.at(&schema["items"], item);
                }
            }
            _ => return false,
        }
        for form in forms {
            changed |= self.at(form, value);
        }
        changed
    }
}

/// Whether a number must be an integer.
pub(crate) fn wanted(schema: &Value) -> bool {
    wants(schema, "integer") && !wants(schema, "number")
}

fn wants(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(all) => all.iter().any(|one| one == kind),
        _ => false,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole, and not beyond EXACT_MAX")]
fn settle_number(number: &mut Number) -> bool {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return false };
    if float.fract() != 0.0 || float.abs() > EXACT_MAX {
        return false;
    }
    *number = Number::from(float as i64);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_the_schema_wants_whole_is_changed() {
        let schema = json!({
            "properties": {
                "n": {"type": "integer"}, "x": {"type": "number"}, "any": {}, "both": {"type": ["integer", "number"]},
                "maybe": {"type": ["integer", "null"]}, "or": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "either": {"anyOf": [{"type": "integer"}, {"type": "number"}]}, "list": {"items": {"type": "integer"}},
                "far": {"$ref": "#/$defs/far"}, "nested": {"anyOf": [{"properties": {"n": {"type": "integer"}}}]}
            },
            "additionalProperties": {"type": "integer"},
            "$defs": {"far": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}}
        });
        for (given, settled) in [
            (json!({"n": 1.0}), json!({"n": 1})),
            (json!({"n": -0.0}), json!({"n": 0})),
            (
                json!({"n": 1e3, "x": 1.0, "any": 1.0, "both": 1.0, "either": 1.0}),
                json!({"n": 1000, "x": 1.0, "any": 1.0, "both": 1.0, "either": 1.0}),
            ),
            (
                json!({"maybe": 2.0, "or": 3.0, "list": [1.0, 2], "far": 4.0}),
                json!({"maybe": 2, "or": 3, "list": [1, 2], "far": 4}),
            ),
            (json!({"nested": {"n": 5.0, "m": 6.0}, "more": 7.0}), json!({"nested": {"n": 5, "m": 6.0}, "more": 7})),
            (json!({"n": EXACT_MAX}), json!({"n": 9_007_199_254_740_992_i64})),
        ] {
            let mut value = given.clone();
            assert!(settle(&schema, &mut value), "{given}");
            assert_eq!(value.to_string(), settled.to_string(), "{given}");
        }
        for same in [
            json!({"n": 1.5}),
            json!({"n": 1e300}),
            json!({"n": -1e16}),
            json!({"n": 1}),
            json!({"n": "1.0"}),
            json!(null),
            json!(1.0),
        ] {
            let mut value = same.clone();
            assert!(!settle(&schema, &mut value), "{same}");
            assert_eq!(value.to_string(), same.to_string());
        }
        assert!(
            !settle(&json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}), &mut json!(1.0)),
            "it ends"
        );
    }
}
