//! A world for the flow, as data: an MCP server, authorization servers and a user, without a socket or a clock.
//!
//! Everything that happens becomes a line of the log, so that a test says in a few lines what must happen and what must
//! not.

#![allow(dead_code, reason = "every test file uses its own part of this")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use linchpin_auth::login::{Login, LoginError};
use linchpin_auth::{Fetch, OAuth};
use linchpin_core::connector::Authorizer;
use linchpin_core::service::BoxFuture;
use linchpin_web::Reach;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The address of the MCP server of most tests.
pub(crate) const MCP: &str = "https://mcp.example/mcp";
/// The issuer of most tests.
pub(crate) const AS: &str = "https://as.example";

/// What the servers say, and what has happened. Clones share everything.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) set: Mutex<Settings>,
    log: Mutex<Vec<String>>,
    tokens: Mutex<HashMap<String, Issued>>,
    logins: Mutex<Vec<HashMap<String, String>>>,
    pub(crate) counter: AtomicU32,
    pub(crate) clock: AtomicU64,
}

/// Scopes and key thumbprint of a token.
type Issued = (Vec<String>, Option<String>);

/// The settings of a world. Everything may be changed in the middle.
pub(crate) struct Settings {
    /// Documents by address. What is not here is a 404.
    pub(crate) documents: HashMap<String, Value>,
    /// Statuses by address, before anything else.
    pub(crate) statuses: HashMap<String, u16>,
    /// Redirects of GET requests.
    pub(crate) redirects: HashMap<String, String>,
    /// `WWW-Authenticate` of the 401.
    pub(crate) challenge: String,
    /// What the user's browser comes back with: `{state}`, `{code}` and `{iss}` are replaced.
    pub(crate) callback: String,
    /// What registrations answer beside client_id.
    pub(crate) registration: Value,
    /// Members of token answers beside the token itself.
    pub(crate) tokens: Value,
    /// An error of the token endpoint, as long as it is there: grant type, status, code.
    pub(crate) token_error: Option<(&'static str, u16, &'static str)>,
    /// Scopes an MCP request needs, and what is said about that.
    pub(crate) needs: fn(&str) -> &'static str,
    /// Nonces that the authorization server and the MCP server want; `never-enough` is wanted even when it is there.
    pub(crate) nonces: Option<(&'static str, &'static str)>,
    /// Tokens with this beginning are not accepted by the MCP server.
    pub(crate) rejected: Vec<&'static str>,
    /// Tokens have no scopes, whatever was asked for.
    pub(crate) stingy: bool,
    /// A gap before the token endpoint answers, so that others come in between.
    pub(crate) slow: bool,
}

impl World {
    /// An MCP server whose protected-resource metadata is below its path, and an authorization server at a root.
    pub(crate) fn new() -> World {
        let documents = HashMap::from([
            (
                "https://mcp.example/.well-known/oauth-protected-resource/mcp".to_owned(),
                json!({"resource": MCP, "authorization_servers": [AS]}),
            ),
            ("https://as.example/.well-known/oauth-authorization-server".to_owned(), server(AS)),
        ]);
        let set = Settings {
            documents,
            statuses: HashMap::new(),
            redirects: HashMap::new(),
            challenge: "Bearer".to_owned(),
            callback: "http://localhost:3000/callback?code={code}&state={state}".to_owned(),
            registration: json!({}),
            tokens: json!({"token_type": "Bearer", "expires_in": 3600}),
            token_error: None,
            needs: |_| "",
            nonces: None,
            rejected: Vec::new(),
            stingy: false,
            slow: false,
        };
        let inner = Inner {
            set: Mutex::new(set),
            log: Mutex::default(),
            tokens: Mutex::default(),
            logins: Mutex::default(),
            counter: AtomicU32::new(0),
            clock: AtomicU64::new(1_000_000),
        };
        World { inner: Arc::new(inner) }
    }

    pub(crate) fn set<T>(&self, change: impl FnOnce(&mut Settings) -> T) {
        change(&mut self.inner.set.lock().unwrap());
    }

    /// Changes members of a document.
    pub(crate) fn merge(&self, address: &str, members: Value) {
        self.set(|set| {
            let document = set.documents.entry(address.to_owned()).or_insert(json!({}));
            for (name, value) in members.as_object().unwrap() {
                document[name] = value.clone();
            }
        });
    }

    pub(crate) fn merge_server(&self, members: Value) {
        self.merge("https://as.example/.well-known/oauth-authorization-server", members);
    }

