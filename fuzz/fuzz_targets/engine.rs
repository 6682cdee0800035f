//! Any sequence of events keeps the engine's promises. The same driver runs in the property tests.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proto/tests/it/common/peer.rs"]
mod peer;

fuzz_target!(|data: &[u8]| {
    let mut peer = peer::Peer::new();
    for op in peer::Op::decode_all(data) {
        peer.apply(&op);
    }
    peer.close();
});
