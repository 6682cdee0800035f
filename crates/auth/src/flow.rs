//! The authorization flow, in the order of the specification.
//!
//! Specification: "Authorization Flow Steps" and the pages it refers to. Discovery of documents is in `metadata`, client
//! registration in `register`, the token endpoint in `token`.

use crate::address;
use crate::client::{Client, Form};
use crate::config::Config;
use crate::error::{Error, quote};
use crate::fetch::Asker;
use crate::login::{Login, callback_params};
use crate::metadata;
use crate::register::{self, RegistrationMetadata};
use crate::scope;
use crate::store::{Registered, StoreKey, Stored, Tokens};
use crate::token::{Endpoint, Nonces};
use linchpin_oauth::{
    AuthorizationServerMetadata as Server, Challenge, OFFLINE_ACCESS, Pkce, Scopes, Secret, dpop::DpopKey, random_text,
};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The flow for one MCP server.
pub(crate) struct Flow<'a> {
    pub(crate) config: &'a Config,
    pub(crate) asker: Asker,
    pub(crate) nonces: &'a Nonces,
}

/// The result of discovery: the resource and the authorization server.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedServer {
    /// The resource identifier, letter for letter as its metadata has it.
    pub(crate) resource: String,
    /// The authorization server; its issuer has been checked.
    pub(crate) server: Server,
    pub(crate) scopes_supported: Option<Scopes>,
    pub(crate) dpop_required: bool,
    /// There was no protected-resource metadata: the rules from before there was any are used.
    pub(crate) of_old: bool,
}

impl ResolvedServer {
    pub(crate) fn key(&self) -> StoreKey {
        StoreKey::new(&self.server.issuer, &self.resource)
    }
}

/// The result of the flow.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) stored: Stored,
    /// All requested scopes.
    pub(crate) asked: Scopes,
}

