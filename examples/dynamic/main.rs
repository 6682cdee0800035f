//! Tools that appear, change and go while the server runs: a better permission unlocks `put_message`, and is offered until
//! there is none better.

use linchpin::prelude::*;

struct Messages;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Permission {
    Write,
    Admin,
}

#[register]
impl Messages {
    /// Puts a message into a channel.
    #[tool(writes)]
    fn put_message(&self, channel: String, message: String) -> String {
        format!("{channel} now has {message:?}")
    }

    /// Asks for another permission.
    #[tool(writes)]
    fn upgrade_auth(&self, cx: &Cx, permission: Permission) -> Result<&'static str> {
        let tools = cx.server().tools();
        tools.enable("put_message")?;
        match permission {
            // After this, only `admin` can be asked for.
            Permission::Write => tools.update("upgrade_auth", |tool| {
                let admin = serde_json::json!({ "enum": ["admin"] });
                tool.input_schema(serde_json::json!({ "type": "object", "properties": { "permission": admin } }))
            })?,
            Permission::Admin => tools.remove("upgrade_auth")?,
        }
        Ok("upgraded; clients are told that the list of tools has changed")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("dynamic", "1.0").with(Messages);
    server.tools().disable("put_message")?;
    Ok(server.serve(stdio()).await?)
}
