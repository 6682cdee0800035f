//! Tasks: calls that answer later. The state machine, the keys of questions, the times, and how both generations show a task.
//!
//! ```text
//! working ⇄ input_required        working | input_required → completed | failed | cancelled
//! ```
//!
//! An end is an end: nothing follows it. The time is passed in, in milliseconds since 1970.

use linchpin_core::json::{read_object, read_str, write_str};
use linchpin_core::message::Request;
use linchpin_core::{Features, Span};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The identifier of the extension.
pub const EXTENSION: &str = linchpin_types::task::EXTENSION;
/// The member of `_meta` that names the task which a message belongs to, where tasks are part of the revision.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";
/// How long the result can be fetched at least, after the end.
pub const FETCH_MS_MIN: u64 = 600_000;
/// How much is kept of the reason why an answer did not do.
pub const REASON_BYTES_MAX: usize = 1 << 10;

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It runs.
    Working,
    /// It waits for answers of the client.
    InputRequired,
    /// It has a result, also one with `isError`.
    Completed,
    /// It ended with a JSON-RPC error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Status {
    /// Whether nothing follows.
    pub fn is_end(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Working => "working",
            Status::InputRequired => "input_required",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

/// A question to the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The key on the wire, never used twice in the task's life.
    pub key: String,
    /// The handler's key.
    pub name: String,
    /// How many times the handler had asked under this name, with this one: a handler that runs again asks again.
    pub nth: u32,
    /// The method of the request.
    pub method: String,
    /// Its parameters, as the handler asked. `null` once it is answered.
    pub params: Box<RawValue>,
    /// Why the last answer did not do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<RawValue>>,
}

impl PartialEq for Question {
    fn eq(&self, other: &Question) -> bool {
        let raw = |raw: &Option<Box<RawValue>>| raw.as_ref().map(|raw| raw.get().to_owned());
        (&self.key, &self.name, self.nth, raw(&self.answer)) == (&other.key, &other.name, other.nth, raw(&other.answer))
    }
}

impl Question {
    /// Whether it waits for an answer.
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    /// The parameters as they are asked: the message says why the last answer did not do.
    pub fn asked(&self) -> String {
        let params = self.params.get();
        let Some(why) = &self.refused else { return params.to_owned() };
        let Ok(mut params) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(params) else {
            return params.to_owned();
        };
        if let Some(serde_json::Value::String(message)) = params.get_mut("message") {
            let _ = write!(message, " (the last answer did not fit: {why})");
        }
        serde_json::Value::Object(params).to_string()
    }
}

/// What is known of a task beside its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The status.
    pub status: Status,
    /// What the handler said last, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was made.
    pub created_ms: u64,
    /// When it changed last.
    pub updated_ms: u64,
    /// How long it lives, from its creation.
    pub ttl_ms: u64,
    /// Whether it completed with a result that says `isError`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tool_failed: bool,
    /// How many times the handler was started.
    pub attempt: u32,
    /// Questions that are open or answered, in the order in which they were asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    questions: Vec<Question>,
    /// The keys of questions that are no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spent: Vec<String>,
    /// The last number that was added to a name to make a key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    numbers: BTreeMap<String, u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Something that happens to a task.
