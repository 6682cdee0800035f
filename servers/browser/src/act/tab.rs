//! What is known of a tab: its frames, its snapshots, and how an element of a snapshot is found again.

use super::element::{Element, Needs, Place, failed};
use crate::cdp::{CdpError, CdpSession, Events};
use crate::page::Page;
use crate::snapshot::{AxTree, Frame, Snapshots, became, name_in, stale};
use linchpin_kit::{ErrorKind, ToolError};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;

/// Most frames that are read; pages of advertisements have dozens.
const FRAMES_MAX: usize = 50;
/// How long a frame may take to tell what is in it. One that is busy longer is left out; the main frame's is the limit of
/// the call.
const FRAME_TIME: Duration = Duration::from_secs(3);

/// What is known of a client's tabs.
#[derive(Debug, Default)]
pub(crate) struct Tabs(std::sync::Mutex<HashMap<Arc<str>, Known>>);

type Known = (Page, Arc<Mutex<Tab>>);

impl Tabs {
    /// What is known of this one. Those that were closed are forgotten.
    pub(crate) fn of(&self, page: &Page) -> Arc<Mutex<Tab>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (page, _)| page.is_open());
        let new = || (page.clone(), Arc::default());
        all.entry(page.target().clone()).or_insert_with(new).1.clone()
    }
}

/// The state of a tab.
#[derive(Debug, Default)]
pub(crate) struct Tab {
    /// Its snapshots.
    pub(crate) snapshots: Snapshots,
    /// Where the page says that it wants files.
    choosers: Option<Events>,
    main: Option<CdpSession>,
    /// The last chooser that it opened.
    chooser: Option<Chooser>,
    /// Its frames, as they were read last.
    frames: HashMap<String, FrameAt>,
}

/// How a frame is reached.
#[derive(Debug, Clone)]
struct FrameAt {
    session: CdpSession,
    /// The frame around it, and the node of its `<iframe>` there.
    owner: Option<(String, i64)>,
}

/// A file chooser that a page wants to show.
#[derive(Debug, Clone)]
pub(crate) struct Chooser {
    session: CdpSession,
    frame: String,
    backend: i64,
}

impl Chooser {
    /// The field that the files are for.
    ///
    /// # Errors
    /// When it is gone.
    pub(crate) async fn element(&self) -> Result<Element, ToolError> {
        let element = Element::hold(&self.session, &self.frame, self.backend).await.map_err(|e| failed(&e))?;
        element.ok_or_else(super::element::gone)
    }
}

/// An element and where it is in the tab's viewport.
#[derive(Debug)]
pub(crate) struct Found {
    /// The element.
    pub(crate) element: Element,
    /// The id of its frame.
    pub(crate) frame: String,
}

/// What a `target` means.
#[derive(Debug, PartialEq, Eq)]
enum Target<'a> {
    Reference(u32),
    Selector(&'a str),
}

/// Reads `e12`, also as it stands in a snapshot: `[ref=e12]`. Anything else is a CSS selector.
fn target(text: &str) -> Target<'_> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let bare = bare.strip_prefix("ref=").unwrap_or(bare);
    match bare.strip_prefix('e').map(str::parse) {
        Some(Ok(number)) => Target::Reference(number),
        _ => Target::Selector(text),
    }
}

/// The number in a reference.
///
/// # Errors
/// When it is none.
pub(crate) fn reference(text: &str) -> Option<u32> {
    match target(text) {
        Target::Reference(number) => Some(number),
        Target::Selector(_) => None,
    }
}

