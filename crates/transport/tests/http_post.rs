//! POSTs: bytes in, status and body out.
#![cfg(feature = "http")]

mod common;

use common::Fake;
use common::wire::*;

#[tokio::test]
async fn a_ready_call_is_answered_as_json_on_a_connection_that_stays() {
    let server = Server::start(Fake::new()).await;
    let mut conn = server.connect().await;
    for id in ["1", "\"a\""] {
        conn.send(&alone(id, "echo", "")).await;
        let r = conn.response().await;
        assert_eq!((r.status, r.header("content-type")), (200, Some("application/json")));
        assert_eq!(r.body, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"v":"echo","resultType":"complete"}}}}"#));
    }
}
