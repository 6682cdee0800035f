//! `linchpin bridge`: another server behind another transport and another revision.

use crate::client::login::path;
use crate::client::target::{Kind, TargetArgs};
use crate::exit::Exit;
use crate::fail::Failure;
use crate::foreign::Foreign;
use crate::log;
use crate::record::redact::Redactor;
use crate::record::trace::{Aloud, Taps, Trace};
use crate::record::transcript::Recorder;
use crate::serve::auth::ToollessAuthArgs;
use crate::serve::paste::{self, Card};
use crate::serve::place::{Change, Clients, PlaceArgs, Ready};
use crate::serve::words;
use crate::show::out::{Style, note};
use clap::{Arg, ArgAction, Args, Command, ValueEnum};
use linchpin::auth::store::FileStore;
use linchpin::client::Tap;
use linchpin::transport::HttpOptions;
use linchpin_core::{Features, SessionSeal};
use linchpin_gateway::{Bridge, Isolation, SealedSessions};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    /// A URL, a socket, or a command and its arguments.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    #[command(flatten)]
    pub(crate) auth: ToollessAuthArgs,

    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,

    #[command(flatten)]
    pub(crate) clients: ClientArgs,
}

/// How the connections to the server are shared, and for how long.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bridge")]
pub(crate) struct UpstreamArgs {
    /// How clients share connections to the server: auto (one for each session), shared (one for all; the server cannot send
    /// requests to clients), session (also one for each stateless request over HTTP), user (one for each user),
    /// call (one for each call while it runs), or fresh (a new one for each call).
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Shares::Auto)]
    pub(crate) isolation: Shares,

    /// Maximum number of connections to the server [default: 1024; for a command, of its processes, 32].
    #[arg(long, value_name = "N")]
    pub(crate) instances: Option<usize>,

    /// With --isolation call or fresh, number of connections kept open for the next calls [default: 1].
    #[arg(long, value_name = "N")]
    pub(crate) warm: Option<usize>,

    /// Close a connection that has been idle for this long [default: 10m; on standard input and output: never].
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read)]
    pub(crate) idle_stop: Option<Duration>,

    /// Restart the command when it and its child processes use more memory than this, once no call is running; with K, M or G
    /// for KiB, MiB or GiB. Linux only.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory_max: Option<u64>,

    /// Fail a call during which the server sends nothing for this long; 0 disables it.
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read, default_value = "10m")]
    pub(crate) call_timeout: Duration,

    /// Use only revisions with sessions (legacy) or without (modern) with the server.
    #[arg(long, value_name = "ERA", alias = "protocol-era", default_value = "auto", value_parser = ["auto", "legacy", "modern"])]
    pub(crate) era: String,

    /// Forward this header of clients to a server with a URL. May be repeated.
    #[arg(long, value_name = "NAME", requires = "http", value_parser = forwarded)]
    pub(crate) forward_header: Vec<String>,

    /// Offer only tools that match this name, with * and ?. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) tools: Vec<String>,

    /// Do not offer tools that match this name. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) no_tools: Vec<String>,

    /// Ping the server after this long without a message; 0 disables it. Clients of event streams receive a comment
    /// as often.
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read)]
    pub(crate) keep_alive: Option<Duration>,

    /// Show all messages to and from the server on standard error, with secrets masked.
    #[arg(long)]
    pub(crate) trace: bool,

    /// Record all messages of both sides to this file, with secrets masked.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// See `--isolation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shares {
    Auto,
    Shared,
    Session,
    User,
    Call,
    Fresh,
}

/// How clients are served over HTTP.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clients")]
pub(crate) struct ClientArgs {
    /// Use only revisions with sessions (legacy) or without (modern) with clients.
    #[arg(long, value_name = "ERA", default_value = "both", value_parser = ["both", "legacy", "modern"])]
    pub(crate) serve_era: String,

