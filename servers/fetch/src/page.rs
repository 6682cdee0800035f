//! Fetches a page: robots.txt, redirects hop by hop, the cache, and conversion.

use crate::config::{Config, HostHeader};
use crate::html::{self, Failed, Form};
use crate::robots::{self, Refusal, Robots};
use crate::text::{self, Kind, Packed, Work};
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use linchpin::transport::web::{Web, WebError, WebErrorKind, WebResponse};
use linchpin_kit::ToolError;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use url::{Host, Url};

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
const URL_BYTES_MAX: usize = 16 << 10;
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
        Err(ToolError::new(format!("Failed to fetch {}: it redirects more than {HOPS_MAX} times", shown(&url))))
    }

    async fn receive(&self, asked: &Url, mut here: Url, mut answer: WebResponse) -> Result<Page, ToolError> {
        let status = answer.parts.status.as_u16();
        if status >= 400 {
            let fault = ToolError::new(format!("Failed to fetch {} - status code {status}", shown(asked)));
            return Err(match status {
                401 | 403 => fault.hint("The site blocks programs from this page, or requires a login."),
                404 | 410 => fault.hint("The page does not exist; look for the right URL on another page."),
                429 | 500.. => fault.hint("The site may answer later."),
                _ => fault,
            });
        }
        let body = answer.body.read_all(self.bytes_max).await.map_err(|e| failed(asked, &here, &e))?;
        let (codings, bytes_max) = (codings(&answer.parts.headers), self.bytes_max);
        let body = match codings.is_empty() {
            true => body,
            // Measuring an address must not reveal anything to others.
            false => tokio::task::spawn_blocking(move || text::unpack(body, &codings, bytes_max, true))
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
        Err(ToolError::new(format!(
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
                401 | 403 => Err(ToolError::new(format!("{said} so assuming that autonomous fetching is not allowed"))
                    .hint(ASK_A_PERSON)),
                400..=499 => Ok((Robots::default(), 0)),
                500.. => Err(ToolError::new(format!("{said}: the rules for programs are currently unavailable"))
                    .hint(format!("Try again in some minutes. {ASK_A_PERSON}"))),
                _ => {
                    let codings = codings(&answer.parts.headers);
                    let bytes = beginning(answer).await.map_err(|e| trouble(&here, &e))?;
                    let bytes = text::unpack(bytes, &codings, robots::BYTES_MAX, false)
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

/// The remaining content codings of a body, in lower case: a single standard one was already decoded by the client.
fn codings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let words = values.flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

fn packed(begin: &str, why: Packed) -> ToolError {
    let most = text::CODINGS_MAX;
    match why {
        Packed::Often => ToolError::new(format!("{begin}: it has more than {most} content codings")),
        Packed::Unread => ToolError::new(format!("{begin}: it has several content codings, including br or zstd"))
            .hint(format!("gzip and deflate are decoded up to {most} times, br and zstd only as the only coding.")),
        Packed::Broken => ToolError::new(format!("{begin}: its content does not match its Content-Encoding")),
        Packed::TooLong => ToolError::new(format!("{begin}: it exceeds the size limit when decoded"))
            .hint("The operator can raise the limit with --max-bytes."),
    }
}

/// The target of a redirect. It is third-party content and not repeated in errors.
fn redirected(asked: &Url, next: &str) -> Result<Url, ToolError> {
    let no_page = |_| ToolError::new(format!("Failed to fetch {}: it redirects to an invalid URL", shown(asked)));
    parse(next).map_err(no_page)
}

/// Parses a requested URL.
///
/// # Errors
/// When it is invalid or has an unsupported scheme.
pub(crate) fn parse(text: &str) -> Result<Url, ToolError> {
    if text.len() > URL_BYTES_MAX {
        return Err(ToolError::new(format!("The URL is longer than {URL_BYTES_MAX} bytes")));
    }
    let url = Url::parse(text.trim()).map_err(|e| {
        ToolError::new(format!("Invalid URL: {}: {e}", without_user(text.trim())))
            .hint("Pass an absolute URL, for example https://example.com/page.")
    })?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        // Without `//`, the apparent scheme may be a user name before a password.
        _ if url.cannot_be_a_base() && text.contains('@') => {
            Err(ToolError::new(format!("Failed to fetch {}: unsupported URL scheme", without_user(text.trim())))
                .hint("Only http and https URLs are supported."))
        }
        other => Err(ToolError::new(format!("Failed to fetch {}: unsupported URL scheme {other}", shown(&url)))
            .hint("Only http and https URLs are supported.")),
    }
}

/// A URL for display: without user name and password, either of which may be a token.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    if !url.username().is_empty() {
        let _ = url.set_username("***");
    }
    if url.password().is_some() {
        let _ = url.set_password(Some("***"));
    }
    url.to_string()
}

/// The same for an invalid URL.
fn without_user(text: &str) -> Cow<'_, str> {
    let Some(host) = text.rfind('@') else { return text.into() };
    let user = text.find("//").map_or(0, |slashes| slashes + 2);
    if user < host { format!("{}***{}", &text[..user], &text[host..]).into() } else { text.into() }
}

/// Whether a URL is on this machine, so that the request does not cross a network.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The error of a failed request to `here`, to which `asked` led: a host name from a redirect is not repeated.
fn why(asked: &Url, here: &Url, error: &WebError) -> String {
    let text = error.to_string();
    match here.host_str() {
        Some(host) if asked.host_str() != Some(host) => {
            let named = here.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            let text = text.replacen(&named, ELSEWHERE, 1);
            if text.contains(host) { format!("{ELSEWHERE} did not answer") } else { text }
        }
        _ => text,
    }
}

const ELSEWHERE: &str = "the site it redirects to";

/// A robots.txt for display: by its URL if its host was requested.
fn place_shown(asked: &Url, place: &Url) -> String {
    if asked.host_str() == place.host_str() {
        shown(place)
    } else {
        format!("of the site that {} redirects to", shown(asked))
    }
}

fn failed(asked: &Url, here: &Url, error: &WebError) -> ToolError {
    let (url, kind, error) = (shown(asked), error.kind(), why(asked, here, error));
    match kind {
        WebErrorKind::Refused => ToolError::new(format!("Refused to fetch {url}: {error}")).hint(
            "Do not try other ways to access it: the operator decides what this server may access \
             (--allow-private-ips, --allow-private-host, --allow-host, --deny-host, --proxy-trusts-dns).",
        ),
        WebErrorKind::TooLong => ToolError::new(format!("Failed to fetch {url}: {error}"))
            .hint("The operator can raise the limit with --max-bytes."),
        _ => ToolError::new(format!("Failed to fetch {url}: {error}")),
    }
}

const ACCEPTED: HeaderValue =
    HeaderValue::from_static("text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,*/*;q=0.8");
const ASK_A_PERSON: &str = "Tell the user that the page was not fetched. They can fetch it themselves with the prompt `fetch`; the \
    operator can start the server with --ignore-robots-txt.";

/// The requested form of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) form: Form,
    pub(crate) raw: bool,
    pub(crate) selector: Option<String>,
}

/// A page in the requested form.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// The prefix of a text that was not simplified.
    pub(crate) prefix: String,
    pub(crate) text: String,
    pub(crate) title: Option<String>,
    pub(crate) note: Option<String>,
}

