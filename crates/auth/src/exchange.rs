//! The exchange of grants without a browser for tokens.

use crate::address;
use crate::client::{Client, Credential, Form};
use crate::error::{Error, Kind};
use crate::fetch::Asker;
use crate::flow::{Flow, ResolvedServer};
use crate::grants::{AssertionFor, Enterprise, NonInteractive, Provider, Workload};
use crate::metadata;
use crate::register;
use crate::store::Tokens;
use crate::token::Endpoint;
use linchpin_oauth::{AuthorizationServerMetadata, Scopes, Secret, dpop::DpopKey};
use std::sync::PoisonError;

impl Enterprise {
    /// Exchanges the user's identity for a grant for one authorization server and resource.
    async fn exchange(
        &self,
        flow: &Flow<'_>,
        resolved: &ResolvedServer,
        scopes: Option<&Scopes>,
    ) -> Result<Secret, Error> {
        let of_provider = |error: &Error| error.within("at the identity provider");
        let named = match &self.provider {
            Provider::Endpoint(address) | Provider::Issuer(address) => address,
        };
        // Its URL was configured, not named by a server: it may be anywhere.
        let asker = Asker { server: address::server(named).map_err(|e| of_provider(&e))?, ..flow.asker.clone() };
        let provider = match &self.provider {
            Provider::Endpoint(address) => AuthorizationServerMetadata::new(address::origin(&asker.server))
                .with(|provider| provider.token_endpoint = Some(address.clone())),
            Provider::Issuer(issuer) => metadata::server(&asker, issuer).await.map_err(|e| of_provider(&e))?,
        };
        let client = Client::new(&self.provider_client.0, &self.provider_client.1, &provider)?;
        let mut form = Form::new("urn:ietf:params:oauth:grant-type:token-exchange");
        form.add("requested_token_type", ID_JAG);
        form.add("audience", &resolved.server.issuer);
        form.add("resource", &resolved.resource);
        if let Some(scopes) = scopes {
            form.add("scope", &scopes.to_string());
        }
        form.add("subject_token", self.identity.get(purpose(resolved)).await?.expose());
        form.add("subject_token_type", self.identity_type);
        let endpoint = Endpoint {
            now: flow.config.now(),
            asker: &asker,
            nonces: flow.nonces,
            issuer: &provider.issuer,
            address: metadata::token_endpoint(&provider)?,
            client: Some(&client),
            dpop: None,
        };
        let document = endpoint.ask(&form).await.map_err(|e| of_provider(&e))?;
        let text = |name: &str| document.get(name).and_then(serde_json::Value::as_str);
        match (text("access_token"), text("issued_token_type")) {
            (Some(grant), Some(ID_JAG)) if !grant.is_empty() => Ok(Secret::from(grant)),
            _ => Err(Error::new(
                Kind::Unreachable,
                format!(
                    "the identity provider {} issued no ID-JAG; it must allow this for the program",
                    provider.issuer
                ),
            )),
        }
    }
}

impl Workload {
    async fn tokens(
        &self,
        flow: &Flow<'_>,
        resolved: &ResolvedServer,
        scopes: Option<&Scopes>,
        dpop: Option<&DpopKey>,
    ) -> Result<Tokens, Error> {
        let assertion = self.assertion.get(purpose(resolved)).await?;
        let refused = || self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused().as_ref() == Some(&assertion) {
            return Err(Error::new(
                Kind::Refused("invalid_grant".to_owned()),
                "the authorization server refused this assertion before; it is not tried again until there is another",
            ));
        }
        let client = match &self.client_id {
            Some(id) => Some(Client::new(id, &Credential::None, &resolved.server)?),
            None => None,
        };
        let mut form = Form::new(JWT_BEARER);
        form.add("assertion", assertion.expose());
        add_common(&mut form, resolved, scopes);
        let tokens = flow.endpoint(resolved, client.as_ref(), dpop)?.tokens(&form, scopes).await;
        if tokens.as_ref().is_err_and(Error::is_refused) {
            *refused() = Some(assertion);
        }
        tokens
    }
}

impl NonInteractive {
    /// Gets tokens, without retries and without a fallback to another grant.
    pub(crate) async fn tokens(
        &self,
        flow: &Flow<'_>,
        resolved: &ResolvedServer,
        scopes: Option<&Scopes>,
        dpop: Option<&DpopKey>,
    ) -> Result<Tokens, Error> {
        match self {
            NonInteractive::ClientCredentials { id, credential } => {
                let client = Client::new(id, credential, &resolved.server)?;
                let mut form = Form::new("client_credentials");
                add_common(&mut form, resolved, scopes);
                flow.endpoint(resolved, Some(&client), dpop)?.tokens(&form, scopes).await
            }
            NonInteractive::Enterprise(enterprise) => {
                let client = match &enterprise.client {
                    Some((id, credential)) => Some(Client::new(id, credential, &resolved.server)?),
                    None => register::known(flow.config, &resolved.server, None)?,
                };
                let grant = enterprise.exchange(flow, resolved, scopes).await?;
                let mut form = Form::new(JWT_BEARER);
                form.add("assertion", grant.expose());
                add_common(&mut form, resolved, scopes);
                flow.endpoint(resolved, client.as_ref(), dpop)?.tokens(&form, scopes).await
            }
            NonInteractive::Workload(workload) => workload.tokens(flow, resolved, scopes, dpop).await,
        }
    }
}

fn purpose(resolved: &ResolvedServer) -> AssertionFor {
    AssertionFor { issuer: resolved.server.issuer.clone(), resource: resolved.resource.clone() }
}

fn add_common(form: &mut Form, resolved: &ResolvedServer, scopes: Option<&Scopes>) {
    form.add("resource", &resolved.resource);
    if let Some(scopes) = scopes {
        form.add("scope", &scopes.to_string());
    }
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