    /// With sealed, sessions survive a restart of the bridge. With off there are none: every request counts as a new client.
    #[arg(long, value_name = "HOW", requires = "http", default_value = "sealed", value_parser = ["sealed", "off"])]
    pub(crate) sessions: String,

    /// Allow browser requests from this origin, or from any (*). May be repeated.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) cors: Vec<String>,

    /// The path of Streamable HTTP [default: /mcp].
    #[arg(long, value_name = "PATH", requires = "http", value_parser = path)]
    pub(crate) path: Option<String>,

    /// The path of the stream of HTTP+SSE [default: /sse].
    #[arg(long, value_name = "PATH", requires = "sse", value_parser = path)]
    pub(crate) sse_path: Option<String>,

    /// The path for messages of HTTP+SSE [default: /message].
    #[arg(long, value_name = "PATH", requires = "sse", value_parser = path)]
    pub(crate) message_path: Option<String>,

    /// Path of the liveness probe [default: /healthz]. May be repeated.
    #[arg(long, value_name = "PATH", requires = "http", value_parser = path)]
    pub(crate) health: Vec<String>,

    /// Path of the readiness probe [default: /readyz].
    #[arg(long, value_name = "PATH", requires = "http", value_parser = path)]
    pub(crate) ready: Option<String>,

    /// Also stop at the end of standard input, if that is a pipe. Not on Windows.
    #[arg(long, requires = "http")]
    pub(crate) stop_with_stdin: bool,
}

/// A number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    if !cfg!(target_os = "linux") {
        return Err("the memory of processes is looked at on Linux only".to_owned());
    }
    let number = text.trim_end_matches(['K', 'M', 'G']);
    let shift = match &text[number.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 64,
    };
    let bytes = number.parse::<u64>().ok().filter(|number| *number > 0 && shift < 64 && *number <= u64::MAX >> shift);
    bytes.map(|number| number << shift).ok_or_else(|| "expected a number such as 1073741824 or 512M".to_owned())
}

/// Headers that belong to one connection, or to the bridge itself.
const OWN: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A header that may be sent on.
fn forwarded(name: &str) -> Result<String, String> {
    let name = name.to_ascii_lowercase();
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
        return Err("not the name of a header".to_owned());
    }
    if OWN.contains(&name.as_str()) || name.starts_with("mcp-") {
        return Err("this header belongs to the client's own connection and is never sent on".to_owned());
    }
    Ok(name)
}

