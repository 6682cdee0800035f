//! Elicitation, sampling and roots in the middle of a call, with one API for both eras.
//!
//! With a session, each is a server request, and the handler waits for the response. Without one, missing input ends
//! this run of the handler: the error that `?` returns becomes `input_required`, the client retries with the input, and
//! the handler runs again from the start.

use crate::cx::Cx;
use crate::downgrade;
use crate::error::Result;
use crate::form_schema;
use crate::request_error::{RequestError, RequestErrorKind};
#[cfg(feature = "tasks")]
use crate::tasks::link::RunningTask;
#[cfg(feature = "tasks")]
use crate::tasks::options::Mode;
use linchpin_core::json::{Scanner, read_object, write_str};
use linchpin_core::server_request::{KEY_BYTES_MAX, KEY_META};
use linchpin_core::{Method, ServerRequest, ServerRequestError, render};
use linchpin_proto::message_writer::one_line;
use linchpin_proto::splice::Splice;
use linchpin_types::content::Role;
use linchpin_types::elicit::{ElicitAction, ElicitResult};
use linchpin_types::error::ErrorObject;
use linchpin_types::root::{ListRootsResult, Root};
use linchpin_types::sample::{
    CreateMessageRequestParams, CreateMessageResult, SamplingMessage, SamplingMessageContentBlock,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
#[cfg(feature = "tasks")]
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
#[cfg(feature = "tasks")]
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of an elicitation result and of a list of roots.
const ANSWER_BYTES_MAX: usize = 256 << 10;
const ELICIT: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";
const MISFIT: &str = "the client's answer does not fit the form";

/// The result of a form elicitation, returned by [`Cx::elicit_form`].
///
/// ```
/// # use linchpin_server::Elicited;
/// fn sent(answer: Elicited<String>) -> Option<String> {
///     match answer {
///         Elicited::Accepted(text) => Some(text),
///         Elicited::Declined | Elicited::Cancelled => None,
///     }
/// }
/// assert_eq!(sent(Elicited::Accepted("yes".to_owned())).as_deref(), Some("yes"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Elicited<T> {
    /// The user submitted the form.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user dismissed the form without a choice.
    Cancelled,
}

/// The result of a URL elicitation.
///
/// `Accepted` means consent to open the URL, not that the user finished there.
///
/// ```
/// # use linchpin_server::{Cx, Elicited, Result};
/// async fn pay(cx: &Cx) -> Result<&'static str> {
///     Ok(match cx.elicit_url("pay", "Pay here.", "https://pay.example.com/17").await? {
///         Elicited::Accepted(()) => "the page was opened",
///         Elicited::Declined | Elicited::Cancelled => "not paid",
///     })
/// }
/// # linchpin_server::Server::new("s", "1").tool("pay", pay);
/// ```
pub type UrlElicited = Elicited<()>;

impl Cx {
    /// Asks the user to fill in `T`, a flat struct of strings, numbers, booleans and enums.
    ///
    /// `key` identifies the elicitation within this tool, so that the retry of a multi-round-trip request finds the
    /// input. **Code before an elicitation runs again with each retry**: keep it free of side effects, or wrap side
    /// effects in [`Cx::memoize`]. To elicit several inputs in one round trip, use `tokio::join!` and then `?`.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Error, Result};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Confirm {
    ///     /// Delete all rows?
    ///     yes: bool,
    /// }
    ///
    /// async fn purge(cx: &Cx) -> Result<&'static str> {
    ///     let confirm: Confirm = cx.elicit("confirm", "This cannot be undone.").await?;
    ///     if confirm.yes { Ok("deleted") } else { Err(Error::tool("not confirmed")) }
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("purge", purge);
    /// ```
    ///
    /// # Errors
    /// If `T` is not such a struct; if the user declines or cancels; if the client does not support form elicitation;
    /// if a client with a session responds with an error or with input that does not fit, or, outside of a task, does
    /// not respond within `server_requests.response_ms_max`; or if [input is
    /// required](RequestErrorKind::InputRequired): return that error with `?`, from a handler with any error type. If a
    /// handler continues instead, its result is discarded: the client is asked for the input all the same, and the
    /// handler runs again with it. Dropping the future withdraws the elicitation.
    #[doc(alias = "elicitation")]
    #[doc(alias = "elicitInput")]
    #[doc(alias = "create_elicitation")]
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(&self, key: &str, message: &str) -> Result<T, RequestError> {
        match self.elicit_form::<T>(key, message).await? {
            Elicited::Accepted(answer) => Ok(answer),
            Elicited::Declined => Err(RequestError::new(RequestErrorKind::Declined, "the user declined to answer")),
            Elicited::Cancelled => {
                Err(RequestError::new(RequestErrorKind::Cancelled, "the user dismissed the question"))
            }
        }
    }

