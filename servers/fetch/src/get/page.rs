//! Fetches a page: robots.txt, redirects hop by hop, the cache.

use super::address::{failed, is_here, kind_of, place_shown, redirected, shown, why};
use super::cache::Cache;
use super::codings::{Packed, codings, packed, unpack};
use super::robots::{self, Refusal, Robots};
use crate::config::{Config, HostHeader};
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use linchpin::transport::web::{Web, WebError, WebErrorKind, WebResponse};
use linchpin_kit::{ErrorKind, ToolError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use url::Url;

/// Who requested the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// A model, by the tool: robots.txt applies.
    Model,
    /// A user, by the prompt.
    Person,
}

/// A fetched page.
#[derive(Debug)]
pub(crate) struct Page {
    /// The requested URL, for display. Errors name this one: the target of a redirect is third-party content.
    pub(crate) asked: String,
    /// The URL after redirects, without credentials.
    pub(crate) final_url: Url,
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    /// Unique for each download.
    pub(crate) id: u64,
    /// Whether the site disallows caching.
    fleeting: bool,
}

/// Fetches pages.
pub(crate) struct Getter {
    web: Web,
    agents: [HeaderValue; 2],
    tokens: Vec<String>,
    headers: Vec<HostHeader>,
    ignore_robots: bool,
    whole_robots: bool,
    bytes_max: usize,
    pages: Cache<Page>,
    robots: Cache<Robots>,
}

const HOPS_MAX: usize = 10;
const ROBOTS_HOPS_MAX: usize = 5;
const PAGES_KEPT_MAX: usize = 64;
const BYTES_KEPT_MAX: usize = 32 << 20;
const ROBOTS_KEPT_MAX: usize = 128;
const TYPE_CHARS_MAX: usize = 200;

static DOWNLOADS: AtomicU64 = AtomicU64::new(0);

impl Getter {
    pub(crate) fn new(config: &Config, web: Web) -> Result<Self, ToolError> {
        let agents = config.user_agents()?;
        let tokens = robots::tokens(agents[0].to_str().unwrap_or_default());
        let ttl = Duration::from_millis(config.cache_ttl_ms);
        Ok(Self {
            web,
            agents,
            tokens,
            headers: config.headers.clone(),
            ignore_robots: config.ignore_robots_txt,
            whole_robots: config.compat,
            bytes_max: config.max_bytes,
            pages: Cache::new(PAGES_KEPT_MAX, BYTES_KEPT_MAX, ttl),
            robots: Cache::new(ROBOTS_KEPT_MAX, BYTES_KEPT_MAX, ttl),
        })
    }

    /// Returns a page, and whether it comes from the cache. For the first slice, a page whose site disallows caching is
    /// fetched again; further slices come from the cache, so that they are consistent. Ends at the deadline `by`.
    pub(crate) async fn page(
        &self,
        url: &Url,
        who: Who,
        beginning: bool,
        by: Instant,
    ) -> Result<(Arc<Page>, bool), ToolError> {
        let mut asked = url.clone();
        asked.set_fragment(None);
        let key = format!("{who:?} {asked}");
        if let Some(kept) = self.pages.get(&key, Instant::now()).filter(|page| !(beginning && page.fleeting)) {
            return Ok((kept, true));
        }
        let page = Arc::new(self.fetch(asked, who, by).await?);
        self.pages.put(key, page.clone(), page.body.len() + 1_024, Instant::now());
        Ok((page, false))
    }

    async fn fetch(&self, url: Url, who: Who, by: Instant) -> Result<Page, ToolError> {
        let mut here = url.clone();
        for _ in 0..=HOPS_MAX {
            if who == Who::Model && !self.ignore_robots {
                self.may_fetch(&url, &here, by).await?;
            }
            let failed = |e: &WebError| failed(&url, &here, e);
            let headers = self.headers_for(&here, who);
            let answer = self.web.get_by(here.as_str(), headers, by).await.map_err(|e| failed(&e))?;
            match answer.next().map_err(|e| failed(&e))? {
                Some(next) => here = redirected(&url, &next)?,
                None => return self.receive(&url, here, answer).await,
            }
        }
        Err(ToolError::new(format!("Failed to fetch {}: it redirects more than {HOPS_MAX} times", shown(&url)))
            .kind(ErrorKind::Upstream { status: None }))
    }

    async fn receive(&self, asked: &Url, mut here: Url, mut answer: WebResponse) -> Result<Page, ToolError> {
        let status = answer.parts.status.as_u16();
        if status >= 400 {
            let fault = ToolError::new(format!("Failed to fetch {} - status code {status}", shown(asked)));
            let fault = fault.kind(ErrorKind::Upstream { status: Some(status) });
            return Err(match status {
                401 | 403 => {
                    fault.kind(ErrorKind::Denied).hint("The site blocks programs from this page, or requires a login.")
                }
                404 | 410 => fault
                    .kind(ErrorKind::NotFound)
                    .hint("The page does not exist; look for the right URL on another page."),
                429 => fault.kind(ErrorKind::Limited { retry_after: None }).hint("The site may answer later."),
                500.. => fault.hint("The site may answer later."),
                _ => fault,
            });
        }
        let body = answer.body.read_all(self.bytes_max).await.map_err(|e| failed(asked, &here, &e))?;
        let (codings, bytes_max) = (codings(&answer.parts.headers), self.bytes_max);
        let body = match codings.is_empty() {
            true => body,
            // Measuring an address must not reveal anything to others.
            false => tokio::task::spawn_blocking(move || unpack(body, &codings, bytes_max, true))
                .await
                .unwrap_or(Err(Packed::Broken))
                .map_err(|why| packed(&format!("Failed to fetch {}", shown(asked)), why))?,
        };
        let text = |name| {
            answer.parts.headers.get(name).map(|v: &HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned())
        };
        let kept = text(CACHE_CONTROL).unwrap_or_default().to_ascii_lowercase();
        let fleeting = ["no-store", "no-cache", "max-age=0"].iter().any(|word| kept.contains(word));
        // It is part of results, so its length is limited.
        let content_type: String = text(CONTENT_TYPE).unwrap_or_default().chars().take(TYPE_CHARS_MAX).collect();
        // Credentials in the URL are not shown.
        let _ = here.set_username("");
        let _ = here.set_password(None);
        let id = DOWNLOADS.fetch_add(1, Ordering::Relaxed);
        Ok(Page { asked: shown(asked), final_url: here, status, content_type, body, id, fleeting })
    }

