//! A child process as the server at the other end of a pipe.

use crate::link::Peer;
use linchpin_core::ClientLimits;
use linchpin_core::service::BoxFuture;
use linchpin_process::{Process, exit_text};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the exit status is waited for when the output has ended.
const STATUS_WAIT: Duration = Duration::from_millis(500);
/// How long the rest of standard error is waited for when the child has ended.
const STDERR_WAIT: Duration = Duration::from_millis(300);
/// How long a killed child is waited for.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// The server behind the streams.
pub(super) struct ServerProcess {
    pub(super) process: Process,
    pub(super) limits: Arc<ClientLimits>,
}

impl ServerProcess {
    async fn describe(&self, error: Option<io::Error>, asked: bool) -> String {
        let when = if asked { " before answering" } else { "" };
        let mut why = match (self.process.exited(STATUS_WAIT).await, error) {
            (Some(exit), _) => {
                // Descendants may keep standard error open.
                self.process.kill();
                let _ = timeout(STDERR_WAIT, self.process.stderr_ended()).await;
                match exit {
                    Ok(status) => format!("the server {}{when}", exit_text(status)),
                    Err(e) => format!("the server has ended{when}, its status is unknown ({e})"),
                }
            }
            (None, None) => format!("the server closed its output{when} without exiting"),
            (None, Some(e)) if e.kind() == io::ErrorKind::BrokenPipe => {
                format!("the server closed its input{when} without exiting")
            }
            (None, Some(e)) => format!("reading from the server failed{when}: {e}"),
        };
        why.push_str(&self.process.last_lines());
        why
    }
}

impl Peer for ServerProcess {
    fn ended(&self, error: Option<io::Error>, asked: bool) -> BoxFuture<'_, String> {
        Box::pin(self.describe(error, asked))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let limit = Duration::from_millis;
            if self.process.exited(limit(self.limits.connections.close_ms_max)).await.is_none() {
                self.process.terminate();
                self.process.exited(limit(self.limits.child.term_ms_max)).await;
            }
            self.process.kill();
            self.process.reaped(KILL_WAIT).await;
        })
    }

    fn abandon(&self) {
        self.process.kill();
    }

    fn memory(&self) -> Option<u64> {
        self.process.memory()
    }

    fn stderr_bytes(&self) -> u64 {
        self.process.stderr_bytes()
    }

    fn hide(&self, text: String) -> String {
        self.process.secrets().hide(text)
    }
}
