//! A bridge between a client of any revision and an upstream of any.

mod bytes;
mod faults;
mod isolation;
mod lost;
mod multi_round_trip;
mod passes;
mod places;
mod sessions;
mod several;

use linchpin::prelude::*;
use linchpin::transport::{Bind, IntoService, Service, in_process, memory};
use linchpin::types::sample::{CreateMessageRequestParams, SamplingMessage};
use linchpin_core::Features;
use linchpin_gateway::{Bridge, BridgeOptions};
use linchpin_testing::TestClient;
use linchpin_types::version::Revision;
use serde_json::json;
use std::sync::Arc;
use tokio::io::DuplexStream;

/// The two kinds of upstreams: those with sessions, and those whose requests are stateless.
pub(crate) const UPSTREAMS: [bool; 2] = [false, true];

/// Revisions of the kind.
pub(crate) fn revisions(stateless: bool) -> Vec<&'static Features> {
    Features::all().filter(|features| features.stateless == stateless).collect()
}

/// The end of a client of this bridge.
pub(crate) fn stream(bridge: Bridge) -> DuplexStream {
    serve(bridge.into_shared().expect("the options are right"))
}

/// The end of a client of this service.
pub(crate) fn serve(service: Arc<dyn Service>) -> DuplexStream {
    let (place, stream) = memory();
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

/// A server that asks for everything, in whichever way its client's revision has.
pub(crate) fn curious() -> Server {
    Server::new("curious", "1").tool("sample", sample).tool("form", form).tool("roots", roots)
}

async fn sample(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let asked = CreateMessageRequestParams::new([SamplingMessage::user("?")], 10);
    let answer = cx.sample("model", asked).await?;
    Ok(format!("sampled by {}", answer.model))
}

async fn form(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let schema = json!({ "type": "object", "properties": { "username": { "type": "string" } } });
    let answer = cx.elicit_raw("who", "who?", schema).await?;
    Ok(format!("answered: {}", serde_json::to_string(&answer).unwrap_or_default()))
}

async fn roots(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let roots = cx.roots("roots").await?;
    Ok(format!("{} at {}", roots.len(), roots[0].uri))
}