/// The replacement for an empty result.
pub(crate) const FAILED: &str = "<error>Page failed to be simplified from HTML</error>";
const NO_LINKS: &str = "<error>The page has no links</error>";
const NO_LINKS_THERE: &str = "<error>The elements that match the selector contain no links</error>";

/// Converts a page. Takes time and stack; must run on a separate thread.
///
/// # Errors
/// When the page cannot be converted to this form.
pub(crate) fn render(page: &Page, want: &Want, compat: bool, deadline: Instant) -> Result<Rendered, ToolError> {
    let kind = text::kind(&page.body, &page.content_type);
    let work = Work::until(deadline);
    let content_type = &page.content_type;
    let raw_prefix =
        format!("Content type {content_type} cannot be simplified to markdown, but here is the raw content:\n");
    let (text, html) = if compat {
        let text = text::decode_published(&page.body, content_type).0;
        let html = text::is_html(&text, content_type);
        (text, html)
    } else {
        match kind {
            Kind::Pdf if !want.raw => return render_pdf(page, &work).map(harmless),
            Kind::Pdf | Kind::Binary => return Err(no_text(page)),
            _ => (text::decode(&page.body, content_type).0, kind == Kind::Html),
        }
    };
    if html && !want.raw {
        let rendered = render_html(page, &text, want, compat, &work)?;
        return Ok(if compat { rendered } else { harmless(rendered) });
    }
    if !want.raw && (want.selector.is_some() || matches!(want.form, Form::Html | Form::Links)) {
        return Err(ToolError::new(format!(
            "{} is not an HTML page but {}",
            page.asked,
            text::type_shown(content_type)
        ))
        .hint("selector, format=html and format=links are for HTML pages only; omit them."));
    }
    if compat || want.raw {
        let rendered = Rendered { prefix: raw_prefix, text, ..Rendered::default() };
        return Ok(if compat { rendered } else { harmless(rendered) });
    }
    if kind == Kind::Xml
        && let Some(feed) = crate::feed::read(&text, Some(&page.final_url), &work)
    {
        return Ok(harmless(Rendered { text: feed.text, title: feed.title, ..Rendered::default() }));
    }
    let pretty = if kind == Kind::Json { text::pretty_json(&text) } else { None };
    Ok(harmless(Rendered { prefix: raw_prefix, text: pretty.unwrap_or(text), ..Rendered::default() }))
}

