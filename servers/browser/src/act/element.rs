//! An element of a page: found by its DOM node, checked before it is used.

use crate::cdp::{CdpError, CdpSession};
use linchpin_kit::{ErrorKind, ToolError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Functions that run in the page, in a world of their own: the page's scripts can change nothing of what they use.
const READY: &str = include_str!("ready.js");
const FILL: &str = include_str!("fill.js");
const SELECT: &str = include_str!("select.js");
const OWNER: &str = include_str!("owner.js");
/// The name of that world.
const WORLD: &str = "linchpin";

/// How long an element may take until it can be used.
pub(crate) const READY_TIME: Duration = Duration::from_secs(3);
/// What a function may take beside waiting.
const CALL_TIME: Duration = Duration::from_secs(10);

/// An element, held for one call.
#[derive(Debug)]
pub(crate) struct Element {
    session: CdpSession,
    object: String,
    /// The DOM node.
    pub(crate) backend: i64,
}

impl Drop for Element {
    fn drop(&mut self) {
        self.session.post("Runtime.releaseObject", json!({ "objectId": self.object }));
    }
}

/// What must be true of an element before it is used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs {
    /// It is not disabled.
    pub(crate) enabled: bool,
    /// It takes text.
    pub(crate) editable: bool,
    /// It does not move.
    pub(crate) still: bool,
    /// Nothing covers it.
    pub(crate) hit: bool,
}

impl Needs {
    /// To be clicked.
    pub(crate) const CLICK: Self = Self { enabled: true, editable: false, still: true, hit: true };
    /// To have the pointer over it.
    pub(crate) const HOVER: Self = Self { enabled: false, editable: false, still: true, hit: true };
    /// To be typed into.
    pub(crate) const TEXT: Self = Self { enabled: true, editable: true, still: false, hit: false };
    /// To be seen.
    pub(crate) const SEEN: Self = Self { enabled: false, editable: false, still: true, hit: false };
}

/// Where an element is, in its frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Where to click.
    pub(crate) x: f64,
    /// Where to click.
    pub(crate) y: f64,
    /// Left, top, width, height.
    pub(crate) area: [f64; 4],
}

#[derive(Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
enum State {
    Ready {
        x: f64,
        y: f64,
        #[serde(rename = "box")]
        area: [f64; 4],
    },
    Gone,
    Option,
    Disabled,
    Readonly,
    Invisible,
    Outside,
    Moving,
    Covered {
        by: String,
    },
}

/// What became of a value for a field.
#[derive(Debug, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum Filled {
    /// The field has the focus, and all that is in it is selected.
    Selected {
        /// Whether nothing is in it.
        empty: bool,
    },
    /// The field has the value.
    Set,
    /// It takes values of its type only.
    Invalid {
        /// That type.
        r#type: String,
    },
    /// It takes no text.
    Refused {
        /// What it is.
        r#type: String,
    },
    /// It is gone.
    Gone,
}

/// What became of options.
#[derive(Debug, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum Choice {
    /// They are selected.
    Selected,
    /// Some are not there.
    Missing {
        /// Those.
        missing: Vec<String>,
        /// The first of those that are there.
        options: Vec<String>,
    },
    /// They cannot be selected.
    Disabled {
        /// Those that are there.
        options: Vec<String>,
    },
    /// Only one can be.
    Single,
    /// It has no options.
    Refused,
    /// It is gone.
    Gone,
}

impl Element {
    /// Holds a DOM node of a frame. `None` if it is gone.
    ///
    /// # Errors
    /// When the browser is gone or does not answer.
    pub(crate) async fn hold(session: &CdpSession, frame: &str, backend: i64) -> Result<Option<Self>, CdpError> {
        let world =
            match session.call("Page.createIsolatedWorld", json!({ "frameId": frame, "worldName": WORLD })).await {
                Ok(world) => world["executionContextId"].clone(),
                Err(CdpError::Refused(_)) => return Ok(None),
                Err(e) => return Err(e),
            };
        Self::resolve(session, json!({ "backendNodeId": backend, "executionContextId": world }), backend).await
    }

