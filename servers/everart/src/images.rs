//! What images were made, and loading them from the hosts that the operator allows.

use crate::Config;
use bytes::Bytes;
use http::{HeaderMap, Method};
use linchpin::BoxFuture;
use linchpin::transport::web::{HostRule, Reach, Web};
use linchpin::types::content::ContentBlock;
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::{Ask, Rest};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Images that a session's list has at most: the last ones.
const LISTED_MAX: usize = 100;

/// Bytes of all images of a result together, and the time to load one.
const BYTES_MAX: usize = 10 << 20;
const LOAD: Duration = Duration::from_secs(30);

/// An image that is being made, or was.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) id: String,
    pub(crate) status: String,
    /// An `https` address.
    pub(crate) url: Option<String>,
    prompt: String,
    model: String,
}

impl Image {
    /// What the API says of one, if it says enough.
    pub(crate) fn read(said: &Value, prompt: &str, model: &str) -> Option<Image> {
        let id = said["id"].as_str().filter(|id| !id.is_empty())?.to_owned();
        let mut image =
            Image { id, status: String::new(), url: None, prompt: prompt.to_owned(), model: model.to_owned() };
        image.learn(said).then_some(image)
    }

    /// Takes what the API says; false if it is not what was expected.
    fn learn(&mut self, said: &Value) -> bool {
        let Some(status) = said["status"].as_str() else { return false };
        status.clone_into(&mut self.status);
        let url = said["image_url"].as_str().filter(|url| !url.is_empty());
        if let Some(url) = url {
            self.url = url.starts_with("https://").then(|| url.to_owned());
            // With an address it is over, whatever that is called.
            if !self.is_over() {
                "SUCCEEDED".clone_into(&mut self.status);
            }
        }
        true
    }

    pub(crate) fn is_over(&self) -> bool {
        is_over(&self.status)
    }

    /// Asks how it is.
    pub(crate) async fn look(&mut self, rest: &Rest) -> Result<(), ToolError> {
        let found = rest.send(Ask::get("/generations/{id}").segment("id", &self.id)).await?.json()?;
        if self.learn(&found["generation"]) {
            return Ok(());
        }
        let odd = "Error: EverArt answered without the state of a generation";
        Err(ToolError::new(odd).kind(ErrorKind::Upstream { status: None }))
    }
}

/// Whether this is the state of an image that changes no more.
pub(crate) fn is_over(status: &str) -> bool {
    matches!(status, "SUCCEEDED" | "FAILED" | "CANCELED" | "CANCELLED")
}

/// Images as data.
pub(crate) fn listed(images: &[Image]) -> Value {
    let each = images.iter().map(|image| {
        let mut listed =
            json!({ "id": image.id, "status": image.status, "model": image.model, "prompt": image.prompt });
        if let Some(url) = &image.url {
            listed["url"] = json!(url);
        }
        listed
    });
    each.collect()
}

/// What a session has: its images, and how they are loaded.
pub(crate) struct Own {
    list: Mutex<Vec<Image>>,
    loader: Option<Arc<dyn Loader>>,
    hosts: Vec<HostRule>,
}

impl Own {
    pub(crate) fn new(loader: Option<Arc<dyn Loader>>, hosts: Vec<HostRule>) -> Own {
        Own { list: Mutex::default(), loader, hosts }
    }

    /// Adds images to the list, or what is new of them.
    pub(crate) fn note(&self, made: &[Image]) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        for image in made {
            match list.iter_mut().find(|known| known.id == image.id) {
                Some(known) => known.clone_from(image),
                None => list.push(image.clone()),
            }
        }
        let more = list.len().saturating_sub(LISTED_MAX);
        list.drain(..more);
    }

    pub(crate) fn all(&self) -> Vec<Image> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Images as blocks, or a text that says why there is none.
    pub(crate) async fn load(&self, images: &[&Image]) -> Vec<ContentBlock> {
        let Some(loader) = &self.loader else { return Vec::new() };
        let (mut blocks, mut left) = (Vec::new(), BYTES_MAX);
        for url in images.iter().filter_map(|image| image.url.as_deref()) {
            if !self.hosts.iter().any(|rule| rule.matches(url)) {
                let text = "[The image is on a host that --image-host does not name: it was not loaded.]";
                blocks.push(ContentBlock::text(text));
                continue;
            }
            match loader.load(url, left).await {
                Ok(bytes) => match kind(&bytes) {
                    Some(kind) => {
                        left = left.saturating_sub(bytes.len());
                        blocks.push(ContentBlock::image(&bytes, kind));
                    }
                    None => blocks.push(ContentBlock::text("[What is at the image's address is not an image.]")),
                },
                Err(error) => {
                    blocks.push(ContentBlock::text(format!("[The image could not be loaded: {}]", error.message())))
                }
            }
        }
        blocks
    }
}

/// What an image is by its first bytes, whatever its server says.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    let riff = bytes.len() > 12 && bytes.starts_with(b"RIFF") && &bytes[8..12] == b"WEBP";
    match bytes {
        _ if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if bytes.starts_with(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if riff => Some("image/webp"),
        _ => None,
    }
}

/// Loads what is at an address of an allowed host.
pub trait Loader: Send + Sync + 'static {
    /// At most so many bytes.
    fn load<'a>(&'a self, url: &'a str, bytes_max: usize) -> BoxFuture<'a, Result<Bytes, ToolError>>;
}

/// From the network: without the key, without redirects, from public addresses only.
pub(crate) struct Network(Web);

impl Network {
    pub(crate) fn new(config: &Config) -> Result<Network, ToolError> {
        Ok(Network(Web::new(config.api.web(std::iter::empty())?.with(|web| {
            web.reach = Reach::Public;
            web.https_only = true;
            web.only_hosts.clone_from(&config.image_hosts);
            web.body_bytes_max = None;
            web.decompress = false;
        }))))
    }
}

impl Loader for Network {
    fn load<'a>(&'a self, url: &'a str, bytes_max: usize) -> BoxFuture<'a, Result<Bytes, ToolError>> {
        Box::pin(async move {
            let by = Instant::now() + LOAD;
            let failed = |e: linchpin::transport::web::WebError| ToolError::new(e.to_string());
            let sent = self.0.request_by(Method::GET, url, HeaderMap::new(), Bytes::new(), by).await;
            let mut response = sent.map_err(failed)?;
            if !response.parts.status.is_success() {
                return Err(ToolError::new(format!("status {}", response.parts.status.as_u16())));
            }
            response.body.read_all(bytes_max).await.map_err(failed)
        })
    }
}