#[derive(Debug)]
pub enum Event<'a> {
    /// The handler says how far it is.
    Message(&'a str),
    /// The handler asks, for the `nth` time under this name.
    Ask {
        /// The handler's key.
        name: &'a str,
        /// How many times it asked under this name, with this one.
        nth: u32,
        /// The method of the request.
        method: &'a str,
        /// Its parameters.
        params: &'a RawValue,
    },
    /// The client answers the question of this key.
    Answer {
        /// The key on the wire.
        key: &'a str,
        /// The answer, checked.
        value: &'a RawValue,
    },
    /// The answer does not do: the question is asked again, under another key.
    AskAgain {
        /// The key on the wire.
        key: &'a str,
        /// Why.
        why: &'a str,
    },
    /// Nobody waits for the answer any more.
    Withdraw {
        /// The key on the wire.
        key: &'a str,
    },
    /// The handler has a result.
    Complete {
        /// Whether it says `isError`.
        tool_failed: bool,
    },
    /// The call failed with a JSON-RPC error.
    Fail(&'a str),
    /// The client cancels.
    Cancel,
    /// The time to live is looked at.
    Expire,
    /// The handler is started once more: the node that ran it has died, or there is an answer for a suspended task.
    Restart,
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: it came too late, or means nothing here.
    None,
    /// The task changed.
    Changed,
    /// The task has ended.
    Ended,
}

impl State {
    /// A task that is made now.
    pub fn new(now: u64, ttl_ms: u64) -> State {
        State {
            status: Status::Working,
            message: None,
            created_ms: now,
            updated_ms: now,
            ttl_ms,
            tool_failed: false,
            attempt: 1,
            questions: Vec::new(),
            spent: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Applies an event. An ended task does not change any more.
    pub fn apply(&mut self, event: &Event<'_>, now: u64) -> Change {
        if self.status.is_end() {
            return Change::None;
        }
        let change = match *event {
            Event::Message(text) => {
                let new = Some(text) != self.message.as_deref();
                self.message = Some(text.to_owned());
                self.changed(new)
            }
            Event::Ask { name, nth, method, params } => {
                let key = self.fresh(name);
                self.questions.push(Question {
                    key,
                    name: name.to_owned(),
                    nth,
                    method: method.to_owned(),
                    params: params.to_owned(),
                    refused: None,
                    answer: None,
                });
                self.changed(true)
            }
            Event::Answer { key, value } => match self.open_mut(key) {
                Some(question) => {
                    question.answer = Some(value.to_owned());
                    self.changed(true)
                }
                None => Change::None,
            },
            Event::AskAgain { key, why } => match self.questions.iter().position(|question| question.key == key) {
                Some(at) => {
                    let fresh = self.fresh(&self.questions[at].name.clone());
                    let question = &mut self.questions[at];
                    (question.answer, question.refused) = (None, Some(cut(why, REASON_BYTES_MAX).to_owned()));
                    self.spent.push(std::mem::replace(&mut question.key, fresh));
                    self.changed(true)
                }
                None => Change::None,
            },
            Event::Withdraw { key } => match self.questions.iter().position(|q| q.key == key && q.is_open()) {
                Some(at) => {
                    self.spent.push(self.questions.remove(at).key);
                    self.changed(true)
                }
                None => Change::None,
            },
            Event::Restart => {
                self.attempt += 1;
                self.changed(true)
            }
            Event::Complete { tool_failed } => {
                self.tool_failed = tool_failed;
                self.ended(Status::Completed, now)
            }
            Event::Fail(why) => {
                self.message = Some(why.to_owned());
                self.ended(Status::Failed, now)
            }
            Event::Cancel => self.ended(Status::Cancelled, now),
            Event::Expire if now >= self.created_ms.saturating_add(self.ttl_ms) => {
                self.message = Some(EXPIRED.to_owned());
                self.ended(Status::Failed, now)
            }
            Event::Expire => Change::None,
        };
        if change != Change::None {
            self.updated_ms = now.max(self.updated_ms);
        }
        change
    }

    fn changed(&mut self, is_new: bool) -> Change {
        let waits = self.questions.iter().any(Question::is_open);
        self.status = if waits { Status::InputRequired } else { Status::Working };
        if is_new { Change::Changed } else { Change::None }
    }

    fn ended(&mut self, status: Status, now: u64) -> Change {
        self.status = status;
        self.questions.clear();
        self.spent.clear();
        self.numbers.clear();
        let lived = now.saturating_sub(self.created_ms);
        self.ttl_ms = self.ttl_ms.max(lived.saturating_add(FETCH_MS_MIN));
        Change::Ended
    }

    /// A key that was never used in this task: the handler's, or else with a number.
    fn fresh(&mut self, name: &str) -> String {
        let (questions, spent) = (&self.questions, &self.spent);
        let used = |key: &str| questions.iter().any(|q| q.key == key) || spent.iter().any(|s| s == key);
        if !used(name) {
            return name.to_owned();
        }
        let number = self.numbers.entry(name.to_owned()).or_insert(1);
        loop {
            *number += 1;
            let key = format!("{name}#{number}");
            if !used(&key) {
                return key;
            }
        }
    }

    fn open_mut(&mut self, key: &str) -> Option<&mut Question> {
        self.questions.iter_mut().find(|question| question.key == key && question.is_open())
    }

    /// The question that the handler asks for the `nth` time under this name, if it was asked.
    pub fn question(&self, name: &str, nth: u32) -> Option<&Question> {
        self.questions.iter().find(|question| question.name == name && question.nth == nth)
    }

    /// Questions that wait for an answer.
    pub fn open(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.is_open())
    }

    /// How many questions there were, superseded and withdrawn ones included.
    pub fn asked(&self) -> usize {
        self.questions.len() + self.spent.len()
    }

    /// Bytes of all answers.
    pub fn answer_bytes(&self) -> usize {
        self.questions.iter().filter_map(|question| question.answer.as_ref()).map(|answer| answer.get().len()).sum()
    }

    /// How long clients should wait between two looks.
    pub fn poll_ms(&self, now: u64) -> u64 {
        match now.saturating_sub(self.created_ms) {
            _ if self.status == Status::InputRequired => 1_000,
            ..10_000 => 1_000,
            10_000..60_000 => 2_000,
            _ => 5_000,
        }
    }

    /// When a task that still runs is stopped.
    pub fn expires_ms(&self) -> u64 {
        self.created_ms.saturating_add(self.ttl_ms)
    }

    /// When it is forgotten.
    pub fn deleted_ms(&self) -> u64 {
        let rest = if self.status.is_end() { 0 } else { FETCH_MS_MIN };
        self.expires_ms().saturating_add(rest)
    }
}

/// The message of a task that ran too long.
pub const EXPIRED: &str = "the task took longer than its time to live";

/// How a task ended: the members that the end adds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The result of the call, as it would have been answered.
    Result(Box<RawValue>),
    /// The error object.
    Error(Box<RawValue>),
}

/// Writes the members of a task, without braces around: those of the generation that `features` has. The extension adds what a
/// status has: questions, `result` or `error`; `end` is `None` for the answer that tells of a task's creation.
pub fn members(out: &mut Vec<u8>, id: &str, state: &State, end: Option<&End>, features: &Features, now: u64) {
    // Where tasks are part of the revision, a tool's failure is the task's.
    let status = match state.status {
        Status::Completed if state.tool_failed && features.core_tasks => Status::Failed,
        status => status,
    };
    out.extend_from_slice(b"\"taskId\":");
    write_str(out, id);
    out.extend_from_slice(b",\"status\":");
    write_str(out, status.as_str());
    if let Some(message) = &state.message {
        out.extend_from_slice(b",\"statusMessage\":");
        write_str(out, message);
    }
    out.extend_from_slice(b",\"createdAt\":");
    write_str(out, &timestamp(state.created_ms));
    out.extend_from_slice(b",\"lastUpdatedAt\":");
    write_str(out, &timestamp(state.updated_ms));
    let (ttl, poll) = match features.core_tasks {
        true => ("ttl", "pollInterval"),
        false => ("ttlMs", "pollIntervalMs"),
    };
    let times = format!(",\"{ttl}\":{},\"{poll}\":{}", state.ttl_ms, state.poll_ms(now));
    out.extend_from_slice(times.as_bytes());
    if features.core_tasks {
        return;
    }
    match end {
        Some(End::Result(result)) => {
            out.extend_from_slice(b",\"result\":");
            out.extend_from_slice(result.get().as_bytes());
        }
        Some(End::Error(error)) => {
            out.extend_from_slice(b",\"error\":");
            out.extend_from_slice(error.get().as_bytes());
        }
        None => {}
    }
}

/// Adds `inputRequests`, where the state has open questions.
pub fn input_requests(out: &mut Vec<u8>, state: &State) {
    if state.status != Status::InputRequired {
        return;
    }
    out.extend_from_slice(b",\"inputRequests\":{");
    for (at, question) in state.open().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_str(out, &question.key);
        out.extend_from_slice(b":{\"method\":");
        write_str(out, &question.method);
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(question.asked().as_bytes());
        out.push(b'}');
    }
    out.push(b'}');
}