    /// Like [`Cx::elicit`], for handlers that continue when the user declines.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Elicited, Result};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Trip { city: String }
    /// async fn book(cx: &Cx) -> Result<String> {
    ///     Ok(match cx.elicit_form::<Trip>("trip", "Where to?").await? {
    ///         Elicited::Accepted(trip) => format!("booked {}", trip.city),
    ///         Elicited::Declined | Elicited::Cancelled => "booked nothing".to_owned(),
    ///     })
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("book", book);
    /// ```
    ///
    /// # Errors
    /// The same as for [`Cx::elicit`], except that declining and cancelling are results. Dropping the future withdraws
    /// the elicitation.
    pub async fn elicit_form<T: DeserializeOwned + JsonSchema>(
        &self,
        key: &str,
        message: &str,
    ) -> Result<Elicited<T>, RequestError> {
        let schema = form_schema::schema::<T>().map_err(RequestError::invalid)?;
        let read = |r: &ElicitResult| -> Option<T> {
            let content = serde_json::to_value(r.content.as_ref()?).ok()?;
            serde_json::from_value(content).ok()
        };
        let fits = |_: &Value, r: &ElicitResult| r.action != ElicitAction::Accept || read(r).is_some();
        let result = self.elicit_schema(key, message, schema, &fits).await?;
        Ok(match result.action {
            ElicitAction::Accept => match read(&result) {
                Some(answer) => Elicited::Accepted(answer),
                None => {
                    return Err(RequestError::new(RequestErrorKind::InvalidResponse, MISFIT));
                }
            },
            ElicitAction::Decline => Elicited::Declined,
            ElicitAction::Cancel => Elicited::Cancelled,
        })
    }

    /// Like [`Cx::elicit`] with your own schema: an object with flat properties, as specified.
    ///
    /// # Errors
    /// The same as for [`Cx::elicit_form`], for example if the input does not fit the schema; also if the schema uses
    /// features that the client's revision lacks. Dropping the future withdraws the elicitation.
    pub async fn elicit_raw(&self, key: &str, message: &str, schema: Value) -> Result<ElicitResult, RequestError> {
        self.elicit_schema(key, message, schema, &|schema, r| form_schema::problem(schema, r).is_none()).await
    }

    async fn elicit_schema(
        &self,
        key: &str,
        message: &str,
        mut schema: Value,
        fits: &(dyn Fn(&Value, &ElicitResult) -> bool + Sync),
    ) -> Result<ElicitResult, RequestError> {
        self.need(self.caps().elicitation_form, "elicitation", json!({}))?;
        downgrade::form(&mut schema, self.caller().features()).map_err(RequestError::invalid)?;
        let mut params = json!({ "message": message, "requestedSchema": schema });
        if self.caller().features().icons {
            params["mode"] = "form".into();
        }
        let fits = |r: &ElicitResult| fits(&params["requestedSchema"], r);
        self.server_request(key, ELICIT, params.to_string(), &fits).await
    }

