//! Logs go to standard error, never to standard output, and hold no payloads.
//!
//! Servers log what our own crates say and nothing else: libraries do not know what a secret is. At the level `trace`, the HTTP
//! client's tells the hosts it connects to, which are arguments of calls.

use crate::shown;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;

/// Starts logging: warnings for servers, errors for clients, whose commands say themselves what is wrong; more with each
/// `-v`. `RUST_LOG` with the name of a level wins.
pub(crate) fn start(verbose: u8, serves: bool) {
    let asked = std::env::var("RUST_LOG").ok().and_then(|level| level.parse().ok());
    let level = asked.unwrap_or(match verbose {
        0 if serves => LevelFilter::WARN,
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    });
    // A second subscriber is an error only when a program sets two; this is the only place.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(shown::log.with_filter(move |of| !serves || of.target().starts_with("linchpin")))
        .without_time()
        .with_target(false)
        .try_init();
}
