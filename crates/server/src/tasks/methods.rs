//! The answers to `tasks/get`, `tasks/update`, `tasks/cancel` and `tasks/list`.

use crate::form_schema;
use crate::running_server::RunningServer;
use crate::shared::clip;
use crate::tasks::owner::Owner;
use crate::tasks::record::Record;
use crate::tasks::recovery;
use crate::tasks::storage::{Storage, TaskError, ask_again};
use crate::validate;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use linchpin_core::message::Request;
use linchpin_core::service::RequestContext;
use linchpin_core::{Id, Reply, ReplyKind};
use linchpin_proto::task::{self, Change, End, Event};
use linchpin_types::elicit::ElicitResult;
use linchpin_types::error::code;
use linchpin_types::root::ListRootsResult;
use linchpin_types::sample::CreateMessageResult;
use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// A request about tasks, and whose it is.
pub(crate) struct Asks {
    pub(crate) core: Arc<RunningServer>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) request: Arc<Request>,
    pub(crate) context: Arc<RequestContext>,
    pub(crate) owner: Owner,
}

impl Asks {
    fn id(&self) -> &Id {
        &self.request.id
    }

    /// The response for what cannot be done. One text for tasks that are unknown, deleted or another's.
    pub(crate) fn error(&self, id: &str, error: &TaskError) -> Reply {
        match error {
            TaskError::Unknown => {
                let why = format!("unknown task: {}", clip(id));
                Reply::error(Some(self.id()), code::INVALID_PARAMS, &why, None)
            }
            TaskError::Busy(_) | TaskError::Store => {
                Reply::error(Some(self.id()), code::INTERNAL_ERROR, &error.to_string(), None)
            }
        }
    }

    /// Refuses to look at a task once more in this second.
    fn too_often(&self, id: &str, record: &Record) -> Option<Reply> {
        if self.storage.polled(id) {
            return None;
        }
        let why = format!("too many requests; poll every {} ms", record.state.poll_ms(self.storage.now_ms()));
        Some(Reply::error(Some(self.id()), code::INTERNAL_ERROR, &why, None))
    }

    pub(crate) async fn get(&self, id: &str) -> Reply {
        let found = async {
            let record = self.storage.get(&self.owner, id).await?;
            let end = match self.request.caller.features().core_tasks {
                true => None,
                false => self.storage.end(&self.owner, id, &record).await?,
            };
            Ok((record, end))
        };
        let (record, end) = match found.await {
            Ok(found) => found,
            Err(error) => return self.error(id, &error),
        };
        if let Some(refused) = self.too_often(id, &record) {
            return refused;
        }
        let mut out = self.core.shared.writer(&self.request);
        let mut members = Vec::with_capacity(256);
        write(&mut members, id, (&record, end), self.request.caller.features(), self.storage.now_ms());
        out.members(&members);
        out.finish(ReplyKind::Complete)
    }

    /// Whether the sender may do something with the task: it still needs the scopes of the tool.
    fn admit(&self, record: &Record) -> Result<(), Reply> {
        let tools = self.core.registries.tools.snapshot();
        match tools.get(&record.tool) {
            Some(entry) => entry.item.access.admit(self.id(), &self.context),
            None => Ok(()),
        }
    }

    pub(crate) async fn cancel(&self, id: &str) -> Reply {
        let record = match self.storage.get(&self.owner, id).await {
            Ok(record) => record,
            Err(error) => return self.error(id, &error),
        };
        if let Err(refused) = self.admit(&record) {
            return refused;
        }
        let core_tasks = self.request.caller.features().core_tasks;
        let mut latest = record;
        let mut edit = |record: &mut Record| {
            let change = record.state.apply(&Event::Cancel, self.storage.now_ms());
            latest.clone_from(record);
            change
        };
        match self.storage.change(&self.owner, id, &mut edit).await {
            Err(error) => return self.error(id, &error),
            Ok(Change::None) if core_tasks => {
                let status = latest.state.status.as_str();
                let why = format!("the task cannot be cancelled: it is {status} already");
                return Reply::error(Some(self.id()), code::INVALID_PARAMS, &why, None);
            }
            Ok(_) => {}
        }
        let mut out = self.core.shared.writer(&self.request);
        if core_tasks {
            let mut members = Vec::with_capacity(256);
            write(&mut members, id, (&latest, None), self.request.caller.features(), self.storage.now_ms());
            out.members(&members);
        }
        out.finish(ReplyKind::Complete)
    }

