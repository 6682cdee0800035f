//! Any bytes as a frame: read or refused, never a panic; every span lies in the frame; what is read is JSON to serde too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_core::message::{Kind, Message};
use linchpin_core::{Limits, Reply, Span};
use linchpin_proto::frame::{self, Frame};
use serde_json::Value;

fn refused(reply: &Reply) {
    let frame: Value = serde_json::from_slice(&reply.frame()).expect("an answer is JSON");
    assert!(frame["error"]["code"].is_i64());
}

fn check(message: &Message) {
    let whole: &str = message.frame();
    serde_json::from_str::<serde::de::IgnoredAny>(whole).expect("a message is JSON");
    let is_json = |span: Span| {
        assert!(span.start() < span.end() && span.end() <= whole.len());
        serde_json::from_str::<serde::de::IgnoredAny>(message.text(span)).expect("a span holds one value");
    };
    let p = *message.params();
    [p.all, p.name, p.arguments, p.meta, p.uri, p.cursor, p.input_responses, p.request_state]
        .into_iter()
        .flatten()
        .for_each(is_json);
    if let Kind::Response { outcome, .. } = &message.kind {
        outcome.map_or_else(is_json, is_json);
    }
}

fuzz_target!(|data: &[u8]| {
    for limits in [
        Limits::default(),
        Limits::default().with(|limits| {
            limits.messages.depth_max = 4;
            limits.messages.id_bytes_max = 8;
            limits.messages.per_batch_max = 3;
        }),
    ] {
        match frame::read(data.to_vec().into(), &limits) {
            Err(unreadable) => refused(&unreadable.reply),
            Ok(Frame::One(message)) => check(&message),
            Ok(Frame::Batch(parts)) => {
                assert!((1..=limits.messages.per_batch_max).contains(&parts.len()));
                for part in parts {
                    match frame::message(part, &limits) {
                        Err(unreadable) => refused(&unreadable.reply),
                        Ok(message) => check(&message),
                    }
                }
            }
        }
    }
});
