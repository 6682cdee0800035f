//! A request's own claims, and opening it with and without a session: whoever passes has the method in their revision.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_core::message::Kind;
use linchpin_core::{ClientCaps, Limits, Session};
use linchpin_proto::engine::{claimed_version, open};
use linchpin_proto::era;
use linchpin_proto::frame;
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let Ok(message) = frame::message(data.to_vec().into(), &Limits::default()) else { return };
    let session = Arc::new(Session::new(era::negotiated("2025-06-18"), ClientCaps::default(), "{}", "null"));
    for session in [None, Some(&session)] {
        match open(&message, session) {
            Ok(request) => {
                let Kind::Request { id, method } = &message.kind else { panic!("only requests are opened") };
                let features = request.caller.features();
                assert!(
                    request.known().is_none_or(|method| era::defines(features, method))
                        && method.as_str() == request.method.as_str()
                );
                assert_eq!((&request.id, claimed_version(&message).is_some()), (id, features.stateless));
                assert_eq!(request.caller.session().is_none(), features.stateless);
                let caps = request.caller.capabilities_json();
                assert!(ClientCaps::read(caps).is_some(), "capabilities are an object: {caps}");
                let token = request.progress_token.map(|span| request.text(span));
                assert!(token.is_none_or(|token| linchpin_core::Id::from_json(token).is_some()));
                request.caller.client_info();
                request.string(request.params.name);
            }
            Err(reply) => {
                let frame: serde_json::Value = serde_json::from_slice(&reply.frame()).expect("an answer is JSON");
                if let Kind::Request { id, .. } = &message.kind {
                    let id: serde_json::Value = serde_json::from_str(id.as_json()).unwrap_or_default();
                    assert!(id.is_null() || frame["id"] == id);
                }
            }
        }
    }
});