    /// Asks the user to open a URL.
    ///
    /// Use it for data that must not pass through the client: logins, payments, secrets.
    ///
    /// The URL must not contain credentials or personal data, and the page behind it must verify the user itself.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Elicited, Error, Result};
    /// async fn pay(cx: &Cx) -> Result<&'static str> {
    ///     match cx.elicit_url("pay", "Please pay the invoice.", "https://example.com/invoices/17").await? {
    ///         Elicited::Accepted(()) => Ok("waiting for the payment"),
    ///         _ => Err(Error::tool("the user did not open the page")),
    ///     }
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("pay", pay);
    /// ```
    ///
    /// # Errors
    /// If `url` is not absolute; if the client or its revision does not support elicitation by URL; otherwise those of
    /// [`Cx::elicit_form`]. Dropping the future withdraws the elicitation.
    pub async fn elicit_url(&self, key: &str, message: &str, url: &str) -> Result<UrlElicited, RequestError> {
        if !self.caller().features().icons {
            return Err(RequestError::unsupported("the client's protocol revision has no elicitation by URL"));
        }
        self.need(self.caps().elicitation_url, "elicitation", json!({ "url": {} }))?;
        if !url.parse::<http::Uri>().is_ok_and(|u| u.scheme().is_some()) {
            return Err(RequestError::invalid(format!("cannot ask to open `{url}`: it is not an absolute URL")));
        }
        let mut params = json!({ "mode": "url", "message": message, "url": url });
        if !self.caller().features().multi_round_trip {
            params["elicitationId"] = self.0.shared.unguessable().into();
        }
        let result: ElicitResult = self.server_request(key, ELICIT, params.to_string(), &|_| true).await?;
        Ok(match result.action {
            ElicitAction::Accept => Elicited::Accepted(()),
            ElicitAction::Decline => Elicited::Declined,
            ElicitAction::Cancel => Elicited::Cancelled,
        })
    }

