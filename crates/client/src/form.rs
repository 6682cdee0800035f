//! A form that a server wants filled in, and whether what a host filled in fits.

use linchpin_types::elicit::{
    ElicitAction, ElicitRequestFormParams, ElicitResult, ElicitValue, NumberKind, PrimitiveSchemaDefinition as Field,
    RequestedSchema,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A question of a server to the person, as a form. Answer with [`Form::accept`], [`Form::accept_defaults`],
/// [`Form::decline`] or [`Form::cancel`].
///
/// Specification: 2026-07-28 "Elicitation", form mode.
#[derive(Clone, Debug)]
pub struct Form {
    /// Who asks: the server's name as it gave it.
    pub server: String,
    /// What it asks.
    pub message: String,
    /// The fields, in order.
    pub schema: RequestedSchema,
}

impl Form {
    pub(crate) fn new(server: String, params: ElicitRequestFormParams) -> Form {
        Form { server, message: params.message, schema: params.requested_schema }
    }

    /// The person agreed and filled this in: an object whose members are the form's fields. Fields left out get their
    /// defaults.
    ///
    /// Content that is no object of such values becomes a refusal to the server and an error to whoever waits for the
    /// call, like content that does not fit the form.
    pub fn accept<T: Serialize>(&self, content: T) -> ElicitResult {
        let content =
            serde_json::to_value(content).and_then(serde_json::from_value::<BTreeMap<String, Option<ElicitValue>>>);
        match content {
            Ok(content) => {
                ElicitResult::accept(content.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
            }
            // A marker that `checked` turns into an error: it has no content where a form needs some.
            Err(_) => ElicitResult { action: ElicitAction::Accept, content: None, meta: None },
        }
    }

    /// The person agreed to what stands there: the defaults.
    pub fn accept_defaults(&self) -> ElicitResult {
        ElicitResult::accept(BTreeMap::new())
    }

    /// The person said no.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// The person went away without choosing.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

/// Fills in defaults and checks an answer against the form.
pub(crate) fn checked(schema: &RequestedSchema, mut answer: ElicitResult) -> Result<ElicitResult, String> {
    if answer.action != ElicitAction::Accept {
        answer.content = None;
        return Ok(answer);
    }
    let mut content = answer.content.take().ok_or("the host's answer to a form is not an object of simple values")?;
    for (name, field) in &schema.properties.0 {
        if !content.contains_key(name)
            && let Some(value) = default_of(field)
        {
            content.insert(name.clone(), value);
        }
    }
    if let Some(missing) = schema.required.iter().find(|name| !content.contains_key(*name)) {
        return Err(format!("the host's answer leaves out the required field `{missing}`"));
    }
    for (name, value) in &content {
        let Some(field) = schema.properties.get(name) else {
            return Err(format!("the host's answer has a field `{name}` that the form lacks"));
        };
        fits(field, value).map_err(|why| format!("the host's answer to the field `{name}` {why}"))?;
    }
    answer.content = Some(content);
    Ok(answer)
}

fn default_of(field: &Field) -> Option<ElicitValue> {
    let text = |text: &Option<String>| text.clone().map(ElicitValue::String);
    match field {
        Field::String(f) => text(&f.default),
        Field::UntitledSingleSelectEnum(f) => text(&f.default),
        Field::TitledSingleSelectEnum(f) => text(&f.default),
        Field::LegacyTitledEnum(f) => text(&f.default),
        Field::Boolean(f) => f.default.map(ElicitValue::Boolean),
        Field::Number(f) => f
            .default
            .as_ref()
            .and_then(|n| n.as_i64().map(ElicitValue::Integer).or(n.as_f64().map(ElicitValue::Number))),
        Field::UntitledMultiSelectEnum(f) => f.default.clone().map(ElicitValue::Strings),
        Field::TitledMultiSelectEnum(f) => f.default.clone().map(ElicitValue::Strings),
    }
}

fn fits(field: &Field, value: &ElicitValue) -> Result<(), String> {
    match (field, value) {
        (Field::String(f), ElicitValue::String(text)) => {
            let n = text.chars().count() as u64;
            if f.min_length.is_some_and(|min| n < min) || f.max_length.is_some_and(|max| n > max) {
                return Err(format!("has {n} characters, which the form does not allow"));
            }
            Ok(())
        }
        (Field::Boolean(_), ElicitValue::Boolean(_)) => Ok(()),
        (Field::Number(f), ElicitValue::Integer(_) | ElicitValue::Number(_)) => {
            let number = match value {
                ElicitValue::Integer(n) => *n as f64,
                ElicitValue::Number(n) => *n,
                _ => 0.0,
            };
            if f.kind == NumberKind::Integer && number.fract() != 0.0 {
                return Err("must be a whole number".to_owned());
            }
            let outside = f.minimum.as_ref().and_then(|n| n.as_f64()).is_some_and(|min| number < min)
                || f.maximum.as_ref().and_then(|n| n.as_f64()).is_some_and(|max| number > max);
            if outside { Err(format!("is {number}, which the form does not allow")) } else { Ok(()) }
        }
        (Field::UntitledSingleSelectEnum(f), ElicitValue::String(text)) => one_of(&f.values, text),
        (Field::LegacyTitledEnum(f), ElicitValue::String(text)) => one_of(&f.values, text),
        (Field::TitledSingleSelectEnum(f), ElicitValue::String(text)) => {
            one_of(&f.one_of.iter().map(|v| v.value.clone()).collect::<Vec<_>>(), text)
        }
        (Field::UntitledMultiSelectEnum(f), ElicitValue::Strings(chosen)) => {
            several(&f.items.values, chosen, f.min_items, f.max_items)
        }
        (Field::TitledMultiSelectEnum(f), ElicitValue::Strings(chosen)) => {
            let values: Vec<_> = f.items.any_of.iter().map(|v| v.value.clone()).collect();
            several(&values, chosen, f.min_items, f.max_items)
        }
        _ => Err("is of another type than the form wants".to_owned()),
    }
}

fn one_of(values: &[String], text: &str) -> Result<(), String> {
    if values.iter().any(|v| v == text) { Ok(()) } else { Err(format!("must be one of {}", values.join(", "))) }
}

fn several(values: &[String], chosen: &[String], min: Option<u64>, max: Option<u64>) -> Result<(), String> {
    chosen.iter().try_for_each(|text| one_of(values, text))?;
    let n = chosen.len() as u64;
    if min.is_some_and(|min| n < min) || max.is_some_and(|max| n > max) {
        return Err(format!("chooses {n}, which the form does not allow"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(schema: serde_json::Value) -> Form {
        let schema = serde_json::from_value(schema).unwrap();
        Form { server: "s".into(), message: "m".into(), schema }
    }

    #[test]
    fn answers_are_filled_with_defaults_and_held_against_the_form() {
        let form = form(json!({ "type": "object", "properties": {
            "name": { "type": "string", "default": "Ann", "maxLength": 5 },
            "age": { "type": "integer", "minimum": 0 },
            "score": { "type": "number", "default": 9.5 },
            "on": { "type": "boolean", "default": false },
            "one": { "type": "string", "enum": ["a", "b"] },
            "many": { "type": "array", "items": { "anyOf": [{ "const": "x", "title": "X" }, { "const": "y", "title": "Y" }] }, "maxItems": 1 },
        }, "required": ["age"] }));
        let rows = [
            (json!({ "age": 3 }), Ok(json!({ "name": "Ann", "age": 3, "score": 9.5, "on": false }))),
            (
                json!({ "age": 3, "name": null, "many": ["y"] }),
                Ok(json!({ "name": "Ann", "age": 3, "score": 9.5, "on": false, "many": ["y"] })),
            ),
            (json!({}), Err("`age`")),
            (json!({ "age": -1 }), Err("allow")),
            (json!({ "age": 1.5 }), Err("whole")),
            (json!({ "age": "3" }), Err("type")),
            (json!({ "age": 3, "name": "longer" }), Err("characters")),
            (json!({ "age": 3, "one": "c" }), Err("one of a, b")),
            (json!({ "age": 3, "many": ["x", "y"] }), Err("chooses 2")),
            (json!({ "age": 3, "many": ["z"] }), Err("one of x, y")),
            (json!({ "age": 3, "more": 1 }), Err("lacks")),
            (json!([1]), Err("not an object")),
            (json!({ "age": { "deep": 1 } }), Err("not an object")),
        ];
        for (content, want) in rows {
            let got = checked(&form.schema, form.accept(&content));
            match (got, want) {
                (Ok(answer), Ok(want)) => assert_eq!(serde_json::to_value(answer.content).unwrap(), want, "{content}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why} for {content}"),
                (got, want) => panic!("{got:?} instead of {want:?} for {content}"),
            }
        }
        assert_eq!(checked(&form.schema, form.decline()).unwrap(), ElicitResult::decline());
    }
}
