//! What one client has of a browser: cookies, storage and tabs of its own.

use crate::browser::Browser;
use crate::config::Config;
use crate::page::{Page, page_error};
use crate::routes::{PAGES_MAX, Tabs};
use crate::storage::StorageState;
use linchpin_kit::{ErrorKind, ToolError, io_text};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How often a browser is asked whether it lives while it says other things.
const PROBES_MAX: usize = 5;
/// How long a new tab may take.
const OPEN_TIME: Duration = Duration::from_secs(10);

/// A browser context. Dropping it disposes of it, and of the browser with its last one.
#[derive(Debug)]
pub(crate) struct Context {
    browser: Arc<Browser>,
    /// `None`: the browser's own context, whose profile is kept.
    id: Option<String>,
    tabs: Arc<Tabs>,
}

impl Context {
    /// Opens one, without a tab.
    ///
    /// # Errors
    /// When the profile is another client's, or the state cannot be set.
    pub(crate) async fn open(browser: Arc<Browser>, tabs: Arc<Tabs>, config: &Config) -> Result<Self, ToolError> {
        let id = if config.profile.is_some() {
            if browser.routes().has(None) {
                return Err(ToolError::conflict("The browser's profile is in use by another client")
                    .hint("Call the tool again when that one is gone; without --profile every client has a context of its own."));
            }
            None
        } else {
            let answer = browser.call("Target.createBrowserContext", json!({"disposeOnDetach": true})).await?;
            answer["browserContextId"].as_str().map(str::to_owned)
        };
        browser.routes().add(id.as_deref(), &tabs);
        let context = Self { browser, id, tabs };
        context.allow_downloads(config).await?;
        if let Some(file) = &config.storage_state {
            context.fill(&StorageState::read(file)?).await?;
        }
        Ok(context)
    }

    /// The parameters of a command that concerns a context.
    fn params(&self, mut params: Value) -> Value {
        if let Some(id) = &self.id {
            params["browserContextId"] = json!(id);
        }
        params
    }

    async fn allow_downloads(&self, config: &Config) -> Result<(), ToolError> {
        let Some(folder) = &config.download_dir else {
            let deny = self.params(json!({"behavior": "deny"}));
            return self.browser.call("Browser.setDownloadBehavior", deny).await.map(drop);
        };
        let unusable = |e| ToolError::new(format!("--download-dir {}: {}", folder.display(), io_text(&e)));
        std::fs::create_dir_all(folder).map_err(unusable)?;
        let folder = std::path::absolute(folder).map_err(unusable)?;
        let allow = json!({"behavior": "allowAndName", "downloadPath": folder, "eventsEnabled": true});
        self.browser.call("Browser.setDownloadBehavior", self.params(allow)).await.map(drop)
    }

    /// Sets cookies, and local storage in a tab in which nothing is requested.
    async fn fill(&self, state: &StorageState) -> Result<(), ToolError> {
        self.browser.call("Storage.setCookies", self.params(json!({"cookies": state.cookies()}))).await?;
        if state.origins.is_empty() {
            return Ok(());
        }
        let page = self.new_page().await?;
        page.seed(true);
        for origin in &state.origins {
            page.cdp().call("Page.navigate", json!({"url": origin.origin})).await.map_err(page_error)?;
            let done = page.evaluate(&origin.script()).await?;
            if let Some(why) = crate::page::thrown(&done) {
                return Err(ToolError::new("The local storage of --storage-state could not be set").detail(why));
            }
        }
        page.close();
        Ok(())
    }

    /// The browser that it is in.
    pub(crate) fn browser(&self) -> &Arc<Browser> {
        &self.browser
    }

    /// Its tabs.
    pub(crate) fn tabs(&self) -> &Arc<Tabs> {
        &self.tabs
    }

    /// Whether tools can use it.
    pub(crate) fn is_alive(&self) -> bool {
        self.browser.is_alive()
    }

    /// The tab that tools act on, opened if there is none.
    ///
    /// # Errors
    /// When none can be opened.
    pub(crate) async fn page(&self) -> Result<Page, ToolError> {
        match self.tabs.active().filter(Page::is_open) {
            Some(page) => Ok(page),
            None => {
                let page = self.new_page().await?;
                self.tabs.select(&page);
                Ok(page)
            }
        }
    }

    /// Opens an empty tab.
    ///
    /// # Errors
    /// When there are too many, or the browser does not open it.
    pub(crate) async fn new_page(&self) -> Result<Page, ToolError> {
        if self.tabs.pages().len() >= PAGES_MAX {
            return Err(ToolError::new(format!("There are {PAGES_MAX} tabs already"))
                .kind(ErrorKind::Limited { retry_after: None })
                .hint("Close one first."));
        }
        let mut changes = self.tabs.changes();
        let answer = self.browser.call("Target.createTarget", self.params(json!({"url": "about:blank"}))).await?;
        let target = answer["targetId"].as_str().unwrap_or_default();
        let opened = async {
            loop {
                changes.borrow_and_update();
                if let Some(page) = self.tabs.pages().into_iter().find(|page| &**page.target() == target) {
                    return page;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let late = |_| ToolError::new("The browser opened no tab in time").kind(ErrorKind::Timeout);
        let page = tokio::time::timeout(OPEN_TIME, opened).await.map_err(late)?;
        // Until it has carried out what the hook told it: a navigation would overtake that, and nobody would hear of it.
        page.cdp().call_within("Page.enable", json!({}), OPEN_TIME).await.map_err(page_error)?;
        Ok(page)
    }

    /// Whether the browser still does what it is told, at most this long after it said anything at all: an answer stands
    /// behind everything that pages had to say before.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        let cdp = self.browser.cdp();
        for _ in 0..PROBES_MAX {
            let before = cdp.heard();
            if cdp.browser().call_within("Browser.getVersion", json!({}), limit).await.is_ok() {
                return true;
            }
            if cdp.heard() == before {
                return false;
            }
        }
        false
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.browser.routes().remove(self.id.as_deref());
        let session = self.browser.cdp().browser();
        match &self.id {
            Some(id) => session.post("Target.disposeBrowserContext", json!({"browserContextId": id})),
            None => self.tabs.pages().iter().for_each(Page::close),
        }
    }
}
