//! A page to convert, and the result.

use super::html::{Failed, Form};
use super::kind::{Kind, type_shown};
use super::marks::without_marks;
use super::{charset, feed, html, kind};
use linchpin_kit::{ErrorKind, ToolError};
use serde::{Deserialize, Serialize};
use url::Url;

/// The requested form of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Want {
    pub(crate) form: Form,
    pub(crate) raw: bool,
    pub(crate) selector: Option<String>,
}

/// A page to convert, without its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The requested URL, for errors.
    pub(crate) asked: String,
    /// The URL that links are relative to.
    pub(crate) base: String,
    pub(crate) content_type: String,
    pub(crate) want: Want,
    /// The published server's output.
    pub(crate) compat: bool,
}

/// What a converter accepts, depending on where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Caps {
    /// Maximum bytes of an HTML page or a feed.
    bytes: usize,
    /// Maximum nodes of an HTML page.
    nodes: usize,
    pdf: bool,
}

impl Caps {
    /// In a process with memory and time limits.
    pub(super) const CONFINED: Caps = Caps { bytes: usize::MAX, nodes: 1_000_000, pdf: true };
    /// In a process with a time limit.
    pub(super) const TIMED: Caps = Caps { nodes: 300_000, ..Caps::CONFINED };
    /// In the server's process.
    pub(super) const IN_PROCESS: Caps = Caps { bytes: 2 << 20, nodes: 50_000, pdf: false };
}

/// A page in the requested form.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rendered {
    /// The prefix of a text that was not converted.
    pub(crate) prefix: String,
    #[serde(skip)]
    pub(crate) text: String,
    pub(crate) title: Option<String>,
    pub(crate) note: Option<String>,
}

/// Why a page was not converted, and a hint.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    kind: FailureKind,
    message: String,
    hint: String,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FailureKind {
    /// The page does not have what was requested.
    Invalid,
    /// The page is too large or too complex.
    Limited,
    /// The page is invalid or cannot be read.
    Unreadable,
}

impl Failure {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into() }
    }
}

impl From<Failure> for ToolError {
    fn from(Failure { kind, message, hint }: Failure) -> Self {
        let error = ToolError::new(message).kind(match kind {
            FailureKind::Invalid => ErrorKind::Invalid,
            FailureKind::Limited => ErrorKind::Limited { retry_after: None },
            FailureKind::Unreadable => ErrorKind::Upstream { status: None },
        });
        if hint.is_empty() { error } else { error.hint(hint) }
    }
}

/// The replacement for an empty result.
const FAILED: &str = "<error>Page failed to be simplified from HTML</error>";
const NO_LINKS: &str = "<error>The page has no links</error>";
const NO_LINKS_THERE: &str = "<error>The elements that match the selector contain no links</error>";
const RAW: &str = "Fetch it with raw=true for the unconverted content.";
const ELSEWHERE: &str = "Look for the same content as a web page.";

impl Job {
    pub(super) fn kind(&self, body: &[u8]) -> Kind {
        if !self.compat {
            return kind::kind(body, &self.content_type);
        }
        let beginning = charset::decode_published(&body[..body.len().min(1_024)], &self.content_type);
        if kind::is_html(&beginning, &self.content_type) { Kind::Html } else { Kind::Plain }
    }

