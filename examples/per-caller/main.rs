//! A server that knows its callers: tokens in memory, a tool that demands a scope, a tool that exists for administrators only,
//! and one that unlocks another for its session.
//!
//! ```sh
//! cargo run -p linchpin-examples --example per-caller
//! linchpin tools http://127.0.0.1:8931/mcp --header 'Authorization: Bearer ada-token'
//! ```

use http::{HeaderValue, header::AUTHORIZATION, request};
use linchpin::prelude::*;
use linchpin::transport::{Admit, Document, Gate, Page, Refusal};
use linchpin::{Audience, Principal};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

#[cfg(test)]
mod tests;

const URL: &str = "http://127.0.0.1:8931/mcp";
const DOCUMENT: &str = "/.well-known/oauth-protected-resource/mcp";

/// Who is behind a token.
struct Tokens(HashMap<String, Principal>);

impl Tokens {
    fn new() -> Tokens {
        let ada = Principal::new("ada").with_scopes(["notes:write", "admin"]);
        let bob = Principal::new("bob").with_scopes(["notes:write"]);
        let eve = Principal::new("eve");
        Tokens([("ada-token", ada), ("bob-token", bob), ("eve-token", eve)].map(|(t, who)| (t.to_owned(), who)).into())
    }
}

impl Gate for Tokens {
    fn admit(&self, head: &request::Parts, _: Option<SocketAddr>) -> Admit {
        let value = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        match value.and_then(|value| self.0.get(value.strip_prefix("Bearer ")?)) {
            Some(principal) => Admit::Yes(principal.clone()),
            None => Admit::No(Refusal::unauthorized("send a token").with_challenge(HeaderValue::from_static(
                r#"Bearer resource_metadata="http://127.0.0.1:8931/.well-known/oauth-protected-resource/mcp""#,
            ))),
        }
    }

    // Clients look here for the server that gives out tokens, if there is one.
    fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        let document = || serde_json::json!({ "resource": URL, "bearer_methods_supported": ["header"] }).to_string();
        (path == DOCUMENT).then(|| Arc::new(Document::json(document())) as Arc<dyn Page>)
    }
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[register]
impl Notes {
    /// Lists all notes.
    #[tool(read_only)]
    async fn list(&self) -> String {
        self.all().join("\n")
    }

    /// Adds a note. Everybody sees this tool; a client that lacks the scope learns that it can ask for it.
    #[tool(additive, scopes = ["notes:write"])]
    async fn add(&self, cx: &Cx, text: String) -> String {
        let who = cx.principal().map_or("nobody", |principal| principal.subject());
        self.all().push(format!("{who}: {text}"));
        "added".to_owned()
    }

    /// Lets this session remove notes. For others than administrators this tool does not exist.
    #[tool(visible_to = |viewer| viewer.has_scope("admin"))]
    async fn unlock(&self, cx: &Cx) -> Result<&'static str> {
        let session = Audience::session(cx).ok_or_else(|| Error::tool("this client has no session"))?;
        cx.server().tools().enable_for("clear", &session)?;
        Ok("unlocked")
    }

    /// Removes all notes.
    #[tool(destructive)]
    async fn clear(&self) -> &'static str {
        self.all().clear();
        "removed"
    }
}

fn server() -> Result<Server, linchpin::ChangeError> {
    let server = Server::new("notes", "1.0").with(Notes::default());
    server.tools().disable("clear")?;
    Ok(server)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let transport = http("127.0.0.1:8931").guard(Tokens::new()).with_graceful_shutdown(shutdown_signal());
    Ok(server()?.serve(transport).await?)
}
