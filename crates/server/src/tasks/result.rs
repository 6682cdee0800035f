//! `tasks/result`: waits for the end of a task, and asks its questions meanwhile.

use crate::cx::{Cx, Out};
use crate::mrtr::RoundTrips;
use crate::running_call;
use crate::target::CallStart as Started;
use crate::tasks::methods::{Asks, Given};
use crate::tasks::record::{Kept, Record};
use crate::tasks::storage::{Storage, TaskError, failed};
use linchpin_core::service::{CallStart, boxed};
use linchpin_core::{Reply, ReplyKind, ServerRequest, ServerRequestError};
use linchpin_proto::task::{self, Change, End, Event, REASON_BYTES_MAX, Status, cut};
use linchpin_types::error::code;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Starts `tasks/result`. It has no time limit of its own: the task has.
pub(crate) fn start(asks: Asks, id: String, context: &mut Context<'_>) -> CallStart {
    let (core, request) = (asks.core.clone(), asks.request.clone());
    let cx = Cx::new(request.clone(), asks.context.clone(), core.shared.clone(), RoundTrips::default());
    let waiting = cx.clone();
    let future = Box::pin(async move {
        match wait(&asks, &id, &waiting).await {
            Ok(reply) => reply,
            Err(error) => asks.error(&id, &error),
        }
    });
    running_call::launch_without_limit(&core.shared, &request, Started { future, cx: Some(cx) }, context)
}

type Answer = (String, Result<String, ServerRequestError>);

async fn wait(asks: &Asks, id: &str, cx: &Cx) -> Result<Reply, TaskError> {
    let storage = &asks.storage;
    // First watched, then read: so no change falls between.
    let topic = storage.topic(id);
    let mut watch = storage.store.topic().watch(&[topic.as_str()]).await?;
    // As many answers as questions were asked, at most.
    let (send, mut answers) = mpsc::unbounded_channel::<Answer>();
    let mut asked: HashMap<String, Claim> = HashMap::new();
    // Nobody is there to be asked any more: only the end is waited for.
    let mut is_deaf = false;
    loop {
        let record = storage.get(&asks.owner, id).await?;
        if record.state.status.is_end() {
            let end = storage.end(&asks.owner, id, &record).await?;
            return Ok(ended(asks, id, record.state.status, end, record.features()));
        }
        asked.retain(|key, _| record.state.open().any(|question| question.key == *key));
        for question in record.state.open().filter(|_| !is_deaf) {
            if asked.contains_key(&question.key) {
                continue;
            }
            // Another `tasks/result` may be asking it.
            let Some(claim) = Claim::new(storage, id, &question.key) else { continue };
            let (send, key) = (send.clone(), question.key.clone());
            let answer = Box::new(move |result| drop(send.send((key, result))));
            let params = task::related(&question.asked(), id);
            cx.0.push(Out::ServerRequest(ServerRequest { method: question.method.clone().into(), params, answer }));
            asked.insert(question.key.clone(), claim);
        }
        let answered = {
            let (mut changed, mut answered) = (pin!(watch.next()), pin!(answers.recv()));
            // A suspended task has no runner, which would end it when its time is over.
            let mut expired = pin!(tokio::time::sleep(storage.left(record.state.expires_ms())));
            poll_fn(|context| match answered.as_mut().poll(context) {
                Poll::Ready(answer) => Poll::Ready(answer),
                Poll::Pending if expired.as_mut().poll(context).is_ready() => Poll::Ready(None),
                Poll::Pending => changed.as_mut().poll(context).map(|_| None),
            })
            .await
        };
        if let Some((key, result)) = answered {
            let (given, value) = match result {
                Ok(json) => (Given::Result, RawValue::from_string(json).ok()),
                Err(ServerRequestError::Rpc(code, message)) => {
                    let message = cut(&message, REASON_BYTES_MAX);
                    (Given::Error, serde_json::value::to_raw_value(&(code, message)).ok())
                }
                // The stream was cut: the next one asks again.
                Err(_) => {
                    is_deaf = true;
                    asked.clear();
                    continue;
                }
            };
            if let Some(value) = value
                && let Some(why) = asks.answer(id, &[(key.clone(), value)], given).await?
            {
                // This response cannot be refused, and the next one would be no shorter.
                let mut fail = |record: &mut Record| {
                    let change = record.state.apply(&Event::Fail(&why), storage.now_ms());
                    if change == Change::Ended {
                        record.end = Some(Kept::Here(failed(&why)));
                    }
                    change
                };
                storage.change(&asks.owner, id, &mut fail).await?;
            }
            asked.remove(&key);
        }
    }
}

/// A question that is being asked, until it is dropped.
struct Claim {
    storage: Arc<Storage>,
    key: (String, String),
}

impl Claim {
    fn new(storage: &Arc<Storage>, id: &str, key: &str) -> Option<Claim> {
        let key = (id.to_owned(), key.to_owned());
        let is_new = storage.asking.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_new.then(|| Claim { storage: storage.clone(), key })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.storage.asking.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        // Whoever else waits may ask it now.
        let (storage, id) = (self.storage.clone(), self.key.0.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(boxed(async move { storage.store.topic().publish(&storage.topic(&id)).await }));
        }
    }
}

/// The response of the call, as it would have had it, with the task's id.
fn ended(asks: &Asks, id: &str, status: Status, end: Option<End>, made: &linchpin_core::Features) -> Reply {
    let request = &asks.request;
    let features = request.caller.features();
    match end {
        Some(End::Result(json)) => {
            let fitted = task::refit(json.get(), made, features).unwrap_or(json);
            let mut out = asks.core.shared.writer(request);
            let mut failed = false;
            task::spans(fitted.get(), |name, span| {
                let value = span.of(fitted.get());
                match name {
                    "_meta" if value.starts_with('{') => out.meta(value[1..value.len() - 1].trim().as_bytes()),
                    "resultType" => {}
                    name => {
                        failed |= name == "isError" && value == "true";
                        out.any_key(name);
                        out.push(value.as_bytes());
                    }
                }
            });
            let related = serde_json::json!({ "taskId": id });
            out.meta(format!("\"{}\":{related}", task::RELATED).as_bytes());
            out.finish(if failed { ReplyKind::ToolError } else { ReplyKind::Complete })
        }
        Some(End::Error(json)) => {
            let code = task::error_parts(json.get()).0;
            Reply::with_error(&request.id, code, json.get().to_owned().into())
        }
        None => {
            let why = format!("the task was {}", status.as_str());
            Reply::error(Some(&request.id), code::INVALID_REQUEST, &why, None)
        }
    }
}
