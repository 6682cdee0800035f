//! Notifications of an upstream, for the client.

use super::result::{member, remove};
use crate::frame;
use crate::splice::Splice;
use bytes::Bytes;
use linchpin_core::Id;
use linchpin_core::json::Span;
use linchpin_core::limits::ClientLimits;
use linchpin_core::message::{Kind, Message};
use serde::Deserialize;
use std::borrow::Cow;

/// A notification as it came.
pub fn same(message: &Message) -> Bytes {
    message.frame().as_bytes().clone()
}

/// A progress notification with the client's token, as JSON text; without its text if the client's revision has none.
pub fn progress(message: &Message, token: &str, texts: bool) -> Bytes {
    let params = message.params();
    let text = params.all.filter(|_| !texts).and_then(|all| member(message.frame(), all, "message"));
    let Some(text) = text else { return replaced(message, params.progress_token, token.as_bytes()) };
    edited(message, |splice| {
        splice.remove(text);
        params.progress_token.into_iter().for_each(|span| splice.replace(span, token.as_bytes().to_vec()));
    })
}

/// A notification for another request of the client, whose progress token this is, as JSON text. `None` if it is progress,
/// and the request has no token.
pub fn for_retry(frame: &Bytes, token: Option<&str>) -> Option<Bytes> {
    let mut limits = ClientLimits::default();
    // It was let in before, whatever the limits were.
    limits.messages.depth_max = usize::MAX;
    let mut told = None;
    let _ = frame::hear(frame.clone(), &limits, &mut |message| told = Some(message));
    let is_progress = |message: &Message| matches!(&message.kind, Kind::Notification { method } if method.as_str() == "notifications/progress");
    match told.filter(is_progress) {
        Some(message) => Some(replaced(&message, message.params().progress_token, token?.as_bytes())),
        None => Some(frame.clone()),
    }
}

/// How far a call is, if this notification of the client's says so.
pub fn progressed(frame: &[u8]) -> Option<f64> {
    #[derive(Deserialize)]
    struct Told<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        progress: f64,
    }
    let told: Told<'_> = serde_json::from_slice(frame).ok()?;
    (told.method == "notifications/progress").then_some(told.params.progress)
}

/// A notification of a `subscriptions/listen` stream with the id of the client's request.
pub fn subscribed(message: &Message, id: &Id) -> Bytes {
    replaced(message, message.params().claims.subscription, id.as_bytes())
}

/// A notification of a `subscriptions/listen` stream for a session, which knows no such streams.
pub fn to_session(message: &Message) -> Bytes {
    let params = message.params();
    let (Some(id), Some(meta)) = (params.claims.subscription, params.meta) else { return same(message) };
    edited(message, |splice| remove(splice, message.frame(), meta, id))
}

fn replaced(message: &Message, span: Option<Span>, with: &[u8]) -> Bytes {
    let Some(span) = span else { return same(message) };
    edited(message, |splice| splice.replace(span, with.to_vec()))
}

fn edited(message: &Message, edit: impl FnOnce(&mut Splice<'_>)) -> Bytes {
    let frame = message.frame();
    let mut splice = Splice::new(frame, Span::new(0, frame.len()));
    edit(&mut splice);
    let mut out = Vec::with_capacity(frame.len() + 24);
    splice.write(&mut out);
    out.into()
}
