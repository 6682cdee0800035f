//! A connection to one server.

use crate::active_transport::ActiveTransport;
use crate::cache::Key;
use crate::connection_state::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::list::{self, Listed, Listing};
use crate::listen::{self, Changes};
use crate::listeners::ChangeFilter;
use crate::lock::lock;
use crate::pages::Pages;
use crate::request::Request;
use crate::request_parts::RequestParts;
use crate::result::{Decoded, RawCallToolResult};
use crate::{Result, negotiate};
use linchpin_core::Method;
use linchpin_core::service::boxed;
use linchpin_proto::message_writer::{Members, about};
use linchpin_types::capability::ServerCapabilities;
use linchpin_types::complete::{CompleteArgument, CompleteContext, CompleteReference, CompleteResult};
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::LoggingLevel;
use linchpin_types::prompt::{GetPromptResult, Prompt};
use linchpin_types::resource::{ReadResourceResult, Resource, ResourceTemplate};
use linchpin_types::tool::Tool;
use linchpin_types::version::Revision;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A connection to one server.
///
/// Clones share it; it ends with the last one, or with [`Connection::close`].
///
/// ```
/// # use linchpin_client::{Connection, Result};
/// # #[derive(serde::Deserialize)] struct Report { highs: Vec<f64> }
/// async fn highs(server: &Connection) -> Result<Vec<f64>> {
///     for tool in server.tools().await? {
///         println!("{}: {}", tool.name, tool.description.unwrap_or_default());
///     }
///     let report: Report = server.call("forecast", serde_json::json!({ "city": "Oslo" })).await?.json()?;
///     Ok(report.highs)
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "ClientSession")]
#[doc(alias = "RunningService")]
pub struct Connection {
    core: Arc<ConnectionState>,
    /// Closes the connection with the last handle; background tasks hold only the core.
    handle: Arc<Handle>,
}

struct Handle(Arc<ConnectionState>);

impl Drop for Handle {
    fn drop(&mut self) {
        let Some(live) = self.0.shut() else { return };
        // Close gracefully if a runtime is available; otherwise dropping the transport has to do.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(boxed(async move { live.link.close().await }));
        }
    }
}

impl Connection {
    pub(crate) fn new(core: Arc<ConnectionState>) -> Connection {
        Connection { handle: Arc::new(Handle(core.clone())), core }
    }

    fn live(&self) -> Option<Arc<ActiveTransport>> {
        self.core.latest()
    }

    /// Returns the negotiated revision.
    pub fn revision(&self) -> Revision {
        // A connection exists only once it was opened.
        self.live().map_or(Revision::LATEST, |live| live.agreed.features.revision)
    }

    /// Returns whether requests are stateless, as in the newest revision, rather than part of a session.
    pub fn stateless(&self) -> bool {
        self.live().is_some_and(|live| !live.agreed.features.has_sessions)
    }

    /// Returns the server's name and version, if it sent them. They are not verified.
    pub fn server(&self) -> Option<Implementation> {
        self.live().and_then(|live| live.agreed.server.clone())
    }

    /// Returns the capabilities of the server.
    pub fn capabilities(&self) -> ServerCapabilities {
        self.live().map(|live| live.agreed.capabilities.clone()).unwrap_or_default()
    }

    /// Returns the server's instructions for the model.
    pub fn instructions(&self) -> Option<String> {
        self.live().and_then(|live| live.agreed.instructions.clone())
    }

    /// Returns the protocol versions that the server listed, as text.
    pub fn versions(&self) -> Vec<String> {
        self.live().map(|live| live.agreed.versions.clone()).unwrap_or_default()
    }

    /// Returns the result of the handshake (`DiscoverResult` or `InitializeResult`) as JSON text.
    pub fn opening(&self) -> String {
        self.live().map(|live| live.agreed.result.to_string()).unwrap_or_default()
    }

