//! One tab: navigation, evaluation, elements, input and pictures.

use crate::cdp::{CdpError, CdpSession};
use crate::egress::Egress;
use linchpin_kit::{ErrorKind, ToolError, clip, redact_urls};
use serde_json::{Value, json};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Most characters of a page's words in an error.
const WORDS_BYTES_MAX: usize = 2_000;
/// Most characters of a URL in a message.
const URL_CHARS_MAX: usize = 300;
/// How long a page that was busy too long may take to answer at all.
const PROBE_TIME: Duration = Duration::from_millis(1_500);
/// The name of the scripts' world: a page's own scripts cannot change what ours call there.
const WORLD: &str = "linchpin";

/// A tab. Cheap to clone; clones are the same tab.
#[derive(Clone)]
pub(crate) struct Page {
    inner: Arc<Inner>,
}

struct Inner {
    target: Arc<str>,
    session: CdpSession,
    state: Mutex<State>,
    /// The sessions of frames of other sites.
    frames: Mutex<Vec<CdpSession>>,
    dialog: watch::Sender<Option<Dialog>>,
    open: watch::Sender<bool>,
    /// Whether requests are answered with an empty page, without a network.
    seeding: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    url: String,
    /// The document of the main frame.
    loader: String,
    /// The status of the response that it came with.
    status: Option<(String, u16)>,
}

/// A dialog that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub(crate) kind: String,
    /// What it says.
    pub(crate) message: String,
    /// What a prompt proposes.
    pub(crate) proposal: String,
}

impl Dialog {
    /// Whether it may be accepted for anybody: to leave a page is what was asked for, and nothing else is confirmed.
    pub(crate) fn is_harmless(&self) -> bool {
        matches!(&*self.kind, "alert" | "beforeunload")
    }
}

/// Where a navigation ended.
#[derive(Debug, Clone)]
pub(crate) struct Navigated {
    /// After redirects.
    pub(crate) url: String,
    /// Of the response, over HTTP.
    pub(crate) status: Option<u16>,
}

/// An element of a page, as long as its document is there.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    session: CdpSession,
    object: String,
}

/// A rectangle in the viewport, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    /// Its left side.
    pub(crate) x: f64,
    /// Its upper side.
    pub(crate) y: f64,
    /// Its width.
    pub(crate) width: f64,
    /// Its height.
    pub(crate) height: f64,
}

impl Area {
    /// Its centre.
    pub(crate) fn centre(self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }
}

impl Page {
    pub(crate) fn new(target: impl Into<Arc<str>>, session: CdpSession, url: &str) -> Self {
        let state = State { url: url.to_owned(), ..State::default() };
        Self {
            inner: Arc::new(Inner {
                target: target.into(),
                session,
                state: Mutex::new(state),
                frames: Mutex::default(),
                dialog: watch::Sender::new(None),
                open: watch::Sender::new(true),
                seeding: AtomicBool::new(false),
            }),
        }
    }

    /// The id of its target.
    pub(crate) fn target(&self) -> &Arc<str> {
        &self.inner.target
    }

    /// The session of its main frame.
    pub(crate) fn cdp(&self) -> &CdpSession {
        &self.inner.session
    }

    /// The sessions of frames of other sites, in the order in which they appeared.
    pub(crate) fn frames(&self) -> Vec<CdpSession> {
        self.inner.frames.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        self.state().url.clone()
    }

    /// Whether it was neither closed nor has crashed.
    pub(crate) fn is_open(&self) -> bool {
        *self.inner.open.borrow() && self.cdp().cdp().is_open()
    }

