//! The output of `--trace`, and the tap of every command.

use crate::record::redact::Redactor;
use crate::show::out::{Style, note, shorten, tell};
use linchpin::client::{Tap, Traffic};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

/// Combines several taps.
pub(crate) struct Taps(pub(crate) Vec<Box<dyn Tap>>);

impl Tap for Taps {
    fn saw(&self, event: Traffic<'_>) {
        self.0.iter().for_each(|tap| tap.saw(event));
    }
}

/// Records what explains a failure: the last HTTP status, which tells a server that requires login from a broken one,
/// whether it named a login, and the first output that was not a message.
#[derive(Default)]
pub(crate) struct Witness {
    status: AtomicU16,
    login: AtomicBool,
    garbage: OnceLock<String>,
}

impl Witness {
    /// Returns the beginning of the first output that was not a message.
    pub(crate) fn garbage(&self) -> Option<&str> {
        self.garbage.get().map(String::as_str)
    }

    pub(crate) fn unauthorized(&self) -> bool {
        self.status.load(Ordering::Relaxed) == 401
    }

    /// Whether a challenge named the metadata of a login.
    pub(crate) fn names_login(&self) -> bool {
        self.login.load(Ordering::Relaxed)
    }
}

/// See [`Witness`].
pub(crate) struct Watching(pub(crate) Arc<Witness>);

impl Tap for Watching {
    fn saw(&self, event: Traffic<'_>) {
        match event {
            Traffic::Response { status, headers } => {
                self.0.status.store(status.as_u16(), Ordering::Relaxed);
                let challenges = headers.get_all("www-authenticate").iter();
                if challenges.filter_map(|value| value.to_str().ok()).any(|value| value.contains("resource_metadata")) {
                    self.0.login.store(true, Ordering::Relaxed);
                }
            }
            Traffic::Garbage(what) => drop(self.0.garbage.set(shorten(what.trim(), 100))),
            _ => {}
        }
    }
}

/// Forwards the server's standard error to this program's, for `-v`.
pub(crate) struct Aloud {
    pub(crate) redactor: Arc<Redactor>,
}

impl Tap for Aloud {
    fn saw(&self, event: Traffic<'_>) {
        if let Traffic::Stderr(line) = event {
            note(self.redactor.text(&uncoloured(line)));
        }
    }
}

/// Strips colour escape sequences from a line.
fn uncoloured(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut parts = line.split("\x1b[");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end {
            Some(end) if part[end..].starts_with('m') => out.push_str(&part[end + 1..]),
            // Other escape sequences remain visible.
            _ => out.extend(["\x1b[", part]),
        }
    }
    out
}

/// Writes all traffic to standard error, with secrets masked.
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

/// Iterates over the names and values of a header map.
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
            Traffic::Stderr(line) => format!("{} {}\n", style.dim("err"), redactor.text(&uncoloured(line))),
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

#[cfg(test)]
mod tests {
    use super::uncoloured;

    #[test]
    fn colours_of_servers_are_left_out() {
        for (line, plain) in [
            ("\x1b[31merror\x1b[0m: \x1b[1;4mx\x1b[m", "error: x"),
            ("plain", "plain"),
            ("\x1b[2Jx\x1b[", "\x1b[2Jx\x1b["),
        ] {
            assert_eq!(uncoloured(line), plain);
        }
    }
}
