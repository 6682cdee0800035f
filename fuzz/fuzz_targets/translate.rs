//! What a bridge makes of a message: one line of JSON with the same parts, in both directions and every pass.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_core::message::{Kind, Request};
use linchpin_core::{Caller, ClientCaps, ClientLimits, Features, Id, Limits, Session};
use linchpin_proto::engine::open;
use linchpin_proto::frame;
use linchpin_proto::translate::{self, Claims, ask, notice, result};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The value of a member, as it is written.
fn member<'a>(object: &'a RawValue, name: &str) -> Option<&'a str> {
    let all: std::collections::HashMap<String, &'a RawValue> = serde_json::from_str(object.get()).ok()?;
    all.get(name).map(|value| value.get())
}

fn passed_on(request: &Request) {
    let features = Features::all().next().expect("there is a newest revision");
    let said = translate::claims(features, "{}", Some("{\"name\":\"n\",\"version\":\"1\"}"), None);
    for claims in [Claims::Keep, Claims::Say(&said), Claims::Drop] {
        let out = translate::request(request, 7, features, claims, &[("inputResponses", "{}")]);
        assert!(!out.frame.contains(&b'\n') && !out.frame.contains(&b'\r'));
        let Ok(text) = std::str::from_utf8(&out.frame) else { panic!("it is text") };
        let whole: &RawValue = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(member(whole, "id"), Some("7"));
        let params: &RawValue = serde_json::from_str(member(whole, "params").expect("it has parameters")).expect("JSON");
        let one_line = |text: &str| text.replace(['\n', '\r'], " ");
        if let Some(arguments) = request.params.arguments {
            assert_eq!(member(params, "arguments"), Some(one_line(request.text(arguments)).as_str()));
        }
        if let Claims::Say(_) = claims {
            assert!(member(params, "_meta").is_some_and(|meta| meta.contains("clientCapabilities")));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let limits = Limits::default();
    let caller = |features: &'static Features| {
        Caller::of_session(Arc::new(Session::new(features, ClientCaps::default(), "{}", "")))
    };
    let oldest = Features::all().last().expect("there is an oldest revision");
    let mut asked = None;
    if let Ok(message) = frame::message(data.to_vec().into(), &limits) {
        let session = caller(oldest).session().cloned();
        if let Ok(request) = open(&message, session.as_ref()) {
            passed_on(&request);
            asked = Some(request);
        }
    }
    let limits = ClientLimits::default();
    let _ = frame::hear(data.to_vec().into(), &limits, &mut |message| {
        let json = |frame: &[u8]| serde_json::from_slice::<&RawValue>(frame).is_ok();
        assert!(json(&notice::progress(&message, "\"t\"", true)) && json(&notice::to_session(&message)));
        assert!(notice::for_retry(&notice::same(&message), Some("\"t\"")).is_some_and(|frame| json(&frame)));
        assert!(json(&notice::subscribed(&message, &Id::number(3))));
        let Kind::Response { outcome: Ok(span), .. } = message.kind else { return };
        let is_object = message.text(span).starts_with('{');
        if let Some(members) = result::asks(&message) {
            let _ = ask::read(&message, members, &mut || "id".to_owned());
        }
        for features in Features::all().filter(|features| features.has_sessions) {
            let method = asked.as_ref().map_or_else(
                || linchpin_core::MethodName::Known(linchpin_core::Method::ToolsCall),
                |asked| asked.method.clone(),
            );
            let request =
                Request::new(Id::number(1), method, caller(features), Default::default(), "{}".into());
            let there = result::to_stateless(&request, &message, span, Some("{}"));
            let back = result::to_session(&request, &message, span);
            // What is no object cannot be translated.
            assert!(is_object || (there.is_error() && back.is_error()));
            for reply in [there, back, result::same(&request.id, &message, span)] {
                // `RawValue`, not `Value`: numbers that no `f64` holds are JSON, and are passed on as they are written.
                assert!(json(&reply.frame()) || !json(message.text(span).as_bytes()));
            }
        }
    });
});
