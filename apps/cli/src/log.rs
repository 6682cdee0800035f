//! Logging to standard error, never to standard output, and without payloads.
//!
//! Servers only log events of the linchpin crates, because other libraries do not know what is secret: at the level `trace`, the
//! HTTP client logs the hosts it connects to, which are arguments of calls.

use crate::show::out;
use linchpin::middleware::Audit;
use linchpin_core::observer::CALL_TARGET;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The number of `-v` flags.
static VERBOSE: AtomicU8 = AtomicU8::new(0);

/// Whether `-v` was given.
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
pub(crate) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed) > 0
}

/// Starts logging: warnings for servers, errors for clients, whose commands report failures themselves; more with each
/// `-v`. `RUST_LOG` with the name of a level takes precedence.
pub(crate) fn start(verbose: u8, serves: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
    let asked = std::env::var("RUST_LOG").ok().and_then(|level| level.parse().ok());
    let level = asked.unwrap_or(match verbose {
        0 if serves => LevelFilter::WARN,
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    });
    let mut levels = match serves {
        true => Targets::new().with_target("linchpin", level),
        false => Targets::new().with_default(level),
    };
    if asked.is_none() && verbose == 1 {
        // One line for each call, or request of a client.
        let target = if serves { CALL_TARGET } else { "linchpin::client" };
        levels = levels.with_target(target, LevelFilter::DEBUG);
    }
    let lines = tracing_subscriber::fmt::layer().with_writer(out::log).without_time().with_target(false);
    if serves {
        let audited = Audited.with_filter(Targets::new().with_target(AUDIT_TARGET, LevelFilter::INFO));
        let _ = tracing_subscriber::registry().with(lines.with_filter(levels)).with(audited).try_init();
        return;
    }
    // Only fails if a subscriber is already set; this is the only place that sets one.
    let _ = tracing_subscriber::registry().with(lines).with(levels).try_init();
}

/// The target of events for the audit log: what an authorization server did.
const AUDIT_TARGET: &str = "linchpin::audit";

static AUDIT: OnceLock<Audit> = OnceLock::new();

/// Also writes events of authorization servers to this audit log.
pub(crate) fn audit(audit: &Audit) {
    // There is one for each process.
    let _ = AUDIT.set(audit.clone());
}

/// Writes them.
struct Audited;

impl<S: tracing::Subscriber> Layer<S> for Audited {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let Some(audit) = AUDIT.get() else { return };
        let mut members = Members::default();
        event.record(&mut members);
        audit.event(members.0.iter().map(|(name, value)| (*name, value.as_str().into())));
    }
}

/// The fields of an event, without its message and those that are empty.
#[derive(Default)]
struct Members(Vec<(&'static str, String)>);

impl Visit for Members {
    fn record_str(&mut self, field: &Field, value: &str) {
        if !value.is_empty() {
            self.0.push((if field.name() == "from" { "address" } else { field.name() }, value.to_owned()));
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
