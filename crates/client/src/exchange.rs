//! Sending a request on a connection, which is reopened if that is needed.

use crate::active_transport::{ActiveTransport, Cancel};
use crate::connection_state::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::lock::lock;
use crate::request_parts::{Options, RequestParts, Round, Watched};
use crate::response::{Response, result_type, unknown_type};
use crate::{Result, negotiate, supervise};
use linchpin_core::message::Kind;
use linchpin_core::{Answer, Features, TransportError};
use linchpin_proto::message_writer::Extras;
use linchpin_types::jsonrpc::method::TOOLS_CALL;
use linchpin_types::page::ResultType;
use linchpin_types::task::EXTENSION;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

impl ConnectionState {
    /// Returns the transport to use. A lost one is reopened if the host enabled that.
    pub(crate) async fn live(self: &Arc<ConnectionState>) -> Result<Arc<ActiveTransport>> {
        if self.is_closed() {
            return Err(Error::closed());
        }
        if let Some(live) = self.live.load_full() {
            match live.lost.get() {
                None => return Ok(live),
                Some(why) if self.config.restart.is_none() => return Err(why.clone().into()),
                Some(_) => {}
            }
            if let Some(why) = lock(&self.given_up).clone() {
                return Err(why.into());
            }
            return self.reopen(live.generation).await;
        }
        self.reopen(0).await
    }

    /// Reopens the transport unless another task has done so since `generation`.
    pub(crate) async fn reopen(self: &Arc<ConnectionState>, generation: u64) -> Result<Arc<ActiveTransport>> {
        let _one = self.opening.lock().await;
        if self.is_closed() {
            return Err(Error::closed());
        }
        if let Some(live) = self.live.load_full().filter(|l| l.generation > generation && l.lost.get().is_none()) {
            return Ok(live);
        }
        let again = self.live.load_full();
        if let Some(old) = &again {
            let held = old.since.elapsed() > supervise::HELD;
            let n = if held { 0 } else { self.restarts.load(Ordering::Relaxed) + 1 };
            self.restarts.store(n, Ordering::Relaxed);
        }
        let live = negotiate::open(self).await?;
        if self.is_closed() {
            // Closed meanwhile: nobody else closes this one.
            live.link.close().await;
            return Err(Error::closed());
        }
        if again.is_some() {
            supervise::restore(self, &live).await;
        }
        Ok(live)
    }

    /// Sends a request and waits for its result; retries once if the server no longer knows the session.
    pub(crate) async fn exchange(
        self: &Arc<ConnectionState>,
        request: &RequestParts,
        options: &Options,
        round: &Round,
    ) -> Result<Response> {
        let live = self.live().await?;
        match self.exchange_on(&live, request, options, round).await {
            Err(e) if matches!(e.transport(), Some(TransportError::Forgotten)) => {
                let live = self.reopen(live.generation).await?;
                self.exchange_on(&live, request, options, round).await
            }
            other => other,
        }
    }

    /// Sends a request on this transport.
    pub(crate) async fn exchange_on(
        &self,
        live: &Arc<ActiveTransport>,
        request: &RequestParts,
        options: &Options,
        round: &Round,
    ) -> Result<Response> {
        let id = self.next_id();
        let extras = Extras { progress: options.watched.is_some(), log: options.log, meta: request.meta.as_ref() };
        let mut out = live.writer.request(id, request.method.clone(), extras, |members| {
            members.append(&request.members);
            round.write(members);
        });
        out.about.clone_from(&request.about);
        if let Some(arguments) = request.arguments.as_ref().filter(|_| live.agreed.features.header_params) {
            let text = std::str::from_utf8(&request.members.as_bytes()[arguments.clone()]).unwrap_or("{}");
            out.mirrored = self.tools.mirror(request.about.as_deref().unwrap_or(""), text);
        }
        let _watch = options.watched.as_ref().map(|watched| self.watch(id, watched));
        let mut cancel = Cancel { live, id, answered: false };
        let waited = self.wait(live, id, options, live.link.exchange(out)).await;
        // The transport reported a response or its loss: nothing is left to cancel.
        cancel.answered = waited.is_ok();
        let answer = waited??;
        self.response(id, answer, live.agreed.features, &request.method)
    }

    /// Parses a response.
    pub(crate) fn response(&self, id: u64, answer: Answer, features: &Features, method: &str) -> Result<Response> {
        let result = match answer.message.kind {
            Kind::Response { outcome: Ok(result), .. } => result,
            Kind::Response { outcome: Err(error), .. } => {
                return Err(Error::refused(answer.message.text(error)));
            }
            _ => {
                let why = "the transport returned a message that is not a response";
                return Err(Error::new(ErrorKind::InvalidResponse, why));
            }
        };
        let stated = if features.result_types { result_type(&answer.message)? } else { ResultType::Complete };
        // Declared extensions may have result types of their own; the host checks them.
        let known = match &stated {
            ResultType::Complete | ResultType::InputRequired => true,
            // Only calls may be answered with a task, and only to clients that said so.
            ResultType::Task => {
                let declared = self.config.tasks || self.config.extensions.iter().any(|(name, _)| name == EXTENSION);
                declared && method == TOOLS_CALL
            }
            _ => !self.config.extensions.is_empty(),
        };
        if !known {
            let name: String = stated.as_str().chars().take(80).collect();
            return Err(unknown_type(&format!("{name:?}")));
        }
        Ok(Response { id, message: answer.message, result, result_type: stated })
    }

    /// Waits with the call's timeout, which begins again with progress and when the host has answered the server, and is
    /// paused until then and while a user logs in.
    async fn wait<F: Future>(&self, live: &ActiveTransport, id: u64, options: &Options, work: F) -> Result<F::Output> {
        let Some(limit) = options.timeout else { return Ok(work.await) };
        let mut work = std::pin::pin!(work);
        let end = Instant::now() + Duration::from_millis(self.config.limits.calls.run_with_progress_ms_max).max(limit);
        loop {
            let touched = async {
                match &options.watched {
                    Some(watched) => watched.touched.notified().await,
                    None => std::future::pending().await,
                }
            };
            let limit_now = limit.min(end.saturating_duration_since(Instant::now()));
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = touched => {}
                () = self.questions.until(id, true) => tokio::select! {
                    biased;
                    done = &mut work => return Ok(done),
                    () = self.questions.until(id, false) => {}
                    () = tokio::time::sleep_until(end) => return Err(Error::timeout(limit)),
                },
                () = tokio::time::sleep(limit_now) => {
                    if !live.link.waits_for_user() {
                        return Err(Error::timeout(limit));
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    pub(crate) fn watch<'a>(&'a self, id: u64, watched: &Arc<Watched>) -> impl Drop + 'a {
        lock(&self.progress).insert(id, watched.clone());
        Watch { core: self, id }
    }
}

struct Watch<'a> {
    core: &'a ConnectionState,
    id: u64,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        lock(&self.core.progress).remove(&self.id);
    }
}
