//! Runs the future of a task to its end, and writes how it ended.

use crate::cx::Cx;
use crate::tasks::live::Handled;
use crate::tasks::options::IsRevoked;
use crate::tasks::record::{Kept, Record};
use crate::tasks::storage::{Live, PAUSE_MAX, PAUSE_MIN, Stop, TaskError, failed};
use linchpin_core::service::BoxFuture;
use linchpin_core::{Principal, Reply, ReplyKind};
use linchpin_proto::task::{Change, EXPIRED, End, Event, cut, error_parts};
use serde_json::value::RawValue;
use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How often is asked whether the principal of a task is revoked.
const REVOKED_AGAIN: Duration = Duration::from_secs(5);

/// Runs a task. `cx` is the context of its call.
#[allow(
    clippy::manual_async_fn,
    reason = "an async function would keep its arguments twice, and a task is to be small"
)]
pub(crate) fn run(
    handled: Arc<Handled>,
    mut future: BoxFuture<'static, Reply>,
    cx: Cx,
) -> impl Future<Output = ()> + Send + 'static {
    async move {
        let mut deadline = pin!(tokio::time::sleep_until(handled.live.deadline()));
        let mut revoked = revocation(&handled.live, &cx);
        let end = poll_fn(|task| {
            if handled.live.poll_stopped(task).is_ready() {
                return Poll::Ready(None);
            }
            if let Poll::Ready(end) = poll_handler(&handled.live, &mut future, task) {
                return Poll::Ready(Some(end));
            }
            // It stops once it is cancelled.
            if let Some(revoked) = &mut revoked {
                let Poll::Pending = revoked.as_mut().poll(task);
            }
            deadline.as_mut().poll(task).map(|()| Some(failed(EXPIRED)))
        })
        .await;
        // What the handler holds goes first, as it does when a call ends.
        drop(future);
        // Boxed: while the handler runs, a task is no larger for how it will end.
        Box::pin(finish_or_release(&handled, end)).await;
        cx.0.close();
        handled.live.leave();
        tracing::debug!(target: "linchpin::task", task = &*handled.live.id, "the task's runner stopped");
    }
}

/// What follows on the handler. `end` is how it ended; `None` if it was stopped.
async fn finish_or_release(handled: &Handled, end: Option<End>) {
    match end {
        Some(end) => finish(handled, end).await,
        None if handled.live.stopped() == Some(Stop::Leave) => release(&handled.live).await,
        None => {}
    }
}

/// Polls the handler, and catches its panics.
fn poll_handler(live: &Live, future: &mut BoxFuture<'static, Reply>, task: &mut Context<'_>) -> Poll<End> {
    match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task))) {
        Ok(polled) => polled.map(|reply| of_reply(live, &reply)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            tracing::error!(task = &*live.id, panic = text.as_deref(), "a handler panicked");
            Poll::Ready(failed("the task stopped unexpectedly because of a bug in the server"))
        }
    }
}

/// Looks whether the principal of a task is revoked, if that ends tasks.
fn revocation(live: &Arc<Live>, cx: &Cx) -> Option<BoxFuture<'static, Infallible>> {
    let (live, cx) = (live.clone(), cx.clone());
    if live.storage.is_revoked.is_none() || cx.principal().is_none() {
        return None;
    }
    Some(Box::pin(async move {
        match live.storage.is_revoked.as_ref().zip(cx.principal()) {
            Some((is_revoked, principal)) => cancel_when_revoked(&live, is_revoked, principal).await,
            None => std::future::pending().await,
        }
    }))
}

/// Cancels a task once its principal is revoked.
async fn cancel_when_revoked(live: &Live, is_revoked: &IsRevoked, principal: &Principal) -> Infallible {
    loop {
        tokio::time::sleep(REVOKED_AGAIN).await;
        let mut cancel = |record: &mut Record| record.state.apply(&Event::Cancel, live.storage.now_ms());
        if is_revoked(principal)
            && let Err(error) = live.change_as_runner(&mut cancel).await
        {
            tracing::warn!(task = &*live.id, %error, "could not cancel a task of a revoked principal");
        }
    }
}