/// The parameters of a request that belongs to a task, with the `_meta` that says so.
pub fn related(params: &str, id: &str) -> String {
    let mut members = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(params).unwrap_or_default();
    let meta = members.entry("_meta").or_insert_with(|| serde_json::json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(RELATED.to_owned(), serde_json::json!({ "taskId": id }));
    }
    serde_json::Value::Object(members).to_string()
}

/// Whether the sender of a request declared the extension in it.
pub fn declared(request: &Request) -> bool {
    request.caller.features().task_extension && request.caller.extension(EXTENSION).is_some()
}

/// `data` of the error for a client that must declare the extension.
pub const REQUIRED: &str = r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// The task that a request is about.
pub fn id_of(request: &Request) -> Option<String> {
    request.string(request.params.task_id).map(Cow::into_owned)
}

/// What the sender of a call asks for with `task`, in revisions that have tasks: `None` without it, `Some(None)` without a time.
///
/// # Errors
/// What is wrong with it.
pub fn asked(request: &Request) -> Result<Option<Option<u64>>, &'static str> {
    #[derive(Deserialize)]
    struct Wish {
        ttl: Option<f64>,
    }
    let task = request.params.task.map(|task| request.text(task)).filter(|task| *task != "null");
    let Some(task) = task.filter(|_| request.caller.features().core_tasks) else { return Ok(None) };
    let wish: Wish = read_object(task).map_err(|_| "`task` must be an object, and its `ttl` a number")?;
    Ok(Some(wish.ttl.filter(|ttl| *ttl >= 0.0).map(|ttl| ttl as u64)))
}

