//! The definition of a page, as the server sends it.

use linchpin_types::meta::Meta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The media type of pages.
pub const PAGE_TYPE: &str = "text/html;profile=mcp-app";

/// Maximum bytes of a page.
pub const PAGE_BYTES_MAX: usize = 2 << 20;

/// The member `ui` of a page's `_meta`.
///
/// ```
/// use linchpin_apps::PageMeta;
///
/// let meta: PageMeta = serde_json::from_str(r#"{"csp":{"connectDomains":["https://api.example.com"]}}"#).unwrap();
/// assert_eq!(meta.csp.connect_domains, ["https://api.example.com"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PageMeta {
    /// The origins that the page needs.
    #[serde(skip_serializing_if = "Csp::is_empty")]
    pub csp: Csp,
    /// The browser features that the page needs.
    #[serde(skip_serializing_if = "Permissions::is_empty")]
    pub permissions: Permissions,
    /// The dedicated origin that the page requests, in the form that the host documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Whether the host should draw a border and a background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefers_border: Option<bool>,
}

impl PageMeta {
    /// Reads the member from the `_meta` of resource contents or of a listed resource. Returns `None` if it is missing
    /// or malformed.
    ///
    /// Contents take precedence; use the listed resource only if the contents do not have it.
    pub fn of(meta: Option<&Meta>) -> Option<PageMeta> {
        meta?.get_as("ui").ok().flatten()
    }
}

/// The origins that a page declares. Others are not allowed.
///
/// ```
/// use linchpin_apps::Csp;
///
/// let csp: Csp = serde_json::from_str(r#"{"resourceDomains":["https://cdn.example.com"]}"#).unwrap();
/// assert!(csp.connect_domains.is_empty() && csp.resource_domains == ["https://cdn.example.com"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Csp {
    /// Origins for requests: `fetch`, WebSockets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect_domains: Vec<String>,
    /// Origins for scripts, styles, images, fonts and media.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_domains: Vec<String>,
    /// Origins for frames inside the page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frame_domains: Vec<String>,
    /// Origins for the base URI of the document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub base_uri_domains: Vec<String>,
}

impl Csp {
    fn is_empty(&self) -> bool {
        *self == Csp::default()
    }
}

/// The browser features that a page requests. Each is an object, so far without members.
///
/// ```
/// use linchpin_apps::Permissions;
///
/// let permissions: Permissions = serde_json::from_str(r#"{"clipboardWrite":{}}"#).unwrap();
/// assert!(permissions.clipboard_write.is_some() && permissions.camera.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Permissions {
    /// The camera.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub camera: Option<Map<String, Value>>,
    /// The microphone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microphone: Option<Map<String, Value>>,
    /// The location.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geolocation: Option<Map<String, Value>>,
    /// Writing to the clipboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clipboard_write: Option<Map<String, Value>>,
}

impl Permissions {
    fn is_empty(&self) -> bool {
        *self == Permissions::default()
    }

    /// The names of what is asked for, as browsers have them in `allow`.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.camera.is_some(), "camera"),
            (self.microphone.is_some(), "microphone"),
            (self.geolocation.is_some(), "geolocation"),
            (self.clipboard_write.is_some(), "clipboard-write"),
        ];
        all.into_iter().filter_map(|(asked, name)| asked.then_some(name))
    }
}

/// Returns whether contents can be shown as a page: their type is exactly [`PAGE_TYPE`], they begin like HTML, and are not
/// larger than [`PAGE_BYTES_MAX`]. Otherwise the host shows the tool's text.
///
/// ```
/// use linchpin_apps::{PAGE_TYPE, is_page};
///
/// assert!(is_page(Some(PAGE_TYPE), "<!doctype html><p>Hello"));
/// assert!(!is_page(Some("text/html"), "<!doctype html><p>Hello") && !is_page(Some(PAGE_TYPE), ""));
/// ```
pub fn is_page(media_type: Option<&str>, text: &str) -> bool {
    media_type == Some(PAGE_TYPE) && text.len() <= PAGE_BYTES_MAX && begins_like_html(text)
}

/// `<!doctype html` or `<html`, after spaces and comments.
fn begins_like_html(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(comment) = rest.strip_prefix("<!--") {
        let Some((_, after)) = comment.split_once("-->") else { return false };
        rest = after.trim_start();
    }
    let begins = |with: &str| rest.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    begins("<!doctype html") || begins("<html")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_html_of_the_right_type_and_size_is_a_page() {
        let long = format!("<!doctype html>{}", "x".repeat(PAGE_BYTES_MAX));
        for (text, fits) in [
            ("<!DOCTYPE html>", true),
            ("\u{feff}\n <!-- a --> <!---->\n<HTML lang=en>", true),
            ("", false),
            ("<svg>", false),
            ("hello <html>", false),
            ("<!-- <html>", false),
            (&long, false),
        ] {
            assert_eq!(is_page(Some(PAGE_TYPE), text), fits, "{:.40}", text);
        }
        for kind in [None, Some("text/html"), Some("text/html; profile=mcp-app"), Some("TEXT/HTML;profile=mcp-app")] {
            assert!(!is_page(kind, "<html>"), "{kind:?}");
        }
    }

    #[test]
    fn what_a_page_says_is_written_as_the_specification_has_it() {
        let json = json!({
            "csp": { "connectDomains": ["https://a.example"], "baseUriDomains": ["https://b.example"] },
            "permissions": { "camera": {}, "clipboardWrite": {} }, "domain": "x", "prefersBorder": true,
        });
        let meta: PageMeta = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&meta).unwrap(), json);
        assert_eq!(meta.permissions.names().collect::<Vec<_>>(), ["camera", "clipboard-write"]);
        assert_eq!(serde_json::to_value(PageMeta::default()).unwrap(), json!({}));
    }
}
