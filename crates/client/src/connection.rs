//! A connection to one server.

use crate::cache::Key;
use crate::call::Call;
use crate::core::{Core, Live, Request, lock};
use crate::error::Error;
use crate::list::{self, Listed, Listing, Pages};
use crate::listen::{self, Changes, Interests};
use crate::result::{CallResult, Decoded};
use crate::{Result, open};
use linchpin_proto::Method;
use linchpin_proto::outgoing::about;
use linchpin_types::capability::ServerCapabilities;
use linchpin_types::complete::{
    CompleteArgument, CompleteContext, CompleteReference, CompleteResult, PromptReference, ResourceTemplateReference,
};
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

/// A connection to one server. Clones share it; it ends with the last one, or with [`Connection::close`].
#[derive(Clone)]
pub struct Connection {
    core: Arc<Core>,
    /// Ends the connection with the last handle, although tasks still know the core.
    handle: Arc<Handle>,
}

struct Handle(Arc<Core>);

impl Drop for Handle {
    fn drop(&mut self) {
        let Some(live) = self.0.shut() else { return };
        // In good order if there is still a runtime; otherwise dropping the link does what can be done.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { live.link.close().await });
        }
    }
}

impl Connection {
    pub(crate) fn new(core: Arc<Core>) -> Connection {
        Connection { handle: Arc::new(Handle(core.clone())), core }
    }

    fn live(&self) -> Option<Arc<Live>> {
        self.core.latest()
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        // A connection exists only after it was opened.
        self.live().map_or(Revision::LATEST, |live| live.agreed.wire.revision)
    }

    /// Whether every request stands alone, as in the newest revision, or belongs to a session.
    pub fn stateless(&self) -> bool {
        self.live().is_some_and(|live| !live.agreed.wire.has_sessions)
    }

    /// Who the server says it is. Not verified by anybody.
    pub fn server(&self) -> Option<Implementation> {
        self.live().and_then(|live| live.agreed.server.clone())
    }

    /// What the server can do.
    pub fn capabilities(&self) -> ServerCapabilities {
        self.live().map(|live| live.agreed.capabilities.clone()).unwrap_or_default()
    }

    /// What the server wants a model to know about its use.
    pub fn instructions(&self) -> Option<String> {
        self.live().and_then(|live| live.agreed.instructions.clone())
    }

    /// The protocol versions that the server named, as text.
    pub fn versions(&self) -> Vec<String> {
        self.live().map(|live| live.agreed.versions.clone()).unwrap_or_default()
    }

    /// The whole answer to the opening (`DiscoverResult` or `InitializeResult`) as JSON text.
    pub fn opening(&self) -> String {
        self.live().map(|live| live.agreed.result.to_string()).unwrap_or_default()
    }

    /// Calls a tool. `arguments` is anything that serialises to an object; `()` is none.
    ///
    /// # Errors
    /// On awaiting: [`Error`]. That a tool says it failed is no error here: see [`CallResult::is_error`] and
    /// [`CallResult::json`].
    pub fn call(&self, name: &str, arguments: impl Serialize) -> Call<CallResult> {
        let mut request = Request::new("tools/call");
        request.about = Some(name.into());
        request.members.text("name", name);
        let start = request.members.as_bytes().len() + "\"arguments\":".len();
        let request = match request.members.value("arguments", &arguments) {
            Err(why) => Err(Error::Arguments(format!("the arguments of `{name}` cannot be JSON: {why}"))),
            Ok(()) => {
                let text = &request.members.as_bytes()[start..];
                match text.first() {
                    Some(b'{') => request.arguments = Some(start..start + text.len() - 1),
                    Some(b'n') => {
                        // `null`, as `()` is written: no arguments.
                        request.members = Request::new("").members;
                        request.members.text("name", name);
                        let start = request.members.as_bytes().len() + "\"arguments\":".len();
                        request.members.raw("arguments", "{}");
                        request.arguments = Some(start..start + 2);
                    }
                    _ => {
                        let why = format!("the arguments of `{name}` must be an object");
                        return Call::new(self, Err(Error::Arguments(why)));
                    }
                }
                Ok(request)
            }
        };
        Call::new(self, request)
    }

