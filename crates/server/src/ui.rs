//! MCP Apps: tools that have a page, and for whom.
//!
//! Pages themselves are resources; `linchpin-apps` makes them.

use linchpin_core::Caller;
use linchpin_types::capability::extension;
use linchpin_types::meta::{IntoMeta as _, Meta};
use serde::Deserialize;
use serde_json::json;

/// The media type of pages.
pub(crate) const PAGE: &str = "text/html;profile=mcp-app";

/// Begins the URIs of pages.
pub(crate) const SCHEME: &str = "ui://";

/// For whom an item is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everybody, in one form.
    Alike,
    /// Everybody; clients that show pages are told of its page.
    WithPage,
    /// Clients that show pages.
    ToPages,
}

/// The page of a tool.
#[derive(Clone, Default)]
pub(crate) struct Ui {
    pub(crate) uri: Option<String>,
    /// `app` or `model`: who of the two may call it. Both without.
    pub(crate) only: Option<String>,
}

impl Ui {
    pub(crate) fn check(&self) -> Result<(), String> {
        match (&self.uri, self.only.as_deref()) {
            (_, Some(only)) if !["app", "model"].contains(&only) => {
                Err(format!("`visible` is \"app\" or \"model\", not {only:?}"))
            }
            (None, Some("app")) => Err("a tool for apps only needs its app: `ui = \"ui://…\"`".to_owned()),
            (Some(uri), _) if !uri.starts_with(SCHEME) => Err(format!("the URI of an app begins with `ui://`: {uri}")),
            _ => Ok(()),
        }
    }

    pub(crate) fn shown(&self) -> Shown {
        match (&self.uri, self.only.as_deref()) {
            (_, Some("app")) => Shown::ToPages,
            (None, None) => Shown::Alike,
            _ => Shown::WithPage,
        }
    }

    /// Adds what clients that show pages are told. Those with sessions are also told in the old way.
    pub(crate) fn add_to(&self, meta: &mut Option<Meta>, sessions: bool) {
        let mut ui = serde_json::Map::new();
        ui.extend(self.uri.as_ref().map(|uri| ("resourceUri".to_owned(), json!(uri))));
        ui.extend(self.only.as_ref().map(|only| ("visibility".to_owned(), json!([only]))));
        let mut all = json!({ "ui": ui });
        if let Some(uri) = self.uri.as_ref().filter(|_| sessions) {
            all["ui/resourceUri"] = json!(uri);
        }
        let meta = meta.get_or_insert_default();
        for (key, value) in all.into_meta().0 {
            meta.insert(key, value);
        }
    }
}

/// Whether a caller declares that it shows pages.
pub(crate) fn is_wanted_by(caller: &Caller) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        #[serde(default)]
        mime_types: Vec<String>,
    }
    let settings = caller.extension(extension::UI).and_then(|json| serde_json::from_str::<Settings>(json).ok());
    settings.is_some_and(|settings| settings.mime_types.iter().any(|kind| kind == PAGE))
}
