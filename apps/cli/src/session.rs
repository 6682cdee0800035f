//! Connecting to a target, and what can go wrong with it in words that help.

use crate::ask::AnswerArgs;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::redact::Redactor;
use crate::shown::Style;
use crate::target::{Kind, Target};
use crate::trace::{Taps, Trace, Watching, Witness};
use crate::transcript::Recorder;
use clap::Args;
use linchpin::client::{Client, ClientLimits, Connection, Error, LinkError, Tap};
use linchpin::proto::era;
use linchpin::types::error::code;
use linchpin::types::root::Root;
use linchpin::types::version::Revision;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How to speak to the server, and what to show of that.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "How to speak to it")]
pub(crate) struct TalkArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Speak only this revision of the protocol, by its date.
    #[arg(long, value_name = "DATE", alias = "protocol-version")]
    pub(crate) revision: Option<String>,

    /// Speak only revisions with sessions (legacy) or without (modern).
    #[arg(long, value_name = "ERA", alias = "protocol-era", default_value = "auto", value_parser = ["auto", "legacy", "modern"])]
    pub(crate) era: String,

    /// How long to wait for an answer, for example 5, 500ms or 2m; 0 is without end [default: 60].
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Show every message both ways on standard error, HTTP headers and the server's errors too, secrets as dots.
    #[arg(long)]
    pub(crate) trace: bool,

    /// Write everything that is said to this file, secrets as dots. `linchpin replay FILE` serves it again.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Tell the server that this is a folder to work in. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
}

/// Seconds, or a number with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if digits.is_empty() {
        return Err(format!("`{text}` is no time, such as 5, 500ms or 2m"));
    }
    let unit = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("`{unit}` is no unit; there are ms, s, m and h")),
    };
    let number: f64 = digits.trim().parse().map_err(|_| format!("`{text}` is no time, such as 5, 500ms or 2m"))?;
    Duration::try_from_secs_f64(number * unit).map_err(|e| e.to_string())
}

impl TalkArgs {
    fn revisions(&self) -> Result<Option<Vec<Revision>>, Failure> {
        let named = match &self.revision {
            None => None,
            Some(date) => Some(date.parse::<Revision>().map_err(Failure::usage)?),
        };
        let era = |stateless: bool| era::all().filter(move |w| w.stateless == stateless).map(|w| w.revision);
        let all: Vec<Revision> = match self.era.as_str() {
            "legacy" => era(false).collect(),
            "modern" => era(true).collect(),
            _ => return Ok(named.map(|one| vec![one])),
        };
        match named {
            Some(one) if !all.contains(&one) => {
                Err(Failure::usage(format!("{one} is not of the {} era", self.era))
                    .hint("leave out --era or --revision"))
            }
            Some(one) => Ok(Some(vec![one])),
            None => Ok(Some(all)),
        }
    }

    fn roots(&self) -> Result<Vec<Root>, Failure> {
        let root = |folder: &PathBuf| {
            let path = std::fs::canonicalize(folder)
                .map_err(|e| Failure::usage(format!("--roots {}: {e}", folder.display())))?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            Ok(Root { uri: file_uri(&path.to_string_lossy()), name, meta: None })
        };
        self.roots.iter().map(root).collect()
    }
}

fn file_uri(path: &str) -> String {
    let mut out = String::from(if path.starts_with('/') { "file://" } else { "file:///" });
    for b in path.replace('\\', "/").bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b':' => out.push(b as char),
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// A connection, and what is known about it.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) target: String,
    kind: Kind,
    witness: Arc<Witness>,
}

/// Connects, does the work, and closes in good order whatever came of it.
pub(crate) fn run(
    talk: &TalkArgs,
    target: Target,
    work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    run_with(talk, target, |client| client, work)
}

/// The same with a client that is set up further.
pub(crate) fn run_with(
    talk: &TalkArgs,
    target: Target,
    further: impl FnOnce(Client) -> Client,
    work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    run_tapped(talk, target, Vec::new(), further, work)
}

/// The same with somebody who sees what passes.
pub(crate) fn run_tapped(
    talk: &TalkArgs,
    target: Target,
    taps: Vec<Box<dyn Tap>>,
    further: impl FnOnce(Client) -> Client,
    work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    block_on(async {
        let session = connect(talk, target, taps, further).await?;
        let done = work(&session).await;
        session.connection.close().await;
        done
    })
}

/// Runs on this thread, until it is done or somebody presses Ctrl-C.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::new)?;
    let done = runtime.block_on(async {
        let interrupted = async {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        {
            let mut work = std::pin::pin!(work);
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = interrupted => {}
            }
        }
        // Dropping the work told the server; that message gets a moment to leave.
        tokio::time::sleep(LAST_WORDS).await;
        Err(Failure::silent(Exit::Interrupted))
    });
    // A thread may still be reading the terminal.
    runtime.shutdown_background();
    done
}

const LAST_WORDS: Duration = Duration::from_millis(50);

