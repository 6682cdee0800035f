//! Tools that appear, change and go while the server runs: a better permission unlocks `put_message`, and is offered until
//! there is none better.

use linchpin::prelude::*;
use linchpin::{ChangeError, Tools};
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Put {
    channel: String,
    message: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Permission {
    Write,
    Admin,
}

#[derive(Deserialize, JsonSchema)]
struct Upgrade {
    permission: Permission,
}

async fn upgrade_auth(cx: &Cx, q: Upgrade) -> Result<&'static str> {
    let tools = cx.server().tools();
    tools.enable("put_message")?;
    match q.permission {
        // After this, only `admin` can be asked for.
        Permission::Write => offer_admin(&tools)?,
        Permission::Admin => tools.remove("upgrade_auth")?,
    }
    Ok("upgraded; clients are told that the list of tools has changed")
}

/// A function beside `upgrade_auth`, because a function cannot name itself within its own future.
fn offer_admin(tools: &Tools) -> Result<(), ChangeError> {
    let schema = json!({ "type": "object", "properties": { "permission": { "enum": ["admin"] } } });
    tools.update("upgrade_auth", |tool| tool.input_schema(schema))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("dynamic", "1.0")
        .tool(("list_messages", "Lists the messages of a channel."), || "none yet")
        .tool(("put_message", "Puts a message into a channel."), |q: Put| async move {
            format!("{} now has {:?}", q.channel, q.message)
        })
        .tool(("upgrade_auth", "Asks for another permission."), upgrade_auth);
    server.tools().disable("put_message")?;
    Ok(server.serve(stdio()).await?)
}