    /// Requests a completion from the client's model.
    ///
    /// Deprecated by the current revision, but still supported.
    ///
    /// # Errors
    /// If the client does not support sampling or a feature that `request` uses (tools, audio); if the messages violate
    /// the specification; if the client rejects the request or does not respond in time; or if [input is
    /// required](RequestErrorKind::InputRequired): return that error with `?`. Dropping the future withdraws the
    /// request.
    #[doc(alias = "sampling")]
    #[doc(alias = "create_message")]
    #[doc(alias = "createMessage")]
    pub async fn sample(
        &self,
        key: &str,
        request: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, RequestError> {
        let (caps, tools) = (self.caps(), request.tools.is_some() || request.tool_choice.is_some());
        self.need(caps.sampling, "sampling", json!({}))?;
        self.need(!tools || caps.sampling_tools, "sampling", json!({ "tools": {} }))?;
        if tools && !self.caller().features().icons {
            return Err(RequestError::unsupported("the client's protocol revision has no tools in sampling"));
        }
        balanced(&request.messages).map_err(RequestError::invalid)?;
        let audio = |m: &SamplingMessage| m.content.iter().any(|b| matches!(b, SamplingMessageContentBlock::Audio(_)));
        if !self.caller().features().audio && request.messages.iter().any(audio) {
            return Err(RequestError::unsupported("the client's protocol revision has no audio"));
        }
        let mut params = serde_json::to_value(&request)
            .map_err(|e| RequestError::invalid(format!("the request for sampling cannot be JSON: {e}")).caused_by(e))?;
        if !self.caller().features().icons {
            one_block_each(&mut params);
        } else if !caps.sampling_context
            && let Some(params) = params.as_object_mut()
        {
            // A client without the capability must not be asked for context.
            params.remove("includeContext");
        }
        self.server_request(key, SAMPLE, params.to_string(), &|_| true).await
    }

    /// Requests the client's roots. Deprecated by the current revision, but still supported.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Result};
    /// async fn folders(cx: &Cx) -> Result<String> {
    ///     let roots = cx.roots("roots").await?;
    ///     Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join("\n"))
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("folders", folders);
    /// ```
    ///
    /// # Errors
    /// If the client does not support roots, rejects the request or does not respond in time, or if [input is
    /// required](RequestErrorKind::InputRequired): return that error with `?`. Dropping the future withdraws the
    /// request.
    #[doc(alias = "list_roots")]
    #[doc(alias = "listRoots")]
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, RequestError> {
        self.need(self.caps().roots, "roots", json!({}))?;
        let result: ListRootsResult = self.server_request(key, ROOTS, "{}".into(), &|_| true).await?;
        Ok(result.roots)
    }

    /// Sends a request with any method to the client, for clients that know it.
    ///
    /// With a session it is a server request, otherwise an input request under `key`, as with [`Cx::elicit`]: in that
    /// case, code before it runs again with each retry. `params` must serialize to an object, or be `()`. Declare the
    /// method as part of an extension, so that the server can find out whether the client knows it: see
    /// [`Cx::client_capabilities`] and [`Cx::require`]. For the methods of the specification use [`Cx::elicit`],
    /// [`Cx::sample`] and [`Cx::roots`], which adapt the request to the client's revision.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Result};
    /// #[derive(serde::Deserialize)]
    /// struct Picked { picked: String }
    ///
    /// async fn pick(cx: &Cx) -> Result<String> {
    ///     let params = serde_json::json!({ "from": ["a", "b"] });
    ///     let answer: Picked = cx.request("which", "example.com/pick", params).await?;
    ///     Ok(answer.picked)
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("pick", pick);
    /// ```
    ///
    /// # Errors
    /// If `params` does not have this shape; if servers may not send this method in the client's revision, or the
    /// client did not declare the required capability; if the client rejects the request, does not respond in time, or
    /// its response is not an `R`; or if [input is required](RequestErrorKind::InputRequired): return that error with
    /// `?`. Dropping the future withdraws the request.
    #[doc(alias = "send_request")]
    pub async fn request<R: DeserializeOwned>(
        &self,
        key: &str,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, RequestError> {
        let (caps, features) = (self.caps(), self.caller().features());
        match method {
            ELICIT => self.need(caps.elicitation_form || caps.elicitation_url, "elicitation", json!({}))?,
            SAMPLE => self.need(caps.sampling, "sampling", json!({}))?,
            ROOTS => self.need(caps.roots, "roots", json!({}))?,
            _ if features.multi_round_trip && Method::parse(method).is_some() => {
                return Err(RequestError::unsupported(format!(
                    "the client's protocol revision cannot be sent {method}"
                )));
            }
            _ => {}
        }
        let params = object(method, params)?;
        self.server_request(key, method.to_owned(), params, &|_| true).await
    }

    /// Sends a notification with any name to the client, for clients that know it. It is sent on the call's stream or,
    /// from a handler of notifications, on the session's.
    ///
    /// `params` must serialize to an object, or be `()`. For the notifications of the specification use
    /// [`Cx::progress`], [`Cx::log`] and [`Cx::server`], which only send what the client requested. If the client reads
    /// slowly, the oldest notifications are dropped.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Result};
    /// async fn save(cx: &Cx) -> Result<&'static str> {
    ///     cx.notify("notifications/example.com/saved", serde_json::json!({ "path": "a.txt" }))?;
    ///     Ok("saved")
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("save", save);
    /// ```
    ///
    /// # Errors
    /// If `params` does not have this shape.
    #[doc(alias = "send_notification")]
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<(), RequestError> {
        let params = object(method, params)?;
        self.send(render::notification(method, &params.as_bytes()[1..params.len() - 1]));
        Ok(())
    }

    /// Runs a step once per multi-round-trip request: retries reuse its result.
    ///
    /// The result is stored in the encrypted `requestState`, or with the task that the call has become. With sessions
    /// there are no retries, and outside of tasks the step simply runs.
    ///
    /// The state is bound to the principal, the method and its parameters, and expires; until then a client can replay
    /// it, so a step that must never happen twice needs a record on the server.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Result};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Confirm { yes: bool }
    /// # async fn reserve() -> Result<u64> { Ok(17) }
    /// async fn book(cx: &Cx) -> Result<String> {
    ///     let seat = cx.memoize("seat", reserve()).await?;
    ///     let confirm: Confirm = cx.elicit("confirm", &format!("Take seat {seat}?")).await?;
    ///     Ok(format!("seat {seat}: {}", confirm.yes))
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("book", book);
    /// ```
    ///
    /// # Errors
    /// The error of the step, which is not stored; or an error if its result cannot be serialized to JSON or, in a
    /// task, cannot be stored or exceeds a limit. Dropping the future drops the step.
    #[doc(alias = "once")]
    pub async fn memoize<T, F>(&self, key: &str, step: F) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T>>,
    {
        #[cfg(feature = "tasks")]
        if let Some(link) = self.link().filter(|link| link.mode != Mode::Later || link.task().is_some()) {
            let done = link.task().and_then(|task| task.step(key)).or_else(|| link.early_step(key));
            // An earlier attempt may have been no task.
            let done = done.or_else(|| self.round_trips().memos.get(key).cloned());
            if let Some(done) = done.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
                return Ok(done);
            }
            // A process that ends waits for it.
            let _running = link.running.begin().await;
            let value = step.await?;
            let raw = serde_json::value::to_raw_value(&value)?;
            match link.task() {
                Some(task) => task.keep(key, raw).await?,
                None => link.keep_early(key, raw),
            }
            return Ok(value);
        }
        if !self.caller().features().multi_round_trip {
            return step.await;
        }
        let memo = self.round_trips().memos.get(key).cloned();
        if let Some(memo) = memo.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            return Ok(memo);
        }
        let value = step.await?;
        let raw = serde_json::value::to_raw_value(&value)?;
        self.round_trips().memos.insert(key.to_owned(), raw);
        Ok(value)
    }

