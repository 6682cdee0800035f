//! The client of rmcp logs in: `login-rmcp '{ url, way, document, lifeMs, checks, node, person }'`.
//!
//! rmcp leaves it to its host to notice a challenge, and to send the user to the address that it makes.

use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthorizationCallback, AuthorizationRequest, OAuthState};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use std::time::Duration;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Where answers go: nobody listens, so the user's program says where the browser ended.
const REDIRECT: &str = "http://127.0.0.1:9/callback";

/// What a lane says, and what the user was asked.
struct Lane {
    told: Value,
    asked: Vec<String>,
}

impl Lane {
    fn text(&self, name: &str) -> &str {
        self.told[name].as_str().unwrap_or_default()
    }

    fn has(&self, check: &str) -> bool {
        self.told["checks"].as_array().is_some_and(|all| all.iter().any(|one| one == check))
    }

    /// Sends the user to an address, and returns where the browser ended.
    async fn ask(&mut self, url: &str) -> Result<AuthorizationCallback, Error> {
        self.asked.push(url.to_owned());
        let mut person = tokio::process::Command::new(self.text("node"));
        let done = person.arg(self.text("person")).args([url, REDIRECT]).output().await?;
        let ended = String::from_utf8(done.stdout)?;
        let said = || format!("the user: {}", String::from_utf8_lossy(&done.stderr));
        AuthorizationCallback::from_redirect_url(ended.trim()).map_err(|error| format!("{error}: {}", said()).into())
    }

    /// Logs in, known in the way of the lane.
    async fn log_in(&mut self) -> Result<AuthClient<reqwest::Client>, Error> {
        let request = AuthorizationRequest::new(REDIRECT);
        let request = match self.text("way") {
            "document" => request.with_client_metadata_url(self.text("document")),
            "public" => request.with_preregistered_client("public"),
            "confidential" => request.with_preregistered_client("confidential").with_client_secret("s3cret"),
            _ => request.with_client_name("interop-login"),
        };
        let mut state = OAuthState::new(self.text("url"), None).await?;
        state.start_authorization(request).await?;
        let url = state.get_authorization_url().await?;
        let back = self.ask(&url).await?;
        state.handle_callback_with_issuer(&back.code, &back.csrf_token, back.issuer.as_deref()).await?;
        let manager = state.into_authorization_manager().ok_or("it is not authorized")?;
        Ok(AuthClient::new(reqwest::Client::new(), manager))
    }

    /// Calls a tool on a connection of its own.
    async fn call(&self, client: &AuthClient<reqwest::Client>, tool: &'static str) -> Result<String, Error> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.text("url"));
        let server = ().serve(StreamableHttpClientTransport::with_client(client.clone(), config)).await?;
        let result = server.call_tool(CallToolRequestParams::new(tool)).await;
        server.cancel().await?;
        let result = result?;
        Ok(result.content.first().and_then(|block| block.as_text()).map(|text| text.text.clone()).unwrap_or_default())
    }

    async fn revoke(&self, client: &AuthClient<reqwest::Client>) -> Result<(), Error> {
        let (id, tokens) = client.auth_manager.lock().await.get_credentials().await?;
        let tokens = serde_json::to_value(tokens)?;
        let token = tokens["refresh_token"].as_str().ok_or("there is no refresh token")?;
        let secret = if id == "confidential" { "&client_secret=s3cret" } else { "" };
        let place = self.text("url").replace("/mcp", "/revoke");
        let form = format!("token={token}&client_id={}{secret}", id.replace(':', "%3A").replace('/', "%2F"));
        let post = reqwest::Client::new().post(place).header("content-type", "application/x-www-form-urlencoded");
        let status = post.body(form).send().await?.status();
        if status.is_success() { Ok(()) } else { Err(format!("revocation: {status}").into()) }
    }
}

fn is(found: impl std::fmt::Debug, what: &str, yes: bool) -> Result<(), Error> {
    if yes { Ok(()) } else { Err(format!("{what}: {found:?}").into()) }
}

fn say(name: &str, outcome: Result<(), Error>) {
    let detail = outcome.as_ref().err().map(|error| format!("{error:?}")).unwrap_or_default();
    println!("{}", json!({ "name": name, "status": if outcome.is_ok() { "pass" } else { "fail" }, "detail": detail }));
}

async fn login(lane: &Lane, client: &AuthClient<reqwest::Client>) -> Result<(), Error> {
    let who = lane.call(client, "whoami").await?;
    is(&who, "it is somebody else", who == "ada")?;
    let url = &lane.asked[0];
    is(url, "it asks for more than it needs", !url.contains("notes%3Awrite"))?;
    is(url, "it is known in another way", lane.text("way") != "document" || url.contains("client.json"))
}

async fn step_up(lane: &mut Lane, client: &AuthClient<reqwest::Client>) -> Result<(), Error> {
    let refused = match lane.call(client, "write").await {
        Ok(_) => return Err("it needs no other scope".into()),
        Err(error) => format!("{error:?}"),
    };
    is(&refused, "it is not a challenge", refused.contains("InsufficientScope"))?;
    let url = client.auth_manager.lock().await.request_scope_upgrade("notes:write").await?;
    is(&url, "it does not ask for it", url.contains("notes%3Awrite"))?;
    let back = lane.ask(&url).await?;
    let manager = client.auth_manager.lock().await;
    manager.exchange_code_for_token_with_issuer(&back.code, &back.csrf_token, back.issuer.as_deref()).await?;
    drop(manager);
    let written = lane.call(client, "write").await?;
    is(&written, "nothing was written", written == "written")
}

async fn refresh(lane: &Lane, client: &AuthClient<reqwest::Client>) -> Result<(), Error> {
    let asked = lane.asked.len();
    tokio::time::sleep(Duration::from_millis(lane.told["lifeMs"].as_u64().unwrap_or_default() + 200)).await;
    let who = lane.call(client, "whoami").await?;
    is(&who, "it is somebody else", who == "ada" && lane.asked.len() == asked)
}

async fn revocation(lane: &mut Lane, client: &AuthClient<reqwest::Client>) -> Result<(), Error> {
    lane.revoke(client).await?;
    let refused = match lane.call(client, "whoami").await {
        Ok(who) => return Err(format!("{who} comes in").into()),
        Err(error) => format!("{error:?}"),
    };
    is(&refused, "it is not a challenge", refused.contains("AuthRequired"))?;
    let again = lane.log_in().await?;
    let who = lane.call(&again, "whoami").await?;
    is(&who, "it is somebody else", who == "ada")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let told = std::env::args().nth(1).ok_or("usage: login-rmcp LANE")?;
    let mut lane = Lane { told: serde_json::from_str(&told)?, asked: Vec::new() };
    let client = lane.log_in().await?;
    say("login", login(&lane, &client).await);
    if lane.has("step-up") {
        say("step-up", step_up(&mut lane, &client).await);
    }
    if lane.has("refresh") {
        say("refresh", refresh(&lane, &client).await);
    }
    if lane.has("revocation") {
        say("revocation", revocation(&mut lane, &client).await);
    }
    Ok(())
}
