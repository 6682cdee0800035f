//! Waits until an action has had its effect: the page was drawn again, a navigation that it began has loaded, requests that
//! it made were answered. Every wait ends.

use super::tab::Tab;
use crate::cdp::{Event, Events};
use crate::page::{Dialog, Page};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long the page may take to be drawn.
const DRAWN_TIME: Duration = Duration::from_millis(500);
/// How long requests of the page's scripts may take.
const REQUESTS_TIME: Duration = Duration::from_millis(1_500);
/// How long a new document may take to load.
const LOAD_TIME: Duration = Duration::from_secs(8);

/// What an action is watched for.
const WATCHED: &[&str] = &[
    "Page.frameStartedLoading",
    "Page.frameStoppedLoading",
    "Network.requestWillBeSent",
    "Network.loadingFinished",
    "Network.loadingFailed",
];

/// A file that a page had the browser download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Download {
    id: String,
    /// The name that the page gave it.
    pub(crate) name: String,
    /// Where it is, once it is complete.
    pub(crate) file: Option<String>,
    /// Whether it goes on.
    pub(crate) pending: bool,
}

/// Watches a page from before an action on.
#[derive(Debug)]
pub(crate) struct Watch {
    page: Page,
    events: Events,
    /// Of the browser: those of all clients.
    downloading: Events,
    frames: HashSet<String>,
    loading: bool,
    requests: HashSet<String>,
    downloads: Vec<Download>,
}

impl Watch {
    /// Begins.
    pub(crate) fn new(page: &Page, tab: &Tab) -> Self {
        let browser = page.cdp().cdp().browser();
        Self {
            page: page.clone(),
            events: page.cdp().events(WATCHED),
            downloading: browser.events(&["Browser.downloadWillBegin", "Browser.downloadProgress"]),
            frames: tab.frame_ids().chain([&**page.target()]).map(str::to_owned).collect(),
            loading: false,
            requests: HashSet::new(),
            downloads: Vec::new(),
        }
    }

    /// Waits until what began since then has ended, and returns what was downloaded. A page that opens a dialog waits itself.
    pub(crate) async fn settle(mut self) -> Vec<Download> {
        let page = self.page.clone();
        let _ = unless_dialog(&page, self.wait()).await;
        self.downloads
    }

    async fn wait(&mut self) {
        self.drawn().await;
        self.drain();
        if !self.loading && self.is_quiet() {
            return;
        }
        let start = Instant::now();
        while self.page.is_open() {
            let end = match (self.loading, self.is_quiet()) {
                (true, _) => start + LOAD_TIME,
                (false, false) => start + REQUESTS_TIME,
                (false, true) => break,
            };
            tokio::select! {
                event = self.events.next() => match event {
                    Some(event) => self.heard(&event),
                    None => break,
                },
                event = self.downloading.next() => match event {
                    Some(event) => self.heard_download(&event),
                    None => break,
                },
                () = tokio::time::sleep_until(end) => break,
            }
            self.drain();
        }
        self.drawn().await;
    }

    fn is_quiet(&self) -> bool {
        self.requests.is_empty() && !self.downloads.iter().any(|download| download.pending)
    }

    fn drain(&mut self) {
        while let Some(event) = self.events.try_next() {
            self.heard(&event);
        }
        while let Some(event) = self.downloading.try_next() {
            self.heard_download(&event);
        }
    }

    fn heard_download(&mut self, event: &Event) {
        let text = |name: &str| event.params[name].as_str().unwrap_or_default().to_owned();
        let id = text("guid");
        if &*event.method == "Browser.downloadWillBegin" {
            if self.frames.contains(&text("frameId")) {
                self.downloads.push(Download { id, name: text("suggestedFilename"), file: None, pending: true });
                // It began as a navigation that goes nowhere.
                self.loading = false;
            }
        } else if let Some(download) = self.downloads.iter_mut().find(|download| download.id == id) {
            let state = text("state");
            download.pending = state == "inProgress";
            download.file = Some(text("filePath")).filter(|file| state == "completed" && !file.is_empty());
        }
    }

    fn heard(&mut self, event: &Arc<Event>) {
        let params = &event.params;
        let id = || params["requestId"].as_str().unwrap_or_default().to_owned();
        match &*event.method {
            "Page.frameStartedLoading" => self.loading |= params["frameId"] == **self.page.target(),
            "Page.frameStoppedLoading" if params["frameId"] == **self.page.target() => {
                self.loading = false;
                self.requests.clear();
            }
            "Network.requestWillBeSent" if matches!(params["type"].as_str(), Some("Fetch" | "XHR")) => {
                self.requests.insert(id());
            }
            "Network.loadingFinished" | "Network.loadingFailed" => drop(self.requests.remove(&id())),
            _ => {}
        }
    }

    /// Until the page was drawn twice: what the first one brought about is in the second.
    async fn drawn(&self) {
        let script = "new Promise((done) => {
            setTimeout(done, 200);
            requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
        })";
        let params = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        // A document that is left has no answer, nor has one that is busy.
        let _ = self.page.cdp().call_within("Runtime.evaluate", params, DRAWN_TIME).await;
    }
}

/// Runs something until it is done, or a dialog opens and holds the page up.
///
/// # Errors
/// The dialog.
pub(crate) async fn unless_dialog<T>(page: &Page, work: impl Future<Output = T>) -> Result<T, Dialog> {
    let opened = opened(page.dialog());
    tokio::select! {
        biased;
        dialog = opened => Err(dialog),
        done = work => Ok(done),
    }
}

/// The next dialog.
async fn opened(mut dialog: watch::Receiver<Option<Dialog>>) -> Dialog {
    let open = dialog.wait_for(Option::is_some).await.ok().and_then(|open| open.clone());
    match open {
        Some(open) => open,
        // The page is gone: there will be none.
        None => std::future::pending().await,
    }
}
