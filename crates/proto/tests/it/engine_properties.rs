//! Whatever a peer sends, in whatever order, the engine keeps its promises: an id is answered at most once, nothing is
//! sent for a cancelled request, no frame of one era reaches a peer of the other, and nothing is left at the end.
//! The promises are checked in `common/peer.rs` after every step.

use crate::peer::{Op, Peer};
use proptest::prelude::*;

fn op() -> impl Strategy<Value = Op> {
    let byte = any::<u8>;
    prop_oneof![
        2 => (byte(), byte()).prop_map(|(a, b)| Op::Initialize(a, b)),
        5 => (byte(), byte()).prop_map(|(a, b)| Op::Legacy(a, b)),
        5 => (byte(), byte()).prop_map(|(a, b)| Op::Modern(a, b)),
        3 => byte().prop_map(Op::Cancel),
        3 => (byte(), byte()).prop_map(|(a, b)| Op::Answer(a, b)),
        2 => byte().prop_map(Op::Notify),
        2 => byte().prop_map(Op::Custom),
        1 => prop_oneof![
            prop::collection::vec(byte(), 0..20),
            r#"\{"jsonrpc":"2.0","id":[1-9],("method":"(x|ping)"|"result":1|"error":1)[,}]{0,2}"#.prop_map(String::into_bytes),
        ].prop_map(Op::Garbage),
        5 => byte().prop_map(Op::Finish),
        5 => byte().prop_map(Op::ServerRequest),
        2 => byte().prop_map(Op::Late),
        1 => byte().prop_map(Op::Move),
        1 => Just(Op::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_events_keeps_every_promise(ops in prop::collection::vec(op(), 0..80)) {
        let mut peer = Peer::new();
        ops.iter().for_each(|op| peer.apply(op));
        peer.close();
    }

    #[test]
    fn a_session_in_use_keeps_every_promise(version in any::<u8>(), ops in prop::collection::vec(op(), 0..80)) {
        let mut peer = Peer::new();
        peer.apply(&Op::Initialize(0, version));
        peer.apply(&Op::Finish(0));
        ops.iter().filter(|op| !matches!(op, Op::Close)).for_each(|op| peer.apply(op));
        peer.close();
    }

    #[test]
    fn operations_read_from_bytes_keep_every_promise(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut peer = Peer::new();
        Op::decode_all(&bytes).iter().for_each(|op| peer.apply(op));
        peer.close();
    }
}
