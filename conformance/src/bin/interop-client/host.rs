//! The host: what it answers when it is asked, and what it heard.

use linchpin::client::{Change, ElicitForm};
use linchpin::prelude::*;
use linchpin::types::elicit::ElicitResult;
use linchpin::types::root::Root;
use linchpin::types::sample::CreateMessageResult;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the model of this host says to everything.
pub(crate) const MODEL_SAYS: &str = "forty-two, says the model";
/// Where this host works.
pub(crate) const ROOT: &str = "file:///interop/root";

/// What the host heard, and what the user will answer.
#[derive(Default)]
pub(crate) struct Host {
    /// What is filled in; `null` is a refusal.
    answer: Mutex<Value>,
    asked: Mutex<Vec<ElicitForm>>,
    logs: Mutex<Vec<String>>,
    changes: Mutex<Vec<Change>>,
}

impl Host {
    /// A client with all handlers.
    pub(crate) fn client(self: &Arc<Host>) -> Client {
        let (asked, logs, changes) = (self.clone(), self.clone(), self.clone());
        Client::new("linchpin-interop", env!("CARGO_PKG_VERSION"))
            // A server that compiles itself on a busy machine is not an old one.
            .limits(|limits| limits.connections.probe_ms_max = 15_000)
            .check_results(true)
            .on_elicitation(move |form| {
                let host = asked.clone();
                async move { host.ask(form) }
            })
            .on_sampling(|_| async { Ok(CreateMessageResult::text("a-model", MODEL_SAYS).with_stop_reason("endTurn")) })
            .roots(vec![Root::new(ROOT).with_name("root")])
            .on_log(LoggingLevel::Debug, move |log| lock(&logs.logs).push(log.data.to_string()))
            .on_change(move |change| lock(&changes.changes).push(change))
    }

    fn ask(&self, form: ElicitForm) -> ElicitResult {
        let answer = lock(&self.answer).clone();
        let result = if answer.is_null() { form.decline() } else { form.accept(answer) };
        lock(&self.asked).push(form);
        result
    }

    /// Says what the user will answer, and forgets what was asked before.
    pub(crate) fn will_answer(&self, answer: Value) {
        *lock(&self.answer) = answer;
        lock(&self.asked).clear();
    }

    /// How many forms the user has seen since.
    pub(crate) fn asked(&self) -> usize {
        lock(&self.asked).len()
    }

    /// Forgets what was heard.
    pub(crate) fn forget(&self) {
        lock(&self.logs).clear();
        lock(&self.changes).clear();
    }

    /// Whether a log message with this text comes within some seconds.
    pub(crate) async fn hears_log(&self, text: &str) -> bool {
        soon(|| lock(&self.logs).iter().any(|log| log.contains(text))).await
    }

    /// Whether this change is told within some seconds.
    pub(crate) async fn hears_change(&self, change: &Change) -> bool {
        soon(|| lock(&self.changes).contains(change)).await
    }
}

/// Whether it becomes true within ten seconds.
pub(crate) async fn soon(is: impl Fn() -> bool) -> bool {
    for _ in 0..500 {
        if is() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    is()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
