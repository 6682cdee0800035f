//! Questions to the client in the middle of a call, written once for both eras.
//!
//! Where there are sessions, a question is a request on the wire and the handler waits for its answer. Where requests
//! stand alone, an unanswered question ends this round: the error that `?` carries out becomes `input_required`, the
//! client retries with the answer, and the handler runs again from its start, this time past the question.

use crate::cx::Cx;
use crate::error::{Error, Result};
use crate::form;
use linchpin_proto::{Ask, AskError, fit};
use linchpin_types::content::Role;
use linchpin_types::elicit::{ElicitAction, ElicitResult};
use linchpin_types::root::{ListRootsResult, Root};
use linchpin_types::sample::{
    CreateMessageRequestParams, CreateMessageResult, SamplingMessage, SamplingMessageContentBlock,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// Longest answer to a form, and longest list of roots.
const ANSWER_BYTES_MAX: usize = 256 << 10;
const SAMPLE: &str = "sampling/createMessage";

/// What became of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum Accepted<T> {
    /// Filled in and sent.
    Yes(T),
    /// The person said no.
    Declined,
    /// The person closed it without an answer.
    Cancelled,
}

/// What became of a request to open a URL. `Yes` means consent to open it, not that the person finished there.
pub type UrlAnswer = Accepted<()>;

impl Cx {
    /// Asks the user to fill in `T`, a flat struct of strings, numbers, booleans and enums. Declining is an error.
    ///
    /// `key` names the question within this tool, so that a later round finds its answer. **Code before a question runs
    /// once per round**: keep it free of effects, or wrap effects in [`Cx::once`]. Ask several things in one round with
    /// `tokio::join!` and `?` afterwards.
    ///
    /// # Errors
    /// The person declines or cancels; the client cannot show forms; a legacy client does not answer within
    /// `ask_ms_max`. Dropping the future withdraws the question.
    pub async fn ask<T: DeserializeOwned + JsonSchema>(&self, key: &str, message: &str) -> Result<T> {
        match self.form::<T>(key, message).await? {
            Accepted::Yes(answer) => Ok(answer),
            Accepted::Declined => Err(Error::tool("the user declined to answer")),
            Accepted::Cancelled => Err(Error::tool("the user dismissed the question")),
        }
    }

    /// [`Cx::ask`] for handlers that go on when the person declines.
    pub async fn form<T: DeserializeOwned + JsonSchema>(&self, key: &str, message: &str) -> Result<Accepted<T>> {
        let schema = form::schema::<T>().map_err(Error::tool)?;
        let read = |r: &ElicitResult| -> Option<T> {
            let content = serde_json::to_value(r.content.as_ref()?).ok()?;
            serde_json::from_value(content).ok()
        };
        let fits = |r: &ElicitResult| r.action != ElicitAction::Accept || read(r).is_some();
        let result = self.elicit(key, message, schema, &fits).await?;
        Ok(match result.action {
            ElicitAction::Accept => match read(&result) {
                Some(answer) => Accepted::Yes(answer),
                None => return Err(Error::tool("the client's answer does not fit the form")),
            },
            ElicitAction::Decline => Accepted::Declined,
            ElicitAction::Cancel => Accepted::Cancelled,
        })
    }

    /// Asks with a form schema of one's own: an object schema with flat properties, as the specification restricts it.
    pub async fn form_raw(&self, key: &str, message: &str, schema: Value) -> Result<ElicitResult> {
        self.elicit(key, message, schema, &|_| true).await
    }

    async fn elicit(
        &self,
        key: &str,
        message: &str,
        mut schema: Value,
        fits: &(dyn Fn(&ElicitResult) -> bool + Sync),
    ) -> Result<ElicitResult> {
        self.need(self.caps().elicitation_form, "elicitation", json!({}))?;
        fit::form(&mut schema, self.caller().wire()).map_err(Error::tool)?;
        let mut params = json!({ "message": message, "requestedSchema": schema });
        if self.caller().wire().icons {
            params["mode"] = "form".into();
        }
        self.question(key, "elicitation/create", params.to_string(), fits).await
    }