    /// Returns an error unless `has` is true: the client lacks the capability with this name and these settings.
    ///
    /// This is useful for extensions, for example. If the handler fails, a stateless client receives the error that the
    /// specification defines for this, which names the capability; a client with a session receives the handler's
    /// error.
    ///
    /// # Errors
    /// [`RequestErrorKind::Unsupported`] if `has` is false.
    pub fn require(&self, has: bool, capability: &'static str, settings: Value) -> Result<(), RequestError> {
        self.need(has, capability, settings)
    }

    fn need(&self, has: bool, capability: &'static str, settings: Value) -> Result<(), RequestError> {
        if has {
            return Ok(());
        }
        self.round_trips().lack(capability, settings);
        let why = format!("this needs a client that supports {capability}, and this one did not declare it");
        Err(RequestError::unsupported(why))
    }

    async fn server_request<R: DeserializeOwned>(
        &self,
        key: &str,
        method: impl Into<Cow<'static, str>>,
        params: String,
        fits: &(dyn Fn(&R) -> bool + Sync),
    ) -> Result<R, RequestError> {
        let method = method.into();
        #[cfg(feature = "tasks")]
        if let Some(task) = self.questioning(key).await {
            return self.ask_in_task(&*task, key, &method, params, fits).await;
        }
        if self.is_outside() && self.caller().session().is_none() {
            return Err(RequestError::unsupported("a client without a session can only be asked within a call"));
        }
        // A sampling result may be large, for example an image. Forms and roots are small.
        let small = [ELICIT, ROOTS].contains(&&*method);
        let check = |answer: &str| match answer.len() {
            0..=ANSWER_BYTES_MAX => Ok(()),
            _ if !small => Ok(()),
            _ => {
                let why = format!("the client's answer to {method} is longer than {ANSWER_BYTES_MAX} bytes");
                Err(RequestError::new(RequestErrorKind::InvalidResponse, why))
            }
        };
        if self.caller().features().multi_round_trip {
            let mut round_trips = self.round_trips();
            let raw = round_trips.answer(key);
            raw.map_or(Ok(()), |raw| check(raw.get()))?;
            let answer = raw.and_then(|raw| read_object::<R>(raw.get()).ok()).filter(|r| fits(r));
            return match answer {
                Some(answer) => {
                    round_trips.keep(key);
                    #[cfg(feature = "tasks")]
                    if self.link().is_some() {
                        round_trips.take(key, method, params);
                    }
                    Ok(answer)
                }
                None => {
                    round_trips.want(key, method.clone(), params);
                    Err(RequestError::new(RequestErrorKind::InputRequired, format!("input `{key}` is required")))
                }
            };
        }
        let params = match &*method {
            // Such requests have no `_meta` in earlier revisions.
            ELICIT | SAMPLE | ROOTS if self.caller().features().icons && !self.is_outside() => with_key(params, key),
            _ => params,
        };
        let (tx, rx) = tokio::sync::oneshot::channel();
        let answer = Box::new(move |result| drop(tx.send(result)));
        let _withdrawn = self.push_ask(ServerRequest { method: method.clone(), params, answer })?;
        let deadline = Duration::from_millis(self.0.shared.limits.server_requests.response_ms_max);
        let result = match tokio::time::timeout(deadline, rx).await {
            Err(_) => {
                let why = format!("the client did not answer {method} within {} seconds", deadline.as_secs());
                return Err(RequestError::new(RequestErrorKind::Timeout, why));
            }
            Ok(Ok(Err(ServerRequestError::Rpc(code, message)))) => {
                return Err(RequestError::refused(&method, ErrorObject::new(code, message)));
            }
            Ok(Err(_) | Ok(Err(_))) => {
                return Err(RequestError::new(RequestErrorKind::Closed, "the client went away before it answered"));
            }
            Ok(Ok(Ok(result))) => result,
        };
        check(&result)?;
        let answer = read_object(&result).map_err(|e| {
            let why = format!("the client's answer to {method} is malformed: {e}");
            RequestError::new(RequestErrorKind::InvalidResponse, why).caused_by(e)
        })?;
        match fits(&answer) {
            true => Ok(answer),
            false => Err(RequestError::new(RequestErrorKind::InvalidResponse, MISFIT)),
        }
    }
}

