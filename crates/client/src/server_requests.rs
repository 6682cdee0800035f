//! Requests and notifications of servers, and the callbacks of the host.

use crate::elicitation::{ElicitForm, checked};
use crate::error::{BoxError, Error, ErrorKind};
use linchpin_core::service::BoxFuture;
use linchpin_proto::message_writer::one_line;
use linchpin_types::elicit::{ElicitAction, ElicitRequestParams, ElicitResult};
use linchpin_types::error::{ErrorObject, code};
use linchpin_types::jsonrpc::method;
use linchpin_types::mrtr::InputRequest;
use linchpin_types::root::{ListRootsResult, Root};
use linchpin_types::sample::{CreateMessageRequestParams, CreateMessageResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

/// A URL elicitation, for data that must not pass through the host.
///
/// Show the whole URL and the name of the server before opening it, and never open it without consent. Specification:
/// 2026-07-28 "Elicitation", URL mode.
///
/// ```
/// use linchpin_client::Client;
///
/// let client = Client::new("my-host", "1.0").on_url_elicitation(|ask| async move {
///     println!("{} wants to open {}: {}", ask.server, ask.url, ask.message);
///     // Open it once the user has agreed.
///     ask.accept()
/// });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ElicitUrl {
    /// The name of the server, as sent. Not verified.
    pub server: String,
    /// The message for the user.
    pub message: String,
    /// The URL. Not validated.
    pub url: String,
    /// The server's id of the elicitation, in revisions that have one.
    pub elicitation_id: Option<String>,
}

impl ElicitUrl {
    /// Returns the result for a user who agreed and was sent to the URL.
    pub fn accept(&self) -> ElicitResult {
        ElicitResult::accept_url()
    }

    /// Returns the result for a user who declined.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// Returns the result for a user who dismissed the request without a choice.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

/// A sampling request to the host's model. The user should be able to see and reject it.
///
/// ```
/// use linchpin_client::Client;
///
/// let client = Client::new("my-host", "1.0").on_sampling(|request| async move {
///     let messages = request.params.messages.len();
///     // Call the model here.
///     Ok(request.reply("my-model", format!("an answer to {messages} messages")))
/// });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SamplingRequest {
    /// The name of the server, as sent. Not verified.
    pub server: String,
    /// The conversation and its settings.
    pub params: CreateMessageRequestParams,
}

impl SamplingRequest {
    /// Creates a response with one text block.
    pub fn reply(&self, model: impl Into<String>, text: impl Into<String>) -> CreateMessageResult {
        CreateMessageResult::text(model, text).with_stop_reason("endTurn")
    }
}

/// A request or notification with a method for which the client has no specific callback, and its parameters.
///
/// ```
/// # use linchpin_client::{Client, ServerMessage};
/// #[derive(serde::Deserialize)]
/// struct Moved { to: String }
///
/// let client = Client::new("my-host", "1.0").on_notification("example.com/moved", |message: ServerMessage<Moved>| {
///     println!("{} moved to {}", message.server, message.params.to);
/// });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerMessage<P> {
    /// The name of the server, as sent. Not verified.
    pub server: String,
    /// The parameters.
    pub params: P,
}

impl<P: DeserializeOwned> ServerMessage<P> {
    pub(crate) fn read(server: String, params: &str) -> Result<ServerMessage<P>, serde_json::Error> {
        serde_json::from_str(params).map(|params| ServerMessage { server, params })
    }
}

/// The methods of servers that have a callback of their own, and the one that needs none.
pub(crate) const OWN: [(&str, &str); 4] = [
    (method::ELICITATION_CREATE, "use `on_elicitation` or `on_url_elicitation`"),
    (method::SAMPLING_CREATE_MESSAGE, "use `on_sampling`"),
    (method::ROOTS_LIST, "use `roots` or `on_roots`"),
    (method::PING, "it is answered already"),
];