    /// The dialog that waits for an answer; changes can be awaited.
    pub(crate) fn dialog(&self) -> watch::Receiver<Option<Dialog>> {
        self.inner.dialog.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // What happens in it, as the hook learns it.

    pub(crate) fn closed(&self) {
        self.inner.open.send_replace(false);
    }

    pub(crate) fn dialog_opened(&self, dialog: Option<Dialog>) {
        self.inner.dialog.send_replace(dialog);
    }

    pub(crate) fn navigated(&self, url: &str, loader: Option<&str>) {
        let mut state = self.state();
        url.clone_into(&mut state.url);
        if let Some(loader) = loader {
            loader.clone_into(&mut state.loader);
        }
    }

    pub(crate) fn responded(&self, loader: &str, status: u16) {
        self.state().status = Some((loader.to_owned(), status));
    }

    pub(crate) fn frame_attached(&self, session: CdpSession) {
        self.inner.frames.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    pub(crate) fn frame_detached(&self, id: &str) {
        let mut frames = self.inner.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.retain(|frame| frame.id().map(|own| &**own) != Some(id));
    }

    pub(crate) fn is_seeding(&self) -> bool {
        self.inner.seeding.load(Ordering::Relaxed)
    }

    pub(crate) fn seed(&self, on: bool) {
        self.inner.seeding.store(on, Ordering::Relaxed);
    }

    // What tools do with it.

    /// Opens a URL that was checked, and waits until it has loaded.
    ///
    /// # Errors
    /// When it cannot be reached, or is not allowed.
    pub(crate) async fn navigate(&self, url: &str, egress: &Egress) -> Result<Navigated, ToolError> {
        let mut events = self.cdp().events(&["Page.lifecycleEvent"]);
        // The tool has a limit; this one is only there because commands have one.
        let limit = Duration::from_secs(24 * 3_600);
        let answer = self.cdp().call_within("Page.navigate", json!({"url": url}), limit).await.map_err(page_error)?;
        if let Some(why) = answer["errorText"].as_str() {
            if answer["isDownload"] == true || why == "net::ERR_ABORTED" {
                return Err(ToolError::new(format!("{why} at {}", shown(url)))
                    .hint("The response is not a page: nothing was shown, and it was not saved unless the operator allows downloads."));
            }
            let failed = ToolError::new(format!("{why} at {}", shown(url)));
            return Err(match egress.refusal(url).filter(|_| REFUSALS.contains(&why)) {
                Some(why) => failed.kind(ErrorKind::Denied).hint(format!("Not allowed: {why}.")),
                None => failed.kind(ErrorKind::Upstream { status: None }),
            });
        }
        let frame = answer["frameId"].as_str().unwrap_or_default();
        // Without a loader it is the same document.
        if let Some(loader) = answer["loaderId"].as_str() {
            while let Some(event) = events.next().await {
                let params = &event.params;
                let of = params["loaderId"].as_str().unwrap_or_default();
                let is_ours = params["frameId"] == frame && (of == loader || of == self.state().loader);
                if is_ours && params["name"] == "load" {
                    break;
                }
            }
            if !self.is_open() {
                return Err(page_error(CdpError::Detached));
            }
        }
        let state = self.state();
        let status = state.status.as_ref().filter(|(loader, _)| *loader == state.loader).map(|(_, status)| *status);
        Ok(Navigated { url: state.url.clone(), status })
    }

    /// Runs a script of the caller in the page, as its console would, and waits for promises: `Runtime.evaluate`.
    ///
    /// # Errors
    /// When the page is gone. What the script throws is in the result.
    pub(crate) async fn evaluate(&self, script: &str) -> Result<Value, ToolError> {
        let params = json!({
            "expression": script,
            "returnByValue": true,
            "awaitPromise": true,
            "userGesture": true,
            "allowUnsafeEvalBlockedByCSP": true,
        });
        let limit = Duration::from_secs(24 * 3_600);
        self.cdp().call_within("Runtime.evaluate", params, limit).await.map_err(page_error)
    }

    /// The first element that matches a CSS selector.
    ///
    /// # Errors
    /// When the selector is invalid, or the page is gone.
    pub(crate) async fn query(&self, selector: &str) -> Result<Option<Element>, ToolError> {
        let context = self.world().await?;
        let function = "function(selector) { return document.querySelector(selector) }";
        let answer = self
            .cdp()
            .call(
                "Runtime.callFunctionOn",
                json!({
                    "functionDeclaration": function,
                    "executionContextId": context,
                    "arguments": [{"value": selector}],
                }),
            )
            .await
            .map_err(page_error)?;
        if answer["exceptionDetails"].is_object() {
            return Err(ToolError::invalid(format!("{selector} is not a valid selector")));
        }
        let object = answer["result"]["objectId"].as_str();
        Ok(object.map(|object| Element { session: self.cdp().clone(), object: object.to_owned() }))
    }

    /// The world of our scripts in the main frame.
    async fn world(&self) -> Result<Value, ToolError> {
        let frame = self.inner.target.clone();
        let params = json!({"frameId": &*frame, "worldName": WORLD});
        let answer = self.cdp().call("Page.createIsolatedWorld", params).await.map_err(page_error)?;
        Ok(answer["executionContextId"].clone())
    }

    /// Moves the mouse.
    ///
    /// # Errors
    /// When the page is gone.
    pub(crate) async fn move_mouse(&self, (x, y): (f64, f64)) -> Result<(), ToolError> {
        self.mouse(json!({"type": "mouseMoved", "x": x, "y": y})).await
    }

    /// Moves the mouse and clicks.
    ///
    /// # Errors
    /// When the page is gone.
    pub(crate) async fn click(&self, (x, y): (f64, f64)) -> Result<(), ToolError> {
        self.move_mouse((x, y)).await?;
        let button = |kind, buttons| json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
        self.mouse(button("mousePressed", 1)).await?;
        self.mouse(button("mouseReleased", 0)).await
    }

    async fn mouse(&self, params: Value) -> Result<(), ToolError> {
        match self.cdp().call("Input.dispatchMouseEvent", params).await {
            // A click may close its page.
            Ok(_) | Err(CdpError::Detached) => Ok(()),
            Err(e) => Err(page_error(e)),
        }
    }

    /// Types a text where the focus is, as an input method does.
    ///
    /// # Errors
    /// When the page is gone.
    pub(crate) async fn insert_text(&self, text: &str) -> Result<(), ToolError> {
        self.cdp().call("Input.insertText", json!({"text": text})).await.map(drop).map_err(page_error)
    }

    /// Presses and releases a key that is not a character: its name, its code, its number in Windows.
    ///
    /// # Errors
    /// When the page is gone.
    pub(crate) async fn press(&self, key: &str, code: &str, number: u32) -> Result<(), ToolError> {
        for kind in ["rawKeyDown", "keyUp"] {
            let params = json!({"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number});
            self.cdp().call("Input.dispatchKeyEvent", params).await.map_err(page_error)?;
        }
        Ok(())
    }

    /// Sets the size of the viewport.
    ///
    /// # Errors
    /// When the page is gone.
    pub(crate) async fn resize(&self, width: u32, height: u32) -> Result<(), ToolError> {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.cdp().call("Emulation.setDeviceMetricsOverride", params).await.map(drop).map_err(page_error)
    }

    /// A picture of the viewport, or of this part of it and what is beyond: PNG in base64.
    ///
    /// # Errors
    /// When the page is gone, or the picture is too large.
    pub(crate) async fn screenshot(&self, area: Option<Area>) -> Result<String, ToolError> {
        let mut params = json!({"format": "png"});
        if let Some(area) = area {
            let metrics = self.cdp().call("Page.getLayoutMetrics", json!({})).await.map_err(page_error)?;
            let scrolled = |side: &str| metrics["cssVisualViewport"][side].as_f64().unwrap_or(0.0);
            let (x, y) = (area.x + scrolled("pageX"), area.y + scrolled("pageY"));
            params["clip"] = json!({"x": x, "y": y, "width": area.width, "height": area.height, "scale": 1});
            params["captureBeyondViewport"] = json!(true);
        }
        let answer = self.cdp().call("Page.captureScreenshot", params).await.map_err(page_error)?;
        match answer["data"].as_str() {
            Some(data) if !data.is_empty() => Ok(data.to_owned()),
            _ => Err(ToolError::new("The browser returned no image")),
        }
    }

    /// Answers the dialog that waits.
    pub(crate) fn answer_dialog(&self, accept: bool, text: Option<&str>) {
        self.cdp()
            .post("Page.handleJavaScriptDialog", json!({"accept": accept, "promptText": text.unwrap_or_default()}));
    }

    /// Stops what keeps the page busy, as far as that is possible; whether it answers then.
    pub(crate) async fn revive(&self) -> bool {
        if !self.is_open() {
            return false;
        }
        self.cdp().post("Page.stopLoading", json!({}));
        self.cdp().post("Runtime.terminateExecution", json!({}));
        let probe = json!({"expression": "1", "returnByValue": true});
        self.cdp().call_within("Runtime.evaluate", probe, PROBE_TIME).await.is_ok()
    }

    /// Closes it: from now on it counts as closed.
    pub(crate) fn close(&self) {
        self.closed();
        self.cdp().cdp().browser().post("Target.closeTarget", json!({"targetId": &**self.target()}));
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("target", self.target()).field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Element {
    /// Calls a function with it as `this`, in the world of our scripts; its result by value.
    ///
    /// # Errors
    /// When it throws, or the page is gone.
    pub(crate) async fn call(&self, function: &str, arguments: &[Value]) -> Result<Value, ToolError> {
        let arguments: Vec<Value> = arguments.iter().map(|value| json!({"value": value})).collect();
        let params = json!({
            "functionDeclaration": function,
            "objectId": self.object,
            "arguments": arguments,
            "returnByValue": true,
            "awaitPromise": true,
            "userGesture": true,
        });
        let mut answer = self.session.call("Runtime.callFunctionOn", params).await.map_err(page_error)?;
        match thrown(&answer) {
            Some(why) => Err(ToolError::new("The element could not be used").detail(why)),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// Scrolls it into view and returns where it is.
    ///
    /// # Errors
    /// When it is not visible.
    pub(crate) async fn area(&self) -> Result<Area, ToolError> {
        let hidden = || {
            ToolError::new("Node is either not clickable or not an Element")
                .hint("It is not visible: it may need another element to be opened first.")
        };
        let this = json!({"objectId": self.object});
        match self.session.call("DOM.scrollIntoViewIfNeeded", this.clone()).await {
            Ok(_) => {}
            Err(CdpError::Refused(_)) => return Err(hidden()),
            Err(e) => return Err(page_error(e)),
        }
        let answer = match self.session.call("DOM.getContentQuads", this).await {
            Ok(answer) => answer,
            Err(CdpError::Refused(_)) => return Err(hidden()),
            Err(e) => return Err(page_error(e)),
        };
        let quads = answer["quads"].as_array().map(Vec::as_slice).unwrap_or_default();
        quads.iter().filter_map(bounds).find(|area| area.width * area.height > 0.5).ok_or_else(hidden)
    }
}

/// The rectangle around four points.
fn bounds(quad: &Value) -> Option<Area> {
    let numbers: Vec<f64> = quad.as_array()?.iter().filter_map(Value::as_f64).collect();
    let (xs, ys): (Vec<f64>, Vec<f64>) = numbers.chunks_exact(2).map(|point| (point[0], point[1])).unzip();
    let least = |values: &[f64]| values.iter().copied().reduce(f64::min);
    let most = |values: &[f64]| values.iter().copied().reduce(f64::max);
    let (x, y) = (least(&xs)?, least(&ys)?);
    Some(Area { x, y, width: most(&xs)? - x, height: most(&ys)? - y })
}

/// What a script threw: its message, without the stack.
pub(crate) fn thrown(answer: &Value) -> Option<String> {
    let details = answer.get("exceptionDetails").filter(|details| details.is_object())?;
    let exception = &details["exception"];
    let text = match exception["description"].as_str() {
        Some(description) => {
            let message = description.split("\n    at ").next().unwrap_or(description);
            let class = exception["className"].as_str().unwrap_or("Error");
            message.strip_prefix(class).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message).to_owned()
        }
        None if exception["value"].is_string() => exception["value"].as_str().unwrap_or_default().to_owned(),
        None if exception.get("value").is_some() => exception["value"].to_string(),
        None => details["text"].as_str().unwrap_or("it failed").to_owned(),
    };
    Some(clip(&text, WORDS_BYTES_MAX).text.to_owned())
}

/// The network's errors with which a refused connection ends.
const REFUSALS: &[&str] =
    &["net::ERR_BLOCKED_BY_CLIENT", "net::ERR_EMPTY_RESPONSE", "net::ERR_TUNNEL_CONNECTION_FAILED"];

/// A URL in a message: without credentials, and not endless.
pub(crate) fn shown(url: &str) -> String {
    let short: String = url.chars().take(URL_CHARS_MAX).collect();
    redact_urls(&short)
}

/// The error of a command.
pub(crate) fn page_error(error: CdpError) -> ToolError {
    match error {
        CdpError::Closed => ToolError::new("The browser has ended")
            .kind(ErrorKind::Upstream { status: None })
            .hint("Call the tool again: a new one is started."),
        CdpError::Detached => ToolError::new("The page was closed or has crashed")
            .kind(ErrorKind::Upstream { status: None })
            .hint("Navigate again."),
        CdpError::Timeout(_) => ToolError::new("The page did not answer in time").kind(ErrorKind::Timeout),
        CdpError::TooLarge => ToolError::new("The result is too large").hint("Ask for less."),
        CdpError::Refused(why) | CdpError::Invalid(why) => ToolError::new("The browser refused").detail(why),
    }
}
