//! Tokio's clock, paused.

use std::time::Duration;

/// The paused clock of a test: when all tasks are idle, time advances at once to the next timer.
///
/// The SDK uses tokio's clock for timeouts of calls, the idle time of sessions, cached lists, the age of `requestState`,
/// keep-alives, and reconnection. With a paused clock, a test that covers half an hour takes milliseconds:
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
/// // While all tasks wait, the clock advances to the next timer: here, to the timeout.
/// let error = client.call("yearly", ()).timeout(Duration::from_secs(30)).await.unwrap_err();
/// assert!(error.is_timeout());
///
/// // `advance` fires the timers that expire meanwhile, in order.
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
/// A task that waits for a socket or a child process also counts as idle, so timeouts fire before the other side can
/// answer. Use in-memory transports, or call a mounted HTTP service without a network. OAuth tokens expire by the clock
/// of the system, which is not paused; `auth::OAuth::clock` replaces it.
#[derive(Debug)]
pub struct Clock(());

impl Clock {
    /// Pauses the clock until the runtime ends.
    ///
    /// # Panics
    /// If the runtime is not a `current_thread` runtime, such as `#[tokio::test]` creates, or its clock is already
    /// paused.
    pub fn pause() -> Clock {
        tokio::time::pause();
        Clock(())
    }

    /// Advances the clock. When this returns, the timers that expired have fired, and the tasks that they woke have run.
    ///
    /// Cancel-safe.
    pub async fn advance(&self, by: Duration) {
        tokio::time::sleep(by).await;
        // The clock moves again only when every task waits: those that were due at the same time have run.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