    /// Calls a tool. `arguments` must serialise to an object; `()` means no arguments.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result};
    /// # use std::time::Duration;
    /// async fn add(server: &Connection) -> Result<String> {
    ///     let result = server.call("add", serde_json::json!({ "a": 1, "b": 2 })).timeout(Duration::from_secs(5)).await?;
    ///     // An error of the tool is part of its result; `ok` turns it into an `Err`.
    ///     Ok(result.ok()?.text())
    /// }
    /// ```
    ///
    /// # Errors
    /// When awaited: [`Error`]. A result with `isError` is not an error here: see [`RawCallToolResult::is_error`] and
    /// [`RawCallToolResult::json`].
    #[doc(alias = "call_tool")]
    #[doc(alias = "callTool")]
    pub fn call(&self, name: &str, arguments: impl Serialize) -> Request<RawCallToolResult> {
        let mut request = RequestParts::new("tools/call");
        request.about = Some(name.into());
        request.members.text("name", name);
        let start = request.members.as_bytes().len() + "\"arguments\":".len();
        let request = match request.members.value("arguments", &arguments) {
            Err(why) => {
                let text = format!("the arguments of `{name}` cannot be JSON: {why}");
                Err(Error::with_source(ErrorKind::InvalidRequest, text, why))
            }
            Ok(()) => {
                let text = &request.members.as_bytes()[start..];
                match text.first() {
                    Some(b'{') => request.arguments = Some(start..start + text.len() - 1),
                    Some(b'n') => {
                        // `()` serialises to `null`: no arguments.
                        request.members = RequestParts::new("").members;
                        request.members.text("name", name);
                        let start = request.members.as_bytes().len() + "\"arguments\":".len();
                        request.members.raw("arguments", "{}");
                        request.arguments = Some(start..start + 2);
                    }
                    _ => {
                        let why = format!("the arguments of `{name}` must be an object");
                        return Request::new(self, Err(Error::new(ErrorKind::InvalidRequest, why)));
                    }
                }
                Ok(request)
            }
        };
        Request::new(self, request)
    }

    /// Returns all tools, from the cache while it is fresh. The list is empty if the server has no tools.
    ///
    /// Cancel-safe: dropping the future cancels the request for the current page.
    ///
    /// # Errors
    /// [`Error`], also if the list exceeds `lists.pages_max` or `lists.items_max`.
    #[doc(alias = "list_tools")]
    #[doc(alias = "listTools")]
    pub async fn tools(&self) -> Result<Listing<Tool>> {
        list::tools(&self.core).await
    }

    /// Returns all resources; see [`Connection::tools`]. Cancel-safe.
    ///
    /// # Errors
    /// See [`Connection::tools`].
    #[doc(alias = "list_resources")]
    #[doc(alias = "listResources")]
    pub async fn resources(&self) -> Result<Listing<Resource>> {
        list::all(&self.core).await
    }

    /// Returns all resource templates; see [`Connection::tools`]. Cancel-safe.
    ///
    /// # Errors
    /// See [`Connection::tools`].
    pub async fn resource_templates(&self) -> Result<Listing<ResourceTemplate>> {
        list::all(&self.core).await
    }

    /// Returns all prompts; see [`Connection::tools`]. Cancel-safe.
    ///
    /// # Errors
    /// See [`Connection::tools`].
    #[doc(alias = "list_prompts")]
    #[doc(alias = "listPrompts")]
    pub async fn prompts(&self) -> Result<Listing<Prompt>> {
        list::all(&self.core).await
    }

    /// Returns the pages of a list: `connection.pages::<Tool>()`.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result};
    /// use linchpin_types::tool::Tool;
    ///
    /// async fn first_names(server: &Connection) -> Result<Vec<String>> {
    ///     let page = server.pages::<Tool>().next().await.transpose()?;
    ///     Ok(page.into_iter().flat_map(|page| page.items).map(|tool| tool.name).collect())
    /// }
    /// ```
    pub fn pages<T: Listed>(&self) -> Pages<T> {
        Pages::new(self)
    }

    /// Reads a resource, from the cache while it is fresh.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result};
    /// async fn page(server: &Connection) -> Result<String> {
    ///     Ok(server.read("weather://oslo").await?.text())
    /// }
    /// ```
    ///
    /// # Errors
    /// When awaited: [`Error`].
    #[doc(alias = "read_resource")]
    #[doc(alias = "readResource")]
    pub fn read(&self, uri: &str) -> Request<Decoded<ReadResourceResult>> {
        let mut request = RequestParts::new("resources/read");
        request.about = Some(uri.into());
        request.members.text("uri", uri);
        Request::new(self, Ok(request)).cached(Key { method: "resources/read", which: uri.to_owned() })
    }

