//! Lists: page by page, or complete.

use crate::Result;
use crate::cache::Key;
use crate::connection_state::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::request_parts::Round;
use crate::request_parts::{Options, RequestParts};
use crate::result::unexpected;
use linchpin_core::json::Scanner;
use linchpin_core::message::ResultMembers;
use linchpin_types::prompt::Prompt;
use linchpin_types::resource::{Resource, ResourceTemplate};
use linchpin_types::tool::Tool;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// The items of lists: tools, resources, resource templates, prompts.
///
/// ```
/// # use linchpin_client::{Connection, Listed, Result};
/// use linchpin_types::prompt::Prompt;
///
/// async fn count<T: Listed>(server: &Connection) -> Result<usize> {
///     let (mut pages, mut count) = (server.pages::<T>(), 0);
///     while let Some(page) = pages.next().await {
///         count += page?.items.len();
///     }
///     Ok(count)
/// }
/// # async fn _all(server: &Connection) -> Result<usize> { count::<Prompt>(server).await }
/// ```
pub trait Listed: DeserializeOwned + Clone + Send + Unpin + 'static {
    /// The method that lists the items.
    const METHOD: &'static str;
    /// The member of the result that contains the items.
    const MEMBER: &'static str;
    #[doc(hidden)]
    fn offered(capabilities: &linchpin_types::capability::ServerCapabilities) -> bool;
    #[doc(hidden)]
    fn learn(self, core: &Known<'_>) -> Result<Self, String>;
}

/// The state that items are recorded in; private to this crate.
#[doc(hidden)]
pub struct Known<'a>(&'a ConnectionState);

macro_rules! listed {
    ($($item:ty, $method:literal, $member:literal, $capability:ident;)*) => { $(
        impl Listed for $item {
            const METHOD: &'static str = $method;
            const MEMBER: &'static str = $member;
            fn offered(capabilities: &linchpin_types::capability::ServerCapabilities) -> bool {
                capabilities.$capability.is_some()
            }
            fn learn(self, _: &Known<'_>) -> Result<Self, String> {
                Ok(self)
            }
        }
    )* };
}

listed! {
    Resource, "resources/list", "resources", resources;
    ResourceTemplate, "resources/templates/list", "resourceTemplates", resources;
    Prompt, "prompts/list", "prompts", prompts;
}

impl Listed for Tool {
    const METHOD: &'static str = "tools/list";
    const MEMBER: &'static str = "tools";

    fn offered(capabilities: &linchpin_types::capability::ServerCapabilities) -> bool {
        capabilities.tools.is_some()
    }

    fn learn(self, known: &Known<'_>) -> Result<Tool, String> {
        let headers_matter = known.0.latest().is_some_and(|live| live.agreed.features.header_params);
        known.0.tools.learn(&self, headers_matter).map(|()| self)
    }
}

/// One page of a list.
///
/// ```
/// # use linchpin_client::{Connection, Result};
/// use linchpin_types::tool::Tool;
///
/// async fn first_page(server: &Connection) -> Result<Vec<Tool>> {
///     let page = server.pages::<Tool>().next().await.transpose()?;
///     Ok(page.map(|page| page.items).unwrap_or_default())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items, in the server's order.
    pub items: Vec<T>,
    /// Rejected definitions.
    pub refused: Vec<Refusal>,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

/// A complete list. Derefs to its items.
///
/// ```
/// # use linchpin_client::{Connection, Result};
/// async fn show(server: &Connection) -> Result<()> {
///     let tools = server.tools().await?;
///     println!("{} tools, the first is {:?}", tools.len(), tools.first().map(|tool| &tool.name));
///     for refused in &tools.refused {
///         println!("{} cannot be used: {}", refused.name, refused.why);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listing<T> {
    /// The items, in the server's order.
    pub items: Vec<T>,
    /// Definitions that were rejected because they are malformed or violate the specification.
    ///
    /// A rejected tool cannot be called.
    pub refused: Vec<Refusal>,
}

/// A rejected definition.
///
/// ```
/// # use linchpin_client::{Connection, Result};
/// async fn complain(server: &Connection) -> Result<()> {
///     for refused in server.tools().await?.refused {
///         eprintln!("{}: {}", refused.name, refused.why);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The name of the definition, otherwise its URI or URI template, otherwise `(no name)`; at most 120 characters.
    pub name: String,
    /// The reason.
    pub why: String,
}

impl Refusal {
    /// Creates a refusal of the definition with this name.
    pub fn new(name: impl Into<String>, why: impl Into<String>) -> Refusal {
        Refusal { name: name.into(), why: why.into() }
    }
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Listing { items: Vec::new(), refused: Vec::new() }
    }
}

impl<T> Deref for Listing<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for Listing<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

