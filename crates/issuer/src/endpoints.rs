//! The endpoints that need no page: registration, revocation, introspection, keys, metadata.

use crate::answer::{Answer, Refused, json_answer};
use crate::audit::Entry;
use crate::authenticate::{authenticate, is_basic, json_body};
use crate::client::{Client, ClientAuth, hash, of_registration, registration};
use crate::device_grant;
use crate::dpop::PROOF_ALGS;
use crate::jwt_bearer;
use crate::limits::{FAILURES_PER_ADDRESS, REGISTERED_LIFE, REGISTERED_MAX, REGISTRATIONS, Rate, TOKENS_PER_ADDRESS};
use crate::records::Space;
use crate::request::Incoming;
use crate::shared::{Login, Shared};
use crate::token::end;
use crate::tokens::{self, Found};
use http::StatusCode;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use linchpin_oauth::{Alg, AuthorizationServerMetadata, Claims, Jws, OFFLINE_ACCESS, Secret, random_id, random_text};
use serde_json::{Value, json};

/// Registers a client (RFC 7591).
pub(crate) async fn register(shared: &Shared, incoming: &Incoming) -> Answer {
    let refused = |description| Refused::new("invalid_client_metadata", description).answer(false);
    if let Err(after) = shared.records.take(REGISTRATIONS, &incoming.address()).await {
        return Refused::too_many(after).answer(false);
    }
    let Some(request) = json_body(incoming) else { return refused("the body must be a JSON object") };
    let (id, secret) = (format!("c-{}", random_id()), Secret::new(random_text()));
    let client = match of_registration(&id, &request, &shared.config.schemes, &secret) {
        Ok(client) => client,
        Err(why) if why.contains("redirect") => return Refused::new("invalid_redirect_uri", why).answer(false),
        Err(why) => return refused(why),
    };
    // As many as are kept may come in the time that they are kept.
    let all = Rate { name: "registrations-all", count: REGISTERED_MAX as u32, window: REGISTERED_LIFE };
    if let Err(after) = shared.records.take(all, "all").await {
        return Refused { after: Some(after), ..Refused::away() }.answer(false);
    }
    match shared.records.create(Space::Client, &hash(&id), &client, REGISTERED_LIFE).await {
        Ok(_) => {
            Entry { client: &id, item: &client.name, ..Entry::new("register", "accepted", incoming.from) }.write();
            json_answer(StatusCode::CREATED, &registration(&client, &request, &secret, shared.now()))
        }
        Err(away) => Refused::from(away).answer(false),
    }
}

/// Revokes a token (RFC 7009). A token that is unknown, or another client's, is not an error.
pub(crate) async fn revoke(shared: &Shared, incoming: &Incoming) -> Answer {
    match revoked(shared, incoming).await {
        Ok(()) => json_answer(StatusCode::OK, &json!({})),
        Err(refused) => failed(shared, incoming, &refused).await,
    }
}

async fn revoked(shared: &Shared, incoming: &Incoming) -> Result<(), Refused> {
    let (client, token) = asked(shared, incoming).await?;
    let done = || {
        let entry = Entry::new("revoke", "done", incoming.from);
        Entry { client: &client.id, token: &token, ..entry }.write();
    };
    let name = match tokens::find(shared, &token, &client.id).await? {
        Found::Current(..) | Found::Again(..) | Found::Reused => tokens::family_of(&token).map(str::to_owned),
        Found::Unknown => match own_claims(shared, &token).await? {
            Some(claims) if claims.text("client_id") == Some(&client.id) => {
                let text = |name| claims.text(name).unwrap_or_default();
                let name = tokens::by_mark(&shared.records, text("sub"), &client.id, text("family")).await?;
                if name.is_none() && claims.text("family").is_some() {
                    // Nobody's: the client acts for itself.
                    tokens::end_mark(shared, text("family").to_owned()).await?;
                    done();
                }
                name
            }
            _ => None,
        },
    };
    if let Some(name) = name {
        end(shared, &name).await?;
        done();
    }
    Ok(())
}

/// Says what a token is (RFC 7662): to confidential clients only.
pub(crate) async fn introspect(shared: &Shared, incoming: &Incoming) -> Answer {
    let found = async {
        let (client, token) = asked(shared, incoming).await?;
        if client.auth == ClientAuth::None {
            return Err(Refused::new("invalid_client", "a public client may not introspect"));
        }
        own_claims(shared, &token).await
    };
    match found.await {
        Ok(Some(claims)) => {
            let mut answer = Value::Object(claims.as_map().clone());
            let kind = if claims.get("cnf").is_some() { "DPoP" } else { "Bearer" };
            (answer["active"], answer["token_type"]) = (json!(true), json!(kind));
            json_answer(StatusCode::OK, &answer)
        }
        Ok(None) => json_answer(StatusCode::OK, &json!({ "active": false })),
        Err(refused) => failed(shared, incoming, &refused).await,
    }
}

