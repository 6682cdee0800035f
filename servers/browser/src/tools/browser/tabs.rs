//! Tools for tabs and where they are.

use super::answer::{Seen, changed, no_dialog, of_dialog};
use crate::act::{Watch, unless_dialog};
use crate::config::SIDE_MAX;
use crate::page::{Page, page_error, shown};
use crate::session::Session;
use crate::snapshot::quoted;
use linchpin_kit::{ErrorKind, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// How long a document of the history may take to load.
const HISTORY_TIME: Duration = Duration::from_secs(15);
/// How long a tab may take to tell its title.
const TITLE_TIME: Duration = Duration::from_millis(500);

/// Arguments of `browser_navigate`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Navigate {
    url: String,
}

pub(crate) async fn navigate(session: &Arc<Session>, args: Navigate) -> Result<ToolOutput<Seen>, ToolError> {
    let shared = session.shared.clone();
    let url = shared.egress.destination(&with_scheme(&args.url))?;
    session.context().await?.tabs().hold_dialogs(true);
    session
        .with_page(|page| async move {
            no_dialog(&page)?;
            let tab = session.known.of(&page);
            let mut tab = tab.lock().await;
            let watch = Watch::new(&page, &tab);
            let there = match unless_dialog(&page, page.navigate(url.as_str(), &shared.egress)).await {
                Ok(done) => done?,
                Err(dialog) => return Ok(of_dialog(&page, &dialog, "The page did not finish loading.".to_owned())),
            };
            tab.prepare(&page).await?;
            tab.snapshots.forget_shown();
            watch.settle().await;
            let notes =
                there.status.filter(|status| *status >= 400).map(|status| format!("The server answered {status}."));
            changed(&page, &mut tab, notes.into_iter().collect()).await
        })
        .await
}

/// `example.com` and `example.com:8443` are meant as hosts, and this machine's servers speak no TLS.
fn with_scheme(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    let is_host = !name.is_empty() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match is_host {
        false => Cow::Borrowed(text),
        true if matches!(name, "localhost" | "127.0.0.1") => Cow::Owned(format!("http://{text}")),
        true => Cow::Owned(format!("https://{text}")),
    }
}

/// Arguments of `browser_navigate_back`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NavigateBack {
    #[serde(default)]
    direction: Direction,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Direction {
    #[default]
    Back,
    Forward,
    Reload,
}

pub(crate) async fn navigate_back(session: &Arc<Session>, args: NavigateBack) -> Result<ToolOutput<Seen>, ToolError> {
    session.context().await?.tabs().hold_dialogs(true);
    session
        .with_page(|page| async move {
            no_dialog(&page)?;
            let tab = session.known.of(&page);
            let mut tab = tab.lock().await;
            tab.prepare(&page).await?;
            let watch = Watch::new(&page, &tab);
            match unless_dialog(&page, go(&page, args.direction)).await {
                Ok(done) => done?,
                Err(dialog) => return Ok(of_dialog(&page, &dialog, "The page was not left.".to_owned())),
            }
            tab.snapshots.forget_shown();
            watch.settle().await;
            changed(&page, &mut tab, Vec::new()).await
        })
        .await
}

async fn go(page: &Page, direction: Direction) -> Result<(), ToolError> {
    let mut loaded = page.cdp().events(&["Page.frameStoppedLoading", "Page.navigatedWithinDocument"]);
    if direction == Direction::Reload {
        page.cdp().call("Page.reload", json!({})).await.map_err(page_error)?;
    } else {
        let history = page.cdp().call("Page.getNavigationHistory", json!({})).await.map_err(page_error)?;
        let now = history["currentIndex"].as_u64().unwrap_or(0);
        let wanted = if direction == Direction::Back { now.checked_sub(1) } else { now.checked_add(1) };
        let entry = wanted.and_then(|index| history["entries"].get(usize::try_from(index).ok()?));
        // The empty page that every tab begins with is nowhere.
        let Some(entry) = entry.filter(|entry| entry["url"] != "about:blank") else {
            return Err(ToolError::conflict("There is no other page in that direction")
                .hint("Use browser_navigate with a URL."));
        };
        let params = json!({ "entryId": entry["id"] });
        page.cdp().call("Page.navigateToHistoryEntry", params).await.map_err(page_error)?;
    }
    let stopped = async {
        while let Some(event) = loaded.next().await {
            if event.params["frameId"] == **page.target() {
                break;
            }
        }
    };
    // A document that loads longer is shown as it is.
    let _ = tokio::time::timeout(HISTORY_TIME, stopped).await;
    Ok(())
}

/// Arguments of `browser_handle_dialog`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HandleDialog {
    accept: bool,
    /// The answer to a prompt.
    prompt_text: Option<String>,
}

pub(crate) async fn handle_dialog(session: &Arc<Session>, args: HandleDialog) -> Result<ToolOutput<Seen>, ToolError> {
    session
        .with_page(|page| async move {
            let tab = session.known.of(&page);
            let mut tab = tab.lock().await;
            let mut dialog = page.dialog();
            let Some(open) = dialog.borrow_and_update().clone() else {
                return Err(ToolError::conflict("No dialog is open"));
            };
            let watch = Watch::new(&page, &tab);
            page.answer_dialog(args.accept, args.prompt_text.as_deref());
            let gone = dialog.wait_for(|now| now.as_ref() != Some(&open));
            if tokio::time::timeout(Duration::from_secs(5), gone).await.is_err() {
                return Err(ToolError::new("The dialog did not close").kind(ErrorKind::Timeout));
            }
            watch.settle().await;
            let said = if args.accept { "Accepted the dialog." } else { "Dismissed the dialog." };
            let next = page.dialog().borrow().clone();
            if let Some(next) = next {
                return Ok(of_dialog(&page, &next, said.to_owned()));
            }
            changed(&page, &mut tab, vec![said.to_owned()]).await
        })
        .await
}

