//! The permissions that a host grants to a page. They can restrict what a page declares, but not extend it.

use linchpin_types::tool::Tool;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The permissions that a host grants to a page. By default, it may not call tools, open links, or use browser features.
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
    /// Creates a grant without permissions: the page is confined to its frame.
    pub fn new() -> Grant {
        Grant::default()
    }

    /// Allows the page to call those of the given tools that are visible to apps. Pass only the tools of the page's own
    /// server.
    pub fn tools<'a>(mut self, tools: impl IntoIterator<Item = &'a Tool>) -> Grant {
        self.tools.extend(tools.into_iter().filter(|tool| is_visible(tool, "app")).map(|tool| tool.name.clone()));
        self
    }

    /// Sets whether the page may read resources of its server.
    pub fn resources(mut self, on: bool) -> Grant {
        self.resources = on;
        self
    }

    /// Sets whether the page may request to open links. The host asks the user each time.
    pub fn links(mut self, on: bool) -> Grant {
        self.links = on;
        self
    }

    /// Sets whether the page may send messages and context for the model. The host shows them to the user.
    pub fn messages(mut self, on: bool) -> Grant {
        self.messages = on;
        self
    }

    /// Restricts the origins that the page declares to these. By default, all declared origins are allowed.
    pub fn origins<I>(mut self, origins: I) -> Grant
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.origins = Some(origins.into_iter().map(Into::into).collect());
        self
    }

    /// Allows these browser features if the page requests them: `camera`, `microphone`, `geolocation`, `clipboard-write`.
    pub fn features<I>(mut self, features: I) -> Grant
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.features.extend(features.into_iter().map(Into::into));
        self
    }

    /// Sets the origin that may frame the page, which is the origin of the host's sandbox. It is not checked.
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