/// A request of a server.
pub(crate) enum Question {
    Known(InputRequest),
    /// For a handler of [`crate::Client::on_request`]: the method, and the parameters as JSON text.
    Custom(Box<str>, String),
}

type Custom = Handler<(String, String), Result<String, Unanswered>>;

type Handler<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, A> + Send + Sync>;

/// The callbacks of the host.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    pub(crate) form: Option<Handler<ElicitForm, ElicitResult>>,
    pub(crate) url: Option<Handler<ElicitUrl, ElicitResult>>,
    pub(crate) sample: Option<Handler<SamplingRequest, Result<CreateMessageResult, BoxError>>>,
    pub(crate) sample_tools: bool,
    pub(crate) roots: Option<Handler<(), Vec<Root>>>,
    /// By method; each takes the server's name and the parameters as JSON text.
    pub(crate) custom: Arc<HashMap<Box<str>, Custom>>,
}

/// The code for a sampling request that the user rejected (2025-11-25 "Sampling", error handling).
const SAMPLING_REJECTED: i32 = -1;

/// A failed server request: the code for the server, and the error for the waiting call.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) code: i32,
    pub(crate) error: Error,
}

impl Unanswered {
    fn new(code: i32, why: impl Into<String>) -> Unanswered {
        Unanswered { code, error: Error::new(ErrorKind::Input, why) }
    }

    /// A handler of [`crate::Client::on_request`] failed; an [`ErrorObject`] says with which code.
    fn failed(why: BoxError) -> Unanswered {
        let (code, message) = match why.downcast_ref::<ErrorObject>() {
            Some(object) => (object.code, object.message.clone()),
            None => (code::INTERNAL_ERROR, why.to_string()),
        };
        Unanswered { code, error: Error::with_source(ErrorKind::Input, message, why) }
    }

    /// The host's callback failed.
    fn rejected(why: BoxError) -> Unanswered {
        Unanswered { code: SAMPLING_REJECTED, error: Error::with_source(ErrorKind::Input, why.to_string(), why) }
    }
}

impl From<String> for Unanswered {
    fn from(why: String) -> Unanswered {
        Unanswered::new(code::INTERNAL_ERROR, why)
    }
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Unanswered {
        Unanswered { code: code::INTERNAL_ERROR, error }
    }
}