    pub(crate) fn merge_resource(&self, members: Value) {
        self.merge("https://mcp.example/.well-known/oauth-protected-resource/mcp", members);
    }

    /// Authorization in this world, with a user.
    pub(crate) fn oauth(&self) -> OAuth {
        self.oauth_without_login().login(Person(self.clone()))
    }

    pub(crate) fn oauth_without_login(&self) -> OAuth {
        let world = self.clone();
        let clock = move || world.inner.clock.load(Ordering::Relaxed);
        OAuth::new().fetch(self.clone()).clock(clock)
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.inner.clock.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) fn say(&self, line: impl Into<String>) {
        self.inner.log.lock().unwrap().push(line.into());
    }

    /// Everything that has happened since the last time.
    pub(crate) fn log(&self) -> String {
        std::mem::take(&mut *self.inner.log.lock().unwrap()).join("\n")
    }

    /// Sends a request to the MCP server as a transport does.
    pub(crate) async fn call(&self, oauth: &OAuth, what: &str) -> Result<u16, String> {
        self.call_at(oauth, MCP, what).await
    }

    pub(crate) async fn call_at(&self, oauth: &OAuth, address: &str, what: &str) -> Result<u16, String> {
        for _ in 0..5 {
            let mut head = Request::builder().method("POST").uri(address).body(()).unwrap().into_parts().0;
            oauth.authorize(&mut head).await.map_err(|e| e.to_string())?;
            let (status, headers) = self.serve(&head, what);
            if !oauth.answered(&head, status, &headers).await.map_err(|e| e.to_string())? {
                return Ok(status.as_u16());
            }
        }
        Err("sent too often".to_owned())
    }