/// A result as a reader of another revision than its maker's gets it: with `resultType`, or without what only some revisions have.
pub fn refit(result: &str, made: &Features, read: &Features) -> Option<Box<RawValue>> {
    if made.result_types == read.result_types {
        return None;
    }
    let mut members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(result).ok()?;
    match read.result_types {
        true => drop(members.insert("resultType".to_owned(), "complete".into())),
        false => {
            members.remove("resultType");
            if let Some(meta) = members.get_mut("_meta").and_then(|meta| meta.as_object_mut()) {
                meta.remove("io.modelcontextprotocol/serverInfo");
                if meta.is_empty() {
                    members.remove("_meta");
                }
            }
        }
    }
    serde_json::value::to_raw_value(&members).ok()
}

/// The longest beginning of a text that has at most `max` bytes.
pub fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

/// A time as RFC 3339, in UTC, with milliseconds.
pub fn timestamp(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    // The days of a civil calendar that begins on 1 March of the year 0, in eras of 400 years.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60);
    let date = [(year, 1_000, '-'), (month, 10, '-'), (day, 10, 'T')];
    let time = [(hour, 10, ':'), (minute, 10, ':'), (second, 10, '.'), (rest % 1_000, 100, 'Z')];
    let mut text = String::with_capacity(24);
    for (number, mut place, end) in date.into_iter().chain(time) {
        while number / place >= 10 {
            place *= 10;
        }
        while place > 0 {
            text.push(char::from(b'0' + (number / place % 10) as u8));
            place /= 10;
        }
        text.push(end);
    }
    text
}

