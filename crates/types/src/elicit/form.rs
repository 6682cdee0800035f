//! The fields of a form that a server asks the user to fill in.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::read::{by_raw, from_raw, null_is_default};
use crate::setters::setters;

/// The schema of a form: an object schema whose properties are all primitive.
///
/// # Example
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
    /// The fields, in the order in which the user sees them.
    #[serde(default)]
    pub properties: Properties,
    /// The names of the required fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub required: Vec<String>,
}

impl RequestedSchema {
    /// Creates a form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field to the form.
    #[must_use]
    pub fn with_field(mut self, name: impl Into<String>, field: impl Into<PrimitiveSchemaDefinition>) -> Self {
        self.properties.0.push((name.into(), field.into()));
        self
    }
}

setters!(RequestedSchema {
    /// Sets the names of the required fields.
    with_required = list required: String;
});

/// The names and schemas of the fields of a form, in their original order.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{BooleanSchema, Properties, StringSchema};
///
/// let fields: Properties = [
///     ("email".to_owned(), StringSchema::new().into()),
///     ("news".to_owned(), BooleanSchema::new().into()),
/// ]
/// .into_iter()
/// .collect();
/// assert_eq!(
///     serde_json::to_string(&fields).unwrap(),
///     r#"{"email":{"type":"string"},"news":{"type":"boolean"}}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties(pub Vec<(String, PrimitiveSchemaDefinition)>);

impl Properties {
    /// Returns the field with this name, or the last one if a peer sent several.
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

/// A field of a form.
///
/// # Example
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
    /// A single choice from a list of values.
    UntitledSingleSelectEnum(UntitledSingleSelectEnumSchema),
    /// A single choice from a list of values with titles (2025-11-25 and later).
    TitledSingleSelectEnum(TitledSingleSelectEnumSchema),
    /// Multiple choices from a list of values (2025-11-25 and later).
    UntitledMultiSelectEnum(UntitledMultiSelectEnumSchema),
    /// Multiple choices from a list of values with titles (2025-11-25 and later).
    TitledMultiSelectEnum(TitledMultiSelectEnumSchema),
    /// A single choice from a list of values, with a separate list of titles: the only kind with titles in 2025-06-18.
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
        by_raw(deserializer, PrimitiveSchemaDefinition::of)
    }
}

