//! A task as servers tell of it, in the words of either generation, read leniently.

use crate::Result;
use crate::error::{Error, ErrorKind};
use crate::result::unexpected;
use linchpin_types::task::{Task, TaskStatus};
use serde::Deserialize;
use serde_json::Number;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long to wait between two looks: the shortest, the longest, and where the server does not say.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);
const UNSAID: Duration = Duration::from_secs(5);

/// What is known of a task.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) task_id: String,
    pub(crate) status: TaskStatus,
    #[serde(default)]
    pub(crate) status_message: Option<String>,
    #[serde(default)]
    pub(crate) created_at: String,
    #[serde(default)]
    pub(crate) last_updated_at: String,
    #[serde(default, alias = "ttl")]
    ttl_ms: Option<Number>,
    #[serde(default, alias = "pollInterval")]
    poll_interval_ms: Option<Number>,
    /// Only the extension has these.
    #[serde(default)]
    pub(crate) result: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) error: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) input_requests: Option<BTreeMap<String, Box<RawValue>>>,
}

impl Record {
    pub(crate) fn read(json: &str) -> Result<Record> {
        let record: Record = serde_json::from_str(json).map_err(|e| unexpected("the state of the task", e))?;
        if record.task_id.is_empty() {
            return Err(Error::new(ErrorKind::InvalidResponse, "the server returned a task without an identifier"));
        }
        Ok(record)
    }

    /// Reads the record of this task.
    pub(crate) fn of(id: &str, json: &str) -> Result<Record> {
        let record = Record::read(json)?;
        if record.task_id != id {
            let why = format!("the server was asked for task {id} and returned another one");
            return Err(Error::new(ErrorKind::InvalidResponse, why));
        }
        Ok(record)
    }

    pub(crate) fn ttl_ms(&self) -> Option<u64> {
        self.ttl_ms.as_ref().map(whole)
    }

    /// How long to wait until the next look.
    pub(crate) fn interval(&self) -> Duration {
        let asked = self.poll_interval_ms.as_ref().map(|ms| Duration::from_millis(whole(ms)));
        asked.unwrap_or(UNSAID).clamp(SHORTEST, LONGEST)
    }

    /// The record in the words of the extension.
    pub(crate) fn task(&self) -> Task {
        let mut task = Task::new(self.task_id.clone(), self.status, self.created_at.clone())
            .with_last_updated_at(self.last_updated_at.clone());
        task.status_message.clone_from(&self.status_message);
        task.ttl_ms = self.ttl_ms();
        task.poll_interval_ms = self.poll_interval_ms.as_ref().map(whole);
        task
    }
}

/// A negative number is 0, a fraction is cut off.
fn whole(number: &Number) -> u64 {
    number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_kept_within_bounds_in_the_words_of_both_generations() {
        for (member, waited) in [
            (r#","pollIntervalMs":0"#, SHORTEST),
            (r#","pollIntervalMs":-1"#, SHORTEST),
            (r#","pollIntervalMs":1000000000000"#, LONGEST),
            (r#","pollIntervalMs":1e300"#, LONGEST),
            (r#","pollInterval":700"#, Duration::from_millis(700)),
            (r#","pollIntervalMs":null"#, UNSAID),
            ("", UNSAID),
        ] {
            let json = format!(r#"{{"taskId":"t","status":"working"{member}}}"#);
            assert_eq!(Record::read(&json).unwrap().interval(), waited, "{json}");
        }
        assert_eq!(Record::read(r#"{"taskId":"t","status":"failed","ttl":5}"#).unwrap().ttl_ms(), Some(5));
    }
}