    /// All tools, from the cache while they are fresh. Empty when the server offers none.
    ///
    /// # Errors
    /// [`Error`], also when the list goes on past `pages_max` or `items_max`.
    pub async fn tools(&self) -> Result<Listing<Tool>> {
        list::tools(&self.core).await
    }

    /// All resources; see [`Connection::tools`].
    ///
    /// # Errors
    /// As there.
    pub async fn resources(&self) -> Result<Listing<Resource>> {
        list::all(&self.core).await
    }

    /// All resource templates; see [`Connection::tools`].
    ///
    /// # Errors
    /// As there.
    pub async fn resource_templates(&self) -> Result<Listing<ResourceTemplate>> {
        list::all(&self.core).await
    }

    /// All prompts; see [`Connection::tools`].
    ///
    /// # Errors
    /// As there.
    pub async fn prompts(&self) -> Result<Listing<Prompt>> {
        list::all(&self.core).await
    }

    /// The pages of a list: `connection.pages::<Tool>()`.
    pub fn pages<T: Listed>(&self) -> Pages<T> {
        Pages::new(self)
    }

    /// Reads a resource, from the cache while it is fresh.
    pub fn read(&self, uri: &str) -> Call<Decoded<ReadResourceResult>> {
        let mut request = Request::new("resources/read");
        request.about = Some(uri.into());
        request.members.text("uri", uri);
        Call::new(self, Ok(request)).cached(Key { method: "resources/read", which: uri.to_owned() })
    }

    /// Renders a prompt. `arguments` serialises to an object of texts; `()` is none.
    pub fn prompt(&self, name: &str, arguments: impl Serialize) -> Call<Decoded<GetPromptResult>> {
        let mut request = Request::new("prompts/get");
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
            .map_err(|why| Error::Arguments(format!("the arguments of prompt `{name}` must be texts: {why}")));
        Call::new(self, request)
    }

    /// Suggestions for an argument of a prompt that is being typed. `known` are arguments filled in already.
    pub fn complete_prompt(
        &self,
        prompt: &str,
        argument: &str,
        value: &str,
        known: BTreeMap<String, String>,
    ) -> Call<Decoded<CompleteResult>> {
        let reference = CompleteReference::Prompt(PromptReference { name: prompt.to_owned(), title: None });
        self.complete(reference, argument, value, known)
    }

    /// Suggestions for a variable of a resource template that is being typed.
    pub fn complete_template(
        &self,
        uri_template: &str,
        variable: &str,
        value: &str,
        known: BTreeMap<String, String>,
    ) -> Call<Decoded<CompleteResult>> {
        let reference = CompleteReference::Resource(ResourceTemplateReference { uri: uri_template.to_owned() });
        self.complete(reference, variable, value, known)
    }

    /// Suggestions for an argument. What is known already is left out where the revision has no place for it.
    pub fn complete(
        &self,
        reference: CompleteReference,
        argument: &str,
        value: &str,
        known: BTreeMap<String, String>,
    ) -> Call<Decoded<CompleteResult>> {
        let context = self.live().is_some_and(|live| live.agreed.wire.elicitation) && !known.is_empty();
        let argument = CompleteArgument { name: argument.to_owned(), value: value.to_owned() };
        let mut request = Request::new("completion/complete");
        let written = request
            .members
            .value("ref", &reference)
            .and_then(|()| request.members.value("argument", &argument))
            .and_then(|()| match context {
                true => request.members.value("context", &CompleteContext { arguments: known }),
                false => Ok(()),
            });
        Call::new(self, written.map(|()| request).map_err(|why| Error::Arguments(why.to_string())))
    }

