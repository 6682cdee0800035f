//! `linchpin auth check`: walks discovery as a client would, and says what is wrong.

use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::out::{Out, count};
use clap::Args;
use linchpin::auth::Challenge;
use linchpin::guard::JwkSet;
use linchpin::transport::web::{Web, WebOptions};
use serde_json::Value;
use std::io;

/// The longest document that is read.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The server's URL.
    url: String,
}

/// What was found, in the order of a login.
struct Findings {
    out: Out,
    problems: usize,
}

impl Findings {
    fn good(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        let mark = self.out.style.good("ok");
        self.out.line(format!("{mark}       {}", text.as_ref()))
    }

    fn warn(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        let mark = self.out.style.warn("note");
        self.out.line(format!("{mark}     {}", text.as_ref()))
    }

    fn bad(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        self.problems += 1;
        let mark = self.out.style.bad("problem");
        self.out.line(format!("{mark}  {}", text.as_ref()))
    }
}

pub(super) async fn run(args: &CheckArgs) -> Result<(), Failure> {
    let web = Web::new(WebOptions::default().with(|options| {
        options.request_ms_max = Some(15_000);
        options.body_bytes_max = Some(DOCUMENT_BYTES_MAX);
    }));
    let mut found = Findings { out: Out::new(), problems: 0 };
    let issuers = resource(&web, &args.url, &mut found).await?;
    for issuer in issuers {
        authorization_server(&web, &issuer, &mut found).await?;
    }
    let problems = found.problems;
    found.out.flush()?;
    if problems == 0 { Ok(()) } else { Err(Failure::silent(Exit::Failed)) }
}

/// Whether a URL is below a resource: of the same origin, and in its path.
fn is_below(url: &str, resource: &str) -> bool {
    let rest = url.strip_prefix(resource.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.starts_with(['/', '?']))
}

/// Looks at the server and its metadata; returns the authorization servers that it names.
async fn resource(web: &Web, url: &str, found: &mut Findings) -> Result<Vec<String>, Failure> {
    let ping = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
    let mut headers = http_headers("application/json, text/event-stream");
    headers.insert("content-type", "application/json".parse().map_err(Failure::new)?);
    let request = web.request("POST".parse().map_err(Failure::new)?, url, headers, ping.into());
    let answer = busy(&format!("asking {url}"), request).await;
    let answer = answer.map_err(|e| Failure::new(e).exit(Exit::Unreachable))?;
    let status = answer.parts.status.as_u16();
    let challenge = Challenge::of(&answer.parts.headers);
    match status {
        401 => found.good("a request without a token is answered with status 401")?,
        // What a server without authorization says of a request without a session.
        400 => found.bad(
            "a request without a token is answered with status 400: the server is not protected, or reads it before it asks for a token",
        )?,
        200..=299 => found
            .bad(format!("a request without a token is answered with status {status}: the server is not protected"))?,
        _ => found.bad(format!("a request without a token is answered with status {status} instead of 401"))?,
    }
    let named = challenge.resource_metadata.as_deref();
    if status == 401 {
        match (named, &challenge.other) {
            (Some(place), _) => found.good(format!("the challenge names the metadata: {place}"))?,
            (None, Some(other)) => found.bad(format!("the challenge is {other}, not Bearer or DPoP"))?,
            (None, None) => found.bad(
                "the challenge (WWW-Authenticate: Bearer) names no resource_metadata; a server that takes fixed tokens has none",
            )?,
        }
        if challenge.error.is_some() {
            found.warn("the challenge has an error although no token was sent; RFC 6750 wants none")?;
        }
    }
    let inserted = well_known(url, "oauth-protected-resource");
    let place = named.unwrap_or(&inserted);
    let Some(document) = document(web, place, "the metadata of the server", found).await? else {
        return Ok(Vec::new());
    };
    match document["resource"].as_str() {
        Some(resource) if resource == url => found.good("resource is this URL")?,
        Some(resource) if is_below(url, resource) => {
            found.warn(format!("resource is {resource}: tokens are for all below it"))?;
        }
        Some(resource) => {
            found.bad(format!("resource is {resource}, which is not this URL: clients must refuse it"))?
        }
        None => found.bad("the metadata has no resource")?,
    }
    let issuers: Vec<String> = texts(&document["authorization_servers"]);
    if issuers.is_empty() {
        found.bad("the metadata names no authorization_servers: clients do not know where to log in")?;
    }
    Ok(issuers)
}