    pub(crate) async fn update(&self, id: &str) -> Reply {
        let refuse = |why: &str| Reply::error(Some(self.id()), code::INVALID_PARAMS, why, None);
        let Some(span) = self.request.params.input_responses else {
            return refuse("`inputResponses` must be an object with one member for each answer");
        };
        let answers = match serde_json::from_str::<Answers>(self.request.text(span)) {
            Ok(Answers(answers)) => answers,
            Err(error) => {
                return refuse(&format!("`inputResponses` is malformed: {}", validate::serde_message(&error)));
            }
        };
        let limits = &self.storage.limits.tasks;
        if answers.len() > limits.input_responses_per_update_max {
            return refuse(&format!(
                "too many input responses at once (limit {})",
                limits.input_responses_per_update_max
            ));
        }
        let record = match self.storage.get(&self.owner, id).await {
            Ok(record) => record,
            Err(error) => return self.error(id, &error),
        };
        if let Err(refused) = self.admit(&record) {
            return refused;
        }
        match self.answer(id, &answers, Given::Result).await {
            Ok(None) => self.core.shared.writer(&self.request).finish(ReplyKind::Complete),
            Ok(Some(why)) => refuse(&why),
            Err(error) => self.error(id, &error),
        }
    }

    /// Gives answers to a task, and starts it again if it is suspended. Returns why all are refused, if they are.
    pub(crate) async fn answer(
        &self,
        id: &str,
        answers: &[(String, Box<RawValue>)],
        given: Given,
    ) -> Result<Option<String>, TaskError> {
        // Before an answer is acknowledged: should this process die now, another one starts the task.
        recovery::ensure(&self.core);
        self.storage.be_listed().await?;
        let (refused, answered) = answer(&self.storage, &self.owner, id, answers, given).await?;
        if let Some(record) = answered {
            recovery::resume(&self.core, &self.owner, id, record);
        }
        Ok(refused)
    }

    pub(crate) async fn list(&self) -> Reply {
        let refuse =
            || Reply::error(Some(self.id()), code::INVALID_PARAMS, "unknown cursor; begin again without one", None);
        let after = match self.request.params.cursor {
            Some(span) if self.request.text(span) != "null" => {
                match self.request.string(Some(span)).and_then(|cursor| self.after(&cursor)) {
                    Some(after) => Some(after),
                    None => return refuse(),
                }
            }
            _ => None,
        };
        let mut all = match self.storage.scan(Some(&self.owner)).await {
            Ok(all) => all,
            Err(error) => return self.error("", &error),
        };
        // Newest first; those of the same millisecond in some order, which stays.
        all.sort_unstable_by(|(_, one, a), (_, other, b)| {
            (b.state.created_ms, other.as_str()).cmp(&(a.state.created_ms, one.as_str()))
        });
        let is_after = |id: &str, record: &Record| {
            after.as_ref().is_none_or(|(at, last)| (record.state.created_ms, id) < (*at, last.as_str()))
        };
        let mut rest = all.iter().filter(|(_, id, record)| is_after(id, record));
        let page: Vec<_> = rest.by_ref().take(self.storage.limits.tasks.page_items_max.max(1)).collect();
        let mut out = self.core.shared.writer(&self.request);
        out.key("tasks");
        out.push(b"[");
        for (at, (_, id, record)) in page.iter().enumerate() {
            let mut members = Vec::with_capacity(256);
            write(&mut members, id, (record, None), self.request.caller.features(), self.storage.now_ms());
            out.push(if at > 0 { b",{" } else { b"{" });
            out.push(&members);
            out.push(b"}");
        }
        out.push(b"]");
        if let (Some(_), Some((_, id, record))) = (rest.next(), page.last()) {
            out.key("nextCursor");
            let cursor = format!("{}.{id}.{}", record.state.created_ms, self.owner.as_str());
            out.string(&URL_SAFE_NO_PAD.encode(cursor));
        }
        out.finish(ReplyKind::Complete)
    }