    /// Requests a prompt. `arguments` must serialise to an object of strings; `()` means no arguments.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result};
    /// async fn briefing(server: &Connection) -> Result<usize> {
    ///     let prompt = server.prompt("brief", serde_json::json!({ "city": "Oslo" })).await?;
    ///     Ok(prompt.messages.len())
    /// }
    /// ```
    ///
    /// # Errors
    /// When awaited: [`Error`], including if `arguments` has another shape.
    #[doc(alias = "get_prompt")]
    #[doc(alias = "getPrompt")]
    pub fn prompt(&self, name: &str, arguments: impl Serialize) -> Request<Decoded<GetPromptResult>> {
        let mut request = RequestParts::new("prompts/get");
        request.about = Some(name.into());
        request.members.text("name", name);
        let arguments = serde_json::to_value(&arguments).and_then(|value| match value {
            serde_json::Value::Null => Ok(BTreeMap::new()),
            value => serde_json::from_value::<BTreeMap<String, String>>(value),
        });
        let request = arguments
            .and_then(|arguments| match arguments.is_empty() {
                true => Ok(()),
                false => request.members.value("arguments", &arguments),
            })
            .map(|()| request)
            .map_err(|why| {
                let text = format!("the arguments of prompt `{name}` must be texts: {why}");
                Error::with_source(ErrorKind::InvalidRequest, text, why)
            });
        Request::new(self, request)
    }

    /// Completes an argument of a prompt. `known` contains the other arguments that have been entered so far.
    ///
    /// # Errors
    /// When awaited: [`Error`].
    pub fn complete_prompt(
        &self,
        prompt: &str,
        argument: &str,
        value: &str,
        known: BTreeMap<String, String>,
    ) -> Request<Decoded<CompleteResult>> {
        self.complete(CompleteReference::prompt(prompt), argument, value, known)
    }

    /// Completes a variable of a resource template.
    ///
    /// # Errors
    /// When awaited: [`Error`].
    pub fn complete_template(
        &self,
        uri_template: &str,
        variable: &str,
        value: &str,
        known: BTreeMap<String, String>,
    ) -> Request<Decoded<CompleteResult>> {
        self.complete(CompleteReference::resource(uri_template), variable, value, known)
    }

    /// Completes an argument. Known arguments are omitted if the revision does not support them.
    ///
    /// # Errors
    /// When awaited: [`Error`].
    pub fn complete(
        &self,
        reference: CompleteReference,
        argument: &str,
        value: &str,
        known: BTreeMap<String, String>,
    ) -> Request<Decoded<CompleteResult>> {
        let context = self.live().is_some_and(|live| live.agreed.features.elicitation) && !known.is_empty();
        let argument = CompleteArgument::new(argument, value);
        let mut request = RequestParts::new("completion/complete");
        let written = request
            .members
            .value("ref", &reference)
            .and_then(|()| request.members.value("argument", &argument))
            .and_then(|()| match context {
                true => request.members.value("context", &CompleteContext::new(known)),
                false => Ok(()),
            });
        Request::new(self, written.map(|()| request).map_err(unwritable))
    }

    /// Sends a request with any method.
    ///
    /// `params` must serialise to an object, or be `()`. Its `_meta` is merged into the one that the protocol requires.
    ///
    /// # Errors
    /// When awaited: [`Error`], including if `params` has another shape.
    pub fn request(&self, method: &str, params: impl Serialize) -> Request<Decoded<Box<RawValue>>> {
        let mut request = RequestParts::new(method.to_owned());
        let bad = |why: String| Err(Error::new(ErrorKind::InvalidRequest, format!("the params of {method} {why}")));
        let request = match serde_json::value::to_raw_value(&params) {
            Err(why) => bad(format!("cannot be JSON: {why}")),
            Ok(raw) if raw.get() == "null" => Ok(request),
            Ok(raw) => match request.members.spread(raw.get(), about(method)) {
                Err(_) => bad("must be an object".to_owned()),
                Ok((meta, about)) => {
                    (request.meta, request.about) = (meta, about);
                    Ok(request)
                }
            },
        };
        Request::new(self, request)
    }