#[cfg(feature = "tasks")]
impl Cx {
    /// The task that asks, if the call is one. One that may become a task does when it asks.
    async fn questioning(&self, key: &str) -> Option<Arc<dyn RunningTask>> {
        let link = self.link()?;
        match link.task() {
            Some(task) => Some(task),
            // An earlier attempt may have been no task, and the answer to it is here.
            None if link.mode == Mode::Later || self.round_trips().answer(key).is_some() => None,
            None => self.become_task().await.then(|| link.task()).flatten(),
        }
    }

    async fn ask_in_task<R: DeserializeOwned>(
        &self,
        task: &dyn RunningTask,
        key: &str,
        method: &str,
        params: String,
        fits: &(dyn Fn(&R) -> bool + Sync),
    ) -> Result<R, RequestError> {
        let params = RawValue::from_string(params)
            .map_err(|e| RequestError::invalid(format!("the params of {method} cannot be JSON: {e}")).caused_by(e))?;
        let mut refused = None;
        loop {
            let (asked, answer) = task.ask(key, method, &params, refused.take()).await?;
            if let Ok((code, message)) = serde_json::from_str::<(i32, String)>(answer.get()) {
                return Err(RequestError::refused(method, ErrorObject::new(code, message)));
            }
            match read_object::<R>(answer.get()) {
                Ok(read) if fits(&read) => return Ok(read),
                Ok(_) => refused = Some((asked, "it does not fit the form".to_owned())),
                Err(error) => refused = Some((asked, error.to_string())),
            }
        }
    }
}

/// The parameters with the question's key in `_meta`, so that a bridge to stateless clients can ask under the same key.
fn with_key(params: String, key: &str) -> String {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return params;
    }
    let mut meta = None;
    let read = Scanner::new(&params, 127).object(&mut |s, name| {
        let value = s.value()?;
        if name.name() == "_meta" {
            meta = Some(value);
        }
        Ok(())
    });
    let Ok(all) = read else { return params };
    let mut member = format!("\"{KEY_META}\":").into_bytes();
    write_str(&mut member, key);
    let mut splice = Splice::new(&params, all);
    match meta {
        None => splice.add(all, [&b"\"_meta\":{"[..], &member, b"}"].concat()),
        Some(meta) if meta.of(&params).starts_with('{') => splice.add(meta, member),
        Some(_) => {}
    }
    let mut out = Vec::with_capacity(params.len() + key.len() + 32);
    splice.write(&mut out);
    String::from_utf8(out).unwrap_or(params)
}

/// The parameters of a message as JSON text: an object in one line.
fn object(method: &str, params: impl Serialize) -> Result<String, RequestError> {
    let json = serde_json::to_string(&params)
        .map_err(|e| RequestError::invalid(format!("the params of {method} cannot be JSON: {e}")).caused_by(e))?;
    let json = one_line(json.trim());
    match json.as_bytes() {
        b"null" => Ok("{}".to_owned()),
        [b'{', ..] => Ok(json.into_owned()),
        _ => Err(RequestError::invalid(format!("the params of {method} must be an object"))),
    }
}

/// Checks that each tool use is followed at once by its result, and that a message with results has nothing else.
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

/// Splits messages for earlier revisions, which allow one content block per message.
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