impl PrimitiveSchemaDefinition {
    fn of(raw: &RawValue) -> serde_json::Result<Self> {
        let probe: FieldProbe = from_raw(raw)?;
        match (probe.kind.as_str(), &probe) {
            ("string", FieldProbe { one_of: Some(_), .. }) => from_raw(raw).map(Self::TitledSingleSelectEnum),
            ("string", FieldProbe { enum_names: Some(_), .. }) => from_raw(raw).map(Self::LegacyTitledEnum),
            ("string", FieldProbe { values: Some(_), .. }) => from_raw(raw).map(Self::UntitledSingleSelectEnum),
            ("string", _) => from_raw(raw).map(Self::String),
            ("number" | "integer", _) => from_raw(raw).map(Self::Number),
            ("boolean", _) => from_raw(raw).map(Self::Boolean),
            ("array", FieldProbe { items: Some(ItemsProbe { any_of: Some(_) }), .. }) => {
                from_raw(raw).map(Self::TitledMultiSelectEnum)
            }
            ("array", _) => from_raw(raw).map(Self::UntitledMultiSelectEnum),
            _ => Err(serde_json::Error::custom(
                "type of a form field is none of string, number, integer, boolean and array",
            )),
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

/// A text field of a form.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, StringSchema};
///
/// let name = StringSchema::new().with_title("Name").with_max_length(40_u64);
/// let form = RequestedSchema::new().with_field("name", name);
/// assert!(form.properties.get("name").is_some());
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
    /// The minimum length in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// The maximum length in characters.
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
    /// Creates a field for any text.
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
/// # Example
///
/// ```
/// use linchpin_types::elicit::{StringFormat, StringSchema};
///
/// let mail = StringSchema::new().with_format(StringFormat::Email);
/// assert_eq!(serde_json::to_string(&mail).unwrap(), r#"{"type":"string","format":"email"}"#);
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

/// A number field of a form.
///
/// # Example
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
    /// Whether the number must be an integer.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<serde_json::Number>,
    /// The maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<serde_json::Number>,
    /// The default value (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Number>,
}

impl NumberSchema {
    /// Creates a field for any number.
    pub fn number() -> Self {
        Self::default()
    }

    /// Creates a field for an integer.
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

/// Whether a number must be an integer.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{NumberKind, NumberSchema};
///
/// let schema: NumberSchema = serde_json::from_str(r#"{"type":"integer"}"#).unwrap();
/// assert_eq!(schema.kind, NumberKind::Integer);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NumberKind {
    /// Any number.
    #[default]
    Number,
    /// An integer.
    Integer,
}

/// A boolean field of a form.
///
/// # Example
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
    /// Creates a boolean field.
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

/// A single choice from a list of values.
///
/// # Example
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
    /// Creates a field for one of these values.
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

/// A single choice from a list of values with titles (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, TitledSingleSelectEnumSchema, TitledValue};
///
/// let colors = [TitledValue::new("r", "Red"), TitledValue::new("g", "Green")];
/// let form = RequestedSchema::new().with_field("color", TitledSingleSelectEnumSchema::new(colors));
/// assert!(form.properties.get("color").is_some());
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
    /// The values with their titles.
    pub one_of: Vec<TitledValue>,
    /// The default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl TitledSingleSelectEnumSchema {
    /// Creates a field for one of these values.
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

/// A value and its display name (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::TitledValue;
///
/// let value = TitledValue::new("r", "Red");
/// assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"const":"r","title":"Red"}"#);
/// ```
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
    /// Creates a value with this display name.
    pub fn new(value: impl Into<String>, title: impl Into<String>) -> Self {
        TitledValue { value: value.into(), title: title.into() }
    }
}

/// Multiple choices from a list of values (2025-11-25 and later).
///
/// # Example
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
    /// The minimum number of choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// The maximum number of choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values.
    pub items: UntitledItems,
    /// The default choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

impl UntitledMultiSelectEnumSchema {
    /// Creates a field for any number of these values.
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
    /// Sets the default choices.
    with_default = some_list default: String;
});

/// The values of an [`UntitledMultiSelectEnumSchema`].
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::UntitledMultiSelectEnumSchema;
///
/// let schema = UntitledMultiSelectEnumSchema::new(["red", "green"]);
/// assert_eq!(
///     serde_json::to_string(&schema.items).unwrap(),
///     r#"{"type":"string","enum":["red","green"]}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
#[non_exhaustive]
pub struct UntitledItems {
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
}

/// Multiple choices from a list of values with titles (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{RequestedSchema, TitledMultiSelectEnumSchema, TitledValue};
///
/// let colors = [TitledValue::new("r", "Red"), TitledValue::new("g", "Green")];
/// let form = RequestedSchema::new().with_field("colors", TitledMultiSelectEnumSchema::new(colors));
/// assert!(form.properties.get("colors").is_some());
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
    /// The minimum number of choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// The maximum number of choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values with their titles.
    pub items: TitledItems,
    /// The default choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

impl TitledMultiSelectEnumSchema {
    /// Creates a field for any number of these values.
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
    /// Sets the default choices.
    with_default = some_list default: String;
});

/// The values of a [`TitledMultiSelectEnumSchema`].
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{TitledMultiSelectEnumSchema, TitledValue};
///
/// let schema = TitledMultiSelectEnumSchema::new([TitledValue::new("r", "Red")]);
/// assert_eq!(
///     serde_json::to_string(&schema.items).unwrap(),
///     r#"{"anyOf":[{"const":"r","title":"Red"}]}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TitledItems {
    /// The values with their titles.
    pub any_of: Vec<TitledValue>,
}

/// A single choice from a list of values, with a separate list of titles. It is superseded by
/// [`TitledSingleSelectEnumSchema`] in 2025-11-25.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{LegacyTitledEnumSchema, TitledValue};
///
/// let values = [TitledValue::new("r", "Red"), TitledValue::new("g", "Green")];
/// assert_eq!(
///     serde_json::to_string(&LegacyTitledEnumSchema::new(values)).unwrap(),
///     r#"{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}"#,
/// );
/// ```
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
    /// The display names of the values, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub enum_names: Vec<String>,
    /// The default value (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl LegacyTitledEnumSchema {
    /// Creates a field for one of these values with display names.
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