/// Arguments of `browser_resize`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Resize {
    width: u32,
    height: u32,
}

pub(crate) async fn resize(session: &Arc<Session>, args: Resize) -> Result<ToolOutput<Seen>, ToolError> {
    if !(1..=SIDE_MAX).contains(&args.width) || !(1..=SIDE_MAX).contains(&args.height) {
        return Err(ToolError::invalid(format!("Width and height must be 1 to {SIDE_MAX}")));
    }
    session.context().await?.tabs().hold_dialogs(true);
    session
        .with_page(|page| async move {
            no_dialog(&page)?;
            let tab = session.known.of(&page);
            let mut tab = tab.lock().await;
            let watch = Watch::new(&page, &tab);
            page.resize(args.width, args.height).await?;
            watch.settle().await;
            changed(&page, &mut tab, vec![format!("The viewport is {}x{}.", args.width, args.height)]).await
        })
        .await
}

/// Arguments of `browser_tabs`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TabsArgs {
    action: Deed,
    /// For close (else the current tab) and select.
    index: Option<usize>,
    /// For new.
    url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Deed {
    List,
    New,
    Close,
    Select,
}

/// The tabs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Listed {
    tabs: Vec<Tab>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Tab {
    url: String,
    title: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    current: bool,
}

pub(crate) async fn tabs(session: &Arc<Session>, args: TabsArgs) -> Result<ToolOutput<Listed>, ToolError> {
    let context = session.context().await?;
    let tabs = context.tabs();
    tabs.hold_dialogs(true);
    let at = |index: usize| {
        tabs.pages().into_iter().nth(index).ok_or_else(|| {
            ToolError::not_found(format!("There is no tab {index}")).hint("See the list of browser_tabs.")
        })
    };
    match args.action {
        Deed::List => {}
        Deed::New => {
            let url =
                args.url.as_deref().map(|url| session.shared.egress.destination(&with_scheme(url))).transpose()?;
            let page = context.new_page().await?;
            tabs.select(&page);
            if let Some(url) = url {
                let there = Navigate { url: url.to_string() };
                // What is on it is told by a snapshot.
                navigate(session, there).await?;
            }
        }
        Deed::Select => {
            let page = at(args.index.ok_or_else(|| ToolError::invalid("index is needed to select a tab"))?)?;
            tabs.select(&page);
            page.cdp().call("Page.bringToFront", json!({})).await.map_err(page_error)?;
        }
        Deed::Close => {
            let page = match args.index {
                Some(index) => at(index)?,
                None => tabs.active().ok_or_else(|| ToolError::not_found("No tab is open"))?,
            };
            close_page(tabs, &page).await;
        }
    }
    list(tabs).await
}

/// Closes a tab and waits until it is gone.
async fn close_page(tabs: &crate::routes::Tabs, page: &Page) {
    let mut changes = tabs.changes();
    page.close();
    let gone = async {
        while tabs.pages().iter().any(|other| other.target() == page.target()) {
            if changes.changed().await.is_err() {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), gone).await;
}

async fn list(tabs: &crate::routes::Tabs) -> Result<ToolOutput<Listed>, ToolError> {
    let current = tabs.active().map(|page| page.target().clone());
    let mut listed = Vec::new();
    let mut text = String::new();
    for (index, page) in tabs.pages().into_iter().enumerate() {
        let (url, title) = (shown(&page.url()), title(&page).await);
        let is_current = current.as_ref() == Some(page.target());
        let mark = if is_current { " (current)" } else { "" };
        text.push_str(&format!("{index}:{mark} {url} {}\n", quoted(&title)));
        listed.push(Tab { url, title, current: is_current });
    }
    if listed.is_empty() {
        return Ok(ToolOutput::ours("No tab is open.", Listed { tabs: listed }));
    }
    Ok(ToolOutput::outside(text, Listed { tabs: listed }))
}

/// The title of a tab, if it tells it.
async fn title(page: &Page) -> String {
    if page.dialog().borrow().is_some() {
        return String::new();
    }
    let params = json!({ "expression": "document.title", "returnByValue": true });
    let answer = page.cdp().call_within("Runtime.evaluate", params, TITLE_TIME).await.unwrap_or_default();
    let title = answer["result"]["value"].as_str().unwrap_or_default();
    linchpin_kit::clip(&linchpin_kit::without_hidden(title), 300).text.to_owned()
}

/// Arguments of `browser_close`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Close {}

pub(crate) async fn close(session: &Arc<Session>, _: Close) -> Result<ToolOutput<Listed>, ToolError> {
    let context = session.context().await?;
    if let Some(page) = context.tabs().active() {
        close_page(context.tabs(), &page).await;
    }
    list(context.tabs()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_need_no_scheme() {
        for (text, want) in [
            ("example.com", "https://example.com"),
            (" example.com/a:b?c ", "https://example.com/a:b?c"),
            ("example.com:8443/a", "https://example.com:8443/a"),
            ("localhost:3000/a", "http://localhost:3000/a"),
            ("localhost", "http://localhost"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("about:blank", "about:blank"),
            ("file:///etc/hostname", "file:///etc/hostname"),
            ("javascript:1", "https://javascript:1"),
            ("data:text/html,x", "data:text/html,x"),
            ("/etc/hostname", "/etc/hostname"),
            ("", ""),
        ] {
            assert_eq!(with_scheme(text), want);
        }
    }
}
