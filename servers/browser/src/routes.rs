//! What happens in a browser before anybody asks: new targets are confined before they run, requests are checked, the
//! proxy's credential is given, dialogs are answered, and what pages say is kept for the client that they belong to.

use crate::cdp::{Cdp, CdpSession, Event};
use crate::config::Viewport;
use crate::console::{self, Log};
use crate::downloads::Downloads;
use crate::egress::Egress;
use crate::page::{Dialog, Page, thrown};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// Most tabs of a client.
pub(crate) const PAGES_MAX: usize = 32;
/// Most bytes that the console of a document may fill before it is switched off until the next one.
const SAID_BYTES_MAX: usize = 4 << 20;
/// What a message costs beside its text.
const SAID_BYTES: usize = 500;

/// The tabs of one client, and what they say. Kept up to date by the browser's hook.
pub(crate) struct Tabs {
    list: Mutex<List>,
    /// Counts the changes of the list.
    changes: watch::Sender<u64>,
    /// What the tabs say and request.
    pub(crate) log: Arc<Log>,
    /// Whether dialogs wait for an answer of the client, instead of being answered at once.
    hold_dialogs: AtomicBool,
    /// Is called after each message of a console.
    heard: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct List {
    pages: Vec<Page>,
    active: Option<Arc<str>>,
}

impl Tabs {
    /// No tabs yet; `heard` is called, by the browser's reading task, after each message.
    pub(crate) fn new(log: Arc<Log>, heard: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            list: Mutex::default(),
            changes: watch::Sender::new(0),
            log,
            hold_dialogs: AtomicBool::new(false),
            heard: Box::new(heard),
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All tabs, in the order in which they were opened.
    pub(crate) fn pages(&self) -> Vec<Page> {
        self.list().pages.clone()
    }

    /// The tab that tools act on.
    pub(crate) fn active(&self) -> Option<Page> {
        let list = self.list();
        let active = list.pages.iter().find(|page| Some(page.target()) == list.active.as_ref());
        active.or(list.pages.last()).cloned()
    }

    /// Makes a tab the one that tools act on.
    pub(crate) fn select(&self, page: &Page) {
        self.list().active = Some(page.target().clone());
    }

    /// Is told of changes of the list.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Whether dialogs wait for an answer of the client; otherwise those that wait are answered.
    pub(crate) fn hold_dialogs(&self, hold: bool) {
        self.hold_dialogs.store(hold, Ordering::Relaxed);
        if !hold {
            for page in self.pages() {
                if let Some(dialog) = page.dialog().borrow().clone() {
                    page.answer_dialog(dialog.is_harmless(), None);
                }
            }
        }
    }

    fn add(&self, page: Page) {
        let mut list = self.list();
        // A popup is there for those who ask, and does not take the tools away.
        list.active.get_or_insert_with(|| page.target().clone());
        list.pages.push(page);
        drop(list);
        self.changes.send_modify(|count| *count += 1);
    }

    fn remove(&self, target: &str) {
        let mut list = self.list();
        list.pages.retain(|page| &**page.target() != target);
        if list.active.as_deref() == Some(target) {
            list.active = list.pages.last().map(|page| page.target().clone());
        }
        drop(list);
        self.changes.send_modify(|count| *count += 1);
    }

    fn say(&self, kind: &str, text: &str) {
        self.log.say(kind, text);
        (self.heard)();
    }
}

impl fmt::Debug for Tabs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tabs").field("pages", &self.pages()).finish_non_exhaustive()
    }
}

