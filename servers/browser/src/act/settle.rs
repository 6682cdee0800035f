//! Waits until an action has had its effect: the page was drawn again, a navigation that it began has loaded, requests that
//! it made were answered. Every wait ends.

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

/// Watches a page from before an action on.
#[derive(Debug)]
pub(crate) struct Watch {
    page: Page,
    events: Events,
    loading: bool,
    requests: HashSet<String>,
}

impl Watch {
    /// Begins.
    pub(crate) fn new(page: &Page) -> Self {
        Self { page: page.clone(), events: page.cdp().events(WATCHED), loading: false, requests: HashSet::new() }
    }

    /// Waits until what began since then has ended. A page that opens a dialog waits itself.
    pub(crate) async fn settle(mut self) {
        let page = self.page.clone();
        let _ = unless_dialog(&page, self.wait()).await;
    }

    async fn wait(&mut self) {
        self.drawn().await;
        self.drain();
        if !self.loading && self.requests.is_empty() {
            return;
        }
        let start = Instant::now();
        while self.page.is_open() {
            let end = match (self.loading, self.requests.is_empty()) {
                (true, _) => start + LOAD_TIME,
                (false, false) => start + REQUESTS_TIME,
                (false, true) => break,
            };
            match tokio::time::timeout_at(end, self.events.next()).await {
                Ok(Some(event)) => self.heard(&event),
                Ok(None) | Err(_) => break,
            }
            self.drain();
        }
        self.drawn().await;
    }

    fn drain(&mut self) {
        while let Some(event) = self.events.try_next() {
            self.heard(&event);
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