    fn serve(&self, head: &Parts, what: &str) -> (StatusCode, HeaderMap) {
        let set = self.inner.set.lock().unwrap();
        let mut headers = HeaderMap::new();
        let authorization = head.headers.get(AUTHORIZATION).map(|value| {
            assert!(value.is_sensitive(), "credentials must be marked");
            value.to_str().unwrap().to_owned()
        });
        let (scheme, token) = authorization.as_deref().and_then(|a| a.split_once(' ')).unwrap_or(("-", ""));
        let known = self.inner.tokens.lock().unwrap().get(token).cloned();
        let rejected = set.rejected.iter().any(|prefix| token.starts_with(prefix));
        let challenge = |headers: &mut HeaderMap, text: &str| {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap());
        };
        let mut status = StatusCode::OK;
        match known.filter(|_| !rejected) {
            None => {
                status = StatusCode::UNAUTHORIZED;
                if !set.challenge.is_empty() {
                    challenge(&mut headers, &set.challenge);
                }
            }
            Some((scopes, thumbprint)) => {
                let needed = (set.needs)(what);
                if !needed.split(' ').all(|need| need.is_empty() || scopes.iter().any(|scope| scope == need)) {
                    status = StatusCode::FORBIDDEN;
                    challenge(&mut headers, &format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\""));
                }
                if let Some(thumbprint) = thumbprint {
                    assert_eq!(scheme, "DPoP");
                    let proof = head.headers.get("dpop").expect("a proof").to_str().unwrap();
                    let (claims, key) = open_proof(proof, head.method.as_str(), &head.uri.to_string());
                    assert_eq!(key, thumbprint, "the key of the token");
                    assert_eq!(claims["ath"], json!(URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes()))));
                    if let Some((_, nonce)) =
                        set.nonces.filter(|(_, nonce)| *nonce == "never-enough" || claims["nonce"] != json!(nonce))
                    {
                        status = StatusCode::UNAUTHORIZED;
                        challenge(&mut headers, "DPoP error=\"use_dpop_nonce\"");
                        headers.insert("dpop-nonce", HeaderValue::from_static(nonce));
                    }
                }
            }
        }
        drop(set);
        let with = if token.is_empty() { String::new() } else { format!(" {scheme} {token}") };
        self.say(format!("MCP {what}{with}: {}", status.as_u16()));
        (status, headers)
    }

    fn answer(&self, request: &Request<Bytes>, reach: Reach) -> Response<Bytes> {
        let address = request.uri().to_string();
        let set = self.inner.set.lock().unwrap();
        let reply = |status: u16, body: Value| {
            let answer = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
            answer.body(Bytes::from(body.to_string())).unwrap()
        };
        if request.method() == Method::GET {
            self.say(format!("GET {address}"));
            let own = address.starts_with("https://mcp.example/");
            assert_eq!(reach == Reach::Any, own, "only the server's own origin may be anywhere: {address}");
            assert!(!request.headers().contains_key(AUTHORIZATION), "metadata is asked for without credentials");
            if let Some(to) = set.redirects.get(&address) {
                return Response::builder().status(302).header(LOCATION, to).body(Bytes::new()).unwrap();
            }
            let status = set.statuses.get(&address).copied();
            return match set.documents.get(&address) {
                Some(document) => reply(status.unwrap_or(200), document.clone()),
                None => reply(status.unwrap_or(404), json!("nothing here")),
            };
        }
        if let Some(status) = set.statuses.get(&address) {
            self.say(format!("POST {address}: {status}"));
            return reply(*status, json!({}));
        }
        if address.ends_with("/register") {
            return self.register(&address, &set, request.body(), &reply);
        }
        if address == MCP {
            self.say("POST MCP without a token");
            let answer = Response::builder().status(401).header(WWW_AUTHENTICATE, &set.challenge);
            return answer.body(Bytes::new()).unwrap();
        }
        if address.ends_with("/revoke") {
            let form = form(request.body());
            self.say(format!("POST {address} {} {}", form["token_type_hint"], form["token"]));
            return Response::new(Bytes::new());
        }
        self.give(&address, &set, request, &reply)
    }

    fn register(
        &self,
        address: &str,
        set: &Settings,
        body: &Bytes,
        reply: &dyn Fn(u16, Value) -> Response<Bytes>,
    ) -> Response<Bytes> {
        let asked: Value = serde_json::from_slice(body).unwrap();
        let text = |name: &str| asked.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
        assert_eq!(asked["grant_types"], json!(["authorization_code", "refresh_token"]));
        self.say(format!(
            "POST {address} {} {} scope={}",
            text("application_type"),
            text("token_endpoint_auth_method"),
            text("scope")
        ));
        if let Some(error) = set.registration.get("error") {
            return reply(400, json!({"error": error, "error_description": "not like this"}));
        }
        let number = self.inner.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let mut answer = json!({"client_id": format!("client-{number}"), "redirect_uris": asked["redirect_uris"]});
        for (name, value) in set.registration.as_object().unwrap() {
            answer[name] = value.clone();
        }
        reply(201, answer)
    }

    fn give(
        &self,
        address: &str,
        set: &Settings,
        request: &Request<Bytes>,
        reply: &dyn Fn(u16, Value) -> Response<Bytes>,
    ) -> Response<Bytes> {
        let form = form(request.body());
        let get = |name: &str| form.get(name).map_or("-", String::as_str);
        let client = match request.headers().get(AUTHORIZATION) {
            Some(value) => {
                let encoded = value.to_str().unwrap().strip_prefix("Basic ").expect("Basic");
                format!("basic({})", String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap())
            }
            None if form.contains_key("client_assertion") => {
                let claims = claims(get("client_assertion"));
                assert_eq!(claims["iss"], claims["sub"]);
                format!("jwt({} for {})", claims["iss"].as_str().unwrap(), claims["aud"].as_str().unwrap())
            }
            None if form.contains_key("client_secret") => {
                format!("post({}:{})", get("client_id"), get("client_secret"))
            }
            None => get("client_id").to_owned(),
        };
        let short = get("grant_type").rsplit(':').next().unwrap();
        let mut line = format!("POST {address} {short} {client}");
        for name in ["resource", "scope", "refresh_token", "assertion", "audience", "subject_token"] {
            if let Some(value) = form.get(name) {
                line += &format!(" {name}={value}");
            }
        }
        self.say(line.replace(" resource=https://mcp.example/mcp", " resource=MCP"));
        if let Some((_, status, code)) = set.token_error.filter(|(grant, ..)| *grant == short) {
            let echoed = format!("this did not work: {}", String::from_utf8_lossy(request.body()));
            return reply(status, json!({"error": code, "error_description": echoed}));
        }
        let mut thumbprint = None;
        if let Some(proof) = request.headers().get("dpop") {
            let (claims, key) = open_proof(proof.to_str().unwrap(), "POST", address);
            if let Some((nonce, _)) = set.nonces.filter(|(nonce, _)| claims["nonce"] != json!(nonce)) {
                let mut answer = reply(400, json!({"error": "use_dpop_nonce"}));
                answer.headers_mut().insert("dpop-nonce", HeaderValue::from_static(nonce));
                return answer;
            }
            thumbprint = Some(key);
        }
        if short == "token-exchange" {
            let kind = "urn:ietf:params:oauth:token-type:id-jag";
            assert_eq!(get("requested_token_type"), kind);
            return reply(200, json!({"access_token": "the-id-jag", "issued_token_type": kind, "token_type": "N_A"}));
        }
        let mut scope = get("scope").to_owned();
        if short == "authorization_code" {
            let logins = self.inner.logins.lock().unwrap();
            let login = logins.last().unwrap();
            let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, get("code_verifier").as_bytes()));
            assert_eq!(login["code_challenge"], challenge);
            assert_eq!(login["redirect_uri"], get("redirect_uri"));
            assert_eq!(login["resource"], get("resource"));
            assert_eq!(login.get("dpop_jkt"), thumbprint.as_ref(), "the key of the authorization request");
            scope = login.get("scope").cloned().unwrap_or_default();
        }
        let number = self.inner.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let token = format!("token-{number}");
        let scopes = if set.stingy { Vec::new() } else { scope.split(' ').map(str::to_owned).collect() };
        self.inner.tokens.lock().unwrap().insert(token.clone(), (scopes, thumbprint));
        let mut answer = json!({"access_token": token});
        for (name, value) in set.tokens.as_object().unwrap() {
            answer[name] = match value {
                Value::String(text) => json!(text.replace("{n}", &number.to_string())),
                other => other.clone(),
            };
        }
        reply(200, answer)
    }
}

