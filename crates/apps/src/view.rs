//! A page that a host shows: handles its messages, without I/O.

use crate::definition::PageMeta;
use crate::grant::Grant;
use crate::message::{self, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, REFUSED};
use crate::policy::Policy;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Maximum bytes of a message of the page.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Maximum messages of the page in a second. One that sends more is cut off.
const MESSAGES_PER_S_MAX: usize = 100;
/// Maximum requests of the page that are not answered yet.
const REQUESTS_MAX: usize = 8;
/// Maximum messages that wait for the page's handshake.
const WAITING_MAX: usize = 256;
/// How long the page may take to end gracefully.
const TEARDOWN: Duration = Duration::from_secs(2);
/// The revision of the extension.
const VERSION: &str = "2026-01-26";

/// An action for the host, returned by the methods of [`View`].
///
/// ```
/// use linchpin_apps::Act;
///
/// // Describes some of the actions.
/// fn said(act: &Act) -> Option<String> {
///     match act {
///         Act::CallTool { name, .. } => Some(format!("calls {name}")),
///         Act::OpenLink { url, .. } => Some(format!("wants to open {url}")),
///         Act::Refused(why) => Some(format!("was refused: {why}")),
///         _ => None,
///     }
/// }
/// assert_eq!(said(&Act::Refused("too long".to_owned())).as_deref(), Some("was refused: too long"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Act {
    /// Send this message to the page.
    Send(String),
    /// Call a tool of the page's server, and pass the result to [`View::answer`] with this id.
    CallTool {
        /// The page's id.
        id: Value,
        /// The tool.
        name: String,
        /// Its arguments, an object.
        arguments: Map<String, Value>,
    },
    /// Read a resource of the page's server, and pass the result to [`View::answer`].
    ReadResource {
        /// The page's id.
        id: Value,
        /// The resource.
        uri: String,
    },
    /// Ask the user whether to open a link; then [`View::agree`] or [`View::refuse`].
    OpenLink {
        /// The page's id.
        id: Value,
        /// An `http` or `https` URL.
        url: String,
    },
    /// Add a message to the conversation if the user agrees; then [`View::agree`] or [`View::refuse`].
    Say {
        /// The page's id.
        id: Value,
        /// Its parameters: `role` and `content`.
        params: Box<RawValue>,
    },
    /// Keep this context for the model's next turn, replacing the previous one.
    ModelContext(Box<RawValue>),
    /// Change the display mode of the page if possible; then [`View::answer`] with `{"mode": …}`, the resulting mode.
    DisplayMode {
        /// The page's id.
        id: Value,
        /// `inline`, `fullscreen` or `pip`.
        mode: String,
    },
    /// The size of the page has changed, in pixels.
    Resize {
        /// The width, if the page sent it.
        width: Option<f64>,
        /// The height, if the page sent it.
        height: Option<f64>,
    },
    /// The page wrote this to the log.
    Log(Box<RawValue>),
    /// The handshake is complete: messages that were queued for the page follow.
    Ready,
    /// The page sent a message that is not allowed; the reason, for the log.
    Refused(String),
    /// Remove the page: it ended, or exceeded a limit.
    Remove,
}

/// A page that a host shows.
///
/// The host reads the page's resource, shows it in a sandboxed frame on another origin, with [`View::csp`] as its policy and
/// [`View::allow`] as the frame's permissions, and passes every message of the frame to [`View::receive`]. Messages to the page are
/// queued until it has completed its handshake. The page may use the methods of the specification that its [`Grant`] allows;
/// all other requests are refused.
///
/// ```
/// use linchpin_apps::{Act, Grant, PageMeta, View};
/// use std::time::Instant;
///
/// let mut view = View::new(&PageMeta::default(), Grant::new());
/// view.tell_input(&serde_json::json!({ "city": "Oslo" }));
/// let hello = r#"{"jsonrpc":"2.0","id":1,"method":"ui/initialize","params":{"protocolVersion":"2026-01-26"}}"#;
/// assert!(matches!(view.receive(Instant::now(), hello)[..], [Act::Send(_)]));
/// let ready = r#"{"jsonrpc":"2.0","method":"ui/notifications/initialized"}"#;
/// assert!(matches!(view.receive(Instant::now(), ready)[..], [Act::Ready, Act::Send(_)]));
/// ```
///
/// A host that is a web page itself shows the frame of the sandbox, which relays the messages; it must not pass messages
/// `ui/notifications/sandbox-…` to the view. Limits: 1 MiB per message, 100 messages per second, 8 concurrent requests.
#[derive(Debug)]
pub struct View {
    policy: Policy,
    grant: Grant,
    host: Value,
    context: Map<String, Value>,
    modes: Option<Vec<String>>,
    stage: Stage,
    /// What the page is told once it is ready.
    waiting: VecDeque<String>,
    /// The latest part of the arguments, for a page that is not ready.
    partial: Option<String>,
    input: bool,
    result: bool,
    /// Requests of the page that were not answered.
    open: HashMap<String, ()>,
    heard: VecDeque<Instant>,
    teardown: Option<(u64, Instant)>,
    requests: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Stage {
    New,
    Greeted,
    Ready,
    Gone,
}

impl View {
    /// Creates a view of a page with this `_meta.ui` and these permissions.
    pub fn new(meta: &PageMeta, grant: Grant) -> View {
        View {
            policy: Policy::of(meta, &grant),
            grant,
            host: json!({ "name": "linchpin", "version": env!("CARGO_PKG_VERSION") }),
            context: Map::new(),
            modes: None,
            stage: Stage::New,
            waiting: VecDeque::new(),
            partial: None,
            input: false,
            result: false,
            open: HashMap::new(),
            heard: VecDeque::new(),
            teardown: None,
            requests: 0,
        }
    }