    /// Any request: `params` serialises to an object, or `()`. A `_meta` in it is added to the one the revision wants.
    pub fn request(&self, method: &str, params: impl Serialize) -> Call<Decoded<Box<RawValue>>> {
        let mut request = Request::new(method.to_owned());
        let bad = |why: String| Err(Error::Arguments(format!("the params of {method} {why}")));
        let request = match serde_json::value::to_raw_value(&params) {
            Err(why) => bad(format!("cannot be JSON: {why}")),
            Ok(raw) if raw.get() == "null" => Ok(request),
            Ok(raw) => match request.members.spread(raw.get()) {
                Err(_) => bad("must be an object".to_owned()),
                Ok(meta) => {
                    request.meta = meta;
                    if let Some(member) = about(method) {
                        let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap_or_default();
                        request.about = value.get(member).and_then(|v| v.as_str()).map(Into::into);
                    }
                    Ok(request)
                }
            },
        };
        Call::new(self, request)
    }

    /// Sends a notification. `params` serialises to an object, or `()`.
    ///
    /// # Errors
    /// When it cannot be handed to the wire.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let raw = serde_json::value::to_raw_value(&params).map_err(|why| Error::Arguments(why.to_string()))?;
        let live = self.core.live().await?;
        let mut written = Ok(None);
        let out = live.writer.notification(method.to_owned(), |members| {
            if raw.get() != "null" {
                written = members.spread(raw.get());
            }
            if let Ok(Some(meta)) = &written {
                let _ = members.value("_meta", meta);
            }
        });
        written.map_err(|_| Error::Arguments(format!("the params of {method} must be an object")))?;
        Ok(live.link.tell(out).await?)
    }

    /// Asks whether the server is alive, in the way its revision has: `ping`, or `server/discover`.
    ///
    /// # Errors
    /// [`Error`] when it is not.
    pub async fn ping(&self) -> Result<()> {
        let pings = self.live().is_none_or(|live| live.agreed.wire.defines(Method::Ping));
        let method = if pings { "ping" } else { "server/discover" };
        self.request(method, ()).await.map(drop)
    }

    /// Hears of changes until the returned stream is dropped; see [`Changes`].
    ///
    /// # Errors
    /// When the server refuses, for example because it has no subscriptions.
    pub async fn listen(&self, interests: Interests) -> Result<Changes> {
        listen::listen(&self.core, interests).await
    }

    /// Hears of changes of one resource; see [`Connection::listen`].
    ///
    /// # Errors
    /// As there.
    pub async fn subscribe(&self, uri: &str) -> Result<Changes> {
        self.listen(Interests::new().resource(uri)).await
    }

    /// Sets the least severe level of log messages to send, for a session from now on, otherwise for each call.
    ///
    /// # Errors
    /// When the connection is lost. A server that refuses is not an error: it sends what it sends.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<()> {
        *lock(&self.core.log_level) = Some(level);
        let live = self.core.live().await?;
        open::set_log_level(&self.core, &live).await;
        Ok(())
    }

    /// Tells a server with sessions that the roots are others now. Does nothing where there are none to tell.
    ///
    /// # Errors
    /// When it cannot be handed to the wire.
    pub async fn roots_changed(&self) -> Result<()> {
        let told = self.live().is_none_or(|live| live.agreed.wire.has_sessions);
        if !told || self.core.recipe.answers.roots.is_none() {
            return Ok(());
        }
        self.notify("notifications/roots/list_changed", ()).await
    }

    /// Whether the connection is lost or closed, and how.
    pub fn lost(&self) -> Option<Error> {
        if self.core.is_closed() {
            return Some(Error::Closed);
        }
        self.live().and_then(|live| live.lost.get().cloned()).map(Error::Link)
    }

    /// Ends the connection in good order, for all clones: calls that run fail, a child is given time to exit.
    pub async fn close(&self) {
        if let Some(live) = self.core.shut() {
            live.link.close().await;
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("to", &self.core.dial.name())
            .field("revision", &self.revision())
            .field("handles", &Arc::strong_count(&self.handle))
            .finish_non_exhaustive()
    }
}