/// The members of an object's `_meta` and all others, as they are: for a result that is answered once more.
pub fn spans(object: &str, mut each: impl FnMut(&str, Span)) {
    let mut scanner = linchpin_core::json::Scanner::new(object, 127);
    let _ = scanner.object(&mut |s, key| {
        let value = s.value()?;
        each(&key.name(), value);
        Ok(())
    });
}

/// The code and message of an error object.
pub fn error_parts(error: &str) -> (i32, String) {
    #[derive(Deserialize)]
    struct Parts {
        code: i32,
        #[serde(default)]
        message: String,
    }
    match serde_json::from_str::<Parts>(error) {
        Ok(parts) => (parts.code, parts.message),
        Err(_) => (linchpin_types::error::code::INTERNAL_ERROR, read_str(error).unwrap_or_default().into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn times_are_written_as_rfc_3339() {
        let rows = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_764_111_845_042, "2025-11-25T23:04:05.042Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (ms, want) in rows {
            assert_eq!(timestamp(ms), want);
        }
    }

    #[test]
    fn keys_are_never_used_twice() {
        let mut state = State::new(0, 1_000);
        let params = raw(r#"{"message":"Sure?"}"#);
        let ask =
            |state: &mut State, name, nth| state.apply(&Event::Ask { name, nth, method: "m", params: &params }, 1);
        let keys = |state: &State| state.open().map(|q| q.key.clone()).collect::<Vec<_>>();
        ask(&mut state, "a", 1);
        ask(&mut state, "a#2", 1);
        assert_eq!(keys(&state), ["a", "a#2"]);
        state.apply(&Event::AskAgain { key: "a", why: "no" }, 2);
        assert_eq!(keys(&state), ["a#3", "a#2"]);
        assert_eq!(state.question("a", 1).unwrap().asked(), r#"{"message":"Sure? (the last answer did not fit: no)"}"#);
        let yes = raw("1");
        assert_eq!(state.apply(&Event::Answer { key: "a", value: &yes }, 3), Change::None, "superseded");
        assert_eq!(state.apply(&Event::Answer { key: "a#3", value: &yes }, 3), Change::Changed);
        assert_eq!(state.apply(&Event::Answer { key: "a#3", value: &yes }, 3), Change::None, "answered");
        assert_eq!(state.status, Status::InputRequired, "the other one is open");
        state.apply(&Event::Withdraw { key: "a#2" }, 4);
        assert_eq!(state.status, Status::Working);
        ask(&mut state, "a#2", 2);
        ask(&mut state, "a", 2);
        assert_eq!(keys(&state), ["a#2#2", "a#4"]);
    }

    #[test]
    fn a_reason_to_ask_again_is_cut() {
        let mut state = State::new(0, 1_000);
        let params = raw(r#"{"message":"Sure?"}"#);
        state.apply(&Event::Ask { name: "a", nth: 1, method: "m", params: &params }, 1);
        state.apply(&Event::AskAgain { key: "a", why: &"é".repeat(5_000) }, 2);
        assert_eq!(state.question("a", 1).unwrap().refused.as_ref().unwrap().len(), REASON_BYTES_MAX);
    }

    #[test]
    fn the_end_leaves_time_to_fetch_the_result() {
        let mut state = State::new(1_000, 5_000);
        assert_eq!((state.expires_ms(), state.deleted_ms()), (6_000, 606_000));
        assert_eq!(state.apply(&Event::Expire, 5_999), Change::None);
        assert_eq!(state.apply(&Event::Complete { tool_failed: false }, 5_000), Change::Ended);
        assert_eq!((state.ttl_ms, state.deleted_ms()), (604_000, 605_000));
        let mut long = State::new(0, 3_600_000);
        long.apply(&Event::Cancel, 1_000);
        assert_eq!((long.ttl_ms, long.deleted_ms()), (3_600_000, 3_600_000));
        let mut late = State::new(0, 1_000);
        assert_eq!(late.apply(&Event::Expire, 1_000), Change::Ended);
        assert_eq!((late.status, late.message.as_deref()), (Status::Failed, Some(EXPIRED)));
    }
}
