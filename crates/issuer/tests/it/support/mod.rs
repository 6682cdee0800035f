//! A headless person, who follows redirects and fills in forms, and the clients that send them.

pub(crate) mod flaky;
pub(crate) mod provider;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use http::{HeaderMap, Method, Request, StatusCode};
use linchpin_core::Principal;
use linchpin_core::gate::{Admit, Gate as _, Refusal};
use linchpin_issuer::Issuer;
use linchpin_oauth::Pkce;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use url::Url;

/// Where the issuer of the tests is.
pub(crate) const ISSUER: &str = "https://mcp.example";
/// What it protects.
pub(crate) const RESOURCE: &str = "https://mcp.example/mcp";
/// Where the client of the tests waits.
pub(crate) const REDIRECT: &str = "http://127.0.0.1:7777/cb";

/// A response of the issuer.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    /// Where a redirect or a page that goes on leads.
    pub(crate) fn next(&self) -> Option<String> {
        if let Some(to) = self.headers.get(LOCATION) {
            return Some(to.to_str().unwrap().to_owned());
        }
        let (_, rest) = self.body.split_once("content=\"0; url=")?;
        Some(unescape(rest.split_once('"')?.0))
    }

    /// A hidden value of the page's form.
    pub(crate) fn hidden(&self, name: &str) -> String {
        let mark = format!("type=\"hidden\" name=\"{name}\" value=\"");
        let (_, rest) = self.body.split_once(&mark).unwrap_or_else(|| panic!("no {name} in {self:?}"));
        unescape(rest.split_once('"').unwrap().0)
    }
}

fn unescape(text: &str) -> String {
    text.replace("&amp;", "&").replace("&quot;", "\"").replace("&lt;", "<")
}

/// A browser with its cookies, at an address.
pub(crate) struct Browser<'a> {
    pub(crate) issuer: &'a Issuer,
    pub(crate) cookies: BTreeMap<String, String>,
    pub(crate) origin: Option<String>,
    pub(crate) from: SocketAddr,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(issuer: &'a Issuer) -> Browser<'a> {
        let origin = Url::parse(issuer.url()).unwrap().origin().ascii_serialization();
        Browser {
            issuer,
            cookies: BTreeMap::new(),
            origin: Some(origin),
            from: SocketAddr::from(([192, 0, 2, 1], 4000)),
        }
    }

    pub(crate) async fn get(&mut self, url: &str) -> Got {
        self.ask(Method::GET, url, HeaderMap::new(), String::new()).await
    }

    pub(crate) async fn post(&mut self, url: &str, form: &[(&str, &str)]) -> Got {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "application/x-www-form-urlencoded".parse().unwrap());
        if let Some(origin) = &self.origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        self.ask(Method::POST, url, headers, encode(form)).await
    }

    async fn ask(&mut self, method: Method, url: &str, mut headers: HeaderMap, body: String) -> Got {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            headers.insert(COOKIE, cookies.join("; ").parse().unwrap());
        }
        let got = ask(self.issuer, method, url, headers, body, self.from).await;
        for line in got.headers.get_all(SET_COOKIE) {
            let line = line.to_str().unwrap();
            assert!(line.contains("HttpOnly") && line.contains("SameSite=Lax"), "{line}");
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        got
    }

    /// Follows redirects as long as they stay at the issuer.
    pub(crate) async fn follow(&mut self, url: &str) -> Got {
        let mut got = self.get(url).await;
        while let Some(next) = got.next().filter(|next| next.starts_with(&format!("{}/", self.issuer.url()))) {
            got = self.get(&next).await;
        }
        got
    }

    /// Answers the question on a page.
    pub(crate) async fn answer(&mut self, page: &Got, answer: &str, code: &str) -> Got {
        let (t, f) = (page.hidden("t"), page.hidden("f"));
        let url = format!("{}/consent", self.issuer.url());
        self.post(&url, &[("t", &t), ("f", &f), ("code", code), ("answer", answer)]).await
    }

    /// Fills in the login form on a page.
    pub(crate) async fn sign_in(&mut self, page: &Got, name: &str, password: &str) -> Got {
        let (t, f) = (page.hidden("t"), page.hidden("f"));
        let url = format!("{}/login", self.issuer.url());
        self.post(&url, &[("t", &t), ("f", &f), ("name", name), ("password", password)]).await
    }
}

/// Sends a request to a page of the issuer.
pub(crate) async fn ask(
    issuer: &Issuer,
    method: Method,
    url: &str,
    headers: HeaderMap,
    body: String,
    from: SocketAddr,
) -> Got {
    let parsed = Url::parse(url).unwrap_or_else(|_| panic!("{url}"));
    let Some(page) = issuer.page(parsed.path()) else {
        return Got { status: StatusCode::NOT_FOUND, headers: HeaderMap::new(), body: String::new() };
    };
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = parsed[url::Position::BeforePath..url::Position::AfterQuery].parse().unwrap();
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, "mcp.example".parse().unwrap());
    request.extensions_mut().insert(from);
    let (parts, body) = page.respond(request).await.into_parts();
    let body = String::from_utf8(body.to_vec()).unwrap();
    if parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.to_str().unwrap().starts_with("text/html")) {
        check_page(&parts.headers, &body);
    }
    Got { status: parts.status, headers: parts.headers, body }
}