/// Whose what is in a browser.
pub(crate) struct Routes {
    egress: Arc<Egress>,
    viewport: Viewport,
    /// The proxy's address, user and password.
    proxy: (String, &'static str, String),
    downloads: Downloads,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the id of the browser's context; the empty one stands for all others.
    contexts: HashMap<String, Weak<Tabs>>,
    sessions: HashMap<Arc<str>, Owner>,
}

/// Whose a session is.
#[derive(Clone)]
struct Owner {
    tabs: Weak<Tabs>,
    /// The tab that it is in.
    page: Option<Page>,
    /// Whether it is the tab itself.
    is_page: bool,
    /// What its console cost since the last navigation.
    said: Arc<AtomicUsize>,
}

impl Routes {
    pub(crate) fn new(
        egress: Arc<Egress>,
        viewport: Viewport,
        proxy: (String, &'static str, String),
        downloads: Downloads,
    ) -> Self {
        Self { egress, viewport, proxy, downloads, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a context of the browser; `None` is its own one.
    pub(crate) fn add(&self, context: Option<&str>, tabs: &Arc<Tabs>) {
        self.known().contexts.insert(context.unwrap_or_default().to_owned(), Arc::downgrade(tabs));
    }

    /// Forgets a context; how many are left.
    pub(crate) fn remove(&self, context: Option<&str>) -> usize {
        let mut known = self.known();
        known.contexts.remove(context.unwrap_or_default());
        known.contexts.len()
    }

    /// Whether a context is there.
    pub(crate) fn has(&self, context: Option<&str>) -> bool {
        self.known().contexts.get(context.unwrap_or_default()).is_some_and(|tabs| tabs.strong_count() > 0)
    }

    fn owner(&self, session: Option<&Arc<str>>) -> Option<Owner> {
        self.known().sessions.get(session?).cloned()
    }

    /// The hook of the connection. Never waits.
    pub(crate) fn hear(&self, cdp: &Cdp, event: &mut Event) {
        if event.session.is_none() && event.method.starts_with("Browser.download") {
            return self.downloads.hear(&event.method, &mut event.params);
        }
        let params = &event.params;
        match &*event.method {
            "Target.attachedToTarget" => self.attached(cdp, event),
            "Target.detachedFromTarget" => self.detached(params["sessionId"].as_str().unwrap_or_default()),
            "Fetch.requestPaused" => self.request(cdp, event),
            "Fetch.authRequired" => self.credential(cdp, event),
            _ => {
                let Some(owner) = self.owner(event.session.as_ref()) else { return };
                let Some(tabs) = owner.tabs.upgrade() else { return };
                if &*event.method == "Runtime.consoleAPICalled" && !owner.may_say(cdp, event, &tabs) {
                    return;
                }
                owner.hear(&tabs, &event.method, params);
            }
        }
    }

    /// A new target waits until it is confined: the browser handles a session's commands in their order.
    fn attached(&self, cdp: &Cdp, event: &Event) {
        let (params, info) = (&event.params, &event.params["targetInfo"]);
        let (Some(id), Some(kind)) = (params["sessionId"].as_str(), info["type"].as_str()) else { return };
        let session = cdp.session(id);
        session.post("Fetch.enable", json!({"handleAuthRequests": true, "patterns": [{"urlPattern": "*"}]}));
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        session.post("Target.setAutoAttach", attach);
        session.post("Runtime.enable", json!({}));
        session.post("Network.enable", json!({"maxTotalBufferSize": 4 << 20, "maxResourceBufferSize": 1 << 20}));
        if matches!(kind, "page" | "iframe") {
            session.post("Page.enable", json!({}));
        }
        let owner = match self.owner(event.session.as_ref()) {
            Some(parent) => {
                if let (Some(page), "iframe") = (&parent.page, kind) {
                    page.frame_attached(session.clone());
                }
                Owner { is_page: false, said: Arc::default(), ..parent }
            }
            None => match self.top(session.clone(), info, kind == "page") {
                Some(owner) => owner,
                // It is never run.
                None => return cdp.browser().post("Target.closeTarget", json!({"targetId": info["targetId"]})),
            },
        };
        if let Some(id) = session.id() {
            self.known().sessions.insert(id.clone(), owner);
        }
        session.post("Runtime.runIfWaitingForDebugger", json!({}));
    }

    /// A target that is in no other one; `None` if it is one too many.
    fn top(&self, session: CdpSession, info: &Value, is_page: bool) -> Option<Owner> {
        let context = info["browserContextId"].as_str().unwrap_or_default();
        let tabs = {
            let known = self.known();
            known.contexts.get(context).or_else(|| known.contexts.get("")).cloned().unwrap_or_default()
        };
        if is_page && tabs.upgrade().is_some_and(|tabs| tabs.list().pages.len() >= PAGES_MAX) {
            return None;
        }
        let page = is_page.then(|| {
            session.post("Page.setLifecycleEventsEnabled", json!({"enabled": true}));
            let Viewport { width, height } = self.viewport;
            let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
            session.post("Emulation.setDeviceMetricsOverride", size);
            Page::new(info["targetId"].as_str().unwrap_or_default(), session, info["url"].as_str().unwrap_or_default())
        });
        if let (Some(page), Some(tabs)) = (&page, tabs.upgrade()) {
            tabs.add(page.clone());
        }
        Some(Owner { tabs, page, is_page, said: Arc::default() })
    }

    fn detached(&self, session: &str) {
        let Some(owner) = self.known().sessions.remove(session) else { return };
        match owner.page {
            Some(page) if owner.is_page => {
                page.closed();
                page.dialog_opened(None);
                if let Some(tabs) = owner.tabs.upgrade() {
                    tabs.remove(page.target());
                }
            }
            Some(page) => page.frame_detached(session),
            None => {}
        }
    }

    /// Lets a request go on, or not. Redirects come here again.
    fn request(&self, cdp: &Cdp, event: &Event) {
        let Some(session) = &event.session else { return };
        let (session, params) = (cdp.session(session.clone()), &event.params);
        let id = &params["requestId"];
        if self.owner(session.id()).and_then(|owner| owner.page).is_some_and(|page| page.is_seeding()) {
            session.post("Fetch.fulfillRequest", json!({"requestId": id, "responseCode": 200}));
            return;
        }
        match self.egress.request(params["request"]["url"].as_str().unwrap_or_default()) {
            Ok(()) => session.post("Fetch.continueRequest", json!({"requestId": id})),
            Err(_) => session.post("Fetch.failRequest", json!({"requestId": id, "errorReason": "BlockedByClient"})),
        }
    }

    /// Only our proxy gets its credential; sites that ask for one get none.
    fn credential(&self, cdp: &Cdp, event: &Event) {
        let Some(session) = &event.session else { return };
        let challenge = &event.params["authChallenge"];
        let (address, user, password) = &self.proxy;
        let is_ours = challenge["source"] == "Proxy" && challenge["origin"] == address.as_str();
        let answer = match is_ours {
            true => json!({"response": "ProvideCredentials", "username": user, "password": password}),
            false => json!({"response": "CancelAuth"}),
        };
        let params = json!({"requestId": event.params["requestId"], "authChallengeResponse": answer});
        cdp.session(session.clone()).post("Fetch.continueWithAuth", params);
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").finish_non_exhaustive()
    }
}

impl Owner {
    /// Whether the console may go on. One that says too much is switched off, so that it does not keep everybody busy.
    fn may_say(&self, cdp: &Cdp, event: &Event, tabs: &Tabs) -> bool {
        let texts = event.params["args"].as_array().map(Vec::as_slice).unwrap_or_default();
        let bytes: usize = texts.iter().filter_map(|text| text["value"].as_str()).map(str::len).sum();
        let before = self.said.fetch_add(bytes + SAID_BYTES, Ordering::Relaxed);
        if before > SAID_BYTES_MAX {
            return false;
        }
        if let (true, Some(session)) = (before + bytes + SAID_BYTES > SAID_BYTES_MAX, &event.session) {
            cdp.session(session.clone()).post("Runtime.disable", json!({}));
            tabs.say("warn", "This page says too much: its console is off until the next page.");
        }
        true
    }

    /// What concerns the client.
    fn hear(&self, tabs: &Tabs, method: &str, params: &Value) {
        match method {
            "Runtime.consoleAPICalled" => {
                let kind = match params["type"].as_str().unwrap_or("log") {
                    "warning" => "warn",
                    other => other,
                };
                tabs.say(kind, &console::text_of(&params["args"]));
            }
            "Runtime.exceptionThrown" => {
                let why = thrown(params).unwrap_or_else(|| "an error".to_owned());
                tabs.say("error", &format!("Uncaught {why}"));
            }
            "Network.requestWillBeSent" | "Network.loadingFailed" => tabs.log.network(method, params),
            "Network.responseReceived" => {
                tabs.log.network(method, params);
                if let (Some(page), "Document") = (&self.page, params["type"].as_str().unwrap_or_default()) {
                    let status = params["response"]["status"].as_u64().and_then(|status| status.try_into().ok());
                    if let (Some(status), true) = (status, params["frameId"] == **page.target()) {
                        page.responded(params["loaderId"].as_str().unwrap_or_default(), status);
                    }
                }
            }
            _ => {
                if let (Some(page), true) = (&self.page, self.is_page) {
                    let is_new = method == "Page.frameNavigated" && params["frame"]["parentId"].is_null();
                    if is_new && self.said.swap(0, Ordering::Relaxed) > SAID_BYTES_MAX {
                        page.cdp().post("Runtime.enable", json!({}));
                    }
                    hear_page(page, tabs, method, params);
                }
            }
        }
    }
}

/// What concerns a tab.
fn hear_page(page: &Page, tabs: &Tabs, method: &str, params: &Value) {
    match method {
        "Page.frameNavigated" if params["frame"]["parentId"].is_null() => {
            let frame = &params["frame"];
            let fragment = frame["urlFragment"].as_str().unwrap_or_default();
            let url = format!("{}{fragment}", frame["url"].as_str().unwrap_or_default());
            page.navigated(&url, frame["loaderId"].as_str());
        }
        "Page.navigatedWithinDocument" if params["frameId"] == **page.target() => {
            page.navigated(params["url"].as_str().unwrap_or_default(), None);
        }
        "Page.javascriptDialogOpening" => {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let dialog = Dialog {
                kind: text(&params["type"]),
                message: text(&params["message"]),
                proposal: text(&params["defaultPrompt"]),
            };
            if tabs.hold_dialogs.load(Ordering::Relaxed) {
                page.dialog_opened(Some(dialog));
                return;
            }
            tabs.say("dialog", &format!("{}: {}", dialog.kind, dialog.message));
            page.answer_dialog(dialog.is_harmless(), None);
        }
        "Page.javascriptDialogClosed" => page.dialog_opened(None),
        "Inspector.targetCrashed" => page.close(),
        _ => {}
    }
}