impl Tab {
    /// Makes the page behave as in front of a user: it has the focus, and file choosers wait for us.
    ///
    /// # Errors
    /// When the page does not answer.
    pub(crate) async fn prepare(&mut self, page: &Page) -> Result<(), ToolError> {
        if self.choosers.is_none() {
            self.main = Some(page.cdp().clone());
            self.choosers = Some(page.cdp().events(&["Page.fileChooserOpened"]));
            page.cdp().post("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
            let asks = page.cdp().call("Page.setInterceptFileChooserDialog", json!({ "enabled": true }));
            asks.await.map_err(|e| failed(&e))?;
        }
        Ok(())
    }

    /// The ids of its frames, as they were read last.
    pub(crate) fn frame_ids(&self) -> impl Iterator<Item = &str> {
        self.frames.keys().map(String::as_str)
    }

    /// Whether a file chooser is open.
    pub(crate) fn chooser_is_open(&mut self) -> bool {
        self.hear_choosers();
        self.chooser.is_some()
    }

    /// The file chooser that is open, which is not open any more.
    pub(crate) fn take_chooser(&mut self) -> Option<Chooser> {
        self.hear_choosers();
        self.chooser.take()
    }

    fn hear_choosers(&mut self) {
        while let Some(event) = self.choosers.as_mut().and_then(Events::try_next) {
            let frame = event.params["frameId"].as_str().unwrap_or_default().to_owned();
            let at = self.frames.get(&frame).map(|at| at.session.clone()).or_else(|| self.main.clone());
            if let (Some(session), Some(backend)) = (at, event.params["backendNodeId"].as_i64()) {
                self.chooser = Some(Chooser { session, frame, backend });
            }
        }
    }

    /// Reads the page anew.
    ///
    /// # Errors
    /// When the page does not answer.
    pub(crate) async fn update(&mut self, page: &Page) -> Result<(), ToolError> {
        let mut read = Vec::new();
        let mut at = HashMap::new();
        collect(page.cdp(), None, &mut read, &mut at).await.map_err(|e| failed(&e))?;
        for session in page.frames() {
            if read.len() >= FRAMES_MAX {
                break;
            }
            // A frame that is busy or just went away is left out.
            let _ = collect(&session, Some(FRAME_TIME), &mut read, &mut at).await;
        }
        self.frames = at;
        self.snapshots.update(&read);
        Ok(())
    }

    /// Finds an element by a reference of a snapshot or a CSS selector. A reference whose node is gone is looked for in a
    /// new snapshot.
    ///
    /// # Errors
    /// When there is no such element.
    pub(crate) async fn find(&mut self, page: &Page, text: &str) -> Result<Found, ToolError> {
        let number = match target(text) {
            Target::Selector(selector) => return self.select(page, selector).await,
            Target::Reference(number) => number,
        };
        self.snapshots.known(number)?;
        for again in [false, true] {
            if again {
                self.update(page).await?;
                self.snapshots.current(number)?;
            }
            let known = self.snapshots.known(number)?;
            let (frame, backend) = (known.frame.id.clone(), known.backend);
            let Some(at) = self.frames.get(&frame) else { continue };
            let Some(element) = Element::hold(&at.session, &frame, backend).await.map_err(|e| failed(&e))? else {
                continue;
            };
            if let (true, Some(name)) = (known.is_named, name_now(&at.session, backend).await) {
                let known = known.clone();
                if name != known.name {
                    // The caller is told; if it asks again, it means this one.
                    self.update(page).await?;
                    return Err(became(number, &known, &name));
                }
            }
            return Ok(Found { element, frame });
        }
        Err(stale(number, self.snapshots.known(number)?))
    }

    async fn select(&mut self, page: &Page, selector: &str) -> Result<Found, ToolError> {
        if self.frames.is_empty() {
            self.update(page).await?;
        }
        let frame = page.target().to_string();
        let found = Element::query(page.cdp(), &frame, selector).await?;
        let element = found.ok_or_else(|| {
            ToolError::not_found("No element of the page matches the target")
                .hint("Use a reference of browser_snapshot such as e12, or a CSS selector that matches.")
                .detail(selector)
        })?;
        Ok(Found { element, frame })
    }

    /// Waits until an element can be used; where it is in the viewport of the tab.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) async fn ready(&self, found: &Found, needs: Needs) -> Result<Place, ToolError> {
        let owners = self.owners(&found.frame).await?;
        for owner in owners.iter().rev() {
            owner.ready(Needs::SEEN).await?;
        }
        let mut place = found.element.ready(needs).await?;
        for owner in &owners {
            place = owner.around(place, needs.hit).await?;
        }
        Ok(place)
    }

    /// The `<iframe>` elements around a frame, the innermost first.
    async fn owners(&self, frame: &str) -> Result<Vec<Element>, ToolError> {
        let mut owners = Vec::new();
        let mut at = self.frames.get(frame);
        while let Some((outer, node)) = at.and_then(|at| at.owner.as_ref()) {
            let Some(around) = self.frames.get(outer).filter(|_| owners.len() < FRAMES_MAX) else { break };
            let owner = Element::hold(&around.session, outer, *node).await.map_err(|e| failed(&e))?;
            owners.push(owner.ok_or_else(super::element::gone)?);
            at = Some(around);
        }
        Ok(owners)
    }