impl Answers {
    /// Adds a handler of a method without a callback of its own.
    pub(crate) fn add<Q, A, F, Fut>(&mut self, method: &str, answer: F)
    where
        Q: DeserializeOwned + Send + 'static,
        A: Serialize + Send + 'static,
        F: Fn(ServerMessage<Q>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, BoxError>> + Send + 'static,
    {
        let custom: Custom = Arc::new(move |(server, params)| {
            let asked = ServerMessage::read(server, &params).map(&answer);
            Box::pin(async move {
                let unreadable = |e| {
                    Unanswered::new(code::INVALID_PARAMS, format!("the parameters of the request are invalid: {e}"))
                };
                let answer = asked.map_err(unreadable)?.await.map_err(Unanswered::failed)?;
                Ok(one_line(&json(&answer)?).into_owned())
            })
        });
        Arc::make_mut(&mut self.custom).insert(method.into(), custom);
    }

    /// Reads a request of a server. `params` is JSON text.
    ///
    /// # Errors
    /// Code and message of the response.
    pub(crate) fn question(&self, method: &str, params: &str) -> Result<Question, (i32, String)> {
        if self.custom.contains_key(method) {
            return Ok(Question::Custom(method.into(), params.to_owned()));
        }
        if !OWN[..3].iter().any(|(own, _)| *own == method) {
            let shown: String = method.chars().take(60).collect();
            return Err((code::METHOD_NOT_FOUND, format!("this client has no method {shown}")));
        }
        let known = InputRequest::read(method, Some(params)).map(Question::Known);
        known.map_err(|e| (code::INVALID_PARAMS, format!("the request cannot be read: {e}")))
    }

    /// Handles one server request. Returns the result as JSON text.
    ///
    /// # Errors
    /// The reason, for the server and for the waiting call.
    pub(crate) async fn answer(&self, server: &str, question: Question) -> Result<String, Unanswered> {
        let mut answer = std::pin::pin!(self.handle(server, question));
        let caught = poll_fn(|task| {
            catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(task))).unwrap_or_else(|_| {
                tracing::error!("a callback of the host panicked");
                Poll::Ready(Err(Unanswered::new(code::INTERNAL_ERROR, "the client failed to handle the request")))
            })
        });
        caught.await
    }

    async fn handle(&self, server: &str, question: Question) -> Result<String, Unanswered> {
        let question = match question {
            Question::Known(question) => question,
            Question::Custom(method, params) => {
                let Some(answer) = self.custom.get(&method) else {
                    return Err(Unanswered::new(code::METHOD_NOT_FOUND, format!("this client has no method {method}")));
                };
                return answer((server.to_owned(), params)).await;
            }
        };
        // An undeclared mode or member is an invalid parameter; an undeclared capability is an unknown
        // method.
        let no_mode = |why: &str| Unanswered::new(code::INVALID_PARAMS, why);
        let no_method = |why: &str| Unanswered::new(code::METHOD_NOT_FOUND, why);
        match question {
            InputRequest::Elicit(ElicitRequestParams::Form(params)) => {
                let no_form = || no_mode("the server requests elicitation, and the host has no `on_elicitation`");
                let ask = self.form.as_ref().ok_or_else(no_form)?;
                let form = ElicitForm::new(server.to_owned(), params);
                let schema = form.schema.clone();
                Ok(json(&checked(&schema, ask(form).await)?)?)
            }
            InputRequest::Elicit(ElicitRequestParams::Url(params)) => {
                let no_url = || no_mode("the server asks to open a URL, and the host has no `on_url_elicitation`");
                let ask = self.url.as_ref().ok_or_else(no_url)?;
                Ok(json(&self.url(ask, server, params.message, params.url, params.elicitation_id).await)?)
            }
            InputRequest::CreateMessage(params) => {
                let no_model = || no_method("the server asks for a model, and the host has no `on_sampling`");
                let ask = self.sample.as_ref().ok_or_else(no_model)?;
                if (params.tools.is_some() || params.tool_choice.is_some()) && !self.sample_tools {
                    return Err(no_mode("the request has tools, and the host does not declare `sampling_tools`"));
                }
                let answer = ask(SamplingRequest { server: server.to_owned(), params: *params }).await;
                Ok(json(&answer.map_err(Unanswered::rejected)?)?)
            }
            InputRequest::ListRoots(_) => {
                let no_roots = || no_method("the server asks for roots, and the host has none");
                let ask = self.roots.as_ref().ok_or_else(no_roots)?;
                let roots = ask(()).await;
                if let Some(root) = roots.iter().find(|root| !root.uri.starts_with("file://")) {
                    return Err(format!("the host's root `{}` is not a file:// URI", root.uri).into());
                }
                Ok(json(&ListRootsResult::new(roots))?)
            }
            _ => Err(no_method("the server asks for something that this client does not know")),
        }
    }

    /// Asks the user about one URL.
    async fn url(
        &self,
        ask: &Handler<ElicitUrl, ElicitResult>,
        server: &str,
        message: String,
        url: String,
        elicitation_id: Option<String>,
    ) -> ElicitResult {
        let mut answer = ask(ElicitUrl { server: server.to_owned(), message, url, elicitation_id }).await;
        answer.content = None;
        answer
    }

    /// Asks about the URLs that an error requires to be visited first. Returns whether the user agreed to all.
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

fn json<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|e| Error::with_source(ErrorKind::Input, format!("the host's answer is not valid JSON: {e}"), e))
}
