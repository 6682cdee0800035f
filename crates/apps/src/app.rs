//! A page of a server.

use crate::definition::{PAGE_BYTES_MAX, PAGE_TYPE, PageMeta, is_page};
use crate::policy::{Source, check};
use linchpin_server::{Register, Resource, Server};
use linchpin_types::capability::extension;
use linchpin_types::content::ResourceContents;
use linchpin_types::meta::IntoMeta as _;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A page that shows results of tools. Tools refer to it with `ui = "ui://clock/face"`.
///
/// The page is announced to clients that declare support for MCP Apps; for others the tools are ordinary tools. The page
/// communicates with its host as specified by the extension `io.modelcontextprotocol/ui`.
///
/// The page may only load from and connect to the origins that are declared here. The server does not start if the URI does not
/// begin with `ui://`, the page does not begin like HTML or is larger than 2 MiB, or an origin is invalid.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use linchpin::apps::App;
/// use linchpin::prelude::*;
///
/// let page = "<!doctype html><title>Clock</title>";
/// let app = App::new("ui://clock/face", page).connect(["https://time.example.com"]).border(true);
/// let server = Server::new("clock", "1.0").with(app);
///
/// let host = Client::new("host", "1.0").connect(in_process(server)).await?;
/// assert_eq!(host.read("ui://clock/face").await?.text(), page);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct App {
    uri: String,
    name: String,
    description: Option<String>,
    html: Arc<str>,
    meta: PageMeta,
}

impl App {
    /// Creates an app with this URI, for example `ui://clock/face`, and page.
    pub fn new(uri: impl Into<String>, html: impl Into<Cow<'static, str>>) -> App {
        let (uri, html) = (uri.into(), html.into());
        App { name: uri.clone(), uri, description: None, html: html.into(), meta: PageMeta::default() }
    }

    /// Sets the name. Default: the URI.
    pub fn name(mut self, name: impl Into<String>) -> App {
        self.name = name.into();
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> App {
        self.description = Some(description.into());
        self
    }

    /// Allows requests and WebSockets to these origins: `https://api.example.com`, `wss://…`, `https://*.example.com`.
    pub fn connect<I>(mut self, origins: I) -> App
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.meta.csp.connect_domains.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Allows scripts, styles, images, fonts and media from these origins.
    pub fn load<I>(mut self, origins: I) -> App
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.meta.csp.resource_domains.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Allows frames of these origins inside the page.
    pub fn frame<I>(mut self, origins: I) -> App
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.meta.csp.frame_domains.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Allows these origins as the base URI of the page.
    pub fn base<I>(mut self, origins: I) -> App
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.meta.csp.base_uri_domains.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Requests access to the camera.
    pub fn camera(mut self) -> App {
        self.meta.permissions.camera = Some(Map::new());
        self
    }

    /// Requests access to the microphone.
    pub fn microphone(mut self) -> App {
        self.meta.permissions.microphone = Some(Map::new());
        self
    }

    /// Requests access to the location.
    pub fn geolocation(mut self) -> App {
        self.meta.permissions.geolocation = Some(Map::new());
        self
    }

    /// Requests permission to write to the clipboard.
    pub fn clipboard_write(mut self) -> App {
        self.meta.permissions.clipboard_write = Some(Map::new());
        self
    }

    /// Requests a dedicated origin for the page, in the form that the host documents.
    pub fn domain(mut self, domain: impl Into<String>) -> App {
        self.meta.domain = Some(domain.into());
        self
    }

    /// Sets whether the host should draw a border and a background.
    pub fn border(mut self, on: bool) -> App {
        self.meta.prefers_border = Some(on);
        self
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut problem = |why: String| problems.push(format!("app `{}`: {why}", self.uri));
        if self.uri.strip_prefix("ui://").is_none_or(|rest| rest.is_empty() || rest.contains(['{', '}', ' '])) {
            problem("its URI begins with `ui://` and has no variables".to_owned());
        }
        if self.html.len() > PAGE_BYTES_MAX {
            problem(format!("the page is larger than {} MiB", PAGE_BYTES_MAX >> 20));
        } else if !is_page(Some(PAGE_TYPE), &self.html) {
            problem("the page does not begin like HTML, with `<!doctype html>`".to_owned());
        }
        let csp = &self.meta.csp;
        for (origins, source) in [
            (&csp.connect_domains, Source::Connect),
            (&csp.resource_domains, Source::Resource),
            (&csp.frame_domains, Source::Frame),
            (&csp.base_uri_domains, Source::BaseUri),
        ] {
            for origin in origins {
                if let Err(why) = check(origin, source) {
                    problem(format!("the origin {origin:?}: {why}"));
                }
            }
        }
        problems
    }
}

impl Register for App {
    fn register(server: Server<App>) -> Server<App> {
        let app = server.registered();
        let server = app.problems().into_iter().fold(server, Server::problem);
        let meta = json!({ "ui": app.meta });
        let mut resource = Resource::new(app.uri.as_str()).name(&app.name).mime_type(PAGE_TYPE).meta(meta);
        if let Some(description) = &app.description {
            resource = resource.description(description);
        }
        server.extension(extension::UI, Value::Object(Map::new())).resource(resource, page)
    }
}

fn page(app: &App) -> ResourceContents {
    let meta = json!({ "ui": app.meta }).into_meta();
    ResourceContents::text(app.uri.as_str(), &*app.html).with_mime_type(PAGE_TYPE).with_meta(meta)
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("uri", &self.uri).field("meta", &self.meta).finish_non_exhaustive()
    }
}
