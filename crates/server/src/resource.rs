//! The definition of a resource, and the result types of resource handlers.

use crate::access::Access;
use crate::completion::{Bindings, Completers};
use crate::downgrade;
use crate::error::{Error, Kind};
use crate::invocation::Bound;
use crate::layer::{self, Call, Layer, Next};
use crate::registry::{Entry, Snapshot};
use crate::string_args;
use crate::target::Target;
use crate::uri_template::UriTemplate;
use crate::viewer::Viewer;
use linchpin_core::{Reply, ReplyKind, ResultWriter};
use linchpin_types::content::{Annotations, Icon, ResourceContents};
use linchpin_types::error::code;
use linchpin_types::meta::IntoMeta;
use linchpin_types::page::CacheScope;
use linchpin_types::resource as features;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The definition of a resource or, if its URI has `{variables}`, of a resource template.
///
/// ```
/// # use linchpin_server::Resource;
/// let page = Resource::new("weather://{city}/{day}").name("weather").mime_type("text/markdown");
/// ```
#[derive(Clone)]
pub struct Resource {
    pub(crate) def: features::Resource,
    pub(crate) layers: Vec<Layer>,
    pub(crate) completers: Completers,
    pub(crate) cache: Option<(u64, CacheScope)>,
    pub(crate) place: &'static Location<'static>,
    pub(crate) access: Access,
}

impl Resource {
    /// Creates a resource with this URI, or a template (RFC 6570). Its name defaults to the URI.
    #[track_caller]
    pub fn new(uri: impl Into<String>) -> Resource {
        let uri = uri.into();
        let def = features::Resource::new(uri.clone(), uri);
        Resource {
            def,
            layers: Vec::new(),
            completers: Completers::default(),
            cache: None,
            place: Location::caller(),
            access: Access::default(),
        }
    }

    /// Sets the name.
    pub fn name(mut self, name: impl Into<String>) -> Resource {
        self.def.name = name.into();
        self
    }

    /// Sets the display name (from 2025-06-18 on).
    pub fn title(mut self, title: impl Into<String>) -> Resource {
        self.def.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Resource {
        self.def.description = Some(description.into());
        self
    }

    /// Sets the media type, which also applies to contents that do not set their own.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Resource {
        self.def.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the size in bytes.
    pub fn size(mut self, bytes: u64) -> Resource {
        self.def.size = Some(bytes);
        self
    }

    /// Sets the annotations: audience, priority and time of the last change.
    pub fn annotations(mut self, annotations: Annotations) -> Resource {
        self.def.annotations = Some(annotations);
        self
    }

    /// Adds an icon (from 2025-11-25 on).
    pub fn icon(mut self, icon: Icon) -> Resource {
        self.def.icons.push(icon);
        self
    }

    /// Sets the `_meta` of the definition (from 2025-06-18 on).
    ///
    /// It is a `Meta`, or JSON such as `json!({ "example.com/cost": 1 })`.
    ///
    /// # Panics
    /// If the JSON is not an object.
    pub fn meta(mut self, meta: impl IntoMeta) -> Resource {
        self.def.meta = Some(meta.into_meta());
        self
    }

    /// Sets how long (in milliseconds) and for whom the contents may be cached. Default: no caching.
    pub fn cache(mut self, ttl_ms: u64, scope: CacheScope) -> Resource {
        self.cache = Some((ttl_ms, scope));
        self
    }

    /// Sets the scopes that reads, subscriptions and completion require, as [`Tool::scopes`](crate::Tool::scopes) does.
    pub fn scopes<I>(mut self, scopes: I) -> Resource
    where
        I: IntoIterator,
        I::Item: Into<Arc<str>>,
    {
        self.access.set_scopes(scopes);
        self
    }

    /// Sets for which clients the resource exists: others do not see it in lists, cannot read it, and are not notified of its
    /// changes. For them, a request for it fails as if the resource did not exist.
    ///
    /// `visible` is called for every list and every read, so it must be fast. If a server has such items, its lists are built
    /// for each caller, and are never cached publicly. See [`Tool::visible_to`](crate::Tool::visible_to).
    pub fn visible_to(mut self, visible: impl Fn(&Viewer) -> bool + Send + Sync + 'static) -> Resource {
        self.access.set_visible(visible);
        self
    }

    /// Wraps reads of the resource in middleware; the last layer added runs first.
    pub fn layer<F, Fut>(mut self, layer: F) -> Resource
    where
        F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        self.layers.insert(0, layer::erase(layer));
        self
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.def.uri).finish_non_exhaustive()
    }
}