    /// Sets the host's name and version, which are sent to the page.
    pub fn host(mut self, name: &str, version: &str) -> View {
        self.host = json!({ "name": name, "version": version });
        self
    }

    /// Returns the content security policy of the page.
    pub fn csp(&self) -> &str {
        &self.policy.text
    }

    /// Returns the value of the frame's attribute `allow`.
    pub fn allow(&self) -> &str {
        &self.policy.allow
    }

    /// Returns the declarations of the page that were dropped, for the log.
    pub fn dropped(&self) -> &[String] {
        &self.policy.dropped
    }

    /// Handles a message from the page that arrived at the time `now`.
    pub fn receive(&mut self, now: Instant, text: &str) -> Vec<Act> {
        if self.stage == Stage::Gone {
            return Vec::new();
        }
        while self.heard.front().is_some_and(|first| now.saturating_duration_since(*first) >= Duration::from_secs(1)) {
            self.heard.pop_front();
        }
        self.heard.push_back(now);
        if self.heard.len() > MESSAGES_PER_S_MAX {
            return self.cut(&format!("the page sends more than {MESSAGES_PER_S_MAX} messages a second"));
        }
        if text.len() > MESSAGE_BYTES_MAX {
            return self.cut(&format!("the page sends a message larger than {} MiB", MESSAGE_BYTES_MAX >> 20));
        }
        match Message::read(text) {
            None => vec![Act::Refused("the page sends something else than a message".to_owned())],
            Some(Message::Response { id }) => self.responded(&id),
            Some(Message::Notification { method, params }) => self.notified(&method, params),
            Some(Message::Request { id, method, params }) => self.asked(id, &method, params),
        }
    }

    fn cut(&mut self, why: &str) -> Vec<Act> {
        self.stage = Stage::Gone;
        self.waiting.clear();
        vec![Act::Refused(why.to_owned()), Act::Remove]
    }

    fn responded(&mut self, id: &Value) -> Vec<Act> {
        match self.teardown {
            Some((own, _)) if id.as_u64() == Some(own) => {
                self.stage = Stage::Gone;
                vec![Act::Remove]
            }
            _ => vec![Act::Refused(format!("the page answers a request that it never got: {id}"))],
        }
    }

    fn notified(&mut self, method: &str, params: Box<RawValue>) -> Vec<Act> {
        #[derive(Deserialize)]
        struct Size {
            width: Option<f64>,
            height: Option<f64>,
        }
        match (method, self.stage) {
            ("ui/notifications/initialized", Stage::Greeted) => {
                self.stage = Stage::Ready;
                let told = self.partial.take().into_iter().chain(self.waiting.drain(..));
                std::iter::once(Act::Ready).chain(told.map(Act::Send)).collect()
            }
            ("ui/notifications/size-changed", Stage::Ready) => match serde_json::from_str::<Size>(params.get()) {
                Ok(Size { width, height }) if [width, height].iter().flatten().all(|n| (0.0..=1e5).contains(n)) => {
                    vec![Act::Resize { width, height }]
                }
                _ => vec![Act::Refused("the page has an impossible size".to_owned())],
            },
            ("notifications/message", Stage::Ready) => vec![Act::Log(params)],
            _ => vec![Act::Refused(format!("the page sends `{}` where it must not", clip(method)))],
        }
    }