    /// Asks the user to open a URL, for what must not pass through the client: logins, payments, secrets.
    ///
    /// The URL must hold no credentials or personal data, and the page behind it must check by itself who opened it.
    pub async fn ask_url(&self, key: &str, message: &str, url: &str) -> Result<UrlAnswer> {
        if !self.caller().wire().icons {
            return Err(Error::tool("the client's protocol revision has no elicitation by URL"));
        }
        self.need(self.caps().elicitation_url, "elicitation", json!({ "url": {} }))?;
        if !url.parse::<http::Uri>().is_ok_and(|u| u.scheme().is_some()) {
            return Err(Error::tool(format!("cannot ask to open `{url}`: it is not an absolute URL")));
        }
        let mut params = json!({ "mode": "url", "message": message, "url": url });
        if !self.caller().wire().elicits_in_rounds {
            params["elicitationId"] = self.0.core.unguessable().into();
        }
        let result: ElicitResult = self.question(key, "elicitation/create", params.to_string(), &|_| true).await?;
        Ok(match result.action {
            ElicitAction::Accept => Accepted::Yes(()),
            ElicitAction::Decline => Accepted::Declined,
            ElicitAction::Cancel => Accepted::Cancelled,
        })
    }

    /// Asks the client's model to complete a message. Deprecated by the current revision, still spoken by it.
    pub async fn sample(&self, key: &str, request: CreateMessageRequestParams) -> Result<CreateMessageResult> {
        let (caps, tools) = (self.caps(), request.tools.is_some() || request.tool_choice.is_some());
        self.need(caps.sampling, "sampling", json!({}))?;
        self.need(!tools || caps.sampling_tools, "sampling", json!({ "tools": {} }))?;
        if tools && !self.caller().wire().icons {
            return Err(Error::tool("the client's protocol revision has no tools in sampling"));
        }
        balanced(&request.messages).map_err(Error::tool)?;
        let audio = |m: &SamplingMessage| m.content.iter().any(|b| matches!(b, SamplingMessageContentBlock::Audio(_)));
        if !self.caller().wire().audio && request.messages.iter().any(audio) {
            return Err(Error::tool("the client's protocol revision has no audio"));
        }
        let mut params = serde_json::to_value(&request)?;
        if !self.caller().wire().icons {
            one_block_each(&mut params);
        } else if !caps.sampling_context
            && let Some(params) = params.as_object_mut()
        {
            // Where the capability exists, a client without it must not be asked for context.
            params.remove("includeContext");
        }
        self.question(key, SAMPLE, params.to_string(), &|_| true).await
    }

    /// Lists the client's roots. Deprecated by the current revision, still spoken by it.
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>> {
        self.need(self.caps().roots, "roots", json!({}))?;
        let result: ListRootsResult = self.question(key, "roots/list", "{}".into(), &|_| true).await?;
        Ok(result.roots)
    }