pub(crate) fn run(mut args: BridgeArgs) -> Result<(), Failure> {
    // A host that starts the bridge has no terminal, but a user.
    args.target.login.opens_browser = args.place.clients() != Clients::Anybody;
    if args.words.is_empty() && !args.target.is_said() {
        return Err(Failure::usage("no server given")
            .hint("end with `-- COMMAND ARGS…`, name a URL or a socket, or pass --config FILE --server NAME"));
    }
    let target = args.target.resolve(std::mem::take(&mut args.words))?;
    if target.kind == Kind::Transcript {
        return Err(Failure::usage("a transcript is served with `linchpin replay`"));
    }
    // A host on standard input reads the reason in the answer to its first request.
    if let Some(why) = target.missing.as_ref().filter(|_| args.place.clients() != Clients::Parent) {
        return Err(Failure::new(format!("cannot connect: {why}")).exit(Exit::Unreachable));
    }
    args.upstream.check(&target.kind)?;
    args.auth.0.without_scopes()?;
    args.place.guard(&args.auth.0)?;
    if args.upstream.isolation == Shares::User && args.place.is_public() {
        let why =
            "--isolation user needs to know its users: without authentication all clients would share a connection";
        return Err(
            Failure::usage(why).hint("add --auth token, --auth keys:FILE or --auth URL (an authorization server)")
        );
    }
    args.place.stops_with_stdin = args.clients.stop_with_stdin;
    args.place.change = Some(args.clients.change(&args.upstream, &target.name)?);
    let is_url = matches!(target.kind, Kind::Web(..));
    let redactor = Arc::new(target.redactor);
    let by_hand = args.place.clients() == Clients::Parent && args.place.tells();
    let command = match &target.kind {
        Kind::Web(..) if by_hand => typed(),
        _ => Vec::new(),
    };
    let (tap, client_tap) = args.upstream.taps(&target.name, &redactor)?;
    let idle = match (args.upstream.idle_stop, args.place.clients()) {
        (Some(idle), _) => idle,
        // The one client decides.
        (None, Clients::Parent) => Duration::ZERO,
        (None, _) => Duration::from_secs(600),
    };
    let upstream = args.upstream;
    let bridge = Bridge::to(target.dial).options(|options| {
        options.isolation = match upstream.isolation {
            Shares::Auto => Isolation::Auto,
            Shares::Shared => Isolation::Shared,
            Shares::Session => Isolation::Session,
            Shares::User => Isolation::User,
            Shares::Call => Isolation::Call,
            Shares::Fresh => Isolation::Fresh,
        };
        // A process takes memory, a session over HTTP next to none.
        options.instances_max = upstream.instances.unwrap_or(if is_url { 1_024 } else { 32 });
        options.opening_max = if is_url { 64 } else { 4 };
        options.idle_stop_ms = ms(idle);
        options.memory_bytes_max = upstream.memory_max.unwrap_or_default();
        options.call_ms_max = ms(upstream.call_timeout);
        options.forward_headers = upstream.forward_header.into_iter().map(String::into_boxed_str).collect();
        options.warm = upstream.warm.unwrap_or(1);
        options.tools = upstream.tools.into_iter().map(String::into_boxed_str).collect();
        options.hidden_tools = upstream.no_tools.into_iter().map(String::into_boxed_str).collect();
        options.upstream = of_era(&upstream.era);
        options.clients = of_era(&args.clients.serve_era);
        if let Some(quiet) = upstream.keep_alive {
            options.quiet_ms_max = ms(quiet);
            if !quiet.is_zero() {
                Arc::make_mut(&mut options.limits).connections.keep_alive_ms = ms(quiet);
            }
        }
        options.tap = tap;
        options.client_tap = client_tap;
    });
    let probed = bridge.clone();
    args.place.ready = Some(Ready(Arc::new(move || probed.ready())));
    let name = args.target.server.as_deref().unwrap_or("bridge");
    let variables = args.target.bearer_env.iter().chain(&args.target.login.client.client_secret_env);
    let variables = variables.filter(|_| !command.is_empty()).cloned().collect();
    args.place.run(bridge, &Card { name, command, variables })
}

/// The command line of this process for the configuration of a host, with paths in full. Empty if it may hold a secret, or is that of
/// another program (`mcp-remote`).
fn typed() -> Vec<String> {
    let given: Vec<OsString> = std::env::args_os().collect();
    if Foreign::called(&given).is_some() {
        return Vec::new();
    }
    let verbose = Arg::new("verbose").short('v').long("verbose").action(ArgAction::Count);
    let command = BridgeArgs::augment_args(Command::new(BRIDGE).arg(verbose));
    let own = given.into_iter().skip_while(|word| word != BRIDGE);
    let Ok(matches) = command.clone().try_get_matches_from(own) else { return Vec::new() };
    let words = words::given(&command, &matches, None);
    let has_secret =
        SECRET_ARGS.iter().any(|arg| matches.contains_id(arg)) || words.iter().any(|word| has_secret(word));
    if has_secret { Vec::new() } else { paste::command(BRIDGE, words) }
}

const BRIDGE: &str = "bridge";
/// Arguments that may hold a secret.
const SECRET_ARGS: [&str; 3] = ["bearer", "header", "env"];

/// Whether an address may hold one: it has a query, or something before its host.
fn has_secret(word: &str) -> bool {
    word.contains("://") && word.contains(['?', '@'])
}