    /// What to do when this page cannot be converted: `raw` returns text only.
    pub(super) fn advice(&self, body: &[u8]) -> &'static str {
        if matches!(self.kind(body), Kind::Pdf | Kind::Binary) { ELSEWHERE } else { RAW }
    }

    /// Whether converting this page takes time and memory at most proportional to its length.
    pub(super) fn is_plain(&self, body: &[u8]) -> bool {
        self.want.raw || matches!(self.kind(body), Kind::Plain | Kind::Json | Kind::Binary)
    }

    /// Converts a page.
    ///
    /// # Errors
    /// When it cannot be converted to this form.
    pub(super) fn render(&self, body: &[u8], caps: Caps) -> Result<Rendered, Failure> {
        let (want, kind) = (&self.want, self.kind(body));
        if !self.is_plain(body) && body.len() > caps.bytes {
            let message = format!("{} is too large to be converted by this server ({} bytes)", self.asked, body.len());
            return Err(Failure::new(FailureKind::Limited, message, self.advice(body)));
        }
        match kind {
            Kind::Pdf if !want.raw && caps.pdf => return self.pdf(body).map(harmless),
            Kind::Pdf if !want.raw => {
                let message = format!("{} is a PDF document, which this server cannot read", self.asked);
                return Err(Failure::new(FailureKind::Unreadable, message, ELSEWHERE));
            }
            Kind::Pdf | Kind::Binary => return Err(self.no_text(body)),
            _ => {}
        }
        let text = match self.compat {
            true => charset::decode_published(body, &self.content_type),
            false => charset::decode(body, &self.content_type),
        };
        let rendered = self.text(kind, text, caps.nodes)?;
        Ok(if self.compat { rendered } else { harmless(rendered) })
    }

    fn text(&self, kind: Kind, text: String, nodes_max: usize) -> Result<Rendered, Failure> {
        let want = &self.want;
        if kind == Kind::Html && !want.raw {
            return self.html(&text, nodes_max);
        }
        if !want.raw && (want.selector.is_some() || matches!(want.form, Form::Html | Form::Links)) {
            let message = format!("{} is not an HTML page but {}", self.asked, type_shown(&self.content_type));
            return Err(Failure::new(
                FailureKind::Invalid,
                message,
                "selector, format=html and format=links are for HTML pages only; omit them.",
            ));
        }
        let simplified = !self.compat && !want.raw;
        if simplified
            && kind == Kind::Xml
            && let Some(feed) = feed::read(&text, Url::parse(&self.base).ok().as_ref())
        {
            return Ok(Rendered { text: feed.text, title: feed.title, ..Rendered::default() });
        }
        let pretty = if simplified && kind == Kind::Json { pretty(&text) } else { None };
        let prefix = format!(
            "Content type {} cannot be simplified to markdown, but here is the raw content:\n",
            self.content_type
        );
        Ok(Rendered { prefix, text: pretty.unwrap_or(text), ..Rendered::default() })
    }

    fn html(&self, text: &str, nodes_max: usize) -> Result<Rendered, Failure> {
        let selector = self.want.selector.as_deref();
        let form = self.want.form;
        let base = Url::parse(&self.base)
            .map_err(|_| Failure::new(FailureKind::Unreadable, "The page has no valid URL", ""))?;
        let base = html::Base { url: &base, published: self.compat };
        let converted = html::convert(text, base, form, selector, nodes_max).map_err(|why| match why {
            Failed::Selector => Failure::new(
                FailureKind::Invalid,
                format!("Invalid CSS selector: {}", selector.unwrap_or_default()),
                "",
            ),
            Failed::Nothing => Failure::new(
                FailureKind::Invalid,
                format!("No element of the page matches the selector {}", selector.unwrap_or_default()),
                "Omit selector for the main content, or inspect the page with format=html.",
            ),
            Failed::Complex => Failure::new(
                FailureKind::Limited,
                "The page is too large or too deeply nested for this request",
                "Fetch it without selector and format for its plain text, or with raw=true.",
            ),
        })?;
        let text = match (converted.text.trim().is_empty(), form, selector) {
            (false, ..) => converted.text,
            (true, Form::Links, None) => NO_LINKS.to_owned(),
            (true, Form::Links, Some(_)) => NO_LINKS_THERE.to_owned(),
            (true, ..) => FAILED.to_owned(),
        };
        Ok(Rendered { prefix: String::new(), text, title: converted.title, note: converted.note.map(str::to_owned) })
    }

    fn no_text(&self, body: &[u8]) -> Failure {
        let kind = type_shown(&self.content_type);
        Failure::new(
            FailureKind::Unreadable,
            format!("{} is binary ({kind}, {} bytes) and has no text", self.asked, body.len()),
            "Look for a page that describes it, or for a text version.",
        )
    }

    #[cfg(feature = "pdf")]
    fn pdf(&self, body: &[u8]) -> Result<Rendered, Failure> {
        let read = super::pdf::read(body).map_err(|why| {
            Failure::new(FailureKind::Unreadable, format!("{} is a PDF document that {why}", self.asked), ELSEWHERE)
        })?;
        if read.text.trim().is_empty() {
            let message = format!("{} is a PDF document of {} pages without text", self.asked, read.pages);
            return Err(Failure::new(
                FailureKind::Unreadable,
                message,
                format!("Its pages may be images. {ELSEWHERE}"),
            ));
        }
        let pages = if read.pages == 1 { "one page".to_owned() } else { format!("{} pages", read.pages) };
        let cut = if read.cut { "; only a part of it could be read" } else { "" };
        let note = Some(format!("The text of a PDF document of {pages}{cut}."));
        Ok(Rendered { prefix: String::new(), text: read.text, title: read.title, note })
    }

    #[cfg(not(feature = "pdf"))]
    fn pdf(&self, body: &[u8]) -> Result<Rendered, Failure> {
        Err(self.no_text(body))
    }
}

/// Only the server writes `<error>`.
fn harmless(rendered: Rendered) -> Rendered {
    if [FAILED, NO_LINKS, NO_LINKS_THERE].contains(&rendered.text.as_str()) {
        return rendered;
    }
    let text = without_marks(&rendered.text).into_owned();
    let prefix = without_marks(&rendered.prefix).into_owned();
    Rendered { text, prefix, ..rendered }
}
/// The JSON indented; `None` if it is invalid, or would become too large.
fn pretty(json: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(json).ok()?;
    let mut out = String::with_capacity(json.len() * 2);
    linchpin_kit::json::write_pretty(json, 0, json.len().saturating_mul(8) + 1_024, &mut out).then_some(out)
}