/// The end that a response is.
fn of_reply(live: &Live, reply: &Reply) -> End {
    let max = live.storage.limits.tasks.result_bytes_max;
    let body = reply.body();
    if body.len() > max {
        return failed(&format!("the result of the task exceeds the server's limit of {max} bytes"));
    }
    match RawValue::from_string(body.to_owned()) {
        Ok(json) if matches!(reply.kind(), ReplyKind::Error(_)) => End::Error(json),
        Ok(json) => End::Result(json),
        Err(_) => failed("the result of the task is not JSON"),
    }
}

/// Writes an end. A store that is away is waited for, as long as the task would be kept.
async fn finish(handled: &Handled, end: End) {
    let live = &handled.live;
    let message = handled.take_message();
    let last = tokio::time::Instant::now() + live.kept();
    let mut pause = PAUSE_MIN;
    loop {
        match write_end(live, &end, message.as_deref()).await {
            Ok(()) => return,
            Err(TaskError::Store) if tokio::time::Instant::now() < last && live.stopped().is_none() => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            Err(_) => return,
        }
    }
}

/// What a result with `isError` says: in 2025-11-25 the task has failed, and that is its message.
fn failure(json: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Flag {
        #[serde(default, rename = "isError")]
        is_error: bool,
    }
    #[derive(serde::Deserialize)]
    struct Said {
        content: Vec<Block>,
    }
    #[derive(serde::Deserialize)]
    struct Block {
        text: Option<String>,
    }
    serde_json::from_str::<Flag>(json.get()).ok().filter(|flag| flag.is_error)?;
    let said = serde_json::from_str::<Said>(json.get()).ok();
    Some(said.and_then(|said| said.content.into_iter().find_map(|block| block.text)).unwrap_or_default())
}

async fn write_end(live: &Live, end: &End, message: Option<&str>) -> Result<(), TaskError> {
    let kept = live.keep_end(end).await?;
    let failure = match end {
        End::Result(json) => failure(json),
        End::Error(_) => None,
    };
    let mut edit = |record: &mut Record| {
        let now = live.storage.now_ms();
        if let Some(message) = message {
            let _ = record.state.apply(&Event::Message(message), now);
        }
        if let Some(why) = failure.as_deref().filter(|why| !why.is_empty()) {
            let _ = record.state.apply(&Event::Message(cut(why, live.storage.limits.tasks.status_bytes_max)), now);
        }
        let change = match end {
            End::Result(_) => record.state.apply(&Event::Complete { tool_failed: failure.is_some() }, now),
            End::Error(json) => {
                let why = error_parts(json.get()).1;
                record.state.apply(&Event::Fail(cut(&why, live.storage.limits.tasks.status_bytes_max)), now)
            }
        };
        if change == Change::Ended {
            record.end = Some(kept.clone());
        }
        change
    };
    let change = live.change_as_runner(&mut edit).await?;
    if change == Change::None && matches!(kept, Kept::Apart(_)) && !live.look(|record| ended_by(record, &kept)) {
        live.drop_end().await?;
    }
    Ok(())
}

/// Whether this end is the one that a record has: an earlier attempt to write it may have succeeded without saying so.
fn ended_by(record: &Record, kept: &Kept) -> bool {
    matches!((&record.end, kept), (Some(Kept::Apart(one)), Kept::Apart(other)) if one == other)
}

/// This process ends before the task: another one goes on with it, if it may, or else it fails.
pub(crate) async fn release(live: &Live) {
    const WHY: &str = "the server stopped while the task ran, and cannot start it again";
    let mut edit = |record: &mut Record| {
        if record.resumable && live.storage.outlives() {
            record.runner = None;
            return Change::Changed;
        }
        record.end = Some(Kept::Here(failed(WHY)));
        record.state.apply(&Event::Fail(WHY), live.storage.now_ms())
    };
    if let Err(error) = live.change_as_runner(&mut edit).await {
        tracing::warn!(task = &*live.id, %error, "a task could not be released");
    }
}