impl Flow<'_> {
    /// Discovers the protected resource and its authorization server. `known` are issuers with whom there
    /// is something already.
    pub(crate) async fn discover(&self, challenge: &Challenge, known: &[String]) -> Result<ResolvedServer, Error> {
        let found = metadata::resource(&self.asker, challenge.resource_metadata.as_deref()).await?;
        let Some(resource) = found else {
            return Ok(ResolvedServer {
                resource: address::canonical(&self.asker.server),
                server: metadata::server_at_origin(&self.asker).await?,
                scopes_supported: None,
                dpop_required: false,
                of_old: true,
            });
        };
        let issuer = self.choose_issuer(&resource.authorization_servers, known)?;
        Ok(ResolvedServer {
            server: metadata::server(&self.asker, issuer).await?,
            resource: resource.resource,
            scopes_supported: resource.scopes_supported,
            dpop_required: resource.dpop_bound_access_tokens_required,
            of_old: false,
        })
    }

    /// Chooses an authorization server: a pre-registered one, a known one, or the first.
    fn choose_issuer<'a>(&'a self, named: &'a [String], known: &[String]) -> Result<&'a str, Error> {
        let registered = || self.config.pre_registered.iter().filter_map(|client| client.issuer.as_deref());
        let ours = |issuer: &&String| registered().any(|registered| registered == issuer.as_str());
        let chosen = named.iter().find(ours).or_else(|| named.iter().find(|issuer| known.contains(issuer)));
        chosen.or(named.first()).map(String::as_str).or_else(|| registered().next()).ok_or_else(|| {
            Error::discovery(
                "the protected-resource metadata contains no authorization server; the server's operator must correct it, \
                 or set the issuer with pre_registered(Some(issuer), …)",
            )
        })
    }

    /// Gets tokens for this resource from this authorization server. `before` are all scopes requested so far; `stored`
    /// is the stored state for exactly this authorization server and resource.
    pub(crate) async fn authorize(
        &self,
        resolved: &ResolvedServer,
        challenge: &Challenge,
        before: &Scopes,
        stored: Option<&Stored>,
    ) -> Result<Granted, Error> {
        let config = self.config;
        let scopes =
            scope::select(config.scopes.as_ref(), challenge.scope.as_ref(), resolved.scopes_supported.as_ref(), before);
        let dpop = self.key(resolved, challenge.dpop, stored)?;
        if let Some(non_interactive) = &config.non_interactive {
            let tokens = non_interactive.tokens(self, resolved, scopes.as_ref(), dpop.as_ref()).await?;
            return Ok(granted(None, tokens, dpop.as_ref(), scopes));
        }
        let Some(login) = &config.login else {
            return Err(Error::setup(format!(
                "{} requires a login, but none is configured: set OAuth::login(…), for example with a Browser, \
                 or client_credentials(…)",
                self.asker.server
            )));
        };
        check_pkce(resolved)?;
        let scopes = scope::with_offline_access(scopes, resolved.server.scopes_supported.as_ref());
        let client = stored.and_then(|stored| stored.client.as_ref());
        match self.ask_person(login, resolved, scopes.clone(), client, dpop.as_ref()).await {
            // The server no longer knows a client that it registered.
            Err(error) if client.is_some() && error.is_refused_with("invalid_client") => {
                self.ask_person(login, resolved, scopes, None, dpop.as_ref()).await
            }
            other => other,
        }
    }

    /// Sends the user to the authorization server, and redeems the code of the callback.
    async fn ask_person(
        &self,
        login: &Arc<dyn Login>,
        resolved: &ResolvedServer,
        scopes: Option<Scopes>,
        stored: Option<&Registered>,
        dpop: Option<&DpopKey>,
    ) -> Result<Granted, Error> {
        let server = &resolved.server;
        let redirect_uri = redirect_uri(&**login).await?;
        let to_register = register::scopes(scopes.as_ref(), resolved.scopes_supported.as_ref());
        let metadata = RegistrationMetadata { redirect_uri: &redirect_uri, scopes: to_register.as_ref() };
        let client = register::client(self.config, &self.asker, server, stored, &metadata).await?;

        // The issuer is recorded together with verifier and state before the user is redirected.
        let request = Request::new(server, &redirect_uri);
        let mut more = vec![("resource", resolved.resource.clone())];
        more.extend(dpop.map(|key| ("dpop_jkt", key.thumbprint().to_string())));
        let address = request.address(server, &client, scopes.as_ref(), &more)?;
        let mut form = request.redeem(&**login, &address, self.config.login_deadline).await?;
        form.add("resource", &resolved.resource);
        let tokens = self.endpoint(resolved, Some(&client), dpop)?.tokens(&form, scopes.as_ref()).await?;
        Ok(granted(client.registered, tokens, dpop, scopes))
    }

    /// Requests new tokens with the refresh token of `stored`.
    pub(crate) async fn refresh(&self, server: &Server, resource: &str, stored: &Stored) -> Result<Stored, Error> {
        let Some(tokens) = &stored.tokens else { return Err(no_refresh()) };
        let Some(refresh_token) = &tokens.refresh_token else { return Err(no_refresh()) };
        let client = register::known(self.config, server, stored.client.as_ref())?;
        let dpop = stored_key(stored)?;
        let mut form = Form::new("refresh_token");
        form.add("refresh_token", refresh_token.expose());
        form.add("resource", resource);
        let asked = tokens.scope.as_deref().map(Scopes::parse);
        let endpoint = Endpoint {
            now: self.config.now(),
            asker: &self.asker,
            nonces: self.nonces,
            issuer: &server.issuer,
            address: metadata::token_endpoint(server)?,
            client: client.as_ref(),
            dpop: dpop.as_ref(),
        };
        let mut new = endpoint.tokens(&form, asked.as_ref()).await?;
        // A server that does not rotate leaves the old one in force.
        new.refresh_token = new.refresh_token.or_else(|| Some(refresh_token.clone()));
        Ok(Stored { tokens: Some(new), ..stored.clone() })
    }

    /// The token endpoint of the authorization server.
    pub(crate) fn endpoint<'a>(
        &'a self,
        resolved: &'a ResolvedServer,
        client: Option<&'a Client>,
        dpop: Option<&'a DpopKey>,
    ) -> Result<Endpoint<'a>, Error> {
        Ok(Endpoint {
            now: self.config.now(),
            asker: &self.asker,
            nonces: self.nonces,
            issuer: &resolved.server.issuer,
            address: metadata::token_endpoint(&resolved.server)?,
            client,
            dpop,
        })
    }

    /// The key to bind tokens to, if the program, the resource or its challenge requires one.
    fn key(
        &self,
        resolved: &ResolvedServer,
        challenged: bool,
        stored: Option<&Stored>,
    ) -> Result<Option<DpopKey>, Error> {
        if !(self.config.dpop || resolved.dpop_required || challenged) {
            return Ok(None);
        }
        let takes = resolved
            .server
            .dpop_signing_alg_values_supported
            .as_ref()
            .is_some_and(|algs| algs.iter().any(|alg| alg == "ES256"));
        if !takes {
            let who = if self.config.dpop { "dpop(true) requires" } else { "the server requires" };
            return Err(Error::setup(format!(
                "{who} DPoP-bound tokens, but the authorization server {} does not declare support for ES256 \
                 (dpop_signing_alg_values_supported)",
                resolved.server.issuer
            )));
        }
        let old = stored.map_or(Ok(None), stored_key).unwrap_or_default();
        Ok(Some(old.unwrap_or_else(DpopKey::generate)))
    }
}