impl From<&str> for Resource {
    #[track_caller]
    fn from(uri: &str) -> Resource {
        Resource::new(uri)
    }
}

impl From<(&str, &str)> for Resource {
    /// URI and name.
    #[track_caller]
    fn from((uri, name): (&str, &str)) -> Resource {
        Resource::new(uri).name(name)
    }
}

/// A resource or template in the registry.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) def: features::Resource,
    pub(crate) template: Option<Arc<UriTemplate>>,
    pub(crate) target: Target,
    pub(crate) completers: Completers,
    pub(crate) completes: Arc<Bindings>,
    pub(crate) cache: Option<(u64, CacheScope)>,
    pub(crate) place: &'static Location<'static>,
    pub(crate) access: Access,
    bound: Bound,
}

impl Registered {
    /// The resource after `change`.
    pub(crate) fn changed(&self, change: impl FnOnce(Resource) -> Resource) -> Result<Registered, String> {
        let before = Resource {
            def: self.def.clone(),
            layers: self.target.layers.to_vec(),
            completers: self.completers.clone(),
            cache: self.cache,
            place: self.place,
            access: self.access.clone(),
        };
        let after = change(before);
        if after.def.uri != self.def.uri {
            return Err(format!("resource `{}`: an update cannot change its URI to `{}`", self.def.uri, after.def.uri));
        }
        register(after, self.bound.clone())
    }
}

/// The variables of a template and their values.
pub(crate) type Variables = Vec<(String, String)>;

impl Snapshot<Registered> {
    /// The resource of a URI, or the first template that matches it, if it exists for the viewer.
    pub(crate) fn resolve(
        &self,
        uri: &str,
        viewer: impl FnOnce() -> Viewer,
    ) -> Option<(&Arc<Entry<Registered>>, Variables)> {
        let vars = |entry: &Entry<Registered>| -> Option<Variables> {
            let vars = entry.item.template.as_ref()?.matches(uri)?;
            Some(vars.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
        };
        if self.per_viewer() {
            let viewer = viewer();
            return match self.find_for(uri, &viewer).filter(|entry| entry.item.template.is_none()) {
                Some(entry) => Some((entry, Vec::new())),
                None => self.visible(&viewer).into_iter().find_map(|entry| Some((entry, vars(entry)?))),
            };
        }
        match self.get(uri).filter(|entry| entry.item.template.is_none()) {
            Some(entry) => Some((entry, Vec::new())),
            None => self.entries.iter().find_map(|entry| Some((entry, vars(entry)?))),
        }
    }

    /// Whether there is a resource of this URI, or a template that matches it, for anybody.
    pub(crate) fn covers(&self, uri: &str) -> bool {
        let matches = |entry: &Entry<Registered>| match &entry.item.template {
            Some(template) => template.matches(uri).is_some(),
            None => entry.item.def.uri == uri,
        };
        self.everything().any(|entry| matches(entry))
    }
}

/// Binds a definition to its handler.
pub(crate) fn register(resource: Resource, bound: Bound) -> Result<Registered, String> {
    let Resource { def, layers, completers, cache, place, access } = resource;
    let at = |why: &str| format!("resource `{}` ({place}): {why}", def.uri);
    access.check().map_err(|why| at(&why))?;
    let completes = Arc::new(completers.bind(&bound).map_err(|why| at(&why))?);
    let scheme = def.uri.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        || !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    {
        return Err(at("a URI begins with a scheme, for example `notes://`"));
    }
    let template = if crate::uri_template::is_template(&def.uri) {
        Some(Arc::new(UriTemplate::parse(&def.uri).map_err(|e| at(&e.to_string()))?))
    } else {
        None
    };
    if let Some(template) = &template {
        let wanted = (bound.input)();
        let known: Vec<String> = template.variables().map(|v| v.to_string()).collect();
        string_args::check(&wanted, |name| known.iter().any(|k| k == name)).map_err(|why| at(&why))?;
        for name in wanted["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !known.iter().any(|k| k == name) {
                return Err(at(&format!("the handler needs `{name}`, which is not a variable of the template")));
            }
        }
    }
    let mime: Option<Arc<str>> = def.mime_type.as_deref().map(Into::into);
    let handler = bound.run.clone();
    let run = Arc::new(move |mut call: crate::invocation::Invocation| {
        call.out.annotate(mime.clone());
        handler(call)
    });
    let (wants_cx, per_session) = (bound.wants_cx, bound.per_session);
    let name = def.uri.as_str().into();
    let target = Target { name, run, layers: layers.into(), wants_cx, per_session, explain: None };
    Ok(Registered { def, template, target, completers, completes, cache, place, access, bound })
}

