//! Every row against the description of the API.

use super::{Suite, call, check_key, without_key};
use linchpin::testing::site::{Seen, Site};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use url::form_urlencoded::parse;

/// The description.
#[derive(Debug)]
pub(super) struct Contract {
    operations: Vec<Operation>,
    calls: Value,
}

#[derive(Debug)]
struct Operation {
    name: String,
    method: String,
    path: Vec<String>,
    parts: BTreeMap<&'static str, (Value, jsonschema::Validator)>,
    wrong: Value,
    answer: Value,
}

const PARTS: [&str; 3] = ["query", "headers", "body"];

impl Contract {
    pub(super) fn parse(text: &str) -> Contract {
        let description: Value = serde_json::from_str(text).expect("the description is JSON");
        let operations = description["operations"].as_array().expect("operations").iter().map(|one| {
            let word = |name: &str| one[name].as_str().unwrap_or_else(|| panic!("{name} is missing: {one}")).to_owned();
            let (method, path) = (word("method"), word("path"));
            let parts = PARTS.into_iter().filter_map(|part| {
                let schema = one.get(part)?.clone();
                assert_eq!(schema["additionalProperties"], false, "{method} {path}: {part} is open");
                let validator = jsonschema::validator_for(&schema).expect("a schema");
                Some((part, (schema, validator)))
            });
            Operation {
                name: format!("{method} {path}"),
                parts: parts.collect(),
                path: path.split('/').map(str::to_owned).collect(),
                method,
                wrong: one["wrong"].clone(),
                answer: one["answer"].clone(),
            }
        });
        Contract { operations: operations.collect(), calls: description["calls"].clone() }
    }

    pub(super) fn has_arguments(&self, name: &str) -> bool {
        self.calls.get(name).is_some()
    }

    /// Arguments that exclude one another are in several objects.
    pub(super) fn all_arguments(&self, name: &str, which: &str) -> Vec<Value> {
        match &self.calls[name][which] {
            Value::Array(several) => several.clone(),
            one @ Value::Object(_) => vec![one.clone()],
            _ => Vec::new(),
        }
    }

    /// Whether the answer is text of any form.
    pub(super) fn is_plain(&self, name: &str) -> bool {
        self.calls[name]["plain"] == true
    }

    fn operation(&self, seen: &Seen) -> Option<&Operation> {
        let path: Vec<&str> = seen.path().split('/').collect();
        self.operations.iter().find(|operation| {
            operation.method == seen.method
                && operation.path.len() <= path.len()
                && operation.path.iter().enumerate().all(|(n, part)| match part.as_str() {
                    // The rest of the path, as paths of files are.
                    rest if rest.starts_with("{+") => n < path.len(),
                    one if one.starts_with('{') => !path[n].is_empty(),
                    literal => literal == path[n],
                })
                && (operation.path.len() == path.len() || operation.path.last().is_some_and(|p| p.starts_with("{+")))
        })
    }

    pub(super) fn answer(&self, seen: &Seen) -> &Value {
        self.operation(seen).map_or(&Value::Null, |operation| &operation.answer)
    }

    /// What is wrong with a request.
    pub(super) fn problems(&self, seen: &Seen) -> Vec<String> {
        match self.operation(seen) {
            None => vec![format!("{} {} is not described", seen.method, seen.target)],
            Some(operation) => operation.problems(&operation.parts(seen)),
        }
    }
}

impl Operation {
    /// Query, headers and body, as the schemas describe them.
    fn parts(&self, seen: &Seen) -> BTreeMap<&'static str, Value> {
        let schema = |part: &str| self.parts.get(part).map(|(schema, _)| schema);
        let query = typed(schema("query"), parse(seen.query().as_bytes()).into_owned());
        let own = |name: &str| schema("headers").is_some_and(|schema| schema["properties"].get(name).is_some());
        let headers = seen.headers.iter().filter(|(name, _)| own(name)).cloned();
        let is_form = seen.header("content-type") == Some("application/x-www-form-urlencoded");
        let body = match (is_form, seen.body.is_empty()) {
            (true, _) => typed(schema("body"), parse(&seen.body).into_owned()),
            (false, true) => json!({}),
            // Of another kind, such as the content of a file.
            (false, false) if seen.header("content-type").is_some_and(|kind| !kind.contains("json")) => {
                json!({ "text": String::from_utf8_lossy(&seen.body) })
            }
            (false, false) => serde_json::from_slice(&seen.body).unwrap_or_else(|e| panic!("{}: {e}", self.name)),
        };
        BTreeMap::from([("query", query), ("headers", typed(schema("headers"), headers)), ("body", body)])
    }

    fn problems(&self, parts: &BTreeMap<&'static str, Value>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (part, value) in parts {
            match self.parts.get(part) {
                Some((_, validator)) => {
                    let said = validator.iter_errors(value).map(|e| format!("{}: {part}: {e}", self.name));
                    wrong.extend(said);
                }
                None if *value == json!({}) => {}
                None => wrong.push(format!("{}: {part} is not described: {value}", self.name)),
            }
        }
        wrong
    }

    /// The schemas refuse what is wrong: a parameter that is not there, and the change that the description names.
    fn controls(&self, parts: &BTreeMap<&'static str, Value>) {
        for part in self.parts.keys() {
            let mut more = parts.clone();
            if let Some(value) = more.get_mut(part) {
                value["not_there"] = json!("x");
            }
            assert!(!self.problems(&more).is_empty(), "{}: {part} takes anything", self.name);
        }
        let wrong = self.wrong.as_object().unwrap_or_else(|| panic!("{} has no `wrong`", self.name));
        let mut changed = parts.clone();
        for (part, members) in wrong {
            for (name, value) in members.as_object().into_iter().flatten() {
                if let Some(changed) = changed.get_mut(part.as_str()) {
                    changed[name] = value.clone();
                }
            }
        }
        assert!(!self.problems(&changed).is_empty(), "{}: `wrong` is not refused", self.name);
    }
}

