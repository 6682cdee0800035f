//! What a server sends to a client: heard or refused, never a panic, and every span is one JSON value of its message. The
//! answer to an opening leads somewhere, and an opening comes to an end whatever is answered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_core::Features;
use linchpin_core::message::Kind;
use linchpin_core::{ClientLimits, Span};
use linchpin_proto::frame;
use linchpin_proto::negotiation::{Negotiation, Outcome, Verdict};

fuzz_target!(|data: &[u8]| {
    let limits = ClientLimits::default().with(|limits| limits.messages.depth_max = 40);
    let mut opening = Negotiation::new(Features::all().collect(), None);
    let mut open = true;
    let heard = frame::hear(data.to_vec().into(), &limits, &mut |message| {
        let json = |span: Span| serde_json::from_str::<&serde_json::value::RawValue>(message.text(span)).is_ok();
        let outcome = match &message.kind {
            Kind::Response { outcome: Ok(result), .. } => {
                assert!(json(*result));
                let members = message.result();
                assert!([members.result_type, members.meta, members.content, members.next_cursor].into_iter().flatten().all(json));
                Outcome::Result(message.text(*result))
            }
            Kind::Response { outcome: Err(error), .. } => {
                assert!(json(*error));
                Outcome::Error(message.text(*error), None)
            }
            _ => {
                let params = message.params();
                assert!([params.all, params.meta, params.uri, params.progress_token].into_iter().flatten().all(json));
                return;
            }
        };
        for _ in 0..20 {
            open = open && !matches!(opening.took(outcome), Verdict::Agreed(_) | Verdict::Failed(_));
        }
        assert!(!open, "the same answer for ever is an end");
    });
    if let Err(why) = heard {
        assert!(!why.is_empty());
    }
});
