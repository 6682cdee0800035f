//! Connects to a target and explains failures.

use crate::client::ask::{AnswerArgs, Declined};
use crate::client::config;
use crate::client::in_flags;
use crate::client::target::{Kind, Target};
use crate::exit::Exit;
use crate::fail::Failure;
use crate::log;
use crate::record::redact::Redactor;
use crate::record::trace::{Aloud, Taps, Trace, Watching, Witness};
use crate::record::transcript::Recorder;
use crate::show::bar::{noting, waiting};
use crate::show::out::{Style, note};
use clap::Args;
use linchpin::client::{Client, Connection, Error, ErrorKind, Tap};
use linchpin::transport::TransportError;
use linchpin::types::error::code;
use linchpin::types::root::Root;
use linchpin::types::version::Revision;
use linchpin_core::Features;
use std::error::Error as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connection options, and what to show of the connection.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection options")]
pub(crate) struct TalkArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Use only this protocol revision.
    #[arg(long, value_name = "DATE", alias = "protocol-version")]
    pub(crate) revision: Option<String>,

    /// Use only revisions with sessions (legacy) or without (modern).
    #[arg(long, value_name = "ERA", alias = "protocol-era", default_value = "auto", value_parser = ["auto", "legacy", "modern"])]
    pub(crate) era: String,

    /// Request timeout, for example 5, 500ms or 2m; 0 disables the timeout [default: 60].
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read)]
    pub(crate) timeout: Option<Duration>,

    /// Show all messages, HTTP headers and the server's standard error on standard error, with secrets masked.
    #[arg(long)]
    pub(crate) trace: bool,

    /// Record all messages to this file, with secrets masked. `linchpin replay FILE` serves it.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Provide this directory as a root. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
}

impl TalkArgs {
    fn revisions(&self) -> Result<Option<Vec<Revision>>, Failure> {
        let named = match &self.revision {
            None => None,
            Some(date) => Some(date.parse::<Revision>().map_err(Failure::usage)?),
        };
        let era = |sessions: bool| Features::all().filter(move |w| w.has_sessions == sessions).map(|w| w.revision);
        let all: Vec<Revision> = match self.era.as_str() {
            "legacy" => era(true).collect(),
            "modern" => era(false).collect(),
            _ => return Ok(named.map(|one| vec![one])),
        };
        match named {
            Some(one) if !all.contains(&one) => {
                Err(Failure::usage(format!("{one} is not a {} revision", self.era)).hint("remove --era or --revision"))
            }
            Some(one) => Ok(Some(vec![one])),
            None => Ok(Some(all)),
        }
    }

    fn roots(&self) -> Result<Vec<Root>, Failure> {
        let root = |folder: &PathBuf| {
            let path = std::fs::canonicalize(folder)
                .map_err(|e| Failure::usage(format!("--roots {}: {e}", folder.display())))?;
            let mut root = Root::new(file_uri(&path.to_string_lossy()));
            root.name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            Ok(root)
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

/// A connection and its target.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) target: String,
    kind: Kind,
    witness: Arc<Witness>,
    /// Whether output that is not a message has been told, or is shown anyway.
    told_garbage: AtomicBool,
}

/// Connects, does the work, and closes gracefully whatever the outcome.
pub(crate) fn run(
    talk: &TalkArgs,
    target: Target,
    work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    run_with(talk, target, |client| client, work)
}

/// Like [`run`], with additional client setup.
pub(crate) fn run_with(
    talk: &TalkArgs,
    target: Target,
    further: impl FnOnce(Client) -> Client,
    work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    run_tapped(talk, target, Vec::new(), further, work)
}

/// Like [`run_with`], with additional taps.
pub(crate) fn run_tapped(
    talk: &TalkArgs,
    target: Target,
    taps: Vec<Box<dyn Tap>>,
    further: impl FnOnce(Client) -> Client,
    work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Boxed: what connects is there once, not once for each command.
    let further: Further<'_> = Box::new(further);
    block_on(async {
        let session = connect(talk, target, taps, further).await?;
        let done = work(&session).await;
        session.close().await;
        done
    })
}

/// Runs on this thread until completion or Ctrl-C.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    // One copy of what follows, not one for each command.
    block_on_boxed(Box::pin(work))
}

fn block_on_boxed<T>(mut work: Pin<Box<dyn Future<Output = Result<T, Failure>> + '_>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::new)?;
    let done = runtime.block_on(async {
        let interrupted = async {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = interrupted => {}
        }
        drop(work);
        // Dropping the work sends a cancellation; leave it a moment to be delivered.
        tokio::time::sleep(LAST_WORDS).await;
        Err(Failure::silent(Exit::Interrupted))
    });
    // A thread may still be blocked on terminal input.
    runtime.shutdown_background();
    done
}

const LAST_WORDS: Duration = Duration::from_millis(50);

/// Writes open tasks down where `linchpin task` finds them again, if there is a place for that.
pub(crate) fn with_book(client: Client) -> Client {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME").or_else(|| variable("USERPROFILE"));
    let state = match std::env::consts::OS {
        "windows" => variable("LOCALAPPDATA"),
        "macos" => home().map(|home| home.join("Library/Application Support")),
        _ => variable("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state"))),
    };
    match state {
        Some(state) => client.book(state.join("linchpin").join("tasks")),
        None => client,
    }
}

