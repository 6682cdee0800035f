//! The questions of a task: each is put to the host once, and answered with `tasks/update`.

use crate::connection_state::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::request_parts::{Options, RequestParts, Round};
use crate::{Result, mrtr};
use linchpin_core::service::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The maximum number of questions of one task.
const QUESTIONS_MAX: usize = 256;

/// The questions of one task.
#[derive(Default)]
pub(crate) struct Questions {
    /// Every key that was ever seen, and what stood under it.
    seen: HashMap<String, u64>,
    waiting: VecDeque<(String, Box<RawValue>)>,
    asking: Option<Asking>,
}

/// The question that is put to the host, or whose answer is being sent.
struct Asking {
    key: String,
    sending: Arc<AtomicBool>,
    work: BoxFuture<'static, Result<()>>,
}

impl Questions {
    /// These are open, and no others.
    pub(crate) fn take(&mut self, open: BTreeMap<String, Box<RawValue>>) -> Result<()> {
        self.waiting.retain(|(key, _)| open.contains_key(key));
        // A question that was answered elsewhere, or taken back, is not asked any longer.
        let gone = |asking: &Asking| !open.contains_key(&asking.key) && !asking.sending.load(Ordering::Acquire);
        if self.asking.as_ref().is_some_and(gone) {
            self.asking = None;
        }
        for (key, question) in open {
            let text = fingerprint(&question);
            match self.seen.get(&key) {
                Some(before) if *before == text => continue,
                Some(_) => {
                    let why =
                        format!("the server reused the key `{key}` for another input request; the request was ignored");
                    return Err(Error::new(ErrorKind::InvalidResponse, why));
                }
                None if self.seen.len() >= QUESTIONS_MAX => {
                    let why = format!("the task sent more than {QUESTIONS_MAX} input requests, which is the limit");
                    return Err(Error::new(ErrorKind::TooManyRoundTrips, why));
                }
                None => {
                    self.seen.insert(key.clone(), text);
                    self.waiting.push_back((key, question));
                }
            }
        }
        Ok(())
    }

    /// Puts the next question to the host, unless one is open.
    pub(crate) fn ask_next(&mut self, core: &Arc<ConnectionState>, id: &str, options: &Options) {
        if self.asking.is_some() {
            return;
        }
        let Some((key, question)) = self.waiting.pop_front() else { return };
        let sending = Arc::new(AtomicBool::new(false));
        let options = Options { watched: None, ..options.clone() };
        let work = Box::pin(answer(core.clone(), id.into(), key.clone(), question, options, sending.clone()));
        self.asking = Some(Asking { key, sending, work });
    }

    /// What is being done about a question.
    pub(crate) fn asking(&mut self) -> Option<&mut BoxFuture<'static, Result<()>>> {
        self.asking.as_mut().map(|asking| &mut asking.work)
    }

    /// The answer arrived.
    pub(crate) fn answered(&mut self) {
        self.asking = None;
    }
}

/// The same for two spellings of the same JSON.
fn fingerprint(question: &RawValue) -> u64 {
    let mut hasher = DefaultHasher::new();
    match serde_json::from_str::<Value>(question.get()) {
        Ok(value) => value.to_string().hash(&mut hasher),
        Err(_) => question.get().hash(&mut hasher),
    }
    hasher.finish()
}

async fn answer(
    core: Arc<ConnectionState>,
    id: Box<str>,
    key: String,
    question: Box<RawValue>,
    options: Options,
    sending: Arc<AtomicBool>,
) -> Result<()> {
    let answer = mrtr::answer_one(&core, &core.server_name(), &key, &question).await?;
    sending.store(true, Ordering::Release);
    update(&core, &id, &[(key, answer)], &options).await
}

/// Sends answers, as often as the transport needs. An error may mean that the task is gone (`drive::refused`).
pub(crate) async fn update(
    core: &Arc<ConnectionState>,
    id: &str,
    answers: &[(String, String)],
    options: &Options,
) -> Result<()> {
    let mut request = RequestParts::new("tasks/update");
    request.about = Some(id.into());
    request.members.text("taskId", id);
    let members: Vec<String> = answers.iter().map(|(key, json)| format!("{}:{json}", Value::from(&**key))).collect();
    request.members.raw("inputResponses", &format!("{{{}}}", members.join(",")));
    let mut pause = Duration::from_millis(500);
    for attempt in 0.. {
        match core.exchange(&request, options, &Round::default()).await {
            Ok(_) => break,
            Err(e)
                if matches!(e.kind(), ErrorKind::Transport | ErrorKind::Timeout) && attempt < 6 && !e.is_closed() =>
            {
                tracing::debug!(%e, "an answer did not reach the server; sending it again");
            }
            Err(e) => return Err(e),
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    Ok(())
}