/// The revisions of an era, or all.
fn of_era(era: &str) -> Vec<&'static Features> {
    let fits = |features: &&'static Features| match era {
        "legacy" => features.has_sessions,
        "modern" => !features.has_sessions,
        _ => true,
    };
    Features::all().filter(fits).collect()
}

impl ClientArgs {
    /// What these change over HTTP.
    fn change(&self, upstream: &UpstreamArgs, name: &str) -> Result<Change, Failure> {
        let seal = match (self.sessions.as_str(), FileStore::standard()) {
            ("off", _) => None,
            (_, Ok(tokens)) => {
                let file = tokens.path().with_file_name("bridge.key");
                match SealedSessions::from_file(&file, name) {
                    Ok(sealed) => Some(Arc::new(sealed) as Arc<dyn SessionSeal>),
                    Err(why) => {
                        note(format!("sessions end with this process: {why}"));
                        None
                    }
                }
            }
            // Without a home directory there is no place for the key.
            (_, Err(_)) => None,
        };
        let off = self.sessions == "off";
        if off && upstream.isolation == Shares::Session {
            return Err(Failure::usage("--isolation session needs sessions").hint("leave --sessions off out"));
        }
        let (any, named): (Vec<_>, Vec<_>) = self.cors.iter().cloned().partition(|origin| origin == "*");
        let (path, health, ready) = (self.path.clone(), self.health.clone(), self.ready.clone());
        let (stream, message) = (self.sse_path.clone(), self.message_path.clone());
        Ok(Change(Arc::new(move |options: &mut HttpOptions| {
            options.session_seal = seal.clone();
            options.no_sessions = off;
            options.any_origin = !any.is_empty();
            if !named.is_empty() {
                options.allowed_origins.get_or_insert_default().extend(named.clone());
            }
            if let Some(path) = &path {
                options.path = Some(path.clone());
            }
            if let Some(path) = &stream {
                options.sse_paths.0.clone_from(path);
            }
            if let Some(path) = &message {
                options.sse_paths.1.clone_from(path);
            }
            if !health.is_empty() {
                options.health_paths.clone_from(&health);
            }
            if let Some(path) = &ready {
                options.ready_path.clone_from(path);
            }
        })))
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

type OneTap = Option<Arc<dyn Tap>>;

impl UpstreamArgs {
    /// Refuses options that have no effect with these others, or on a server of this kind.
    fn check(&self, kind: &Kind) -> Result<(), Failure> {
        let refused = match kind {
            _ if self.warm.is_some() && !matches!(self.isolation, Shares::Call | Shares::Fresh) => {
                "--warm is for connections of calls: add --isolation call or fresh"
            }
            Kind::Web(..) | Kind::Socket if self.memory_max.is_some() => {
                "--memory-max is for a server that a command starts: leave it out"
            }
            Kind::Command(_) | Kind::Socket if !self.forward_header.is_empty() => {
                "--forward-header is for a server with a URL: leave it out"
            }
            _ => return Ok(()),
        };
        Err(Failure::usage(refused))
    }

    /// What sees the messages to and from the server, and those from and to clients.
    fn taps(&self, target: &str, redactor: &Arc<Redactor>) -> Result<(OneTap, OneTap), Failure> {
        let mut client: OneTap = None;
        let mut taps: Vec<Box<dyn Tap>> = Vec::new();
        if !self.trace && log::is_verbose() {
            taps.push(Box::new(Aloud { redactor: redactor.clone() }));
        }
        if self.trace {
            taps.push(Box::new(Trace { style: Style::of_stderr(), redactor: redactor.clone() }));
        }
        if let Some(file) = &self.record {
            let recorder = Recorder::begin(file, target, redactor.clone())?;
            client = Some(Arc::new(recorder.beside("client")));
            taps.push(Box::new(recorder));
        }
        let upstream: OneTap = if taps.is_empty() { None } else { Some(Arc::new(Taps(taps))) };
        Ok((upstream, client))
    }
}
