//! What `Accessibility.getFullAXTree` returns.

use serde::Deserialize;
use serde_json::Value;

/// A frame and its accessibility tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    /// The browser's id of the frame.
    pub(crate) id: String,
    /// The id of the document in it (`loaderId`).
    pub(crate) document: String,
    /// The URL of that document.
    pub(crate) url: String,
    /// The frame and the node of the `<iframe>` that shows it; none for the main frame.
    pub(crate) owner: Option<(String, i64)>,
    /// The nodes, the root first.
    pub(crate) nodes: Vec<AxNode>,
}

/// The result of `Accessibility.getFullAXTree`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct AxTree {
    /// The nodes, the root first.
    pub(crate) nodes: Vec<AxNode>,
}

/// A node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AxNode {
    /// Its id, unique in its tree.
    pub(crate) node_id: String,
    /// Whether assistive technology is not told of it: hidden, or of no meaning. Its children may be told of.
    pub(crate) ignored: bool,
    role: Option<AxValue>,
    name: Option<AxValue>,
    value: Option<AxValue>,
    properties: Vec<AxProperty>,
    /// The ids of its children, in order.
    pub(crate) child_ids: Vec<String>,
    /// The DOM node; text boxes and the like have none.
    #[serde(rename = "backendDOMNodeId")]
    pub(crate) backend: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct AxValue {
    value: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct AxProperty {
    name: String,
    value: AxValue,
}

impl AxValue {
    fn text(&self) -> Option<String> {
        match self.value.as_ref()? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(yes) => Some(yes.to_string()),
            _ => None,
        }
    }
}

impl AxNode {
    /// Its role as the browser calls it; empty if it has none.
    pub(crate) fn role(&self) -> &str {
        self.role.as_ref().and_then(|role| role.value.as_ref()).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its accessible name.
    pub(crate) fn name(&self) -> &str {
        self.name.as_ref().and_then(|name| name.value.as_ref()).and_then(Value::as_str).unwrap_or_default()
    }

    /// What was entered or chosen in it.
    pub(crate) fn value(&self) -> Option<String> {
        self.value.as_ref().and_then(AxValue::text).filter(|value| !value.is_empty())
    }

    /// A property as text.
    pub(crate) fn property(&self, name: &str) -> Option<String> {
        self.properties.iter().find(|property| property.name == name)?.value.text()
    }

    /// Whether a property is true.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.property(name).is_some_and(|value| value == "true")
    }
}
