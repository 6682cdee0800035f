//! Cookies and local storage to start with, in the format of Playwright's `storageState`.

use linchpin_kit::{ToolError, io_text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// Longest file.
const BYTES_MAX: u64 = 16 << 20;

/// A state, as far as the browser can take it.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct StorageState {
    #[serde(default)]
    cookies: Vec<Cookie>,
    /// Local storage by origin.
    #[serde(default)]
    pub(crate) origins: Vec<Origin>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cookie {
    name: String,
    value: String,
    domain: String,
    #[serde(default = "root")]
    path: String,
    #[serde(default = "session")]
    expires: f64,
    #[serde(default)]
    http_only: bool,
    #[serde(default)]
    secure: bool,
    same_site: Option<String>,
}

fn root() -> String {
    "/".to_owned()
}

fn session() -> f64 {
    -1.0
}

/// The local storage of an origin.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origin {
    /// `https://example.com`
    pub(crate) origin: String,
    #[serde(default)]
    local_storage: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    name: String,
    value: String,
}

impl StorageState {
    /// Reads a file. Its values are secrets: no error has any of them.
    ///
    /// # Errors
    /// When it cannot be read, or is not one.
    pub(crate) fn read(file: &Path) -> Result<Self, ToolError> {
        let failed = |why: String| ToolError::new(format!("--storage-state {}: {why}", file.display()));
        let length = std::fs::metadata(file).map_err(|e| failed(io_text(&e)))?.len();
        if length > BYTES_MAX {
            return Err(failed(format!("it is longer than {BYTES_MAX} bytes")));
        }
        let text = std::fs::read(file).map_err(|e| failed(io_text(&e)))?;
        serde_json::from_slice(&text).map_err(|e| {
            failed(format!("it is not a storage state (line {}, column {})", e.line(), e.column()))
                .hint("Playwright writes one with `context.storageState({ path })`.")
        })
    }

    /// The cookies for `Storage.setCookies`.
    pub(crate) fn cookies(&self) -> Value {
        let cookie = |cookie: &Cookie| {
            let mut param = json!({
                "name": cookie.name, "value": cookie.value, "domain": cookie.domain, "path": cookie.path,
                "httpOnly": cookie.http_only, "secure": cookie.secure,
            });
            if cookie.expires >= 0.0 {
                param["expires"] = json!(cookie.expires);
            }
            if let Some(same_site) = &cookie.same_site {
                param["sameSite"] = json!(same_site);
            }
            param
        };
        self.cookies.iter().map(cookie).collect()
    }
}

impl Origin {
    /// A script that fills the local storage of its page.
    pub(crate) fn script(&self) -> String {
        let items: Vec<_> = self.local_storage.iter().map(|item| (&item.name, &item.value)).collect();
        format!("for (const [name, value] of {}) localStorage.setItem(name, value)", json!(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_playwright_writes_is_read() {
        let state: StorageState = serde_json::from_value(json!({
            "cookies": [{"name": "a", "value": "b", "domain": ".example.com", "path": "/", "expires": -1,
                "httpOnly": true, "secure": true, "sameSite": "Lax"}],
            "origins": [{"origin": "https://example.com", "localStorage": [{"name": "it's", "value": "\"</script>"}]}],
        }))
        .unwrap();
        let cookie = &state.cookies()[0];
        assert_eq!((&cookie["sameSite"], cookie.get("expires")), (&json!("Lax"), None));
        assert!(state.origins[0].script().contains(r#"[["it's","\"</script>"]]"#));
    }
}