/// Connects to a target.
pub(crate) async fn connect(
    talk: &TalkArgs,
    target: Target,
    mut taps: Vec<Box<dyn Tap>>,
    further: impl FnOnce(Client) -> Client,
) -> Result<Session, Failure> {
    let mut client = Client::new("linchpin", env!("CARGO_PKG_VERSION"));
    if let Some(revisions) = talk.revisions()? {
        client = client.revisions(&revisions);
    }
    let mut limits = ClientLimits::default();
    if let Some(timeout) = talk.timeout {
        let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        limits.call_ms_max = ms;
        limits.open_ms_max = if ms == 0 { u64::from(u32::MAX) } else { ms };
        limits.probe_ms_max = limits.probe_ms_max.min(limits.open_ms_max / 2 + 1);
    }
    let open_ms = u128::from(limits.open_ms_max);
    client = client.limits(limits);
    let roots = talk.roots()?;
    if !roots.is_empty() {
        client = client.roots(roots);
    }
    client = talk.answers.add_to(client)?;
    let witness = Arc::new(Witness::default());
    let redactor: Arc<Redactor> = Arc::new(target.redactor);
    taps.push(Box::new(Watching(witness.clone())));
    if talk.trace {
        taps.push(Box::new(Trace { style: Style::of_stderr(), redactor: redactor.clone() }));
    }
    if let Some(file) = &talk.record {
        taps.push(Box::new(Recorder::begin(file, &target.name, redactor)?));
    }
    let client = further(client.tap(Taps(taps)));
    let begun = Instant::now();
    match client.connect_to(target.dial).await {
        Ok(connection) => Ok(Session { connection, target: target.name, kind: target.kind, witness }),
        Err(e) => {
            let mut failure = told(&e, &target.kind, &witness);
            if let (Some(what), Kind::Command(_)) = (witness.garbage(), &target.kind) {
                let why = "it writes something to standard output that is not the protocol";
                failure = failure.hint(format!("{why}: `{what}`; logs belong on standard error"));
            }
            Err(if begun.elapsed().as_millis() >= open_ms {
                failure.exit(Exit::Timeout).hint("give it more time with --timeout")
            } else {
                failure
            })
        }
    }
}

impl Session {
    /// Whether nobody is behind it but a file.
    pub(crate) fn is_transcript(&self) -> bool {
        self.kind == Kind::Transcript
    }

    /// An error in words for a person.
    pub(crate) fn told(&self, e: &Error) -> Failure {
        told(e, &self.kind, &self.witness)
    }
}

fn told(e: &Error, kind: &Kind, witness: &Witness) -> Failure {
    let turned_away = matches!(e, Error::Link(LinkError::Unauthorized(_)))
        || (matches!(e, Error::Connect(_) | Error::Link(_)) && witness.unauthorized());
    let failure = match e {
        // Some say so themselves.
        Error::Connect(why) if why.starts_with("cannot connect") => Failure::new(why),
        e => Failure::new(e),
    };
    if turned_away {
        let failure = failure.exit(Exit::Unauthorized);
        return match kind {
            Kind::Web(_, true) => failure.hint("the token was not accepted; is it for this server, and still good?"),
            Kind::Web(url, false) => {
                failure.hint(format!("log in with `linchpin auth login {url}`, or give a token with --bearer-env VAR"))
            }
            _ => failure,
        };
    }
    match e {
        Error::Connect(why) => connecting(failure, why, kind),
        Error::Timeout(_) => failure.exit(Exit::Timeout).hint("give it more time with --timeout"),
        Error::Refused(refused) => {
            let failure = failure.exit(Exit::Protocol);
            match refused.code {
                code::METHOD_NOT_FOUND => {
                    failure.hint("the server does not have that; `linchpin inspect` shows what it has")
                }
                code::MISSING_REQUIRED_CLIENT_CAPABILITY => failure.hint(
                    "questions need a terminal, --answer, --answers or --decline; folders to work in need --roots",
                ),
                _ => failure,
            }
        }
        Error::Arguments(_) => failure.exit(Exit::Usage),
        Error::Ask(why) if why.contains("refused") => failure.exit(Exit::Protocol),
        Error::Ask(_) => failure
            .exit(Exit::Protocol)
            .hint("questions are answered on a terminal, or with --answer FIELD=VALUE, --answers FILE, or --decline"),
        Error::Tool(_) => failure,
        _ => failure.exit(Exit::Protocol),
    }
}

/// What to try when no connection came about.
fn connecting(failure: Failure, why: &str, kind: &Kind) -> Failure {
    let failure = failure.exit(Exit::Unreachable);
    let says = |part: &str| why.to_ascii_lowercase().contains(part);
    match kind {
        Kind::Command(program) if says("not found") || says("could not be started") => {
            match program.as_str() {
                "npx" | "npm" | "node" => failure.hint("it comes with Node.js; is that installed?"),
                "uvx" | "uv" => failure.hint("it comes with uv; is that installed?"),
                "docker" => failure.hint("is Docker installed?"),
                // The message says it all.
                _ => failure,
            }
        }
        Kind::Command(_) if says("exit") || says("ended") || says("closed") => failure.hint(
            "the server gets few of this shell's variables: pass what it needs with -e NAME or -e NAME=VALUE; --trace shows what it says",
        ),
        Kind::Web(..) if says("refuses") || says("refused") => failure.hint("is the server running, and the port right?"),
        Kind::Web(..) if says("without tls") => failure.hint("--allow-plain-http does it all the same"),
        Kind::Web(..) if says("404") => failure.hint("is the path right? Many servers are at /mcp, older ones at /sse"),
        Kind::Web(..) => failure.hint("--trace shows what was said"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ms) in [
            ("5", Some(5_000)),
            ("0.5", Some(500)),
            ("500ms", Some(500)),
            ("2m", Some(120_000)),
            ("0", Some(0)),
            ("-1", None),
            ("x", None),
            ("3 days", None),
        ] {
            assert_eq!(duration(text).ok().map(|d| d.as_millis()), ms, "{text}");
        }
    }

    #[test]
    fn folders_become_uris() {
        assert_eq!(file_uri("/a b/ü"), "file:///a%20b/%C3%BC");
        assert_eq!(file_uri("C:\\x"), "file:///C:/x");
    }
}
