//! The fields of a form that a server asks the user to fill in.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::read::{from_raw, null_is_default};
use crate::setters::setters;

/// The fields of a form: an object schema whose properties are all primitive.
///
/// ```
/// use linchpin_types::elicit::{NumberSchema, RequestedSchema, UntitledSingleSelectEnumSchema};
///
/// let form = RequestedSchema::new()
///     .with_field("size", UntitledSingleSelectEnumSchema::new(["S", "M", "L"]).with_default("M"))
///     .with_field("copies", NumberSchema::integer().with_minimum(1))
///     .with_required(["size"]);
/// assert!(form.properties.get("copies").is_some());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "object")]
#[non_exhaustive]
pub struct RequestedSchema {
    /// The dialect of the schema (2025-11-25 and later).
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The fields, in the order in which the user is to see them.
    #[serde(default)]
    pub properties: Properties,
    /// The fields that must be filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub required: Vec<String>,
}

impl RequestedSchema {
    /// A form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field after the others.
    #[must_use]
    pub fn with_field(mut self, name: impl Into<String>, field: impl Into<PrimitiveSchemaDefinition>) -> Self {
        self.properties.0.push((name.into(), field.into()));
        self
    }
}

setters!(RequestedSchema {
    /// Sets which fields are required.
    with_required = list required: String;
});

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
///
/// ```
/// use linchpin_types::elicit::{BooleanSchema, PrimitiveSchemaDefinition};
///
/// let field: PrimitiveSchemaDefinition = BooleanSchema::new().into();
/// assert_eq!(serde_json::to_string(&field).unwrap(), r#"{"type":"boolean"}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum PrimitiveSchemaDefinition {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A boolean.
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

macro_rules! fields {
    ($($schema:ident => $kind:ident;)+) => { $(
        impl From<$schema> for PrimitiveSchemaDefinition {
            fn from(schema: $schema) -> Self {
                PrimitiveSchemaDefinition::$kind(schema)
            }
        }
    )+ };
}

fields! {
    StringSchema => String;
    NumberSchema => Number;
    BooleanSchema => Boolean;
    UntitledSingleSelectEnumSchema => UntitledSingleSelectEnum;
    TitledSingleSelectEnumSchema => TitledSingleSelectEnum;
    UntitledMultiSelectEnumSchema => UntitledMultiSelectEnum;
    TitledMultiSelectEnumSchema => TitledMultiSelectEnum;
    LegacyTitledEnumSchema => LegacyTitledEnum;
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
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, StringSchema};
///
/// let form = RequestedSchema::new().with_field("value", StringSchema::new().with_title("Name").with_max_length(40_u64));
/// assert!(form.properties.get("value").is_some());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "string")]
#[non_exhaustive]
pub struct StringSchema {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Minimum length, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Maximum length, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// The format of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// The default value (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl StringSchema {
    /// Any text.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(StringSchema {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the minimum length in characters.
    with_min_length = some min_length: u64;
    /// Sets the maximum length in characters.
    with_max_length = some max_length: u64;
    /// Sets the format of the text.
    with_format = some format: StringFormat;
    /// Sets the default value.
    with_default = some default: String;
});

/// The format of a text field.
///
/// ```
/// use linchpin_types::elicit::{StringFormat, StringSchema};
///
/// let mail = StringSchema::new().with_format(StringFormat::Email);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, NumberSchema};
///
/// let form = RequestedSchema::new().with_field("value", NumberSchema::integer().with_minimum(1).with_maximum(10));
/// assert!(form.properties.get("value").is_some());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NumberSchema {
    /// Whether it must be whole.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The smallest allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<serde_json::Number>,
    /// The largest allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<serde_json::Number>,
    /// The default value (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Number>,
}

impl NumberSchema {
    /// Any number.
    pub fn number() -> Self {
        Self::default()
    }

    /// An integer.
    pub fn integer() -> Self {
        NumberSchema { kind: NumberKind::Integer, ..Default::default() }
    }
}

setters!(NumberSchema {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the minimum.
    with_minimum = some minimum: serde_json::Number;
    /// Sets the maximum.
    with_maximum = some maximum: serde_json::Number;
    /// Sets the default value.
    with_default = some default: serde_json::Number;
});

/// Whether a number must be whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NumberKind {
    /// Any number.
    #[default]
    Number,
    /// Whole numbers.
    Integer,
}

/// A boolean field of a form.
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, BooleanSchema};
///
/// let form = RequestedSchema::new().with_field("value", BooleanSchema::new().with_title("Send a copy?"));
/// assert!(form.properties.get("value").is_some());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "boolean")]
#[non_exhaustive]
pub struct BooleanSchema {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

impl BooleanSchema {
    /// A boolean.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(BooleanSchema {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the default value.
    with_default = some default: bool;
});