    fn headers_for(&self, url: &Url, who: Who) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let agent = match who {
            Who::Model => &self.agents[0],
            Who::Person => &self.agents[1],
        };
        headers.insert(USER_AGENT, agent.clone());
        headers.insert(ACCEPT, ACCEPTED);
        let safe = url.scheme() == "https" || is_here(url);
        for header in self.headers.iter().filter(|header| safe && header.host.matches(url.as_str())) {
            headers.insert(header.name.clone(), header.value.clone());
        }
        headers
    }

    /// Checks robots.txt for this URL, to which `asked` led.
    async fn may_fetch(&self, asked: &Url, url: &Url, by: Instant) -> Result<(), ToolError> {
        let mut place = url.clone();
        place.set_path("/robots.txt");
        place.set_query(None);
        place.set_fragment(None);
        let key = place.to_string();
        let robots = match self.robots.get(&key, Instant::now()) {
            Some(robots) => robots,
            None => {
                let (robots, bytes) = self.fetch_robots(asked, place.clone(), by).await?;
                let robots = Arc::new(robots);
                self.robots.put(key, robots.clone(), bytes + 256, Instant::now());
                robots
            }
        };
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let Some(refusal) = robots.refuses(&self.tokens, &path) else { return Ok(()) };
        let agent = self.agents[0].to_str().unwrap_or_default();
        // robots.txt and redirect targets are third-party content, which does not belong in errors except in compat
        // mode.
        let (place, url) = match self.whole_robots {
            true => (shown(&place), shown(url)),
            false => (place_shown(asked, &place), shown(asked)),
        };
        let why = match refusal {
            Refusal::Whole(file) => format!("<robots>\n{file}\n</robots>"),
            Refusal::Line(line) => format!("\nSee line {line} of it."),
            Refusal::TooMany => {
                "\nIt has too many rules to match against such a long URL, so fetching is refused.".to_owned()
            }
        };
        Err(ToolError::denied(format!(
            "The sites robots.txt ({place}), specifies that autonomous fetching of this page is not allowed, \
             <useragent>{agent}</useragent>\n<url>{url}</url>{why}"
        ))
        .hint(ASK_A_PERSON))
    }

    async fn fetch_robots(&self, asked: &Url, place: Url, by: Instant) -> Result<(Robots, usize), ToolError> {
        let named = place_shown(asked, &place);
        let trouble = |here: &Url, e: &WebError| match e.kind() {
            WebErrorKind::Refused => failed(asked, here, e),
            _ => {
                let why = why(asked, here, e);
                ToolError::new(format!("Failed to fetch robots.txt {named} due to a connection issue: {why}"))
                    .kind(kind_of(e.kind()))
            }
        };
        let mut here = place;
        for _ in 0..=ROBOTS_HOPS_MAX {
            let headers = self.headers_for(&here, Who::Model);
            let answer = self.web.get_by(here.as_str(), headers, by).await.map_err(|e| trouble(&here, &e))?;
            if let Some(next) = answer.next().map_err(|e| trouble(&here, &e))? {
                here = redirected(asked, &next)?;
                continue;
            }
            let status = answer.parts.status.as_u16();
            let said = format!("When fetching robots.txt ({named}), received status {status}");
            return match status {
                401 | 403 => {
                    Err(ToolError::denied(format!("{said} so assuming that autonomous fetching is not allowed"))
                        .hint(ASK_A_PERSON))
                }
                400..=499 => Ok((Robots::default(), 0)),
                500.. => Err(ToolError::new(format!("{said}: the rules for programs are currently unavailable"))
                    .kind(ErrorKind::Upstream { status: Some(status) })
                    .hint(format!("Try again in some minutes. {ASK_A_PERSON}"))),
                _ => {
                    let codings = codings(&answer.parts.headers);
                    let bytes = beginning(answer).await.map_err(|e| trouble(&here, &e))?;
                    let bytes = unpack(bytes, &codings, robots::BYTES_MAX, false)
                        .map_err(|why| packed(&format!("Failed to fetch robots.txt {named}"), why))?;
                    let text = String::from_utf8_lossy(&bytes);
                    Ok((Robots::parse(&text, self.whole_robots), text.len()))
                }
            };
        }
        Err(ToolError::new(format!("Failed to fetch robots.txt {named}: it redirects too often")))
    }
}

/// The part of a robots.txt that is used.
async fn beginning(mut answer: WebResponse) -> Result<Bytes, WebError> {
    let mut bytes = Vec::new();
    while bytes.len() < robots::BYTES_MAX {
        let Some(more) = answer.body.chunk().await? else { break };
        bytes.extend_from_slice(&more[..more.len().min(robots::BYTES_MAX - bytes.len())]);
    }
    Ok(bytes.into())
}

const ACCEPTED: HeaderValue =
    HeaderValue::from_static("text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,*/*;q=0.8");
const ASK_A_PERSON: &str = "Tell the user that the page was not fetched. They can fetch it themselves with the prompt `fetch`; the \
    operator can start the server with --ignore-robots-txt.";