impl Fetch for World {
    fn fetch(
        &self,
        request: Request<Bytes>,
        reach: Reach,
        _max: usize,
    ) -> BoxFuture<'_, Result<Response<Bytes>, String>> {
        let slow = self.inner.set.lock().unwrap().slow;
        Box::pin(async move {
            if slow {
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
            }
            if request.uri().host() == Some("down.example") {
                self.say(format!("{} {} is down", request.method(), request.uri()));
                return Err("nobody listens there".to_owned());
            }
            Ok(self.answer(&request, reach))
        })
    }
}

/// Logs in at once, in the way the world's `callback` says.
pub(crate) struct Person(pub(crate) World);

impl Login for Person {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(std::future::ready(Ok("http://localhost:3000/callback".to_owned())))
    }

    fn authorize(&self, url: &str) -> BoxFuture<'_, Result<String, LoginError>> {
        let (address, query) = url.split_once('?').unwrap();
        let query: HashMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        assert_eq!(query["response_type"], "code");
        assert_eq!(query["code_challenge_method"], "S256");
        assert_eq!(query["redirect_uri"], "http://localhost:3000/callback");
        let get = |name: &str| query.get(name).map_or("-", String::as_str);
        let line = format!("LOGIN {address} {} resource={} scope={}", get("client_id"), get("resource"), get("scope"));
        self.0.say(line.replace("=https://mcp.example/mcp", "=MCP"));
        let iss = address.rsplit_once('/').unwrap().0.to_owned();
        let template = self.0.inner.set.lock().unwrap().callback.clone();
        let callback = template.replace("{state}", get("state")).replace("{code}", "the-code").replace("{iss}", &iss);
        self.0.inner.logins.lock().unwrap().push(query);
        let world = self.0.clone();
        Box::pin(async move {
            if world.inner.set.lock().unwrap().slow {
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
            }
            Ok(callback)
        })
    }
}

/// Metadata of an authorization server that registers clients and takes public ones.
pub(crate) fn server(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    })
}

fn form(body: &Bytes) -> HashMap<String, String> {
    let pairs: Vec<(String, String)> = form_urlencoded::parse(body).into_owned().collect();
    let form: HashMap<String, String> = pairs.iter().cloned().collect();
    assert_eq!(form.len(), pairs.len(), "no parameter twice");
    form
}

fn claims(jwt: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1).unwrap()).unwrap()).unwrap()
}

/// The claims of a proof and the thumbprint of its key.
fn open_proof(proof: &str, method: &str, address: &str) -> (Value, String) {
    let header: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(proof.split('.').next().unwrap()).unwrap()).unwrap();
    let claims = claims(proof);
    assert_eq!(header["typ"], "dpop+jwt");
    assert_eq!((&claims["htm"], &claims["htu"]), (&json!(method), &json!(address)));
    let jwk = &header["jwk"];
    assert!(jwk.get("d").is_none(), "only the public half");
    let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#, jwk["x"], jwk["y"]);
    (claims, URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes())))
}
