//! The low-level server: one async function for each method, from the request as it was received to the members of the result.

use crate::cx::Cx;
use crate::error::{Error, Result};
use crate::mrtr::RoundTrips;
use crate::running_call;
use crate::shared::Shared;
use crate::shared::method_not_found;
use crate::target;
use linchpin_core::json::Scanner;
use linchpin_core::message::{MethodName, Request};
use linchpin_core::service::{BoxFuture, CallStart, RequestContext};
use linchpin_core::{Method, Reply, ReplyKind, ResultWriter};
use std::collections::HashMap;
use std::sync::Arc;
use std::task::Context;

/// A type-erased handler: it returns the result as JSON text.
pub(crate) type Handler = Arc<dyn Fn(Request, Cx) -> BoxFuture<'static, Result<String>> + Send + Sync>;

/// The handlers of a low-level server.
#[derive(Default)]
pub(crate) struct LowLevel {
    pub(crate) handlers: HashMap<Box<str>, Handler>,
    pub(crate) fallback: Option<Handler>,
    /// A `ServerCapabilities` object as JSON text.
    pub(crate) capabilities: String,
}

/// What a low-level server does with a method.
pub(crate) enum Choice {
    Handler(Handler),
    /// It is answered as by any server.
    BuiltIn,
    Unknown,
}

impl LowLevel {
    pub(crate) fn choose(&self, method: &MethodName) -> Choice {
        let built_in = matches!(
            method,
            MethodName::Known(
                Method::Initialize
                    | Method::ServerDiscover
                    | Method::Ping
                    | Method::LoggingSetLevel
                    | Method::ResourcesSubscribe
                    | Method::ResourcesUnsubscribe
                    | Method::SubscriptionsListen
            )
        );
        match self.handlers.get(method.as_str()) {
            Some(handler) => Choice::Handler(handler.clone()),
            None if built_in => Choice::BuiltIn,
            None => self.fallback.clone().map_or(Choice::Unknown, Choice::Handler),
        }
    }

    pub(crate) fn defines(&self, method: &str) -> bool {
        self.fallback.is_some() || self.handlers.contains_key(method)
    }
}

/// Starts the handler of a request.
pub(crate) fn start(
    shared: &Arc<Shared>,
    handler: &Handler,
    request: Arc<Request>,
    context: Arc<RequestContext>,
    task: &mut Context<'_>,
) -> CallStart {
    // A state that is not of `Cx::elicit` is the handler's own.
    let mut round_trips = RoundTrips::of(&request, context.principal.as_ref(), shared).unwrap_or_default();
    round_trips.remember(&context);
    let cx = Cx::new(request.clone(), context, shared.clone(), round_trips);
    let (handler, asked, handed, out) =
        (handler.clone(), Request::clone(&request), cx.clone(), shared.writer(&request));
    let (id, limit) = (request.id.clone(), shared.limits.messages.result_bytes_max);
    let future = Box::pin(async move {
        // Called when polled, where its panics are caught.
        match handler(asked, handed).await {
            Ok(json) => write(&json, out, |kind| match json.len() {
                length if length > limit => {
                    let why =
                        format!("the response exceeds the server's limit of {limit} bytes; request less at a time");
                    Reply::error(Some(&id), linchpin_types::error::code::INTERNAL_ERROR, &why, None)
                }
                _ => Reply::with_result(&id, json.clone().into()).with_kind(kind),
            }),
            Err(error) => error.into_rpc(out),
        }
    });
    running_call::launch(shared, &request, target::CallStart { future, cx: Some(cx) }, None, task)
}

/// The response with the members of `json`. `whole` makes one of a result that is complete.
fn write(json: &str, mut out: ResultWriter, whole: impl FnOnce(ReplyKind) -> Reply) -> Reply {
    let mut kind = None;
    let scanned = Scanner::new(json, 127).object(&mut |s, key| {
        let value = s.value()?.of(json);
        match &*key.name() {
            "resultType" if value == "\"input_required\"" => kind = Some(ReplyKind::InputRequired),
            "resultType" => kind = Some(ReplyKind::Complete),
            "_meta" if value.starts_with('{') => out.meta(value[1..value.len() - 1].trim().as_bytes()),
            name => {
                out.any_key(name);
                out.push(value.as_bytes());
            }
        }
        Ok(())
    });
    match (scanned, kind) {
        (Ok(_), Some(kind)) => whole(kind),
        (Ok(_), None) => out.finish(ReplyKind::Complete),
        (Err(_), _) => {
            Error::protocol(linchpin_types::error::code::INTERNAL_ERROR, "the result of a method must be a JSON object")
                .into_rpc(out)
        }
    }
}

/// The response to a method without a handler.
pub(crate) fn unknown(request: &Request) -> CallStart {
    CallStart::Done(method_not_found(request))
}