    /// Sends a notification. `params` must serialise to an object, or be `()`.
    ///
    /// If the future is dropped, the notification may not be sent.
    ///
    /// # Errors
    /// If `params` has another shape, or the notification cannot be sent.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let raw = serde_json::value::to_raw_value(&params).map_err(unwritable)?;
        let mut members = Members::loose();
        let meta = match raw.get() {
            "null" => None,
            object => {
                let bad =
                    |_| Error::new(ErrorKind::InvalidRequest, format!("the params of {method} must be an object"));
                members.spread(object, None).map_err(bad)?.0
            }
        };
        let live = self.core.live().await?;
        let out = live.writer.claimed_notification(method.to_owned(), meta.as_ref(), &members);
        Ok(live.link.notify(out).await?)
    }

    /// Checks whether the server is alive, with `ping` or `server/discover` depending on the revision.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// [`Error`] if it is not.
    pub async fn ping(&self) -> Result<()> {
        let pings = self.live().is_none_or(|live| linchpin_proto::era::defines(live.agreed.features, Method::Ping));
        let method = if pings { "ping" } else { "server/discover" };
        self.request(method, ()).await.map(drop)
    }

    /// Subscribes to changes until the returned stream is dropped; see [`Changes`].
    ///
    /// ```
    /// # use linchpin_client::{ChangeFilter, Connection, Result};
    /// async fn watch(server: &Connection) -> Result<()> {
    ///     let mut changes = server.listen(ChangeFilter::new().tools().resource("file:///notes")).await?;
    ///     while let Some(change) = changes.next().await {
    ///         println!("{change:?}");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// Cancel-safe: dropping the future unsubscribes.
    ///
    /// # Errors
    /// If the server refuses, for example because it does not support subscriptions, grants nothing of the filter
    /// ([`ErrorKind::NotGranted`]), or does not answer within `calls.run_ms_max`.
    pub async fn listen(&self, interests: ChangeFilter) -> Result<Changes> {
        listen::listen(&self.core, interests).await
    }

    /// Subscribes to changes to one resource; see [`Connection::listen`]. Cancel-safe.
    ///
    /// # Errors
    /// See [`Connection::listen`].
    pub async fn subscribe(&self, uri: &str) -> Result<Changes> {
        self.listen(ChangeFilter::new().resource(uri)).await
    }

    /// Sets the minimum level of log messages. In a session it applies from now on; otherwise it is sent with each
    /// call.
    ///
    /// If the future is dropped, a server with a session may not be notified.
    ///
    /// # Errors
    /// If the connection is lost. A server that refuses is not an error.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<()> {
        *lock(&self.core.log_level) = Some(level);
        let live = self.core.live().await?;
        negotiate::set_log_level(&self.core, &live).await;
        Ok(())
    }

    /// Notifies a server with sessions that the roots changed. Has no effect on stateless connections.
    ///
    /// If the future is dropped, the notification may not be sent.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub async fn roots_changed(&self) -> Result<()> {
        let told = self.live().is_none_or(|live| live.agreed.features.has_sessions);
        if !told || self.core.config.answers.roots.is_none() {
            return Ok(());
        }
        self.notify("notifications/roots/list_changed", ()).await
    }

    /// Returns the error with which the connection was lost or closed, if it was.
    pub fn lost(&self) -> Option<Error> {
        if self.core.is_closed() {
            return Some(Error::closed());
        }
        self.live().and_then(|live| live.lost.get().cloned()).map(Error::from)
    }

    /// Closes the connection gracefully, for all clones: running calls fail, and a child process is given time to exit.
    ///
    /// Dropping the future does not reopen the connection; it only stops waiting for the server.
    pub async fn close(&self) {
        if let Some(live) = self.core.shut() {
            live.link.close().await;
        }
    }

    pub(crate) fn core(&self) -> &Arc<ConnectionState> {
        &self.core
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("to", &self.core.connector.name())
            .field("revision", &self.revision())
            .field("handles", &Arc::strong_count(&self.handle))
            .finish_non_exhaustive()
    }
}

/// The error for a value that does not serialise to JSON.
fn unwritable(why: serde_json::Error) -> Error {
    Error::with_source(ErrorKind::InvalidRequest, why.to_string(), why)
}