/// The state of an authorization request until its callback.
pub(crate) struct Request<'a> {
    pkce: Pkce,
    state: String,
    issuer: &'a str,
    sends_iss: bool,
    redirect_uri: &'a str,
}

impl<'a> Request<'a> {
    pub(crate) fn new(server: &'a Server, redirect_uri: &'a str) -> Request<'a> {
        let (issuer, sends_iss) = (server.issuer.as_str(), server.authorization_response_iss_parameter_supported);
        Request { pkce: Pkce::generate(), state: random_text(), issuer, sends_iss, redirect_uri }
    }

    /// Where the user's browser is sent, with these further parameters.
    pub(crate) fn address(
        &self,
        server: &Server,
        client: &Client,
        scopes: Option<&Scopes>,
        more: &[(&str, String)],
    ) -> Result<String, Error> {
        let Some(endpoint) = &server.authorization_endpoint else {
            let why =
                format!("the metadata of the authorization server {} names no authorization_endpoint", self.issuer);
            return Err(Error::discovery(why));
        };
        let mut url = address::parse("the authorization endpoint", endpoint)?;
        url.set_fragment(None);
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("response_type", "code");
            query.append_pair("client_id", &client.id);
            query.append_pair("redirect_uri", self.redirect_uri);
            query.append_pair("code_challenge", &self.pkce.challenge);
            query.append_pair("code_challenge_method", "S256");
            query.append_pair("state", &self.state);
            query.extend_pairs(more);
            if let Some(scopes) = scopes {
                query.append_pair("scope", &scopes.to_string());
                // OpenID Connect Core, section 11: otherwise the scope is ignored.
                if scopes.has(OFFLINE_ACCESS) {
                    query.append_pair("prompt", "consent");
                }
            }
        }
        Ok(url.into())
    }

    /// Sends the user there. Returns the token request with the code of the callback.
    pub(crate) async fn redeem(&self, login: &dyn Login, address: &str, wait: Duration) -> Result<Form, Error> {
        let callback = tokio::time::timeout(wait, login.authorize(address)).await;
        let callback = callback
            .map_err(|_| Error::login(format!("the login was not completed within {} s", wait.as_secs())))?
            .map_err(|e| Error::login(chain(&e)))?;
        let mut form = Form::new("authorization_code");
        form.add("code", self.check(&callback)?.expose());
        form.add("redirect_uri", self.redirect_uri);
        form.add("code_verifier", self.pkce.verifier.expose());
        Ok(form)
    }

    /// Takes the code out of the answer. What is not from whom it must be is not looked at any further: neither its code
    /// is sent anywhere, nor its error shown.
    fn check(&self, callback: &str) -> Result<Secret, Error> {
        if !address::same_place(callback, self.redirect_uri) {
            return Err(Error::login(format!(
                "the login callback does not match the redirect URI {} and is ignored: pass the last URL that the browser was \
                 redirected to",
                self.redirect_uri
            )));
        }
        let answer = callback_params(callback).map_err(|e| Error::login(e.to_string()))?;
        if answer.state.as_deref() != Some(self.state.as_str()) {
            return Err(Error::login("the login callback belongs to another login (state mismatch): log in again"));
        }
        match answer.iss.as_deref() {
            Some(iss) if iss != self.issuer => {
                return Err(Error::login(format!(
                    "the login callback is not from the authorization server {} (iss mismatch) and is ignored",
                    self.issuer
                )));
            }
            None if self.sends_iss => {
                return Err(Error::login(format!(
                    "the login callback has no iss, although the authorization server {} declares that it sends one; it is \
                     ignored",
                    self.issuer
                )));
            }
            _ => {}
        }
        if let Some(error) = answer.error {
            let why =
                answer.error_description.map_or(String::new(), |why| format!(": {}", quote(&why, &[&self.state])));
            return Err(Error::login(format!("the login was refused: {}{why}", quote(&error, &[&self.state]))));
        }
        answer.code.ok_or_else(|| Error::login("the login callback contains no code"))
    }
}

