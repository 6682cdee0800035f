//! Tokio's clock, paused.

use std::time::Duration;

/// The clock of a test: time passes only when nothing else can happen, and then at once.
///
/// The SDK waits and measures by tokio's clock: timeouts of calls, the idle time of sessions, cached lists, the age of
/// `requestState`, keep-alives, reconnection. Once it is paused, a test about half an hour takes milliseconds:
///
/// ```
/// use linchpin::prelude::*;
/// use linchpin_testing::Clock;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Clock::pause();
/// let server = Server::new("reports", "1.0").tool(("yearly", "Takes 5 minutes."), async || {
///     tokio::time::sleep(Duration::from_secs(5 * 60)).await;
///     "done"
/// });
/// let client = Client::new("test", "1.0").timeout(Duration::ZERO).connect(in_process(server)).await?;
///
/// // While all tasks wait, the clock moves to the first that is due: here, to the timeout.
/// let error = client.call("yearly", ()).timeout(Duration::from_secs(30)).await.unwrap_err();
/// assert!(error.is_timeout());
///
/// // `advance` lets what is due meanwhile happen, in order.
/// let report = tokio::spawn({
///     let client = client.clone();
///     async move { client.call("yearly", ()).await }
/// });
/// clock.advance(Duration::from_secs(4 * 60)).await;
/// assert!(!report.is_finished());
/// clock.advance(Duration::from_secs(60)).await;
/// assert_eq!(report.await??.text(), "done");
/// # Ok(())
/// # }
/// ```
///
/// Waiting for a socket or a child process also counts as waiting, so that timeouts strike before the other side can answer.
/// Use in-memory transports, or call a mounted HTTP service without a network. OAuth tokens expire by the clock of
/// the system, which is not paused; `auth::OAuth::clock` replaces it.
#[derive(Debug)]
pub struct Clock(());

impl Clock {
    /// Pauses the clock until the runtime ends.
    ///
    /// # Panics
    /// If the runtime is not a `current_thread` one, as `#[tokio::test]` makes, or its clock is paused already.
    pub fn pause() -> Clock {
        tokio::time::pause();
        Clock(())
    }

    /// Moves the clock forward. What is due until then, and what follows from it, has happened when this returns.
    ///
    /// Cancel-safe.
    pub async fn advance(&self, by: Duration) {
        tokio::time::sleep(by).await;
        // The clock moves again only when every task waits: those that were due at the same time have run.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