    /// The same element in the world of the page's own scripts, for scripts of the caller.
    ///
    /// # Errors
    /// When it is gone.
    pub(crate) async fn in_page(&self, page: &Page, found: &Found) -> Result<(CdpSession, Element), ToolError> {
        let session = self.frames.get(&found.frame).map_or_else(|| page.cdp().clone(), |at| at.session.clone());
        let element = Element::hold_in_page(&session, found.element.backend).await.map_err(|e| failed(&e))?;
        Ok((session, element.ok_or_else(super::element::gone)?))
    }
}

/// Reads the frames of a session, outermost first.
async fn collect(
    session: &CdpSession,
    limit: Option<Duration>,
    read: &mut Vec<Frame>,
    at: &mut HashMap<String, FrameAt>,
) -> Result<(), CdpError> {
    let call = |method: &'static str, params: Value| async move {
        match limit {
            Some(limit) => session.call_within(method, params, limit).await,
            None => session.call(method, params).await,
        }
    };
    let mut tree = call("Page.getFrameTree", json!({})).await?;
    let mut todo = vec![tree["frameTree"].take()];
    while let Some(mut node) = todo.pop() {
        if read.len() >= FRAMES_MAX {
            break;
        }
        let frame = &node["frame"];
        let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
        let (id, document, parent) = (text("id"), text("loaderId"), frame["parentId"].as_str());
        let url = format!("{}{}", text("url"), text("urlFragment"));
        let owner = match parent {
            None => None,
            Some(parent) => match owner(at, session, parent, &id).await {
                Some(node) => Some((parent.to_owned(), node)),
                // Not shown: no element has it.
                None => continue,
            },
        };
        let whole = if owner.is_none() { None } else { Some(limit.unwrap_or(FRAME_TIME)) };
        let params = json!({ "frameId": id });
        let found = match whole {
            Some(limit) => session.call_within("Accessibility.getFullAXTree", params, limit).await,
            None => session.call("Accessibility.getFullAXTree", params).await,
        };
        let nodes = match found {
            Ok(tree) => serde_json::from_value::<AxTree>(tree).map_err(|e| CdpError::Invalid(e.to_string()))?.nodes,
            // The main frame is the page; any other may be gone or busy.
            Err(e) if owner.is_none() => return Err(e),
            Err(_) => continue,
        };
        at.insert(id.clone(), FrameAt { session: session.clone(), owner: owner.clone() });
        read.push(Frame { id, document, url, owner, nodes });
        if let Value::Array(children) = node["childFrames"].take() {
            todo.extend(children.into_iter().rev());
        }
    }
    Ok(())
}

/// The name that an element has now.
async fn name_now(session: &CdpSession, backend: i64) -> Option<String> {
    let params = json!({ "backendNodeId": backend, "fetchRelatives": false });
    let tree = session.call_within("Accessibility.getPartialAXTree", params, FRAME_TIME).await.ok()?;
    name_in(&serde_json::from_value(tree).ok()?)
}

/// The node of the `<iframe>` that shows a frame.
async fn owner(at: &HashMap<String, FrameAt>, session: &CdpSession, parent: &str, frame: &str) -> Option<i64> {
    let session = at.get(parent).map_or(session, |at| &at.session);
    let owner = session.call_within("DOM.getFrameOwner", json!({ "frameId": frame }), FRAME_TIME).await.ok()?;
    owner["backendNodeId"].as_i64()
}

/// The error for a page that a dialog holds up.
pub(crate) fn dialog_open() -> ToolError {
    ToolError::conflict("A dialog is open, and the page waits for it")
        .kind(ErrorKind::Conflict)
        .hint("Answer it with browser_handle_dialog first.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_reference_however_it_is_written_or_a_selector() {
        for text in ["e12", "[ref=e12]", "ref=e12", " e12 "] {
            assert_eq!(target(text), Target::Reference(12), "{text}");
            assert_eq!(reference(text), Some(12));
        }
        for text in ["#e12", "e", "ex", "em", "button.e1", "[name=e1]", ""] {
            assert_eq!(target(text), Target::Selector(text), "{text}");
        }
    }
}
