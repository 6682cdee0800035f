//! Form elicitation, and validation of the host's result.

use linchpin_types::elicit::{
    ElicitAction, ElicitRequestFormParams, ElicitResult, ElicitValue, NumberKind, PrimitiveSchemaDefinition as Field,
    RequestedSchema,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A form elicitation.
///
/// Return one of [`ElicitForm::accept`], [`ElicitForm::accept_defaults`], [`ElicitForm::decline`] and
/// [`ElicitForm::cancel`] from the callback ([`crate::Client::on_elicitation`]).
///
/// Specification: 2026-07-28 "Elicitation", form mode.
///
/// ```
/// use linchpin_client::Client;
/// use serde_json::json;
///
/// let client = Client::new("my-host", "1.0").on_elicitation(|form| async move {
///     println!("{} asks: {}", form.server, form.message);
///     match form.schema.properties.get("city") {
///         Some(_) => form.accept(json!({ "city": "Paris" })),
///         None => form.decline(),
///     }
/// });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ElicitForm {
    /// The name of the server, as sent. Not verified.
    pub server: String,
    /// The message for the user.
    pub message: String,
    /// The fields, in order.
    pub schema: RequestedSchema,
}

impl ElicitForm {
    pub(crate) fn new(server: String, params: ElicitRequestFormParams) -> ElicitForm {
        ElicitForm { server, message: params.message, schema: params.requested_schema }
    }

    /// Submits the form. `content` must serialise to an object whose members are the fields; missing fields get their
    /// defaults.
    ///
    /// Content that does not match the form is an error for the server or, in the revision without sessions, for the
    /// call.
    pub fn accept<T: Serialize>(&self, content: T) -> ElicitResult {
        let content =
            serde_json::to_value(content).and_then(serde_json::from_value::<BTreeMap<String, Option<ElicitValue>>>);
        match content {
            Ok(content) => ElicitResult::accept(content.into_iter().filter_map(|(name, value)| Some((name, value?)))),
            // A marker that `checked` turns into an error: a form result without content.
            Err(_) => ElicitResult::accept_url(),
        }
    }

    /// Submits the form with its defaults.
    pub fn accept_defaults(&self) -> ElicitResult {
        ElicitResult::accept(BTreeMap::<String, ElicitValue>::new())
    }

    /// Returns the result for a user who declined.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// Returns the result for a user who dismissed the form without a choice.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

/// Fills in defaults and validates a result against the form.
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
        _ => None,
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

    fn form(schema: serde_json::Value) -> ElicitForm {
        let schema = serde_json::from_value(schema).unwrap();
        ElicitForm { server: "s".into(), message: "m".into(), schema }
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
