//! Version negotiation of a client, without I/O.
//!
//! The client makes the [`Attempt`] it is told to, reports what came of it, and is told what that means. A server is
//! asked with `server/discover` first. A result, or an error that only servers of its era know, settles the era;
//! anything else (an error of any other code, a status, silence, even the end of the program) leads to `initialize`;
//! and where that is refused with a status, to the transport of 2024-11-05.
//!
//! Specification: 2026-07-28 "Versioning and Compatibility", and "Backward Compatibility" of stdio and Streamable HTTP.

use crate::era;
use linchpin_core::{Agreed, Features};
use linchpin_types::error::code;
use linchpin_types::lifecycle::{DiscoverResult, InitializeResult};
use linchpin_types::meta::key;
use linchpin_types::page::ResultType;
use serde::Deserialize;

/// The next message to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// `server/discover`, claiming this revision.
    Discover(&'static Features),
    /// `initialize`, asking for this revision.
    Initialize(&'static Features),
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// A result: its JSON text.
    Result(&'a str),
    /// An error object: its JSON text, and the status it came with.
    Error(&'a str, Option<u16>),
    /// A status without a message.
    Status(u16),
    /// Timeout.
    Silence,
    /// An invalid response: what.
    Unreadable(&'a str),
    /// The link ended: how. Not for unreachable servers.
    Gone(&'a str),
}

/// The conclusion from an outcome.
#[derive(Debug)]
pub enum Verdict {
    /// Agreed.
    Agreed(Box<Agreed>),
    /// Make this attempt on the same link.
    Again(Attempt),
    /// Make this attempt on a new link.
    Redial(Attempt),
    /// Try the link's fallback, and make this attempt there. Without one, the opening failed for the reason given.
    Elsewhere(Attempt, String),
    /// Negotiation failed: why.
    Failed(String),
}

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

/// Finds out the revision. One serves one opening.
#[derive(Debug)]
pub struct Negotiation {
    accepted: Vec<&'static Features>,
    attempt: Attempt,
    /// Remaining attempts: a server may alternate between versions.
    left: u32,
    /// `initialize` has been tried, so that nothing leads there again.
    initialized: bool,
    /// Statuses and errors so far, and the method each was an answer to (empty where the text says it), for the last message.
    heard: Vec<(String, &'static str)>,
}

impl Negotiation {
    /// An opening that may end in any of `accepted` (newest first; must not be empty). `known` is what the same server
    /// spoke last time, which is tried first.
    pub fn new(accepted: Vec<&'static Features>, known: Option<&'static Features>) -> Negotiation {
        let first = known.filter(|features| accepted.contains(features)).or_else(|| accepted.first().copied());
        let attempt = first.map_or(Attempt::Discover(era::negotiated("")), attempt_at);
        Negotiation { accepted, attempt, left: 6, initialized: false, heard: Vec::new() }
    }

    /// The first message.
    pub fn first(&self) -> Attempt {
        self.attempt
    }

    /// Says that the next outcome is that of this attempt, where more than one was made at once.
    pub fn at(&mut self, attempt: Attempt) {
        self.attempt = attempt;
    }

    /// Handles the outcome of the last attempt.
    pub fn took(&mut self, outcome: Outcome<'_>) -> Verdict {
        let verdict = match self.attempt {
            Attempt::Discover(features) => self.discovered(features, outcome),
            Attempt::Initialize(_) => self.initialized(outcome),
        };
        let next = match &verdict {
            Verdict::Again(next) | Verdict::Redial(next) | Verdict::Elsewhere(next, _) => *next,
            Verdict::Agreed(_) | Verdict::Failed(_) => return verdict,
        };
        if self.left == 0 {
            return Verdict::Failed(format!("version negotiation failed: {}", self.told()));
        }
        self.left -= 1;
        self.attempt = next;
        verdict
    }

    fn discovered(&mut self, features: &'static Features, outcome: Outcome<'_>) -> Verdict {
        match outcome {
            Outcome::Result(json) => match serde_json::from_str::<DiscoverResult>(json) {
                Ok(DiscoverResult { result_type: Some(odd), .. }) if odd != ResultType::Complete => {
                    let odd: String = odd.as_str().chars().take(80).collect();
                    self.hears(format!("a response with the `resultType` {odd:?}"), DISCOVER);
                }
                Ok(found) => return self.choose(features, found, json),
                Err(e) => self.hears(format!("an invalid response ({e})"), DISCOVER),
            },
            Outcome::Error(json, status) => {
                let error = ErrorSeen::read(json);
                self.hears(error.tell(status), DISCOVER);
                if error.code == code::UNSUPPORTED_PROTOCOL_VERSION {
                    return self.offered(&error.data.supported);
                }
                if era::modern_error(error.code) {
                    return Verdict::Failed(format!("{} to {DISCOVER}", error.tell(status)));
                }
            }
            Outcome::Status(status) => self.hears(format!("status {status}"), DISCOVER),
            Outcome::Silence => self.hears("no response".to_owned(), DISCOVER),
            Outcome::Unreadable(what) => self.hears(what.to_owned(), ""),
            Outcome::Gone(how) => {
                self.hears(how.to_owned(), "");
                return match self.handshake() {
                    Some(next) => Verdict::Redial(next),
                    // It is the only thing that was heard, so that nothing was negotiated.
                    None if self.heard.len() == 1 => Verdict::Failed(how.to_owned()),
                    None => self.fail(),
                };
            }
        }
        self.handshake().map_or_else(|| self.fail(), Verdict::Again)
    }

    /// Picks a version out of a discovery.
    fn choose(&mut self, features: &'static Features, found: DiscoverResult, json: &str) -> Verdict {
        let versions = found.supported_versions;
        let mutual = self.accepted.iter().copied().find(|w| versions.iter().any(|v| v == w.revision.as_str()));
        match mutual.or_else(|| versions.is_empty().then_some(features)) {
            Some(best) if best.stateless => Verdict::Agreed(Box::new(Agreed::new(best, json).with(|agreed| {
                agreed.server = found.meta.and_then(|meta| meta.get_as(key::SERVER_INFO).ok().flatten());
                agreed.capabilities = found.capabilities;
                agreed.instructions = found.instructions;
                agreed.versions = versions;
            }))),
            Some(best) => Verdict::Again(attempt_at(best)),
            None => self.none_of(&versions),
        }
    }

    /// The server refused the version and named others.
    fn offered(&mut self, versions: &[String]) -> Verdict {
        match self.accepted.iter().copied().find(|w| versions.iter().any(|v| v == w.revision.as_str())) {
            Some(best) => Verdict::Again(attempt_at(best)),
            None => self.none_of(versions),
        }
    }

    fn initialized(&mut self, outcome: Outcome<'_>) -> Verdict {
        let first = !std::mem::replace(&mut self.initialized, true);
        match outcome {
            Outcome::Result(json) => match serde_json::from_str::<InitializeResult>(json) {
                Ok(found) => return self.handshaken(found, json),
                Err(e) => self.hears(format!("an invalid response ({e})"), INITIALIZE),
            },
            Outcome::Error(json, status) => {
                let error = ErrorSeen::read(json);
                self.hears(error.tell(status), INITIALIZE);
                if error.code == code::UNSUPPORTED_PROTOCOL_VERSION {
                    return self.offered(&error.data.supported);
                }
                // Some servers of the era without handshakes do not expect a client that starts with one.
                if let Some(features) = self.accepted.iter().copied().find(|w| w.stateless).filter(|_| first)
                    && error.code == code::METHOD_NOT_FOUND
                    && self.left == 6
                {
                    return Verdict::Again(Attempt::Discover(features));
                }
                if let Some(status) = status.filter(|s| (400..500).contains(s)) {
                    return self.elsewhere(status);
                }
            }
            Outcome::Status(status) if (400..500).contains(&status) => {
                self.hears(format!("status {status}"), INITIALIZE);
                return self.elsewhere(status);
            }
            Outcome::Status(status) => self.hears(format!("status {status}"), INITIALIZE),
            Outcome::Silence => self.hears("no response".to_owned(), INITIALIZE),
            Outcome::Unreadable(what) => self.hears(what.to_owned(), ""),
            Outcome::Gone(how) => {
                // The first end only showed that the server is of the legacy era; this one is the error.
                return Verdict::Failed(how.to_owned());
            }
        }
        self.fail()
    }

    fn handshaken(&mut self, found: InitializeResult, json: &str) -> Verdict {
        let version = found.protocol_version;
        match era::named(&version).filter(|features| self.accepted.contains(features) && !features.stateless) {
            Some(features) => Verdict::Agreed(Box::new(Agreed::new(features, json).with(|agreed| {
                agreed.server = Some(found.server_info);
                agreed.capabilities = found.capabilities;
                agreed.instructions = found.instructions;
                agreed.versions = vec![version];
            }))),
            None => self.none_of(&[version]),
        }
    }

    /// The handshake, if sessions are accepted at all and it has not failed already.
    fn handshake(&self) -> Option<Attempt> {
        if self.initialized {
            return None;
        }
        self.accepted.iter().copied().find(|features| !features.stateless).map(Attempt::Initialize)
    }

    fn elsewhere(&mut self, status: u16) -> Verdict {
        let oldest = self.accepted.last().copied().filter(|features| !features.stateless);
        let newest = self.accepted.iter().copied().find(|features| !features.stateless);
        match (oldest.and(newest), status) {
            // A rejection does not imply the legacy era.
            (Some(features), 400 | 404 | 405 | 406 | 410 | 415) => {
                Verdict::Elsewhere(Attempt::Initialize(features), self.why())
            }
            _ => self.fail(),
        }
    }

    fn none_of(&self, versions: &[String]) -> Verdict {
        let ours: Vec<_> = self.accepted.iter().map(|features| features.revision.as_str()).collect();
        let shown: Vec<_> = versions.iter().take(16).map(|v| v.chars().take(40).collect::<String>()).collect();
        Verdict::Failed(format!(
            "no common protocol version: the server supports {}, this client {}",
            if shown.is_empty() { "no known version".to_owned() } else { shown.join(", ") },
            ours.join(", ")
        ))
    }

    fn fail(&self) -> Verdict {
        Verdict::Failed(self.why())
    }

    fn why(&self) -> String {
        format!("version negotiation failed: {}", self.told())
    }

    fn hears(&mut self, what: String, to: &'static str) {
        self.heard.push((what, to));
    }

    /// What was heard; answers that are alike once.
    fn told(&self) -> String {
        let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
        for (what, to) in &self.heard {
            match told.iter_mut().find(|(known, _)| alike(known, what)) {
                Some((_, methods)) if methods.contains(to) => {}
                Some((_, methods)) => methods.push(to),
                None => told.push((what, vec![to])),
            }
        }
        let one = |(what, methods): &(&str, Vec<&str>)| match methods.as_slice() {
            [""] => (*what).to_owned(),
            methods => format!("{what} to {}", methods.join(" and ")),
        };
        told.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// Whether two answers or errors differ at most in words with a time: where a program is started twice, they are said once.
pub fn alike(a: &str, b: &str) -> bool {
    fn is_steady(word: &&str) -> bool {
        word.bytes().filter(u8::is_ascii_digit).count() < 8
    }
    a.split_whitespace().filter(is_steady).eq(b.split_whitespace().filter(is_steady))
}

fn attempt_at(features: &'static Features) -> Attempt {
    if features.stateless { Attempt::Discover(features) } else { Attempt::Initialize(features) }
}

/// An error object as far as an opening looks at it, read leniently.
#[derive(Default)]
struct ErrorSeen {
    code: i32,
    message: String,
    data: DataSeen,
}

#[derive(Deserialize, Default)]
struct DataSeen {
    #[serde(default)]
    supported: Vec<String>,
}

impl ErrorSeen {
    fn read(json: &str) -> ErrorSeen {
        let Ok(error) = serde_json::from_str::<linchpin_types::error::ErrorObject>(json) else {
            return ErrorSeen { message: "an error that cannot be read".to_owned(), ..ErrorSeen::default() };
        };
        let data = error.data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
        ErrorSeen { code: error.code, message: error.message.chars().take(300).collect(), data }
    }

    fn tell(&self, status: Option<u16>) -> String {
        let status = status.filter(|s| *s != 200).map_or(String::new(), |s| format!(", status {s}"));
        format!("\"{}\" ({}{status})", self.message, self.code)
    }
}