    /// The same in the world of the page's own scripts.
    ///
    /// # Errors
    /// When the browser is gone or does not answer.
    pub(crate) async fn hold_in_page(session: &CdpSession, backend: i64) -> Result<Option<Self>, CdpError> {
        Self::resolve(session, json!({ "backendNodeId": backend }), backend).await
    }

    async fn resolve(session: &CdpSession, node: Value, backend: i64) -> Result<Option<Self>, CdpError> {
        let found = match session.call("DOM.resolveNode", node).await {
            Ok(found) => found,
            Err(CdpError::Refused(_)) => return Ok(None),
            Err(e) => return Err(e),
        };
        let Some(object) = found["object"]["objectId"].as_str() else { return Ok(None) };
        let element = Self { session: session.clone(), object: object.to_owned(), backend };
        // A removed node lives on as long as a script holds it.
        let connected: bool = element.call("function () { return this.isConnected; }", json!(null)).await?;
        Ok(connected.then_some(element))
    }

    /// The only element of a frame that matches a CSS selector.
    ///
    /// # Errors
    /// When several match, or it is not a selector.
    pub(crate) async fn query(session: &CdpSession, frame: &str, selector: &str) -> Result<Option<Self>, ToolError> {
        const QUERY: &str = "function (selector) {
            const found = document.querySelectorAll(selector);
            if (found.length > 1) throw found.length;
            return found[0] || null;
        }";
        let world = session.call("Page.createIsolatedWorld", json!({ "frameId": frame, "worldName": WORLD }));
        let world = world.await.map_err(|e| failed(&e))?;
        let params = json!({
            "functionDeclaration": QUERY,
            "executionContextId": world["executionContextId"],
            "arguments": [{ "value": selector }],
        });
        let answer = session.call("Runtime.callFunctionOn", params).await.map_err(|e| failed(&e))?;
        match answer.get("exceptionDetails").map(|thrown| &thrown["exception"]["value"]) {
            Some(Value::Number(count)) => {
                return Err(ToolError::invalid(format!("{count} elements match the selector"))
                    .hint("Use a reference of browser_snapshot, or a selector that only one element matches.")
                    .detail(selector));
            }
            Some(_) => {
                return Err(ToolError::invalid("The target is neither a reference nor a CSS selector")
                    .hint("Use a reference of browser_snapshot, such as e12.")
                    .detail(selector));
            }
            None => {}
        }
        let Some(object) = answer["result"]["objectId"].as_str() else { return Ok(None) };
        let node = session.call("DOM.describeNode", json!({ "objectId": object })).await.map_err(|e| failed(&e))?;
        let backend = node["node"]["backendNodeId"].as_i64().unwrap_or_default();
        Ok(Some(Self { session: session.clone(), object: object.to_owned(), backend }))
    }

    /// For an `<iframe>`: where a place in its document is in the document around it.
    ///
    /// # Errors
    /// When something covers it there.
    pub(crate) async fn around(&self, place: Place, hit: bool) -> Result<Place, ToolError> {
        #[derive(Deserialize)]
        struct Around {
            x: f64,
            y: f64,
            hit: bool,
        }
        let at: Around = self.call(OWNER, json!([place.x, place.y])).await.map_err(|e| failed(&e))?;
        if hit && !at.hit {
            return Err(ToolError::conflict("Another element covers the frame of the element")
                .hint("Close or scroll away what covers it, and try again."));
        }
        let [left, top, width, height] = place.area;
        let area = [left + at.x - place.x, top + at.y - place.y, width, height];
        Ok(Place { x: at.x, y: at.y, area })
    }

    /// Gives files to a field for files.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) async fn set_files(&self, files: &[PathBuf]) -> Result<(), CdpError> {
        let params = json!({ "files": files, "objectId": self.object });
        self.session.call("DOM.setFileInputFiles", params).await.map(drop)
    }

    /// The id of the object in the page.
    pub(crate) fn object(&self) -> &str {
        &self.object
    }

    /// Calls a function of ours on it.
    async fn call<T: DeserializeOwned>(&self, function: &str, argument: Value) -> Result<T, CdpError> {
        let params = json!({
            "functionDeclaration": function,
            "objectId": self.object,
            "arguments": [{ "value": argument }],
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
        });
        let answer = self.session.call_within("Runtime.callFunctionOn", params, READY_TIME + CALL_TIME).await?;
        if let Some(why) = answer.get("exceptionDetails") {
            let why = why["exception"]["description"].as_str().or(why["text"].as_str()).unwrap_or("a script failed");
            return Err(CdpError::Refused(why.to_owned()));
        }
        let value = answer.get("result").and_then(|result| result.get("value")).cloned().unwrap_or_default();
        serde_json::from_value(value).map_err(|e| CdpError::Invalid(e.to_string()))
    }

    /// Waits until it can be used, and returns where it is.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) async fn ready(&self, needs: Needs) -> Result<Place, ToolError> {
        let want = json!({
            "enabled": needs.enabled,
            "editable": needs.editable,
            "still": needs.still,
            "hit": needs.hit,
            "time": READY_TIME.as_millis() as u64,
        });
        let why = match self.call(READY, want).await.map_err(|e| failed(&e))? {
            State::Ready { x, y, area } => return Ok(Place { x, y, area }),
            State::Gone => return Err(gone()),
            State::Option => {
                return Err(ToolError::invalid("An option of a select element cannot be clicked")
                    .hint("Use browser_select_option on the select element."));
            }
            State::Disabled => "is disabled",
            State::Readonly => "is read-only",
            State::Invisible => "is not visible",
            State::Outside => "is outside of what can be scrolled to",
            State::Moving => "does not stop moving",
            State::Covered { by } => {
                return Err(ToolError::conflict("Another element covers the element")
                    .hint("Close or scroll away what covers it, and try again.")
                    .detail(format!("Covered by: {by}")));
            }
        };
        Err(ToolError::conflict(format!("The element {why}"))
            .hint("Take browser_snapshot to see the present state of the page."))
    }

    /// Prepares it for text, or gives it a value that is not typed.
    ///
    /// # Errors
    /// When the browser fails.
    pub(crate) async fn fill(&self, value: &str) -> Result<Filled, ToolError> {
        self.call(FILL, json!(value)).await.map_err(|e| failed(&e))
    }

    /// Selects options.
    ///
    /// # Errors
    /// When the browser fails.
    pub(crate) async fn select(&self, values: &[String]) -> Result<Choice, ToolError> {
        self.call(SELECT, json!(values)).await.map_err(|e| failed(&e))
    }

    /// Whether it is checked; `None` if it is nothing that can be.
    ///
    /// # Errors
    /// When the browser fails.
    pub(crate) async fn checked(&self) -> Result<Option<bool>, ToolError> {
        const CHECKED: &str = "function () {
            const field = this instanceof HTMLLabelElement && this.control || this;
            if ('checked' in field && typeof field.checked === 'boolean') return field.checked;
            const state = field.getAttribute && field.getAttribute('aria-checked');
            return state === null ? null : state === 'true';
        }";
        self.call(CHECKED, json!(null)).await.map_err(|e| failed(&e))
    }
}

/// The error for an element that went away while it was used.
pub(crate) fn gone() -> ToolError {
    ToolError::conflict("The element is no longer on the page").hint("Take browser_snapshot and use a reference of it.")
}

/// The error for a command that failed.
pub(crate) fn failed(error: &CdpError) -> ToolError {
    match error {
        CdpError::Timeout(_) => ToolError::new("The page does not answer")
            .kind(ErrorKind::Timeout)
            .hint("A script may keep it busy. Navigate elsewhere, or close the tab with browser_tabs."),
        CdpError::Closed => ToolError::new("The browser has ended").kind(ErrorKind::Upstream { status: None }),
        CdpError::Detached => {
            ToolError::conflict("The page was closed").hint("Use browser_tabs to see which are open.")
        }
        CdpError::TooLarge => ToolError::new("The page is too large").kind(ErrorKind::Limited { retry_after: None }),
        CdpError::Refused(why) => ToolError::new("The browser refused it").detail(why),
        CdpError::Invalid(why) => ToolError::new("The browser's answer was not understood").detail(why),
    }
}