/// Reads one page, from the cache while fresh.
pub(crate) async fn page<T: Listed>(core: &Arc<ConnectionState>, cursor: Option<String>) -> Result<Page<T>> {
    // The empty string is the first page; a cursor may be empty too.
    let which = cursor.as_ref().map_or_else(String::new, |cursor| format!("at {cursor}"));
    let key = Key { method: T::METHOD, which };
    let live = core.live().await?;
    if !T::offered(&live.agreed.capabilities) {
        return Ok(Page { items: Vec::new(), refused: Vec::new(), next_cursor: None });
    }
    if let Some(kept) = core.cache.get(&key) {
        return read(core, &kept.text, &kept.members);
    }
    let mut request = RequestParts::new(T::METHOD);
    if let Some(cursor) = &cursor {
        request.members.text("cursor", cursor);
    }
    let limit = core.config.limits.calls.run_ms_max;
    let options = Options { timeout: (limit > 0).then(|| Duration::from_millis(limit)), ..Options::default() };
    let changes = core.cache.changes();
    let response = core.exchange(&request, &options, &Round::default()).await;
    if cursor.is_some() && response.as_ref().is_err_and(|error| error.rpc().is_some()) {
        // The cursor is from a list that no longer exists, and so are the pages before it.
        core.cache.forget(T::METHOD);
    }
    let response = response?;
    let page = read(core, response.text(), &response.members())?;
    core.cache.put(key, response.text(), response.members(), response.ttl_ms(), changes);
    Ok(page)
}

/// Reads a page leniently: one malformed item does not invalidate the others.
fn read<T: Listed>(core: &ConnectionState, json: &str, members: &ResultMembers) -> Result<Page<T>> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(alias = "tools", alias = "resources", alias = "resourceTemplates", alias = "prompts", default, borrow)]
        items: Option<&'a RawValue>,
    }
    let wrong = |e: serde_json::Error| unexpected(&format!("the answer to {}", T::METHOD), e);
    let raw: Raw<'_> = serde_json::from_str(json).map_err(wrong)?;
    let next_cursor = members.next_cursor.map_or("null", |span| span.of(json));
    let next_cursor: Option<String> = serde_json::from_str(next_cursor).map_err(wrong)?;
    let all = raw.items.map_or("[]", RawValue::get);
    // Before anything is kept of them: the smallest take two bytes of the message.
    let most = core.config.limits.lists.items_max;
    if elements(all) > most {
        return Err(too_many::<T>(most));
    }
    let all: Vec<&RawValue> = serde_json::from_str(all).map_err(wrong)?;
    let (mut items, mut refused) = (Vec::with_capacity(all.len()), Vec::new());
    for item in all {
        let read = serde_json::from_str::<T>(item.get()).map_err(|e| format!("it cannot be read: {e}"));
        match read.and_then(|item| item.learn(&Known(core))) {
            Ok(item) => items.push(item),
            Err(why) => {
                let name = name_of(item.get(), &["name", "uri", "uriTemplate"]);
                // A URI may hold what must not be logged.
                let shown = name_of(item.get(), &["name"]);
                tracing::warn!(name = shown, why, "a definition of the server was refused");
                refused.push(Refusal { name, why });
            }
        }
    }
    // An empty cursor is valid in revisions that say so; before, some servers send it on their last page.
    let empty_leads_on = core.latest().is_some_and(|live| live.agreed.features.empty_cursors);
    let next_cursor = next_cursor.filter(|cursor| empty_leads_on || !cursor.is_empty());
    Ok(Page { items, refused, next_cursor })
}

/// How many elements an array has. Of something else, none.
fn elements(json: &str) -> usize {
    let mut count = 0;
    let _ = Scanner::new(json, usize::MAX).array(&mut |element| {
        count += 1;
        element.value().map(drop)
    });
    count
}

fn too_many<T: Listed>(most: usize) -> Error {
    let why = format!("{} goes on past {most} items (lists.items_max)", T::METHOD);
    Error::new(ErrorKind::InvalidResponse, why)
}

/// The first of these members that it has.
fn name_of(json: &str, members: &[&str]) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let name = members.iter().find_map(|member| value.get(member)?.as_str());
    name.unwrap_or("(no name)").chars().take(120).collect()
}

/// All pages of a list, within the limits.
pub(crate) async fn all<T: Listed>(core: &Arc<ConnectionState>) -> Result<Listing<T>> {
    let limits = core.config.limits.clone();
    let mut cursor = None;
    let mut listing = Listing::default();
    let mut seen = std::collections::HashSet::new();
    let mut number = 0;
    loop {
        let page = page::<T>(core, cursor.take()).await?;
        number += 1;
        listing.items.extend(page.items);
        listing.refused.extend(page.refused);
        if listing.items.len() + listing.refused.len() > limits.lists.items_max {
            return Err(too_many::<T>(limits.lists.items_max));
        }
        let Some(next) = page.next_cursor else { return Ok(listing) };
        if number >= limits.lists.pages_max || !seen.insert(next.clone()) {
            let why = format!("{} does not end: page {number} leads on to more", T::METHOD);
            return Err(Error::new(ErrorKind::InvalidResponse, why));
        }
        cursor = Some(next);
    }
}

pub(crate) async fn tools(core: &Arc<ConnectionState>) -> Result<Listing<Tool>> {
    let listing = all::<Tool>(core).await?;
    core.tools.complete();
    Ok(listing)
}

/// Reads the list of tools, bypassing the cache, to update the tool index.
pub(crate) async fn learn_tools(core: &Arc<ConnectionState>) -> Result<()> {
    core.cache.changed(&crate::Change::Tools);
    core.tools.forget();
    tools(core).await.map(drop)
}