    /// Runs a step once across rounds: its result travels in the sealed state, so a retry does not repeat the effect.
    /// With sessions there are no rounds and the step simply runs.
    ///
    /// The state is encrypted, bound to the principal, the method and its parameters, and expires; a client can still
    /// replay it until then, so a step that must never happen twice needs a record on the server.
    pub async fn once<T, F>(&self, key: &str, step: F) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T>>,
    {
        if !self.caller().wire().elicits_in_rounds {
            return step.await;
        }
        let memo = self.rounds().memos.get(key).cloned();
        if let Some(memo) = memo.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            return Ok(memo);
        }
        let value = step.await?;
        let raw = serde_json::value::to_raw_value(&value)?;
        self.rounds().memos.insert(key.to_owned(), raw);
        Ok(value)
    }

    /// Declares that the call needs a capability of the client, by name and settings, for example an extension. Clients
    /// without it get the specification's error naming it.
    pub fn require(&self, has: bool, capability: &'static str, settings: Value) -> Result<()> {
        self.need(has, capability, settings)
    }

    fn need(&self, has: bool, capability: &'static str, settings: Value) -> Result<()> {
        if has {
            return Ok(());
        }
        if self.caller().wire().elicits_in_rounds {
            self.rounds().lack(capability, settings);
        }
        Err(Error::tool(format!("this needs a client that supports {capability}, and this one did not declare it")))
    }

    async fn question<R: DeserializeOwned>(
        &self,
        key: &str,
        method: &'static str,
        params: String,
        fits: &(dyn Fn(&R) -> bool + Sync),
    ) -> Result<R> {
        // What a model says may be long, an image for example. Forms and roots are short.
        let check = |answer: &str| match answer.len() {
            0..=ANSWER_BYTES_MAX => Ok(()),
            _ if method == SAMPLE => Ok(()),
            _ => Err(Error::tool(format!("the client's answer to {method} is longer than {ANSWER_BYTES_MAX} bytes"))),
        };
        if self.caller().wire().elicits_in_rounds {
            let mut rounds = self.rounds();
            let raw = rounds.answer(key);
            raw.map_or(Ok(()), |raw| check(raw.get()))?;
            let answer = raw.and_then(|raw| serde_json::from_str::<R>(raw.get()).ok()).filter(|r| fits(r));
            return match answer {
                Some(answer) => Ok(answer),
                None => {
                    rounds.want(key, method, params);
                    Err(Error::input(format!("input `{key}` is required")))
                }
            };
        }
        let (tx, rx) = tokio::sync::oneshot::channel();
        let answer = Box::new(move |result| drop(tx.send(result)));
        self.push_ask(Ask { method, params, answer })?;
        let deadline = Duration::from_millis(self.0.core.limits.ask_ms_max);
        let result = match tokio::time::timeout(deadline, rx).await {
            Err(_) => {
                return Err(Error::tool(format!(
                    "the client did not answer {method} within {} seconds",
                    deadline.as_secs()
                )));
            }
            Ok(Err(_)) | Ok(Ok(Err(AskError::Gone))) => {
                return Err(Error::tool("the client went away before it answered"));
            }
            Ok(Ok(Err(AskError::Refused(code, message)))) => {
                return Err(Error::tool(format!("the client refused {method}: {message} ({code})")));
            }
            Ok(Ok(Ok(result))) => result,
        };
        check(&result)?;
        serde_json::from_str(&result)
            .map_err(|e| Error::tool(format!("the client's answer to {method} is malformed: {e}")))
    }
}

/// Checks that each use of a tool is followed at once by its result, and that results stand alone in their message.
fn balanced(messages: &[SamplingMessage]) -> Result<(), String> {
    use SamplingMessageContentBlock as Block;
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let results: Vec<&str> = message
            .content
            .iter()
            .filter_map(|b| if let Block::ToolResult(r) = b { Some(&*r.tool_use_id) } else { None })
            .collect();
        if !results.is_empty() && (results.len() < message.content.len() || message.role != Role::User) {
            return Err("sampling: a message with tool results is the user's and holds nothing else".into());
        }
        if open.len() != results.len() || !open.iter().all(|id| results.contains(id)) {
            return Err("sampling: each use of a tool must be followed at once by its result".into());
        }
        open = message
            .content
            .iter()
            .filter_map(|b| if let Block::ToolUse(u) = b { Some(&*u.id) } else { None })
            .collect();
    }
    if open.is_empty() { Ok(()) } else { Err("sampling: the last use of a tool has no result".into()) }
}

/// Earlier revisions allow one content block a message, not a list: each further block becomes a message of its own.
fn one_block_each(params: &mut Value) {
    let Some(messages) = params["messages"].as_array_mut() else { return };
    let said = std::mem::take(messages);
    messages.extend(said.into_iter().flat_map(|message| {
        let blocks = match &message["content"] {
            Value::Array(blocks) => blocks.clone(),
            one => vec![one.clone()],
        };
        let role = message["role"].clone();
        blocks.into_iter().map(move |block| json!({ "role": role, "content": block }))
    }));
}
