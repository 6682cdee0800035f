//! What a host lets a page do. It can take away from what a page declares, never add to it.

use linchpin_types::tool::Tool;
use serde::Deserialize;
use std::collections::BTreeSet;

/// What a host lets a page do. By default it may call no tool, open no link, and use no feature of the browser.
///
/// ```
/// use linchpin_apps::Grant;
///
/// let grant = Grant::new().links(true).features(["clipboard-write"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Grant {
    tools: BTreeSet<String>,
    origins: Option<BTreeSet<String>>,
    features: BTreeSet<String>,
    pub(crate) links: bool,
    pub(crate) messages: bool,
    pub(crate) resources: bool,
    pub(crate) frame_ancestors: Option<String>,
}

impl Grant {
    /// Nothing but what a page does inside of its frame.
    pub fn new() -> Grant {
        Grant::default()
    }

    /// Lets the page call those of its server's tools that are visible to apps. Tools of other servers must not be among them.
    pub fn tools<'a>(mut self, tools: impl IntoIterator<Item = &'a Tool>) -> Grant {
        self.tools.extend(tools.into_iter().filter(|tool| is_visible(tool, "app")).map(|tool| tool.name.clone()));
        self
    }

    /// Whether the page may read resources of its server.
    pub fn resources(mut self, on: bool) -> Grant {
        self.resources = on;
        self
    }

    /// Whether the page may ask to open links: the host asks the user each time.
    pub fn links(mut self, on: bool) -> Grant {
        self.links = on;
        self
    }

    /// Whether the page may write messages and context for the model: the host shows them to the user.
    pub fn messages(mut self, on: bool) -> Grant {
        self.messages = on;
        self
    }

    /// Restricts origins to these, of those that the page declares. Without it, all that it declares are allowed.
    pub fn origins<I>(mut self, origins: I) -> Grant
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.origins = Some(origins.into_iter().map(Into::into).collect());
        self
    }

    /// Allows features of the browser, of those that the page asks for: `camera`, `microphone`, `geolocation`, `clipboard-write`.
    pub fn features<I>(mut self, features: I) -> Grant
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.features.extend(features.into_iter().map(Into::into));
        self
    }

    /// Sets the origin that may frame the page: that of the sandbox. It is the host's own, and not checked.
    pub fn frame_ancestors(mut self, origin: impl Into<String>) -> Grant {
        self.frame_ancestors = Some(origin.into());
        self
    }

    pub(crate) fn allows_tool(&self, name: &str) -> bool {
        self.tools.contains(name)
    }

    pub(crate) fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    pub(crate) fn allows_origin(&self, origin: &str) -> bool {
        self.origins.as_ref().is_none_or(|allowed| allowed.contains(origin))
    }

    pub(crate) fn allows_feature(&self, feature: &str) -> bool {
        self.features.contains(feature)
    }
}

/// Whether a tool is for the model, or for the app. Without a word about it, for both.
pub(crate) fn is_visible(tool: &Tool, to: &str) -> bool {
    #[derive(Deserialize)]
    struct Ui {
        visibility: Option<Vec<String>>,
    }
    let said = tool.meta.as_ref().and_then(|meta| meta.get("ui"));
    match said.map(|ui| serde_json::from_str::<Ui>(ui.get())) {
        None => true,
        // What cannot be read is for nobody but the model.
        Some(Err(_)) => to == "model",
        Some(Ok(ui)) => ui.visibility.is_none_or(|visibility| visibility.iter().any(|who| who == to)),
    }
}
