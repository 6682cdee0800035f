//! Elicitation (2025-06-18 and later): a server asks the person, by a form or by sending them to a URL.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::Meta;
use crate::read::{eq_by_json, from_raw, null_is_default};

/// The parameters of `elicitation/create`, told apart by `mode`; without one it is a form.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ElicitRequestParams {
    /// A form (2025-06-18 and later).
    Form(ElicitRequestFormParams),
    /// A URL (2025-11-25 and later).
    Url(ElicitRequestURLParams),
}

impl<'de> Deserialize<'de> for ElicitRequestParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            mode: Option<String>,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let probe: Probe = from_raw(&raw)?;
        match probe.mode.as_deref() {
            None | Some("form") => from_raw(&raw).map(ElicitRequestParams::Form),
            Some("url") => from_raw(&raw).map(ElicitRequestParams::Url),
            Some(_) => Err(D::Error::custom("mode is neither form nor url")),
        }
    }
}

/// Asks the person to fill in a form (2025-06-18 and later).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitRequestFormParams {
    /// `"form"` when written out (2025-11-25 and later); absent means the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FormMode>,
    /// What the person reads.
    pub message: String,
    /// The fields of the form.
    pub requested_schema: RequestedSchema,
    /// Run it as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// Anything else (2025-06-18 and 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The word `form` (2025-11-25 and later).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FormMode {
    /// `form`.
    #[default]
    Form,
}

/// Asks the person to visit a URL (2025-11-25 and later). Written with `"mode": "url"`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "mode", rename = "url")]
pub struct ElicitRequestURLParams {
    /// What the person reads.
    pub message: String,
    /// Where they are to go.
    pub url: String,
    /// What the elicitation is known by (2025-11-25 only, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Run it as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// Anything else (2025-11-25 only).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

eq_by_json!(ElicitRequestFormParams, ElicitRequestURLParams);

/// The parameters of `notifications/elicitation/complete` (2025-11-25 only).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleteNotificationParams {
    /// Which elicitation has ended.
    pub elicitation_id: String,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What the person answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitResult {
    /// What they did.
    pub action: ElicitAction,
    /// The fields they filled in; only with [`ElicitAction::Accept`] of a form. A field that is `null` is left out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_content")]
    pub content: Option<BTreeMap<String, ElicitValue>>,
    /// Anything else (2025-06-18 and 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitResult {
    /// They agreed and filled this in.
    pub fn accept(content: BTreeMap<String, ElicitValue>) -> Self {
        ElicitResult { action: ElicitAction::Accept, content: Some(content), meta: None }
    }

    /// They said no.
    pub fn decline() -> Self {
        ElicitResult { action: ElicitAction::Decline, content: None, meta: None }
    }

    /// They went away.
    pub fn cancel() -> Self {
        ElicitResult { action: ElicitAction::Cancel, content: None, meta: None }
    }
}

/// What the person did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Agreed.
    Accept,
    /// Said no.
    Decline,
    /// Went away without choosing.
    Cancel,
}

/// What stands in one field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ElicitValue {
    /// A switch.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Text, or one choice.
    String(String),
    /// Several choices (2025-11-25 and later).
    Strings(Vec<String>),
}

/// The fields of a form: an object schema whose properties are all primitive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "object")]
pub struct RequestedSchema {
    /// The dialect of the schema (2025-11-25 and later).
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The fields, in the order in which the person is to see them.
    #[serde(default)]
    pub properties: Properties,
    /// The fields that must be filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub required: Vec<String>,
}

/// The fields of a form by name, in the order in which they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties(pub Vec<(String, PrimitiveSchemaDefinition)>);

impl Properties {
    /// The field of this name; the last one if a peer wrote the name twice.
    pub fn get(&self, name: &str) -> Option<&PrimitiveSchemaDefinition> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, field)| field)
    }
}