/// Only the server writes `<error>`.
fn harmless(rendered: Rendered) -> Rendered {
    if [FAILED, NO_LINKS, NO_LINKS_THERE].contains(&rendered.text.as_str()) {
        return rendered;
    }
    let text = text::without_marks(&rendered.text).into_owned();
    let prefix = match text::without_marks(&rendered.prefix) {
        std::borrow::Cow::Owned(prefix) => prefix,
        std::borrow::Cow::Borrowed(_) => rendered.prefix,
    };
    Rendered { text, prefix, ..rendered }
}

fn render_html(page: &Page, text: &str, want: &Want, compat: bool, work: &Work) -> Result<Rendered, ToolError> {
    let converted = html::convert(text, &page.final_url, want.form, want.selector.as_deref(), compat, work);
    let selector = want.selector.as_deref().unwrap_or_default();
    let converted = converted.map_err(|why| match why {
        Failed::Selector => ToolError::new(format!("Invalid CSS selector: {selector}")),
        Failed::Nothing => ToolError::new(format!("No element of the page matches the selector {selector}"))
            .hint("Omit selector for the main content, or inspect the page with format=html."),
        Failed::Complex => ToolError::new("The page is too large or too deeply nested for this request")
            .hint("Fetch it without selector and format for its plain text, or with raw=true."),
        Failed::Late => ToolError::new(format!("Failed to fetch {}: the conversion took too long", page.asked)).hint(
            "Fetch it with raw=true for the unconverted content; the operator can raise the limit with --timeout.",
        ),
    })?;
    let text = match (converted.text.trim().is_empty(), want.form, &want.selector) {
        (false, ..) => converted.text,
        (true, Form::Links, None) => NO_LINKS.to_owned(),
        (true, Form::Links, Some(_)) => NO_LINKS_THERE.to_owned(),
        (true, ..) => FAILED.to_owned(),
    };
    Ok(Rendered { prefix: String::new(), text, title: converted.title, note: converted.note.map(str::to_owned) })
}

fn no_text(page: &Page) -> ToolError {
    let kind = text::type_shown(&page.content_type);
    ToolError::new(format!("{} is binary ({kind}, {} bytes) and has no text", page.asked, page.body.len()))
        .hint("Look for a page that describes it, or for a text version.")
}

