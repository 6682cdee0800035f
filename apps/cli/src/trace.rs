//! What `--trace` shows on standard error, and what every command notices on the way.

use crate::redact::Redactor;
use crate::shown::{Style, shorten, tell};
use linchpin::client::{Tap, Traffic};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

/// Several taps as one.
pub(crate) struct Taps(pub(crate) Vec<Box<dyn Tap>>);

impl Tap for Taps {
    fn saw(&self, event: Traffic<'_>) {
        self.0.iter().for_each(|tap| tap.saw(event));
    }
}

/// Remembers what helps to explain a failure: the last status, which tells a server that wants a login from one that is
/// broken, and what came that was no message.
#[derive(Default)]
pub(crate) struct Witness {
    status: AtomicU16,
    garbage: OnceLock<String>,
}

impl Witness {
    /// The beginning of the first thing that was no message.
    pub(crate) fn garbage(&self) -> Option<&str> {
        self.garbage.get().map(String::as_str)
    }

    pub(crate) fn unauthorized(&self) -> bool {
        self.status.load(Ordering::Relaxed) == 401
    }
}

/// See [`Witness`].
pub(crate) struct Watching(pub(crate) Arc<Witness>);

impl Tap for Watching {
    fn saw(&self, event: Traffic<'_>) {
        match event {
            Traffic::Response { status, .. } => self.0.status.store(status.as_u16(), Ordering::Relaxed),
            Traffic::Garbage(what) => drop(self.0.garbage.set(shorten(what.trim(), 100))),
            _ => {}
        }
    }
}

/// Writes everything to standard error, secrets as dots.
pub(crate) struct Trace {
    pub(crate) style: Style,
    pub(crate) redactor: Arc<Redactor>,
}

impl Trace {
    fn heads<'a>(&self, headers: impl Iterator<Item = (&'a str, &'a [u8], bool)>) -> String {
        let mut out = String::new();
        for (name, value, sensitive) in headers {
            let value = self.redactor.header(name, &String::from_utf8_lossy(value), sensitive);
            out.push_str(&self.style.dim(&format!("      {name}: {value}\n")));
        }
        out
    }
}

/// The names and values of a header map.
macro_rules! heads {
    ($headers:expr) => {
        $headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes(), value.is_sensitive()))
    };
}

impl Tap for Trace {
    fn saw(&self, event: Traffic<'_>) {
        let (style, redactor) = (self.style, &self.redactor);
        let text = match event {
            Traffic::Sent(message) => format!("{} {}\n", style.good("-->"), redactor.message(message)),
            Traffic::Heard(message) => format!("{} {}\n", style.bold("<--"), redactor.message(message)),
            Traffic::Garbage(what) => format!("{} {}\n", style.bad("<!!"), redactor.text(what)),
            Traffic::Stderr(line) => format!("{} {}\n", style.dim("err"), redactor.text(line)),
            Traffic::Note(note) => format!("{} {}\n", style.dim("---"), redactor.text(note)),
            Traffic::Request { method, uri, headers } => {
                format!(
                    "{} {method} {}\n{}",
                    style.good("==>"),
                    redactor.text(&uri.to_string()),
                    self.heads(heads!(headers))
                )
            }
            Traffic::Response { status, headers } => {
                format!("{} {status}\n{}", style.bold("<=="), self.heads(heads!(headers)))
            }
            _ => return,
        };
        tell(&text);
    }
}