    /// Where a cursor of this owner points to.
    fn after(&self, cursor: &str) -> Option<(u64, String)> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let mut parts = text.splitn(3, '.');
        let (at, id, owner) = (parts.next()?, parts.next()?, parts.next()?);
        (owner == self.owner.as_str()).then_some((at.parse().ok()?, id.to_owned()))
    }
}

/// The members of a task as `tasks/get` has them.
pub(crate) fn write(
    out: &mut Vec<u8>,
    id: &str,
    (record, end): (&Record, Option<End>),
    features: &linchpin_core::Features,
    now: u64,
) {
    let end = end.map(|end| match end {
        End::Result(json) => End::Result(task::refit(json.get(), record.features(), features).unwrap_or(json)),
        end @ End::Error(_) => end,
    });
    task::members(out, id, &record.state, end.as_ref(), features, now);
    if !features.core_tasks {
        task::input_requests(out, &record.state);
    }
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// The result of the request that the question is. It is checked.
    Result,
    /// The client's error to the request, as `[code, message]`: the handler gets it. Only `tasks/result` has those.
    Error,
}

/// Gives answers to a task: those that do not fit are asked again. Keys that are not open are ignored. Returns why all are
/// refused, if they are, and the record if the task must start again.
async fn answer(
    storage: &Storage,
    owner: &Owner,
    id: &str,
    answers: &[(String, Box<RawValue>)],
    given: Given,
) -> Result<(Option<String>, Option<Record>), TaskError> {
    let limits = &storage.limits.tasks;
    let limit = limits.input_response_bytes_max;
    let (mut refused, mut answered) = (None, None);
    storage
        .change(owner, id, &mut |record| {
            (refused, answered) = (None, None);
            let mut all = Change::None;
            for (key, value) in answers {
                let Some(question) = record.state.open().find(|question| question.key == *key) else { continue };
                if record.state.answer_bytes() + value.get().len() > limit {
                    refused = Some(format!("the input responses of this task exceed {limit} bytes"));
                    return Change::None;
                }
                let problem = match given {
                    Given::Result => problem(&question.method, question.params.get(), value.get()),
                    Given::Error => None,
                };
                let event = match problem {
                    None => record.state.apply(&Event::Answer { key, value }, storage.now_ms()),
                    Some(why) => ask_again(record, (key, &why), limits, storage.now_ms()),
                };
                if event != Change::None {
                    all = event;
                }
            }
            answered = record.is_answered().then(|| record.clone());
            all
        })
        .await?;
    Ok((refused, answered))
}

/// Why an answer does not fit its question.
fn problem(method: &str, params: &str, answer: &str) -> Option<String> {
    let malformed = |error: serde_json::Error| validate::serde_message(&error);
    match method {
        _ if !answer.starts_with('{') => Some("an answer must be an object".to_owned()),
        "elicitation/create" => {
            let result = match serde_json::from_str::<ElicitResult>(answer) {
                Ok(result) => result,
                Err(error) => return Some(malformed(error)),
            };
            let params: Value = serde_json::from_str(params).unwrap_or_default();
            form_schema::problem(params.get("requestedSchema")?, &result)
        }
        "sampling/createMessage" => serde_json::from_str::<CreateMessageResult>(answer).err().map(malformed),
        "roots/list" => serde_json::from_str::<ListRootsResult>(answer).err().map(malformed),
        _ => None,
    }
}

/// Answers by key. A key that is there twice is malformed.
struct Answers(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Answers {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Answers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one member for each answer")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Answers, A::Error> {
                let mut answers: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if answers.iter().any(|(known, _)| *known == key) {
                        return Err(de::Error::custom(format!("`{}` is there twice", clip(&key))));
                    }
                    answers.push((key, value));
                    if answers.len() > 1_024 {
                        return Err(de::Error::custom("too many input responses at once"));
                    }
                }
                Ok(Answers(answers))
            }
        }
        deserializer.deserialize_map(Members)
    }
}
