//! `linchpin bridge`: another server behind another transport and another revision.

use crate::client::target::{Kind, TargetArgs};
use crate::fail::Failure;
use crate::log;
use crate::record::redact::Redactor;
use crate::record::trace::{Aloud, Taps, Trace};
use crate::record::transcript::Recorder;
use crate::serve::paste::Card;
use crate::serve::place::{Clients, PlaceArgs, Ready};
use crate::show::out::Style;
use clap::{Args, ValueEnum};
use linchpin::client::Tap;
use linchpin_core::Features;
use linchpin_gateway::{Bridge, Isolation};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a program may take to start: package runners install first.
const OPEN_MS_MAX: u64 = 300_000;

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
    pub(crate) upstream: UpstreamArgs,
}

/// How the connections to the server are shared, and for how long.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bridge")]
pub(crate) struct UpstreamArgs {
    /// Who shares a connection to the server: auto (each session has its own), shared (all have one; the server cannot ask
    /// its clients), or session (each stateless request over HTTP has its own, too).
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Shares::Auto)]
    pub(crate) isolation: Shares,

    /// Connections to the server at once; for a command, its processes.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) instances: usize,

    /// Close a connection that has had nothing to do for this long [default: 10m; on standard input and output: never].
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read)]
    pub(crate) idle_stop: Option<Duration>,

    /// Give up a call during which nothing comes for this long; 0 never does.
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read, default_value = "10m")]
    pub(crate) call_timeout: Duration,

    /// Speak only revisions with sessions (legacy) or without (modern) with the server.
    #[arg(long, value_name = "ERA", alias = "protocol-era", default_value = "auto", value_parser = ["auto", "legacy", "modern"])]
    pub(crate) era: String,

    /// Send this header of clients on to the server. May be repeated.
    #[arg(long, value_name = "NAME", value_parser = forwarded)]
    pub(crate) forward_header: Vec<String>,

    /// Serve on an address that other machines can reach, although nobody is asked who they are.
    #[arg(long, requires = "http")]
    pub(crate) no_auth_i_know: bool,

    /// Show all messages to and from the server on standard error, with secrets masked.
    #[arg(long)]
    pub(crate) trace: bool,

    /// Record all messages to and from the server to this file, with secrets masked.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// See `--isolation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shares {
    Auto,
    Shared,
    Session,
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
    // A host that starts the bridge has no terminal, but a person.
    args.target.login.opens_browser = args.place.clients() != Clients::Anybody;
    let target = args.target.resolve(std::mem::take(&mut args.words))?;
    if target.kind == Kind::Transcript {
        return Err(Failure::usage("a transcript is served with `linchpin replay`"));
    }
    if !args.upstream.no_auth_i_know
        && let Some(address) = args.place.open_address()
    {
        let why = format!("{address} can be reached from other machines, and nobody is asked who they are");
        return Err(Failure::usage(why).hint("use 127.0.0.1, or pass --no-auth-i-know"));
    }
    let redactor = Arc::new(target.redactor);
    let tap = args.upstream.tap(&target.name, &redactor)?;
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
        };
        options.instances_max = upstream.instances;
        options.idle_stop_ms = ms(idle);
        options.call_ms_max = ms(upstream.call_timeout);
        options.forward_headers = upstream.forward_header.into_iter().map(String::into_boxed_str).collect();
        options.upstream = Features::all()
            .filter(|features| match upstream.era.as_str() {
                "legacy" => features.has_sessions,
                "modern" => features.stateless,
                _ => true,
            })
            .collect();
        Arc::make_mut(&mut options.client_limits).connections.open_ms_max = OPEN_MS_MAX;
        options.tap = tap;
    });
    let probed = bridge.clone();
    args.place.ready = Some(Ready(Arc::new(move || probed.ready())));
    let name = args.target.server.as_deref().unwrap_or("bridge");
    // The command line may have secrets: it is not shown.
    args.place.run(bridge, &Card { name, command: Vec::new(), variables: Vec::new() })
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl UpstreamArgs {
    /// What sees the messages to and from the server.
    fn tap(&self, target: &str, redactor: &Arc<Redactor>) -> Result<Option<Arc<dyn Tap>>, Failure> {
        let mut taps: Vec<Box<dyn Tap>> = Vec::new();
        if !self.trace && log::is_verbose() {
            taps.push(Box::new(Aloud { redactor: redactor.clone() }));
        }
        if self.trace {
            taps.push(Box::new(Trace { style: Style::of_stderr(), redactor: redactor.clone() }));
        }
        if let Some(file) = &self.record {
            taps.push(Box::new(Recorder::begin(file, target, redactor.clone())?));
        }
        Ok(if taps.is_empty() { None } else { Some(Arc::new(Taps(taps))) })
    }
}
