//! A bridge between a client of any revision and an upstream of any.

mod bytes;
mod passes;

use linchpin::Server;
use linchpin::transport::{Bind, IntoService, in_process, memory};
use linchpin_core::Features;
use linchpin_gateway::{Bridge, BridgeOptions};
use linchpin_testing::TestClient;
use linchpin_types::version::Revision;
use serde_json::json;
use tokio::io::DuplexStream;

/// The two kinds of upstreams: those with sessions, and those whose requests are stateless.
pub(crate) const UPSTREAMS: [bool; 2] = [false, true];

/// Revisions of the kind.
pub(crate) fn revisions(stateless: bool) -> Vec<&'static Features> {
    Features::all().filter(|features| features.stateless == stateless).collect()
}

/// The end of a client of this bridge.
pub(crate) fn stream(bridge: Bridge) -> DuplexStream {
    let (place, stream) = memory();
    let service = bridge.into_shared().expect("the options are right");
    tokio::spawn(place.serve(service));
    stream
}

/// A client that can be asked anything.
pub(crate) fn able(stream: DuplexStream, revision: Revision) -> TestClient<DuplexStream> {
    TestClient::new(stream, revision)
        .answer("elicitation/create", |_| json!({ "action": "accept", "content": { "username": "ada", "email": "a@b.example" } }))
        .answer("sampling/createMessage", |_| {
            json!({ "role": "assistant", "content": { "type": "text", "text": "sampled" }, "model": "m", "stopReason": "endTurn" })
        })
        .answer("roots/list", |_| json!({ "roots": [{ "uri": "file:///work", "name": "work" }] }))
}

/// A bridge to this server, which is spoken to in these revisions.
pub(crate) fn bridge(server: Server, stateless: bool, change: impl FnOnce(&mut BridgeOptions)) -> Bridge {
    Bridge::new(in_process(server)).options(|options| {
        options.upstream = revisions(stateless);
        change(options);
    })
}
