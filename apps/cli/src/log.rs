//! Logging to standard error, never to standard output, and without payloads.
//!
//! Servers only log events of the linchpin crates, because other libraries do not know what is secret: at the level `trace`, the
//! HTTP client logs the hosts it connects to, which are arguments of calls.

use crate::show::out;
use linchpin_core::observer::CALL_TARGET;
use std::sync::atomic::{AtomicU8, Ordering};
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
        // One line for each call.
        levels = levels.with_target(CALL_TARGET, LevelFilter::DEBUG);
    }
    let lines = tracing_subscriber::fmt::layer().with_writer(out::log).without_time().with_target(false);
    // Only fails if a subscriber is already set; this is the only place that sets one.
    let _ = tracing_subscriber::registry().with(lines).with(levels).try_init();
}