/// The client and token of a request to revoke or introspect.
async fn asked(shared: &Shared, incoming: &Incoming) -> Result<(Client, String), Refused> {
    if let Err(after) = shared.records.take(TOKENS_PER_ADDRESS, &incoming.address()).await {
        return Err(Refused::too_many(after));
    }
    let form = incoming.form().map_err(|why| Refused::new("invalid_request", why.0))?;
    let client = authenticate(shared, incoming, &form).await?;
    let token = form.get("token").ok_or(Refused::new("invalid_request", "token is missing"))?;
    Ok((client, token.to_owned()))
}

async fn failed(shared: &Shared, incoming: &Incoming, refused: &Refused) -> Answer {
    match shared.records.take(FAILURES_PER_ADDRESS, &incoming.address()).await {
        Err(after) if refused.error == "invalid_client" => Refused::too_many(after).answer(false),
        _ => refused.answer(is_basic(incoming)),
    }
}

/// The claims of an access token of ours that is good now.
async fn own_claims(shared: &Shared, token: &str) -> Result<Option<Claims>, Refused> {
    let Ok(jws) = Jws::read(token) else { return Ok(None) };
    let now = shared.now();
    let ring = shared.keys.ring(&shared.records, now).await?;
    shared.revoked.ready(&shared.records).await?;
    let claims = ring.set().fitting(&jws).find_map(|key| jws.verify(key).ok());
    let good = |claims: &&Claims| {
        claims.text("iss") == Some(&shared.config.issuer)
            && claims.check_times(now, 0).is_ok()
            && claims.text("family").is_none_or(|family| !shared.revoked.has(family))
    };
    Ok(claims.filter(good).cloned())
}

/// The public keys.
pub(crate) async fn jwks(shared: &Shared) -> Answer {
    match shared.keys.ring(&shared.records, shared.now()).await {
        Ok(ring) => document(&ring.set().to_value(), "max-age=300"),
        Err(away) => Refused::from(away).answer(false),
    }
}

/// The metadata (RFC 8414).
pub(crate) fn metadata(shared: &Shared) -> Answer {
    let config = &shared.config;
    let list = |items: &[&str]| Some(items.iter().map(|item| (*item).to_owned()).collect());
    let mut grants = vec!["client_credentials"];
    let persons = !matches!(config.login, Login::Nobody);
    if persons {
        grants.splice(0..0, ["authorization_code", "refresh_token"]);
    }
    if !config.enterprises.is_empty() || !config.workloads.is_empty() {
        grants.push(jwt_bearer::GRANT);
    }
    let device = persons && config.device;
    if device {
        grants.push(device_grant::GRANT);
    }
    let scopes = config.scopes.iter().map(|(scope, _)| scope.as_str()).chain([OFFLINE_ACCESS]);
    let methods: &[&str] = &["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
    let metadata = AuthorizationServerMetadata::new(&config.issuer).with(|it| {
        it.authorization_endpoint = Some(shared.url("authorize"));
        it.token_endpoint = Some(shared.url("token"));
        it.registration_endpoint = (persons && config.registration).then(|| shared.url("register"));
        it.revocation_endpoint = Some(shared.url("revoke"));
        it.introspection_endpoint = Some(shared.url("introspect"));
        it.device_authorization_endpoint = device.then(|| shared.url("device_authorization"));
        it.authorization_grant_profiles_supported =
            (!config.enterprises.is_empty()).then(|| vec![jwt_bearer::ID_JAG_PROFILE.to_owned()]);
        it.jwks_uri = Some(shared.url("jwks.json"));
        it.scopes_supported = Some(scopes.collect());
        it.response_types_supported = list(&["code"]);
        it.grant_types_supported = list(&grants);
        it.code_challenge_methods_supported = list(&["S256"]);
        it.token_endpoint_auth_methods_supported = list(methods);
        it.token_endpoint_auth_signing_alg_values_supported =
            Some(Alg::ALL.iter().map(|alg| alg.name().to_owned()).collect());
        it.introspection_endpoint_auth_methods_supported = list(&methods[1..]);
        it.dpop_signing_alg_values_supported = list(&PROOF_ALGS);
        it.protected_resources = Some(config.resources.iter().chain(&config.also_at).cloned().collect());
        it.client_id_metadata_document_supported = true;
        it.authorization_response_iss_parameter_supported = true;
    });
    document(&serde_json::to_value(metadata).unwrap_or_default(), "max-age=3600")
}

/// A document for everybody.
fn document(value: &Value, fresh: &'static str) -> Answer {
    let mut answer = Response::new(bytes::Bytes::from(value.to_string()));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(fresh));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    answer
}
