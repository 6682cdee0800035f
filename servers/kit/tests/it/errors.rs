//! A failure keeps its mark of whose words it holds on its way through `?`.

use linchpin::client::Client;
use linchpin::transport::in_process;
use linchpin::types::content::Role;
use linchpin::types::version::Revision;
use linchpin::{NoArgs, Resource, Server, Tool};
use linchpin_kit::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Which {
    outside: bool,
}

#[derive(Serialize, JsonSchema)]
struct Never {}

fn fault(outside: bool) -> ToolError {
    let fault = ToolError::new("Failed").hint("Try again.");
    if outside { fault.as_outside() } else { fault }
}

async fn fail(_: &(), which: Which) -> linchpin::Result<ToolOutput<Never>> {
    Err(fault(which.outside))?
}

async fn resource(_: &(), _: NoArgs) -> linchpin::Result<String> {
    Err(fault(true))?
}

#[tokio::test]
async fn words_of_others_are_marked_and_our_own_are_not() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = Server::new("test", "0").tool(Tool::new("fail", "Fails."), fail);
        let server = server.resource(Resource::new("test://fail"), resource);
        let connection = Client::new("t", "0").revisions(&[revision]).connect(in_process(server)).await.unwrap();
        for (outside, audience) in [(true, vec![Role::Assistant]), (false, vec![])] {
            let said = connection.call("fail", json!({ "outside": outside })).await.unwrap();
            assert!(said.is_error());
            assert_eq!(said.text(), "Failed\nHint: Try again.");
            let result = said.result().unwrap();
            assert_eq!(result.content.len(), 1);
            let marks = serde_json::to_value(&result.content[0]).unwrap()["annotations"]["audience"].clone();
            let marks: Vec<Role> = serde_json::from_value(marks).unwrap_or_default();
            assert_eq!(marks, audience, "{revision:?} {outside}");
        }
        // An error of a request has no blocks.
        let refused = connection.read("test://fail").await.unwrap_err().to_string();
        assert!(refused.contains("Failed\nHint: Try again."), "{refused}");
        connection.close().await;
    }
}