    fn asked(&mut self, id: Value, method: &str, params: Box<RawValue>) -> Vec<Act> {
        let refuse = |code: i32, why: &str| {
            vec![Act::Refused(format!("{}: {why}", clip(method))), Act::Send(message::error(&id, code, why))]
        };
        if self.open.contains_key(&id.to_string()) {
            return refuse(INVALID_REQUEST, "the id is in use");
        }
        match (method, self.stage) {
            ("ping", _) => return vec![Act::Send(message::result(&id, &json!({})))],
            ("ui/initialize", Stage::New) => return self.greeted(&id, &params),
            ("ui/initialize", _) => return refuse(INVALID_REQUEST, "the page is initialized already"),
            (_, Stage::New | Stage::Greeted) => return refuse(INVALID_REQUEST, "the page is not initialized yet"),
            _ => {}
        }
        if self.open.len() >= REQUESTS_MAX {
            return refuse(REFUSED, "too many requests at once; wait for answers");
        }
        match self.admit(&id, method, params) {
            Ok(Act::ModelContext(context)) => {
                vec![Act::ModelContext(context), Act::Send(message::result(&id, &json!({})))]
            }
            Ok(act) => {
                self.open.insert(id.to_string(), ());
                vec![act]
            }
            Err((code, why)) => refuse(code, &why),
        }
    }

    /// The request of a page that is ready, if it is one that it may make.
    fn admit(&self, id: &Value, method: &str, params: Box<RawValue>) -> Result<Act, (i32, String)> {
        fn read<'a, T: Deserialize<'a>>(params: &'a RawValue) -> Result<T, (i32, String)> {
            serde_json::from_str(params.get()).map_err(|_| (INVALID_PARAMS, "the parameters cannot be read".to_owned()))
        }
        #[derive(Deserialize)]
        struct Call {
            name: String,
            #[serde(default)]
            arguments: Option<Map<String, Value>>,
        }
        #[derive(Deserialize)]
        struct Read {
            uri: String,
        }
        #[derive(Deserialize)]
        struct Link {
            url: String,
        }
        #[derive(Deserialize)]
        struct Mode {
            mode: String,
        }
        let id = id.clone();
        let refused = |why: &str| Err((REFUSED, why.to_owned()));
        match method {
            "tools/call" => {
                let Call { name, arguments } = read(&params)?;
                match self.grant.allows_tool(&name) {
                    true => Ok(Act::CallTool { id, name, arguments: arguments.unwrap_or_default() }),
                    false => Err((INVALID_PARAMS, format!("no tool {} for this page", clip(&name)))),
                }
            }
            "resources/read" if self.grant.resources => Ok(Act::ReadResource { id, uri: read::<Read>(&params)?.uri }),
            "ui/open-link" if self.grant.links => {
                let Link { url } = read(&params)?;
                let web = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
                match web && url.len() <= 8_192 && !url.contains(|c: char| c.is_control() || c.is_whitespace()) {
                    true => Ok(Act::OpenLink { id, url }),
                    false => refused("only links of the web can be opened"),
                }
            }
            "ui/message" if self.grant.messages => Ok(Act::Say { id, params }),
            "ui/update-model-context" if self.grant.messages => Ok(Act::ModelContext(params)),
            "ui/request-display-mode" => {
                let Mode { mode } = read(&params)?;
                let known = ["inline", "fullscreen", "pip"].contains(&mode.as_str());
                match known && self.modes.as_ref().is_none_or(|modes| modes.contains(&mode)) {
                    true => Ok(Act::DisplayMode { id, mode }),
                    false => Err((INVALID_PARAMS, "a mode that the page did not declare".to_owned())),
                }
            }
            "resources/read" | "ui/open-link" | "ui/message" | "ui/update-model-context" => {
                refused("this host does not allow it")
            }
            _ => Err((METHOD_NOT_FOUND, format!("a page has no method {}", clip(method)))),
        }
    }

    fn greeted(&mut self, id: &Value, params: &RawValue) -> Vec<Act> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Hello {
            app_capabilities: Capabilities,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Capabilities {
            available_display_modes: Option<Vec<String>>,
        }
        let hello: Hello = serde_json::from_str(params.get()).unwrap_or_default();
        self.modes = hello.app_capabilities.available_display_modes;
        self.stage = Stage::Greeted;
        let mut capabilities = Map::from_iter([("logging".to_owned(), json!({}))]);
        for (has, name) in [
            (self.grant.links, "openLinks"),
            (self.grant.has_tools(), "serverTools"),
            (self.grant.resources, "serverResources"),
        ] {
            capabilities.extend(has.then(|| (name.to_owned(), json!({}))));
        }
        let result = json!({
            "protocolVersion": VERSION,
            "hostInfo": self.host,
            "hostCapabilities": capabilities,
            "hostContext": self.context,
        });
        vec![Act::Send(message::result(id, &result))]
    }

    /// Passes the page the result of its request: a call, a read, a change of the display mode. Has no effect if no
    /// request with this id is open.
    pub fn answer(&mut self, id: &Value, result: &RawValue) -> Vec<Act> {
        self.close(id, message::raw_result(id, result))
    }

    /// Passes the page the error of its request.
    pub fn fail(&mut self, id: &Value, code: i32, why: &str) -> Vec<Act> {
        self.close(id, message::error(id, code, why))
    }