/// Text with the media type `text/markdown`.
///
/// ```
/// # use linchpin_server::{Markdown, Server};
/// let server = Server::new("docs", "1.0").resource("docs://intro", || Markdown("# Introduction".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Markdown(pub String);

/// The result of a resource handler. The requested URI and the definition's media type are filled in if missing. An
/// empty `Vec<ResourceContents>` means that the resource does not exist.
///
/// ```
/// # use linchpin_server::{Json, Server};
/// fn numbers() -> Result<Json<Vec<u32>>, std::io::Error> {
///     Ok(Json(vec![1, 2, 3]))
/// }
/// let server = Server::new("s", "1")
///     .resource("demo://text", || "text".to_owned())
///     .resource("demo://bytes", || vec![0_u8, 159, 146, 150])
///     .resource("demo://numbers", numbers);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the contents of a resource",
    label = "not resource contents",
    note = "return `String`, `Vec<u8>`, `Markdown`, `Json<T>`, `ResourceContents`, a `Vec` of these contents, or `Result<_, E>` of one of these"
)]
pub trait IntoContents {
    /// Returns the contents of `uri`.
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, Error>;
    /// Writes the response.
    fn into_reply(self, out: ResultWriter) -> Reply
    where
        Self: Sized,
    {
        let uri = out.uri().unwrap_or_default().to_owned();
        match self.into_contents(&uri) {
            Ok(contents) => write(contents, out),
            Err(error) => fail(error, &uri, out),
        }
    }
    /// Resources have no output schema.
    #[doc(hidden)]
    fn output_schema() -> Option<Value> {
        None
    }
}

fn write(mut contents: Vec<ResourceContents>, mut out: ResultWriter) -> Reply {
    let (features, mime) = (out.features(), out.annotation());
    for item in &mut contents {
        downgrade::contents(item, features);
        if item.mime_type().is_none()
            && let Some(mime) = &mime
        {
            *item = item.clone().with_mime_type(&**mime);
        }
    }
    out.key("contents");
    match out.serialize(&contents) {
        Ok(()) => out.finish(ReplyKind::Complete),
        Err(_) => out.error(code::INTERNAL_ERROR, "the contents could not be written as JSON", None),
    }
}

/// A failed read is a JSON-RPC error, because resources have no `isError`.
fn fail(error: Error, uri: &str, out: ResultWriter) -> Reply {
    match error.kind() {
        Kind::Protocol(code::RESOURCE_NOT_FOUND, None) => {
            error.log_chain();
            let quoted = serde_json::json!({ "uri": uri }).to_string();
            let code = out.features().resource_not_found;
            out.error(code, &format!("{error}: {}", crate::shared::clip(uri)), Some(&quoted))
        }
        _ => error.into_rpc(out),
    }
}

impl IntoContents for String {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        Ok(vec![ResourceContents::text(uri, self)])
    }
}

impl IntoContents for &'static str {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        Ok(vec![ResourceContents::text(uri, self)])
    }
}

impl IntoContents for Markdown {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        Ok(vec![ResourceContents::text(uri, self.0).with_mime_type("text/markdown")])
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        Ok(vec![ResourceContents::blob(uri, &self)])
    }
}

impl<T: Serialize> IntoContents for crate::tool_result::Json<T> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        let text = serde_json::to_string(&self.0)?;
        Ok(vec![ResourceContents::text(uri, text).with_mime_type("application/json")])
    }
}

impl IntoContents for ResourceContents {
    fn into_contents(self, _: &str) -> Result<Vec<ResourceContents>, Error> {
        Ok(vec![self])
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self, _: &str) -> Result<Vec<ResourceContents>, Error> {
        if self.is_empty() { Err(Error::not_found()) } else { Ok(self) }
    }
}

impl<T: IntoContents, E: fmt::Display + Send + 'static> IntoContents for Result<T, E> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        match self {
            Ok(answer) => answer.into_contents(uri),
            Err(error) => Err(Error::from_printable(error)),
        }
    }
}