/// Additional client setup.
pub(crate) type Further<'a> = Box<dyn FnOnce(Client) -> Client + 'a>;

/// Connects to a target.
pub(crate) async fn connect(
    talk: &TalkArgs,
    target: Target,
    mut taps: Vec<Box<dyn Tap>>,
    further: Further<'_>,
) -> Result<Session, Failure> {
    let mut client = Client::new("linchpin", env!("CARGO_PKG_VERSION"));
    if let Some(revisions) = talk.revisions()? {
        client = client.revisions(&revisions);
    }
    let mut open_ms = 0;
    client = client.limits(|limits| {
        let connections = &mut limits.connections;
        if let Some(timeout) = talk.timeout {
            let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            limits.calls.run_ms_max = ms;
            connections.open_ms_max = if ms == 0 { u64::from(u32::MAX) } else { ms };
            limits.child.open_ms_max = connections.open_ms_max;
            connections.probe_ms_max = connections.probe_ms_max.min(connections.open_ms_max / 2 + 1);
        }
        open_ms = u128::from(connections.open_ms_max);
    });
    let roots = talk.roots()?;
    if !roots.is_empty() {
        client = client.roots(roots);
    }
    client = talk.answers.add_to(client)?;
    let witness = Arc::new(Witness::default());
    let redactor: Arc<Redactor> = Arc::new(target.redactor);
    taps.push(Box::new(Watching(witness.clone())));
    if !talk.trace && log::is_verbose() {
        taps.push(Box::new(Aloud { redactor: redactor.clone() }));
    }
    if talk.trace {
        taps.push(Box::new(Trace { style: Style::of_stderr(), redactor: redactor.clone() }));
    }
    if let Some(file) = &talk.record {
        taps.push(Box::new(Recorder::begin(file, &target.name, redactor)?));
    }
    let client = further(client.tap(Taps(taps)));
    let begun = Instant::now();
    let said = |took: Duration| format!("connecting to {} … {} s", target.name, took.as_secs());
    let connecting = waiting(client.connect_to(target.dial), None, said);
    let connected = match &target.kind {
        Kind::Command(_) => noting(connecting, SILENCE, SILENT).await,
        _ => connecting.await,
    };
    match connected {
        Ok(connection) => {
            let told_garbage = talk.trace.into();
            Ok(Session { connection, target: target.name, kind: target.kind, witness, told_garbage })
        }
        Err(e) => {
            let mut failure = told(&e, &target.kind, &witness);
            if let (Some(what), Kind::Command(_)) = (witness.garbage(), &target.kind) {
                let why = "its standard output is not MCP";
                failure = failure.hint(format!("{why}: `{what}`; logs belong on standard error"));
            }
            Err(if begun.elapsed().as_millis() >= open_ms {
                failure.exit(Exit::Timeout).hint(match target.kind {
                    Kind::Command(_) => "increase --timeout; if it serves HTTP, start it separately and pass its URL",
                    _ => "increase --timeout",
                })
            } else {
                failure
            })
        }
    }
}

/// After this long without an answer of a command, a terminal shows [`SILENT`].
const SILENCE: Duration = Duration::from_secs(3);