/// Checks that the server supports PKCE. Servers of the 2025-03-26 rules without metadata do not declare it.
fn check_pkce(resolved: &ResolvedServer) -> Result<(), Error> {
    let server = &resolved.server;
    let why = match &server.code_challenge_methods_supported {
        Some(methods) if methods.iter().any(|method| method == "S256") => return Ok(()),
        None if resolved.of_old => return Ok(()),
        Some(_) => "does not support PKCE with S256",
        None => "does not declare PKCE support (code_challenge_methods_supported is missing)",
    };
    Err(Error::discovery(format!("the authorization server {} {why}, which logging in requires", server.issuer)))
}

/// The redirect URI of a login.
pub(crate) async fn redirect_uri(login: &dyn Login) -> Result<String, Error> {
    let redirect_uri = login.redirect_uri().await.map_err(|e| Error::login(chain(&e)))?;
    check_redirect(&redirect_uri)?;
    Ok(redirect_uri)
}

/// Redirect URIs are on this machine or `https`.
fn check_redirect(redirect_uri: &str) -> Result<(), Error> {
    let url = Url::parse(redirect_uri).map_err(|e| Error::setup(format!("invalid redirect URI of the login: {e}")))?;
    if url.scheme() == "https" || (url.scheme() == "http" && address::is_loopback(&url)) {
        return Ok(());
    }
    Err(Error::setup("the login's redirect URI must be https, or http on this machine"))
}

fn granted(client: Option<Registered>, tokens: Tokens, dpop: Option<&DpopKey>, scopes: Option<Scopes>) -> Granted {
    let stored = Stored { client, tokens: Some(tokens), dpop_key: dpop.map(DpopKey::to_secret) };
    Granted { stored, asked: scopes.unwrap_or_default() }
}

/// The key that stored tokens are bound to.
pub(crate) fn stored_key(stored: &Stored) -> Result<Option<DpopKey>, Error> {
    let key = stored.dpop_key.as_ref().map(DpopKey::from_secret).transpose();
    key.map_err(|e| Error::new(crate::error::Kind::Store, format!("{e}; log in again")))
}

fn no_refresh() -> Error {
    Error::login("no refresh token: log in again")
}

/// An error with its context.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request<'a>(issuer: &'a str, sends_iss: bool) -> Request<'a> {
        let redirect_uri = "http://localhost/callback";
        Request { pkce: Pkce::generate(), state: "the-state".to_owned(), issuer, sends_iss, redirect_uri }
    }

    fn callback(pairs: &[(&str, Option<&str>)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs.iter().filter_map(|(name, value)| Some((name, (*value)?))));
        format!("http://localhost/callback?{}", query.finish())
    }

    proptest! {
        #[test]
        fn a_code_is_taken_exactly_when_state_and_issuer_are_right(
            code in prop::option::of("[!-~é]{1,20}"),
            state in prop::option::of(prop_oneof![Just("the-state".to_owned()), Just("the-state ".to_owned()), "[ -~]{0,12}"]),
            iss in prop::option::of(prop_oneof![
                Just("https://as.example".to_owned()), Just("https://as.example/".to_owned()),
                Just("https://AS.example".to_owned()), Just("https://as.example:443".to_owned()), "[ -~]{0,12}",
            ]),
            error in prop::option::of("[a-z_]{1,12}"),
            sends_iss in any::<bool>(),
        ) {
            let request = request("https://as.example", sends_iss);
            let url = callback(&[("code", code.as_deref()), ("state", state.as_deref()), ("iss", iss.as_deref()), ("error", error.as_deref())]);
            let from = iss.as_deref().map_or(!sends_iss, |iss| iss == "https://as.example");
            let good = from && state.as_deref() == Some("the-state") && error.is_none();
            let taken = request.check(&url).ok().map(|code| code.expose().to_owned());
            prop_assert_eq!(taken, code.filter(|_| good), "{}", url);
        }

        #[test]
        fn an_error_is_shown_only_when_it_is_from_whom_it_must_be(state in "[a-z-]{0,10}", iss in "[a-z:/.]{0,20}") {
            let url = callback(&[("error", Some("marked")), ("error_description", Some("marked")), ("state", Some(&state)), ("iss", Some(&iss))]);
            prop_assert!(!request("https://as.example", true).check(&url).unwrap_err().to_string().contains("marked"));
        }

        #[test]
        fn any_callback_is_read_without_panic(url in any::<String>()) {
            for url in [format!("http://localhost/callback?{url}"), url] {
                let _ = request("https://as.example", false).check(&url);
            }
        }
    }
}