/// Looks at the metadata and keys of an authorization server.
async fn authorization_server(web: &Web, issuer: &str, found: &mut Findings) -> Result<(), Failure> {
    let trimmed = issuer.trim_end_matches('/');
    let places = [
        well_known(issuer, "oauth-authorization-server"),
        well_known(issuer, "openid-configuration"),
        format!("{trimmed}/.well-known/openid-configuration"),
    ];
    let mut metadata = None;
    for place in &places {
        if let Ok(Some(document)) = fetch(web, place).await {
            found.good(format!("the authorization server has metadata: {place}"))?;
            metadata = Some(document);
            break;
        }
    }
    let Some(metadata) = metadata else {
        return Ok(found.bad(format!("the authorization server {issuer} has no metadata at {}", places.join(", ")))?);
    };
    match metadata["issuer"].as_str() {
        Some(theirs) if theirs == issuer => found.good("its issuer is the one that the server names")?,
        theirs => found.bad(format!(
            "its issuer is {}, the server names {issuer}: both must be the same to the letter",
            theirs.unwrap_or("missing")
        ))?,
    }
    for name in ["authorization_endpoint", "token_endpoint"] {
        if metadata[name].as_str().is_none() {
            found.bad(format!("its metadata has no {name}"))?;
        }
    }
    if !texts(&metadata["code_challenge_methods_supported"]).iter().any(|method| method == "S256") {
        found.bad("it does not declare PKCE (code_challenge_methods_supported with S256): clients must refuse it")?;
    }
    let documents = metadata["client_id_metadata_document_supported"] == true;
    match (documents, metadata["registration_endpoint"].is_string()) {
        (false, false) => {
            found.warn("it takes neither client metadata documents nor registrations: register clients by hand")?
        }
        _ => found.good("clients can identify themselves without its operator")?,
    }
    let Some(keys) = metadata["jwks_uri"].as_str() else {
        return Ok(found.warn("its metadata has no jwks_uri: tokens can be checked by introspection only")?);
    };
    let Some(document) = document(web, keys, "its key set", found).await? else { return Ok(()) };
    match JwkSet::parse(document.to_string().as_bytes()) {
        Some(set) if set.iter().next().is_some() => {
            found.good(format!("its key set has {}", count(set.iter().count(), "usable key")))?;
        }
        _ => found.bad("its key set has no usable key")?,
    }
    Ok(())
}

/// Fetches a document that must be there.
async fn document(web: &Web, url: &str, what: &str, found: &mut Findings) -> Result<Option<Value>, Failure> {
    match fetch(web, url).await {
        Ok(Some(document)) => {
            found.good(format!("{what} is at {url}"))?;
            Ok(Some(document))
        }
        Ok(None) => {
            found.bad(format!("{what} is not at {url}"))?;
            Ok(None)
        }
        Err(why) => {
            found.bad(format!("{what} cannot be read: {why}"))?;
            Ok(None)
        }
    }
}

/// A JSON object. `None` if nothing is there.
async fn fetch(web: &Web, url: &str) -> Result<Option<Value>, String> {
    let request = web.get(url, http_headers("application/json"));
    let answer = busy(&format!("asking {url}"), request).await.map_err(|e| e.to_string())?;
    let status = answer.parts.status.as_u16();
    if status != 200 {
        return if status == 404 { Ok(None) } else { Err(format!("{url} answers with status {status}")) };
    }
    let mut body = answer.body;
    let body = body.read_all(DOCUMENT_BYTES_MAX).await.map_err(|e| e.to_string())?;
    match serde_json::from_slice::<Value>(&body) {
        Ok(document) if document.is_object() => Ok(Some(document)),
        _ => Err(format!("{url} is not JSON")),
    }
}

/// A well-known URL, with the path of the URL behind it.
fn well_known(url: &str, name: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (origin, path) = url.split_at(url[start..].find('/').map_or(url.len(), |at| start + at));
    format!("{origin}/.well-known/{name}{}", path.trim_end_matches('/'))
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn http_headers(accept: &'static str) -> http::HeaderMap {
    http::HeaderMap::from_iter([(http::header::ACCEPT, http::HeaderValue::from_static(accept))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_urls_stand_before_the_path() {
        for (url, expected) in [
            ("https://a.example/mcp", "https://a.example/.well-known/x/mcp"),
            ("https://a.example/", "https://a.example/.well-known/x"),
            ("https://a.example", "https://a.example/.well-known/x"),
        ] {
            assert_eq!(well_known(url, "x"), expected);
        }
    }

    #[test]
    fn a_host_that_begins_alike_is_another() {
        assert!(is_below("https://a.example/mcp", "https://a.example"));
        assert!(is_below("https://a.example/mcp/x", "https://a.example/mcp/"));
        assert!(!is_below("https://a.example.evil/mcp", "https://a.example"));
        assert!(!is_below("https://a.example/mcp2", "https://a.example/mcp"));
    }
}
