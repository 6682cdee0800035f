//! What servers ask of a host, and the host's ways to answer.

use crate::form::{Form, checked};
use linchpin_proto::service::BoxFuture;
use linchpin_types::content::Role;
use linchpin_types::elicit::{ElicitAction, ElicitRequestParams, ElicitResult};
use linchpin_types::mrtr::InputRequest;
use linchpin_types::root::{ListRootsResult, Root};
use linchpin_types::sample::{CreateMessageRequestParams, CreateMessageResult, SamplingMessageContentBlock};
use serde::Serialize;
use std::sync::Arc;

/// A server wants the person to open a URL, for something that must not pass through the host.
///
/// Show the whole URL and who asks before anything is opened, and never open it without consent. Specification:
/// 2026-07-28 "Elicitation", URL mode.
#[derive(Clone, Debug)]
pub struct AskUrl {
    /// Who asks: the server's name as it gave it.
    pub server: String,
    /// Why.
    pub message: String,
    /// Where to. Not vetted in any way.
    pub url: String,
    /// What the server calls this, where its revision has such.
    pub elicitation_id: Option<String>,
}

impl AskUrl {
    /// The person agreed and was sent there.
    pub fn accept(&self) -> ElicitResult {
        ElicitResult { action: ElicitAction::Accept, content: None, meta: None }
    }

    /// The person said no.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// The person went away without choosing.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

/// A server asks the host's model. A person should be able to see and refuse it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Who asks: the server's name as it gave it.
    pub server: String,
    /// The conversation and its settings.
    pub params: CreateMessageRequestParams,
}

impl Sample {
    /// An answer of one text.
    pub fn reply(&self, model: impl Into<String>, text: impl Into<String>) -> CreateMessageResult {
        CreateMessageResult {
            role: Role::Assistant,
            content: vec![SamplingMessageContentBlock::text(text)],
            model: model.into(),
            stop_reason: Some("endTurn".to_owned()),
            meta: None,
        }
    }
}

type Handler<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, A> + Send + Sync>;

/// How a host answers.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    pub(crate) form: Option<Handler<Form, ElicitResult>>,
    pub(crate) url: Option<Handler<AskUrl, ElicitResult>>,
    pub(crate) sample: Option<Handler<Sample, Result<CreateMessageResult, String>>>,
    pub(crate) sample_tools: bool,
    pub(crate) roots: Option<Handler<(), Vec<Root>>>,
}

impl Answers {
    /// Answers one question; the result's JSON text.
    ///
    /// # Errors
    /// Why it cannot be answered, for the server and for whoever waits.
    pub(crate) async fn answer(&self, server: &str, question: InputRequest) -> Result<String, String> {
        match question {
            InputRequest::Elicit(ElicitRequestParams::Form(params)) => {
                let ask =
                    self.form.as_ref().ok_or("the server asks the person something, and the host has no `on_ask`")?;
                let form = Form::new(server.to_owned(), params);
                let schema = form.schema.clone();
                json(&checked(&schema, ask(form).await)?)
            }
            InputRequest::Elicit(ElicitRequestParams::Url(params)) => {
                let ask = self.url.as_ref().ok_or("the server asks to open a URL, and the host has no `on_ask_url`")?;
                json(&self.url(ask, server, params.message, params.url, params.elicitation_id).await)
            }
            InputRequest::CreateMessage(params) => {
                let ask = self.sample.as_ref().ok_or("the server asks for a model, and the host has no `on_sample`")?;
                json(&ask(Sample { server: server.to_owned(), params: *params }).await?)
            }
            InputRequest::ListRoots(_) => {
                let ask = self.roots.as_ref().ok_or("the server asks for roots, and the host has none")?;
                json(&ListRootsResult { roots: ask(()).await, meta: None })
            }
        }
    }

    /// Asks the person about one URL.
    async fn url(
        &self,
        ask: &Handler<AskUrl, ElicitResult>,
        server: &str,
        message: String,
        url: String,
        elicitation_id: Option<String>,
    ) -> ElicitResult {
        let mut answer = ask(AskUrl { server: server.to_owned(), message, url, elicitation_id }).await;
        answer.content = None;
        answer
    }

    /// Asks about the URLs that an error says must be visited first. Whether all were agreed to.
    pub(crate) async fn urls(&self, server: &str, asked: Vec<linchpin_types::elicit::ElicitRequestURLParams>) -> bool {
        let Some(ask) = &self.url else { return false };
        for params in asked {
            let answer = self.url(ask, server, params.message, params.url, params.elicitation_id).await;
            if answer.action != ElicitAction::Accept {
                return false;
            }
        }
        true
    }
}

fn json<T: Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|e| format!("the host's answer is no JSON: {e}"))
}
