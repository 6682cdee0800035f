//! Logs go to standard error, never to standard output, and hold no payloads.

use tracing_subscriber::EnvFilter;

/// Starts logging: warnings, or more with each `-v`. `RUST_LOG` wins.
pub(crate) fn start(verbose: u8) {
    let level = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    // A second subscriber is an error only when a program sets two; this is the only place.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .try_init();
}