const SILENT: &str = "note: the server has not answered on its standard output yet; it may still be \
                      installing packages. If it serves HTTP, start it separately and pass its URL";

/// What a server does that prints.
pub(crate) const NOT_MCP: &str = "writes to standard output what is not MCP";

impl Session {
    /// Whether the target is a transcript.
    pub(crate) fn is_transcript(&self) -> bool {
        self.kind == Kind::Transcript
    }

    /// Returns the beginning of the first output of a command that was not a message, for the caller to tell.
    pub(crate) fn garbage(&self) -> Option<&str> {
        let garbage = self.witness.garbage().filter(|_| matches!(self.kind, Kind::Command(_)));
        garbage.inspect(|_| self.told_garbage.store(true, Ordering::Relaxed))
    }

    /// Ends the connection gracefully, and warns of output of a command that was not a message, unless that has been told.
    pub(crate) fn close(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        // Boxed: once, not once for each command.
        Box::pin(async {
            self.connection.close().await;
            if !self.told_garbage.load(Ordering::Relaxed)
                && let Some(what) = self.garbage()
            {
                note(format!("warning: the server {NOT_MCP}: `{what}`; logs belong on standard error"));
            }
        })
    }

    /// Whether the server is a program that this command started, or a transcript.
    pub(crate) fn ends_with_command(&self) -> bool {
        !matches!(self.kind, Kind::Web(..) | Kind::Socket)
    }

    /// Explains an error to the user.
    pub(crate) fn told(&self, e: &Error) -> Failure {
        if let Some(TransportError::Closed(why)) = e.transport() {
            // The end of a connection says what came before it.
            self.told_garbage.fetch_or(why.contains("\nthe server also wrote "), Ordering::Relaxed);
        }
        told(e, &self.kind, &self.witness)
    }
}

fn told(e: &Error, kind: &Kind, witness: &Witness) -> Failure {
    let failure = Failure::new(in_flags(&e.to_string()));
    let reached = !matches!(e.kind(), ErrorKind::Connect | ErrorKind::Transport);
    if e.kind() == ErrorKind::Unauthorized || (!reached && witness.unauthorized()) {
        let failure = failure.exit(Exit::Unauthorized);
        return match kind {
            Kind::Web(_, true) => failure.hint("the token was rejected; is it for this server, and not expired?"),
            Kind::Web(url, false) if witness.names_login() => {
                failure.hint(format!("log in with `linchpin auth login {url}`, or pass a token with --bearer-env VAR"))
            }
            Kind::Web(url, false) => {
                failure.hint(format!("pass a token with --bearer-env VAR, or try `linchpin auth login {url}`"))
            }
            _ => failure,
        };
    }
    match e.kind() {
        ErrorKind::Connect => connecting(failure, e, kind),
        ErrorKind::Timeout => failure.exit(Exit::Timeout).hint("increase --timeout"),
        ErrorKind::Rpc => {
            let failure = failure.exit(Exit::Protocol);
            match e.rpc().map(|rpc| rpc.code) {
                // A name or an argument is wrong.
                Some(code::INVALID_PARAMS | code::RESOURCE_NOT_FOUND) => failure.exit(Exit::Usage),
                Some(code::METHOD_NOT_FOUND) => {
                    failure.hint("the server does not implement this; `linchpin inspect` shows what it offers")
                }
                Some(code::MISSING_REQUIRED_CLIENT_CAPABILITY) => {
                    failure.hint("if the server requests roots, pass --roots DIR")
                }
                _ => failure,
            }
        }
        ErrorKind::InvalidRequest | ErrorKind::TaskLost => failure.exit(Exit::Usage),
        ErrorKind::StillRunning => {
            failure.exit(Exit::Timeout).hint("wait longer with --wait, or use `linchpin task wait`")
        }
        ErrorKind::TaskCancelled | ErrorKind::Book => failure,
        // The user declined.
        ErrorKind::Input if e.source().is_some_and(|why| why.is::<Declined>()) => failure.exit(Exit::Protocol),
        ErrorKind::Input => failure
            .exit(Exit::Protocol)
            .hint("respond on a terminal, or with --answer FIELD=VALUE, --answers FILE, or --decline"),
        ErrorKind::Tool => failure,
        _ => failure.exit(Exit::Protocol),
    }
}

