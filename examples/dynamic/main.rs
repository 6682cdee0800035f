//! Tools that change while the server runs: `upgrade_auth` unlocks `put_message`, and goes when nothing is left to ask for.

use linchpin::BoxError;
use linchpin::prelude::*;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Permission {
    Write,
    Admin,
}

struct Chat;

#[register]
impl Chat {
    /// Lists the messages of a channel.
    #[tool(read_only)]
    fn list_messages(channel: String) -> String {
        format!("{channel} has no messages yet")
    }

    /// Puts a message into a channel.
    #[tool(writes)]
    fn put_message(channel: String, message: String) -> String {
        format!("{channel} now has {message:?}")
    }

    /// Asks for a better permission.
    #[tool(writes)]
    fn upgrade_auth(
        cx: &Cx,
        /** The one to have. */
        permission: Permission,
    ) -> Result<String> {
        let tools = cx.server().tools();
        tools.enable("put_message")?;
        let properties = json!({ "permission": { "enum": ["admin"] } });
        let admin = json!({ "type": "object", "required": ["permission"], "properties": properties });
        match permission {
            // From now on `write` is an invalid argument.
            Permission::Write => tools.update("upgrade_auth", |tool| tool.input_schema(admin))?,
            Permission::Admin => tools.remove("upgrade_auth")?,
        }
        Ok("upgraded".to_owned())
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::new("dynamic", "1.0").with(Chat);
    server.tools().disable("put_message")?;
    Ok(server.serve(stdio()).await?)
}