    /// Responds to the page that its request was carried out.
    pub fn agree(&mut self, id: &Value) -> Vec<Act> {
        self.close(id, message::result(id, &json!({})))
    }

    /// Responds to the page that the user or the host refused its request.
    pub fn refuse(&mut self, id: &Value) -> Vec<Act> {
        self.fail(id, REFUSED, "refused")
    }

    fn close(&mut self, id: &Value, answer: String) -> Vec<Act> {
        match self.open.remove(&id.to_string()) {
            Some(()) if self.stage == Stage::Ready => vec![Act::Send(answer)],
            _ => Vec::new(),
        }
    }

    /// Sends the page partial arguments of its tool, while the model is still generating them. Has no effect after
    /// [`View::tell_input`].
    pub fn tell_partial(&mut self, arguments: &Value) -> Vec<Act> {
        if self.input {
            return Vec::new();
        }
        let Ok(params) = to_raw_value(&json!({ "arguments": arguments })) else { return Vec::new() };
        let text = message::notification("ui/notifications/tool-input-partial", &params);
        match self.stage {
            // Only the latest counts, and none takes the place of what must be told.
            Stage::New | Stage::Greeted => {
                self.partial = Some(text);
                Vec::new()
            }
            Stage::Ready | Stage::Gone => self.pass(text),
        }
    }

    /// Sends the page the arguments of its tool, once.
    pub fn tell_input(&mut self, arguments: &Value) -> Vec<Act> {
        if std::mem::replace(&mut self.input, true) {
            return Vec::new();
        }
        self.tell("ui/notifications/tool-input", &json!({ "arguments": arguments }))
    }

    /// Sends the page the result of its tool, a `CallToolResult`, once. If no arguments were sent before, empty ones are sent
    /// first.
    pub fn tell_result(&mut self, result: &RawValue) -> Vec<Act> {
        let mut acts = self.tell_input(&json!({}));
        if !std::mem::replace(&mut self.result, true) {
            acts.extend(self.pass(message::notification("ui/notifications/tool-result", result)));
        }
        acts
    }

    /// Notifies the page that the call of its tool was cancelled. Has no effect after `tell_result`.
    pub fn tell_cancelled(&mut self, reason: &str) -> Vec<Act> {
        if std::mem::replace(&mut self.result, true) {
            return Vec::new();
        }
        self.tell("ui/notifications/tool-cancelled", &json!({ "reason": reason }))
    }

    /// Sets members of the host's context: theme, locale, size. If the page already has the context, the changes are sent.
    pub fn context(&mut self, changed: &Map<String, Value>) -> Vec<Act> {
        self.context.extend(changed.iter().map(|(name, value)| (name.clone(), value.clone())));
        match self.stage {
            Stage::New => Vec::new(),
            _ => self.tell("ui/notifications/host-context-changed", &Value::Object(changed.clone())),
        }
    }

    /// Asks the page to shut down before it is removed. [`Act::Remove`] is returned when the page responds, or by
    /// [`View::tick`] at [`View::deadline`].
    pub fn teardown(&mut self, now: Instant, reason: &str) -> Vec<Act> {
        match (self.stage, self.teardown) {
            (Stage::Gone, _) | (_, Some(_)) => Vec::new(),
            (Stage::Ready, None) => {
                self.requests += 1;
                self.teardown = Some((self.requests, now + TEARDOWN));
                vec![Act::Send(message::request(self.requests, "ui/resource-teardown", &json!({ "reason": reason })))]
            }
            // A page that cannot be told cannot save anything either.
            _ => {
                self.stage = Stage::Gone;
                vec![Act::Remove]
            }
        }
    }

    /// Returns when [`View::tick`] must be called next, if at all.
    pub fn deadline(&self) -> Option<Instant> {
        self.teardown.filter(|_| self.stage != Stage::Gone).map(|(_, end)| end)
    }

    /// Removes a page that did not end in time.
    pub fn tick(&mut self, now: Instant) -> Vec<Act> {
        match self.deadline() {
            Some(end) if now >= end => {
                self.stage = Stage::Gone;
                vec![Act::Remove]
            }
            _ => Vec::new(),
        }
    }

    fn tell(&mut self, method: &str, params: &Value) -> Vec<Act> {
        match to_raw_value(params) {
            Ok(params) => self.pass(message::notification(method, &params)),
            Err(_) => Vec::new(),
        }
    }

    /// Sends a message now, or once the page is ready.
    fn pass(&mut self, text: String) -> Vec<Act> {
        match self.stage {
            Stage::Ready => vec![Act::Send(text)],
            Stage::Gone => Vec::new(),
            _ if self.waiting.len() >= WAITING_MAX => Vec::new(),
            _ => {
                self.waiting.push_back(text);
                Vec::new()
            }
        }
    }
}

/// Shortens what a page wrote before it is quoted.
fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