/// One choice out of values.
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, UntitledSingleSelectEnumSchema};
///
/// let form = RequestedSchema::new().with_field("value", UntitledSingleSelectEnumSchema::new(["red", "green"]));
/// assert!(form.properties.get("value").is_some());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
#[non_exhaustive]
pub struct UntitledSingleSelectEnumSchema {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// The default value (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl UntitledSingleSelectEnumSchema {
    /// One of these values.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), ..Default::default() }
    }
}

setters!(UntitledSingleSelectEnumSchema {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the default value.
    with_default = some default: String;
});

/// One choice out of values with titles (2025-11-25 and later).
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, TitledSingleSelectEnumSchema, TitledValue};
///
/// let form = RequestedSchema::new().with_field("value", TitledSingleSelectEnumSchema::new([TitledValue::new("r", "Red")]));
/// assert!(form.properties.get("value").is_some());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "string")]
#[non_exhaustive]
pub struct TitledSingleSelectEnumSchema {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values and their titles.
    pub one_of: Vec<TitledValue>,
    /// The default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl TitledSingleSelectEnumSchema {
    /// One of these values.
    pub fn new(one_of: impl IntoIterator<Item = TitledValue>) -> Self {
        Self { one_of: one_of.into_iter().collect(), ..Default::default() }
    }
}

setters!(TitledSingleSelectEnumSchema {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the default value.
    with_default = some default: String;
});

/// A value and what people call it (2025-11-25 and later).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TitledValue {
    /// The value.
    #[serde(rename = "const")]
    pub value: String,
    /// The display name.
    pub title: String,
}

impl TitledValue {
    /// A value and what people call it.
    pub fn new(value: impl Into<String>, title: impl Into<String>) -> Self {
        TitledValue { value: value.into(), title: title.into() }
    }
}

/// Several choices out of values (2025-11-25 and later).
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, UntitledMultiSelectEnumSchema};
///
/// let form = RequestedSchema::new().with_field("value", UntitledMultiSelectEnumSchema::new(["red", "green"]));
/// assert!(form.properties.get("value").is_some());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "array")]
#[non_exhaustive]
pub struct UntitledMultiSelectEnumSchema {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Minimum number of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Maximum number of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values.
    pub items: UntitledItems,
    /// The default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

impl UntitledMultiSelectEnumSchema {
    /// Some of these values.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let items = UntitledItems { values: values.into_iter().map(Into::into).collect() };
        Self { items, ..Default::default() }
    }
}

setters!(UntitledMultiSelectEnumSchema {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the minimum number of choices.
    with_min_items = some min_items: u64;
    /// Sets the maximum number of choices.
    with_max_items = some max_items: u64;
    /// Sets the default choice (2025-11-25 and later).
    with_default = some_list default: String;
});

/// The values of an [`UntitledMultiSelectEnumSchema`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
#[non_exhaustive]
pub struct UntitledItems {
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
}

/// Several choices out of values with titles (2025-11-25 and later).
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, TitledMultiSelectEnumSchema, TitledValue};
///
/// let form = RequestedSchema::new().with_field("value", TitledMultiSelectEnumSchema::new([TitledValue::new("r", "Red")]));
/// assert!(form.properties.get("value").is_some());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "array")]
#[non_exhaustive]
pub struct TitledMultiSelectEnumSchema {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Minimum number of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Maximum number of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values and their titles.
    pub items: TitledItems,
    /// The default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

impl TitledMultiSelectEnumSchema {
    /// Some of these values.
    pub fn new(any_of: impl IntoIterator<Item = TitledValue>) -> Self {
        Self { items: TitledItems { any_of: any_of.into_iter().collect() }, ..Default::default() }
    }
}

setters!(TitledMultiSelectEnumSchema {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the minimum number of choices.
    with_min_items = some min_items: u64;
    /// Sets the maximum number of choices.
    with_max_items = some max_items: u64;
    /// Sets the default choice (2025-11-25 and later).
    with_default = some_list default: String;
});

/// The values of a [`TitledMultiSelectEnumSchema`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TitledItems {
    /// The values and their titles.
    pub any_of: Vec<TitledValue>,
}

/// One choice out of values, with the titles in a list beside them. Superseded in 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "string")]
#[non_exhaustive]
pub struct LegacyTitledEnumSchema {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// What people call them, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub enum_names: Vec<String>,
    /// The default value (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl LegacyTitledEnumSchema {
    /// One of these values, each with what people call it.
    pub fn new(values: impl IntoIterator<Item = TitledValue>) -> Self {
        let (values, enum_names) = values.into_iter().map(|titled| (titled.value, titled.title)).unzip();
        Self { values, enum_names, ..Default::default() }
    }
}

setters!(LegacyTitledEnumSchema {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the default value.
    with_default = some default: String;
});