#[cfg(feature = "pdf")]
fn render_pdf(page: &Page, work: &Work) -> Result<Rendered, ToolError> {
    let read = crate::pdf::read(&page.body, work).map_err(|why| {
        ToolError::new(format!("{} is a PDF document that {why}", page.asked))
            .hint("Look for the same content as a web page.")
    })?;
    if read.text.trim().is_empty() && read.cut {
        let fault = format!("{} is a PDF document without text in the part that could be read", page.asked);
        return Err(ToolError::new(fault).hint("Look for the same content as a web page."));
    }
    if read.text.trim().is_empty() {
        return Err(ToolError::new(format!("{} is a PDF document of {} pages without text", page.asked, read.pages))
            .hint("Its pages may be images. Look for the same content as a web page."));
    }
    let cut = if read.cut { "; only a part of it could be read" } else { "" };
    let pages = if read.pages == 1 { "one page".to_owned() } else { format!("{} pages", read.pages) };
    let note = Some(format!("The text of a PDF document of {pages}{cut}."));
    Ok(Rendered { prefix: String::new(), text: read.text, title: read.title, note })
}

#[cfg(not(feature = "pdf"))]
fn render_pdf(page: &Page, _: &Work) -> Result<Rendered, ToolError> {
    Err(no_text(page))
}

/// A small cache of fetched and converted pages, so that the slices of a page are consistent. Limited in entries and
/// bytes; evicts the least recently used. Rejected: a cache crate, which adds background threads or async locks.
pub(crate) struct Cache<T> {
    inner: Mutex<Inner<T>>,
    entries_max: usize,
    bytes_max: usize,
    ttl: Duration,
}

struct Inner<T> {
    entries: HashMap<String, Entry<T>>,
    bytes: usize,
    clock: u64,
}

struct Entry<T> {
    value: Arc<T>,
    bytes: usize,
    since: Instant,
    used: u64,
}

impl<T> Cache<T> {
    /// Keeps at most this many entries and bytes, each for at most `ttl`; a `ttl` of zero disables the cache.
    pub(crate) fn new(entries_max: usize, bytes_max: usize, ttl: Duration) -> Self {
        let inner = Inner { entries: HashMap::new(), bytes: 0, clock: 0 };
        Self { inner: Mutex::new(inner), entries_max, bytes_max, ttl }
    }

    pub(crate) fn get(&self, key: &str, now: Instant) -> Option<Arc<T>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let clock = inner.clock;
        let entry = inner.entries.get_mut(key)?;
        if now.saturating_duration_since(entry.since) >= self.ttl {
            inner.forget(key);
            return None;
        }
        entry.used = clock;
        Some(entry.value.clone())
    }

    pub(crate) fn put(&self, key: String, value: Arc<T>, bytes: usize, now: Instant) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.forget(&key);
        if self.ttl.is_zero() || bytes > self.bytes_max {
            return;
        }
        while inner.entries.len() >= self.entries_max || inner.bytes + bytes > self.bytes_max {
            let oldest = inner.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            inner.forget(&oldest);
        }
        inner.clock += 1;
        let used = inner.clock;
        inner.bytes += bytes;
        inner.entries.insert(key, Entry { value, bytes, since: now, used });
    }
}

impl<T> Inner<T> {
    fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_was_used_last_within_its_bounds_and_for_its_time() {
        let start = Instant::now();
        let later = |ms| start + Duration::from_millis(ms);
        let cache = Cache::new(3, 100, Duration::from_millis(50));
        let put = |key: &str, bytes| cache.put(key.to_owned(), Arc::new(bytes), bytes, start);
        let has = |keys: &str, ms: u64| keys.split(' ').filter(|key| cache.get(key, later(ms)).is_some()).count();
        put("a", 10);
        put("b", 10);
        put("c", 10);
        assert_eq!(has("a", 0), 1);
        put("d", 10);
        assert_eq!((has("b", 0), has("a c d", 0)), (0, 3), "the least recently used goes");
        put("e", 95);
        assert_eq!((has("a c d", 0), has("e", 0)), (0, 1), "bytes count");
        put("f", 101);
        assert_eq!((has("f", 0), has("e", 0)), (0, 1), "what is too large displaces nothing");
        put("e", 20);
        put("g", 70);
        assert_eq!(has("e g", 49), 2, "what is replaced is not counted twice");
        assert_eq!(has("e g", 50), 0, "time ends");
        assert_eq!(cache.inner.lock().unwrap().bytes, 0);
        let none = Cache::new(3, 100, Duration::ZERO);
        none.put("a".to_owned(), Arc::new(1), 1, start);
        assert!(none.get("a", start).is_none());
    }
}