impl FromIterator<(String, PrimitiveSchemaDefinition)> for Properties {
    fn from_iter<I: IntoIterator<Item = (String, PrimitiveSchemaDefinition)>>(fields: I) -> Self {
        Properties(fields.into_iter().collect())
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, field)| (name, field)))
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Properties;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of form fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Properties(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PrimitiveSchemaDefinition {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A switch.
    Boolean(BooleanSchema),
    /// One choice out of values.
    UntitledSingleSelectEnum(UntitledSingleSelectEnumSchema),
    /// One choice out of values with titles (2025-11-25 and later).
    TitledSingleSelectEnum(TitledSingleSelectEnumSchema),
    /// Several choices out of values (2025-11-25 and later).
    UntitledMultiSelectEnum(UntitledMultiSelectEnumSchema),
    /// Several choices out of values with titles (2025-11-25 and later).
    TitledMultiSelectEnum(TitledMultiSelectEnumSchema),
    /// One choice out of values, with titles beside them: the only titled kind in 2025-06-18.
    LegacyTitledEnum(LegacyTitledEnumSchema),
}

impl<'de> Deserialize<'de> for PrimitiveSchemaDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let probe: FieldProbe = from_raw(&raw)?;
        match (probe.kind.as_str(), &probe) {
            ("string", FieldProbe { one_of: Some(_), .. }) => from_raw(&raw).map(Self::TitledSingleSelectEnum),
            ("string", FieldProbe { enum_names: Some(_), .. }) => from_raw(&raw).map(Self::LegacyTitledEnum),
            ("string", FieldProbe { values: Some(_), .. }) => from_raw(&raw).map(Self::UntitledSingleSelectEnum),
            ("string", _) => from_raw(&raw).map(Self::String),
            ("number" | "integer", _) => from_raw(&raw).map(Self::Number),
            ("boolean", _) => from_raw(&raw).map(Self::Boolean),
            ("array", FieldProbe { items: Some(ItemsProbe { any_of: Some(_) }), .. }) => {
                from_raw(&raw).map(Self::TitledMultiSelectEnum)
            }
            ("array", _) => from_raw(&raw).map(Self::UntitledMultiSelectEnum),
            _ => Err(D::Error::custom("type of a form field is none of string, number, integer, boolean and array")),
        }
    }
}

/// What tells the kinds of fields apart, read before the rest.
#[derive(Deserialize)]
struct FieldProbe {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "enum", default)]
    values: Option<IgnoredAny>,
    #[serde(rename = "enumNames", default)]
    enum_names: Option<IgnoredAny>,
    #[serde(rename = "oneOf", default)]
    one_of: Option<IgnoredAny>,
    #[serde(default)]
    items: Option<ItemsProbe>,
}

#[derive(Deserialize)]
struct ItemsProbe {
    #[serde(rename = "anyOf", default)]
    any_of: Option<IgnoredAny>,
}

/// Text in a form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "string")]
pub struct StringSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What belongs there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many characters at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// How many characters at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// What kind of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// What stands there at first (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// What kind of text a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StringFormat {
    /// `email`.
    Email,
    /// `uri`.
    Uri,
    /// `date`.
    Date,
    /// `date-time`.
    DateTime,
}

/// A number in a form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NumberSchema {
    /// Whether it must be whole.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What belongs there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The smallest allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<serde_json::Number>,
    /// The largest allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<serde_json::Number>,
    /// What stands there at first (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Number>,
}

/// Whether a number must be whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKind {
    /// Any number.
    #[default]
    Number,
    /// Whole numbers.
    Integer,
}

/// A switch in a form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "boolean")]
pub struct BooleanSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How it stands at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// One choice out of values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
pub struct UntitledSingleSelectEnumSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// What is chosen at first (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// One choice out of values with titles (2025-11-25 and later).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "string")]
pub struct TitledSingleSelectEnumSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values and their titles.
    pub one_of: Vec<TitledValue>,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A value and what people call it (2025-11-25 and later).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitledValue {
    /// The value.
    #[serde(rename = "const")]
    pub value: String,
    /// What people call it.
    pub title: String,
}

/// Several choices out of values (2025-11-25 and later).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "array")]
pub struct UntitledMultiSelectEnumSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values.
    pub items: UntitledItems,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// The values of an [`UntitledMultiSelectEnumSchema`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
pub struct UntitledItems {
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
}

/// Several choices out of values with titles (2025-11-25 and later).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "array")]
pub struct TitledMultiSelectEnumSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values and their titles.
    pub items: TitledItems,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// The values of a [`TitledMultiSelectEnumSchema`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitledItems {
    /// The values and their titles.
    pub any_of: Vec<TitledValue>,
}

/// One choice out of values, with the titles in a list beside them. Superseded in 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "string")]
pub struct LegacyTitledEnumSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// What people call them, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub enum_names: Vec<String>,
    /// What is chosen at first (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

fn read_content<'de, D>(deserializer: D) -> Result<Option<BTreeMap<String, ElicitValue>>, D::Error>
where
    D: Deserializer<'de>,
{
    // Forms of some hosts send null for what was left blank.
    let fields = Option::<BTreeMap<String, Option<ElicitValue>>>::deserialize(deserializer)?;
    Ok(fields.map(|fields| fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()))
}
