//! Scenarios about authorization.

use crate::{Outcome, Task};
use bytes::Bytes;
use http::header::LOCATION;
use linchpin::auth::jwt::Signer;
use linchpin::auth::login::{Headless, LoginError};
use linchpin::auth::{Enterprise, OAuth, Workload};
use linchpin::transport::web::{Web, WebOptions};
use serde_json::json;

/// Nobody listens there: the login looks at where it would be sent.
const REDIRECT_URI: &str = "http://localhost:3000/callback";
/// The document is never read; the suite wants to see its address.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

pub(crate) async fn run(task: &Task) -> Outcome {
    let connection = task.host().connect(task.place()?.auth(oauth(task)?)).await?;
    connection.tools().await?;
    connection.call("test-tool", json!({})).await?.ok()?;
    // What was granted once is good for everything that follows.
    connection.ping().await?;
    connection.call("test-tool", json!({})).await?.ok()?;
    connection.close().await;
    Ok(())
}

/// Who this program is, by what the scenario hands out.
fn oauth(task: &Task) -> Outcome<OAuth> {
    let oauth = OAuth::new().client_name("linchpin-conformance");
    Ok(match task.scenario.as_str() {
        "auth/client-credentials-basic" => {
            oauth.client_credentials(task.given("client_id")?, task.given("client_secret")?)
        }
        "auth/client-credentials-jwt" => {
            let key = Signer::from_pem(task.given("private_key_pem")?, task.given("signing_algorithm")?.parse()?)?;
            oauth.client_credentials(task.given("client_id")?, key)
        }
        "auth/enterprise-managed-authorization" => {
            let (endpoint, id) = (task.given("idp_token_endpoint")?, task.given("idp_client_id")?);
            let enterprise = Enterprise::new(endpoint, id, task.given("idp_id_token")?);
            oauth.enterprise(enterprise.client(task.given("client_id")?, task.given("client_secret")?))
        }
        "auth/wif-jwt-bearer" => {
            oauth.workload(Workload::new(task.given("valid_jwt")?).client_id(task.given("client_id")?))
        }
        "auth/pre-registration" => {
            let (id, secret) = (task.given("client_id")?, task.given("client_secret")?);
            person(oauth).pre_registered(Some(task.given("issuer")?), id, secret)
        }
        // What is registered can be looked at; the metadata document is nowhere.
        "auth/offline-access-scope" => person(oauth),
        _ => person(oauth).client_metadata_url(CLIENT_METADATA_URL),
    })
}

/// A user logs in, whose browser is a request without the pages.
fn person(oauth: OAuth) -> OAuth {
    oauth.login(Headless::new(REDIRECT_URI, log_in))
}

async fn log_in(address: String) -> Result<String, LoginError> {
    let failed = |why: String| LoginError::Failed(why);
    let request = http::Request::get(address).body(Bytes::new()).map_err(|e| failed(e.to_string()))?;
    let answer = Web::new(WebOptions::default()).send(request).await.map_err(|e| failed(e.to_string()))?;
    let location = answer.parts.headers.get(LOCATION).and_then(|location| location.to_str().ok());
    location.map(str::to_owned).ok_or_else(|| failed(format!("no redirect, but status {}", answer.parts.status)))
}