/// Adds hints to a connection failure.
fn connecting(failure: Failure, e: &Error, kind: &Kind) -> Failure {
    let failure = failure.exit(Exit::Unreachable);
    match (kind, e.transport()) {
        (Kind::Command(program), Some(TransportError::Unreachable(_))) => match program.as_str() {
            "npx" | "npm" | "node" => failure.hint("it is part of Node.js; is Node.js installed?"),
            "uvx" | "uv" => failure.hint("it is part of uv; is uv installed?"),
            "docker" => failure.hint("is Docker installed?"),
            name if name.contains(' ') => failure.hint(
                "pass the program and its arguments separately: `-- PROGRAM ARGUMENTS…`, or `command` and `args` in a file",
            ),
            name if config::has(name) => failure.hint(format!("did you mean --server {name}?")),
            // Otherwise the message is sufficient.
            name => failure.program(name),
        },
        (Kind::Command(_), Some(TransportError::Closed(why))) if lacks_variables(why) => failure.hint(
            "the server inherits few environment variables: pass others with -e NAME or -e NAME=VALUE; -v shows its standard error",
        ),
        (Kind::Web(url, _), Some(TransportError::Status { status: 404, .. })) => {
            let url = url.trim_end_matches('/');
            // Nothing follows the host.
            match url.matches('/').count() {
                2 => failure.hint(format!("did you mean {url}/mcp?")),
                _ => failure.hint("is the path correct? Most servers use /mcp, older ones /sse"),
            }
        }
        (Kind::Web(..), Some(TransportError::Unreachable(why))) => unreachable_web(failure, why),
        (Kind::Web(..), _) => traced(failure, &e.to_string()),
        _ => failure,
    }
}

/// Whether a program may have ended because it lacks environment variables: it said nothing, or something like that.
fn lacks_variables(why: &str) -> bool {
    let Some((_, said)) = why.split_once("; its last lines were:") else { return true };
    let said = said.to_ascii_lowercase();
    let words =
        ["environment", "env var", "not set", "unset", "missing", "_key", "api key", "keyerror", "token", "credential"];
    words.iter().any(|word| said.contains(word)) && !said.contains("unexpected token")
}

/// Adds hints to a failed HTTP connection, whose cause is only in the message.
fn unreachable_web(failure: Failure, why: &str) -> Failure {
    match web_hint(why) {
        Some(hint) => failure.hint(hint),
        None => traced(failure, why),
    }
}

/// Says how messages are seen, unless the message is sufficient, or there were none.
fn traced(failure: Failure, why: &str) -> Failure {
    let sufficient = ["without TLS", "is not trusted", "cannot be found", "the upstream server is not available"];
    match sufficient.iter().any(|part| why.contains(part)) {
        true => failure,
        false => failure.hint("--trace shows the messages"),
    }
}

/// What helps with this failed HTTP connection.
pub(crate) fn web_hint(why: &str) -> Option<&'static str> {
    let says = |part: &str| why.contains(part);
    match () {
        () if says("refused the connection") || says("onnection refused") => {
            Some("is the server running, and the port correct?")
        }
        () if says("trusted by this machine") || says("certificate of an authority") => {
            Some("SSL_CERT_FILE=FILE names authorities of your own")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_hinted_at_where_they_may_be_what_lacks() {
        for (said, lacks) in [
            ("; it wrote nothing to standard error", true),
            ("; its last lines were:\n  Error: API_KEY is not set", true),
            ("; its last lines were:\n  KeyError: 'HOME'", true),
            ("; its last lines were:\n  Missing configuration", true),
            ("; its last lines were:\n  error: notes: No such file or directory", false),
            ("; its last lines were:\n  SyntaxError: Unexpected token '}'", false),
            ("; its last lines were:\n  TypeError: Cannot read properties of undefined (reading 'x')", false),
            ("; its last lines were:\n  error: `add` is defined twice: at src/main.rs:3 and src/main.rs:4", false),
        ] {
            assert_eq!(lacks_variables(&format!("the server exited with status 1{said}")), lacks, "{said}");
        }
    }

    #[test]
    fn folders_become_uris() {
        assert_eq!(file_uri("/a b/ü"), "file:///a%20b/%C3%BC");
        assert_eq!(file_uri("C:\\x"), "file:///C:/x");
    }
}