/// What holds for every page.
fn check_page(headers: &HeaderMap, body: &str) {
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"), "{policy}");
    assert_eq!(headers["x-frame-options"], "DENY");
    assert_eq!(headers["cache-control"], "no-store");
    assert!(!body.to_ascii_lowercase().contains("<script"), "{body}");
}

/// Sends a form to an endpoint for programs.
pub(crate) async fn post(issuer: &Issuer, endpoint: &str, basic: Option<(&str, &str)>, form: &[(&str, &str)]) -> Got {
    use base64::Engine as _;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, "application/x-www-form-urlencoded".parse().unwrap());
    if let Some((id, secret)) = basic {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
        headers.insert(AUTHORIZATION, format!("Basic {pair}").parse().unwrap());
    }
    let from = SocketAddr::from(([192, 0, 2, 2], 4000));
    ask(issuer, Method::POST, &format!("{}/{endpoint}", issuer.url()), headers, encode(form), from).await
}

/// Sends JSON to an endpoint for programs.
pub(crate) async fn post_json(issuer: &Issuer, endpoint: &str, body: &Value, from: SocketAddr) -> Got {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, "application/json".parse().unwrap())]);
    ask(issuer, Method::POST, &format!("{}/{endpoint}", issuer.url()), headers, body.to_string(), from).await
}

pub(crate) fn encode(form: &[(&str, &str)]) -> String {
    let mut url = Url::parse("x:/").unwrap();
    url.query_pairs_mut().extend_pairs(form);
    url.query().unwrap_or_default().to_owned()
}

/// A login of a client: what it asks, and how the answer is redeemed.
pub(crate) struct Login {
    pub(crate) pkce: Pkce,
    pub(crate) client: String,
    pub(crate) params: Vec<(String, String)>,
}

impl Login {
    pub(crate) fn new(client: &str) -> Login {
        let pkce = Pkce::generate();
        let params = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("state", "s t&1"),
            ("code_challenge", &pkce.challenge),
            ("code_challenge_method", "S256"),
            ("resource", RESOURCE),
            ("scope", "files:read"),
        ];
        let params = params.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Login { pkce, client: client.to_owned(), params }
    }

    /// Replaces a parameter, or removes it.
    pub(crate) fn set(mut self, name: &str, value: Option<&str>) -> Login {
        self.params.retain(|(known, _)| known != name);
        self.params.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        self
    }

    pub(crate) fn url(&self, issuer: &Issuer) -> String {
        let params: Vec<(&str, &str)> = self.params.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        format!("{}/authorize?{}", issuer.url(), encode(&params))
    }

    /// Redeems a code.
    pub(crate) async fn redeem(&self, issuer: &Issuer, code: &str) -> Got {
        self.redeem_with(issuer, code, &[]).await
    }

    /// Redeems a code with other or more parameters.
    pub(crate) async fn redeem_with(&self, issuer: &Issuer, code: &str, other: &[(&str, &str)]) -> Got {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("client_id", &self.client),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", self.pkce.verifier.expose()),
            ("resource", RESOURCE),
        ];
        form.retain(|(name, _)| other.iter().all(|(known, _)| known != name));
        form.extend(other.iter().filter(|(_, value)| !value.is_empty()));
        post(issuer, "token", None, &form).await
    }
}

/// The parameters of the address that the client is sent.
pub(crate) fn answer_of(got: &Got) -> BTreeMap<String, String> {
    let next = got.next().unwrap_or_else(|| panic!("the client gets no answer: {got:?}"));
    assert!(next.starts_with(REDIRECT) || next.starts_with("http://127.0.0.1"), "{next}");
    Url::parse(&next).unwrap().query_pairs().into_owned().collect()
}

/// Refreshes.
pub(crate) async fn refresh(issuer: &Issuer, client: &str, token: &str, more: &[(&str, &str)]) -> Got {
    let mut form = vec![("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
    form.extend_from_slice(more);
    post(issuer, "token", None, &form).await
}

/// Asks the gate about a request to a path.
pub(crate) async fn enter(issuer: &Issuer, path: &str, token: Option<&str>) -> Result<Principal, Refusal> {
    let mut request = Request::new(());
    *request.uri_mut() = path.parse().unwrap();
    if let Some(token) = token {
        request.headers_mut().insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    }
    match issuer.admit(&request.into_parts().0, None) {
        Admit::Yes(principal) => Ok(principal),
        Admit::No(refusal) => Err(refusal),
        Admit::Later(decision) => decision.await,
        Admit::Open => panic!("the gate is open"),
    }
}

pub(crate) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}
