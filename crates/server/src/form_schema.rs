//! The form of a Rust type: its JSON Schema, flattened as elicitation requires.

use crate::schema;
use crate::validate;
use linchpin_types::elicit::{ElicitAction, ElicitResult};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// Returns the `requestedSchema` of `T`, or an error that names the unsupported field.
pub(crate) fn schema<T: JsonSchema>() -> Result<Value, String> {
    let root = schema::of::<T>();
    let properties =
        root.get("properties").and_then(Value::as_object).ok_or("a form is asked with a struct of named fields")?;
    let mut fields = Map::new();
    for (name, field) in properties {
        fields.insert(name.clone(), flat(name, field)?);
    }
    let mut form = json!({ "type": "object", "properties": fields });
    if let Some(required) = root.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

/// Why the content of an answer does not fit the schema that was asked for; `None` if it does, or the form is not accepted.
pub(crate) fn problem(schema: &Value, answer: &ElicitResult) -> Option<String> {
    if answer.action != ElicitAction::Accept {
        return None;
    }
    let checker = validate::checker("answer", schema.clone(), false, 3).ok()?;
    let content = serde_json::to_string(&answer.content).unwrap_or_default();
    let problems = checker.problems(&content, 3);
    (!problems.is_empty()).then(|| problems.join("; "))
}

fn flat(name: &str, field: &Value) -> Result<Value, String> {
    let mut field = field.clone();
    // `Option<T>`: the field is optional, with the schema of `T`.
    if let Some(Value::Array(kinds)) = field.get("type")
        && let Some(kind) = kinds.iter().find(|k| *k != "null")
    {
        field["type"] = kind.clone();
        if let Some(Value::Array(choices)) = field.get_mut("enum") {
            choices.retain(|choice| !choice.is_null());
        }
    }
    if let Some(Value::Array(choices)) = field.get("anyOf")
        && let Some(choice) = choices.iter().find(|c| c["type"] != "null")
    {
        let mut inner = choice.clone();
        copy(&field, &mut inner, &["title", "description", "default"]);
        field = inner;
    }
    if let Some(choices) = field.get("oneOf").and_then(Value::as_array) {
        let mut titled =
            Map::from_iter([("type".to_owned(), json!("string")), ("oneOf".to_owned(), titled(choices, name)?)]);
        for key in ["title", "description", "default"] {
            if let Some(value) = field.get(key) {
                titled.insert(key.into(), value.clone());
            }
        }
        return Ok(titled.into());
    }
    match field["type"].as_str() {
        Some("string" | "boolean") => {}
        Some("number" | "integer") => {
            // The format names a Rust type, which has no meaning in a form.
            if let Some(f) = field.as_object_mut() {
                f.remove("format");
            }
        }
        Some("array") => {
            let items = field["items"].clone();
            field["items"] = match items.get("oneOf").and_then(Value::as_array) {
                Some(choices) => json!({ "anyOf": titled(choices, name)? }),
                None if items["enum"].is_array() => json!({ "type": "string", "enum": items["enum"] }),
                None => return Err(format!("`{name}`: a form can only list choices of an enum")),
            };
            if let Some(f) = field.as_object_mut() {
                f.remove("uniqueItems");
            }
        }
        _ => return Err(format!("`{name}`: forms have only strings, numbers, booleans, enums and lists of enums")),
    }
    Ok(field)
}

fn titled(choices: &[Value], name: &str) -> Result<Value, String> {
    choices
        .iter()
        .flat_map(|choice| match choice["enum"].as_array() {
            // Choices without a description arrive grouped.
            Some(values) => values.iter().map(|v| json!({ "const": v, "title": v })).collect(),
            None => vec![json!({ "const": choice["const"], "title": choice.get("title").or(choice.get("description")).unwrap_or(&choice["const"]) })],
        })
        .map(|choice| if choice["const"].is_string() { Ok(choice) } else { Err(format!("`{name}`: choices must be words")) })
        .collect::<Result<Vec<_>, _>>()
        .map(Value::from)
}

fn copy(from: &Value, to: &mut Value, keys: &[&str]) {
    for key in keys {
        if let Some(value) = from.get(*key) {
            to[*key] = value.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::json;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Form {
        /// Your name.
        name: String,
        age: Option<u8>,
        sure: bool,
        color: Color,
        other: Option<Color>,
        sizes: Vec<Size>,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Color {
        Red,
        Blue,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Size {
        /// Small size
        S,
        /// Large size
        L,
    }

    #[test]
    fn a_struct_becomes_a_flat_form() {
        let form = super::schema::<Form>().unwrap();
        assert_eq!(form["properties"]["name"], json!({"type": "string", "description": "Your name."}));
        assert_eq!(form["properties"]["age"], json!({"type": "integer", "minimum": 0, "maximum": 255}));
        for name in ["color", "other"] {
            assert_eq!(form["properties"][name], json!({"type": "string", "enum": ["Red", "Blue"]}));
        }
        assert_eq!(
            form["properties"]["sizes"]["items"],
            json!({"anyOf": [{"const": "S", "title": "Small size"}, {"const": "L", "title": "Large size"}]})
        );
        assert_eq!(form["required"], json!(["name", "sure", "color", "sizes"]));
    }

    #[test]
    fn what_no_form_can_show_is_named() {
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Deep {
            inner: Form,
        }
        assert!(super::schema::<Deep>().unwrap_err().contains("`inner`"));
    }
}