/// Pairs as an object, with the types that the schema says: on the way all are text.
fn typed(schema: Option<&Value>, pairs: impl IntoIterator<Item = (String, String)>) -> Value {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in pairs {
        all.entry(name).or_default().push(value);
    }
    let typed = |name: &str, values: Vec<String>| {
        let schema = schema.map_or(&Value::Null, |schema| &schema["properties"][name]);
        let texts = || -> Vec<Value> {
            let comma = schema["x-style"] == "comma";
            values
                .iter()
                .flat_map(|v| if comma { v.split(',').collect() } else { vec![v.as_str()] })
                .map(Into::into)
                .collect()
        };
        match (schema["type"].as_str(), values.as_slice()) {
            (Some("array"), _) => Value::Array(texts()),
            (Some("integer" | "number" | "boolean"), [one]) => serde_json::from_str(one).unwrap_or_else(|_| json!(one)),
            (_, [one]) => json!(one),
            (_, several) => json!(several),
        }
    };
    Value::Object(all.into_iter().map(|(name, values)| (name.clone(), typed(&name, values))).collect::<Map<_, _>>())
}

impl Suite {
    /// Every row makes requests that the description allows, with the fewest and with all of its arguments, and the
    /// description refuses requests that are wrong.
    ///
    /// # Panics
    /// If that is not so.
    pub async fn contract(&self) {
        self.contract_at(&self.site().await).await;
    }

    /// The same at a [site](Suite::site) of the test, which can look at its requests afterwards.
    ///
    /// # Panics
    /// As [`Suite::contract`].
    pub async fn contract_at(&self, site: &Site) {
        let connection = self.connect(self.config(site)).await;
        for trial in self.trials() {
            let (least, most) = (self.arguments(&trial, "least"), self.all_arguments(&trial, "most"));
            let name = trial.what();
            let name = name.as_str();
            let listed: BTreeSet<&str> =
                trial.row.args.iter().map(|arg| arg.name).chain(trial.method.map(|_| "method")).collect();
            let names = most.iter().filter_map(Value::as_object).flatten();
            let used: BTreeSet<&str> = names.map(|(name, _)| name.as_str()).collect();
            assert_eq!(used, listed, "{name}: `most` has all arguments");
            for (which, arguments) in [("least", &least)].into_iter().chain(most.iter().map(|most| ("most", most))) {
                let before = site.requests().len();
                let told = call(&connection, trial.name(), arguments.clone()).await;
                assert!(!told.failed, "{name} {which}: {}", told.result);
                without_key(self.api, &told, name);
                let marked = told.result.pointer("/content/0/annotations/audience") == Some(&json!(["assistant"]));
                assert!(marked, "{name}: it is not marked as third-party text: {}", told.result);
                let seen = &site.requests()[before..];
                assert!(!seen.is_empty(), "{name} {which}: it sends nothing");
                check_key(self.api, seen, name);
                for request in seen {
                    assert_eq!(self.contract.problems(request), [""; 0], "{name} {which}: {}", request.target);
                    if let Some(operation) = self.contract.operation(request) {
                        operation.controls(&operation.parts(request));
                    }
                }
            }
        }
        let tried: BTreeSet<&str> =
            site.requests().iter().filter_map(|seen| Some(self.contract.operation(seen)?.name.as_str())).collect();
        for operation in &self.contract.operations {
            assert!(tried.contains(operation.name.as_str()), "{}: no row uses it", operation.name);
        }
        connection.close().await;
    }
}
