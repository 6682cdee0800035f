//! The keys of other issuers: given, or fetched from where they publish them and remembered.

use crate::records::Away;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use linchpin_oauth::{AuthorizationServerMetadata, Claims, JwkSet, Jws, parse_object};
use linchpin_web::{Reach, Web, WebOptions};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Mutex;

/// How long keys are used without asking again, in seconds.
const FRESH_S: u64 = 3_600;
/// How long old keys go on while their issuer is away, in seconds.
const STALE_S: u64 = 86_400;
/// How often a key that is unknown may have them fetched again, in seconds.
const AGAIN_S: u64 = 30;
/// How long a request may take.
const REQUEST_MS_MAX: u64 = 5_000;

/// Where the keys of an issuer are.
#[derive(Clone)]
pub(crate) struct KeySource {
    issuer: String,
    place: Place,
    fetched: Arc<Mutex<Fetched>>,
}

#[derive(Clone)]
enum Place {
    Given(Arc<JwkSet>),
    At(String),
    /// What the issuer's metadata names.
    Discovered,
}

#[derive(Default)]
struct Fetched {
    keys: Option<Arc<JwkSet>>,
    /// When they were fetched, and when that was tried last.
    at: u64,
    tried: u64,
}

impl KeySource {
    /// The keys that the metadata of an issuer names.
    pub(crate) fn of(issuer: String) -> KeySource {
        KeySource { issuer, place: Place::Discovered, fetched: Arc::default() }
    }

    pub(crate) fn given(&mut self, keys: JwkSet) {
        self.place = Place::Given(Arc::new(keys));
    }

    pub(crate) fn at(&mut self, url: String) {
        self.place = Place::At(url);
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Whether its address is one from which keys can be fetched safely.
    pub(crate) fn is_safe(&self) -> bool {
        let url = match &self.place {
            Place::Given(_) => return true,
            Place::At(url) => url,
            Place::Discovered => &self.issuer,
        };
        url.starts_with("https://") || linchpin_web::is_loopback(url)
    }

    /// The claims of a token, if one of the keys signed it.
    pub(crate) async fn verify(&self, jws: &Jws<'_>, now: u64) -> Result<Option<Claims>, Away> {
        let keys = self.keys(jws.kid(), now).await?;
        Ok(keys.fitting(jws).find_map(|key| jws.verify(key).ok()).cloned())
    }

    /// The keys. They are fetched by one at a time, again when an unknown one is wanted, and go on while their issuer is away.
    async fn keys(&self, kid: Option<&str>, now: u64) -> Result<Arc<JwkSet>, Away> {
        if let Place::Given(keys) = &self.place {
            return Ok(keys.clone());
        }
        let mut fetched = self.fetched.lock().await;
        let known = fetched.keys.clone();
        let is_fresh = fetched.at + FRESH_S > now && known.is_some();
        let is_known = kid.is_none_or(|kid| known.as_ref().is_some_and(|keys| keys.has(kid)));
        let is_tired = fetched.tried + AGAIN_S > now;
        let is_usable = fetched.at + STALE_S > now;
        if let Some(keys) = known.clone().filter(|_| (is_fresh && is_known) || (is_tired && is_usable)) {
            return Ok(keys);
        }
        if is_tired {
            return Err(Away);
        }
        fetched.tried = now;
        match self.fetch().await {
            Ok(keys) => {
                let keys = Arc::new(keys);
                (fetched.keys, fetched.at) = (Some(keys.clone()), now);
                Ok(keys)
            }
            Err(why) => {
                tracing::warn!(issuer = self.issuer, why, "the keys of an issuer cannot be fetched");
                known.filter(|_| fetched.at + STALE_S > now).ok_or(Away)
            }
        }
    }

    async fn fetch(&self) -> Result<JwkSet, &'static str> {
        let url = match &self.place {
            Place::At(url) => url.clone(),
            _ => self.discover().await?,
        };
        if !url.starts_with("https://") && !linchpin_web::is_loopback(&url) {
            return Err("its keys are not at an https address");
        }
        JwkSet::parse(&self.get(&url).await?).ok_or("it has no key set")
    }

    /// The address of the keys in the metadata, of OpenID Connect or OAuth.
    async fn discover(&self) -> Result<String, &'static str> {
        let base = self.issuer.trim_end_matches('/');
        let (origin, path) = base.split_at(base[8.min(base.len())..].find('/').map_or(base.len(), |at| at + 8));
        let places = [
            format!("{base}/.well-known/openid-configuration"),
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
        ];
        for place in places {
            let Ok(document) = self.get(&place).await else { continue };
            let document = parse_object(&document).ok_or("its metadata is not a JSON object")?;
            let metadata = AuthorizationServerMetadata::read(&Value::Object(document));
            if metadata.issuer != self.issuer {
                return Err("its metadata names another issuer");
            }
            return metadata.jwks_uri.ok_or("its metadata names no keys");
        }
        Err("it has no metadata")
    }

    async fn get(&self, url: &str) -> Result<bytes::Bytes, &'static str> {
        let host = url.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
        let web = Web::new(WebOptions::default().with(|options| {
            // The operator named the issuer, wherever it is; what its metadata names is at public addresses, or there.
            let own = self.issuer.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
            let own = Some(own).filter(|own| *own == host);
            options.reach =
                if linchpin_web::is_loopback(&self.issuer) { Reach::PublicOrLoopback } else { Reach::Public };
            options.trusted_hosts = own.and_then(|host| host.parse().ok()).into_iter().collect();
            options.https_only = self.issuer.starts_with("https:");
            options.request_ms_max = Some(REQUEST_MS_MAX);
            options.body_bytes_max = Some(JwkSet::BYTES_MAX);
        }));
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let asked = web.request(Method::GET, url, headers, bytes::Bytes::new()).await;
        let mut answer = asked.map_err(|_| "it does not answer")?;
        if answer.parts.status != StatusCode::OK {
            return Err("it answers with an error");
        }
        answer.body.read_all(JwkSet::BYTES_MAX).await.map_err(|_| "its answer is too long, or does not arrive")
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeySource").field(&self.issuer).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_oauth::{Alg, Signer};
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// An issuer that publishes these keys, until it is told to be away.
    async fn publish(keys: Arc<std::sync::Mutex<Option<JwkSet>>>) -> (String, Arc<AtomicUsize>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}/realm", listener.local_addr().unwrap());
        let (base, asked) = (issuer.clone(), Arc::new(AtomicUsize::new(0)));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let set = keys.lock().unwrap().as_ref().map(JwkSet::to_value);
                let body = match (path, set) {
                    ("/.well-known/oauth-authorization-server/realm", Some(_)) => {
                        Some(json!({ "issuer": base, "jwks_uri": format!("{base}/keys") }))
                    }
                    ("/realm/keys", Some(set)) => {
                        count.fetch_add(1, Ordering::SeqCst);
                        Some(set)
                    }
                    _ => None,
                };
                let (status, body) = body.map_or(("404 X", String::new()), |body| ("200 OK", body.to_string()));
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        (issuer, asked)
    }

    #[tokio::test]
    async fn keys_are_fetched_once_go_on_while_their_issuer_is_away_and_are_found_again() {
        let (old, new) = (Signer::generate(Alg::Es256).0.kid("old"), Signer::generate(Alg::Es256).0.kid("new"));
        let keys = Arc::new(std::sync::Mutex::new(Some(JwkSet::from_iter([old.jwk()]))));
        let (issuer, asked) = publish(keys.clone()).await;
        let source = KeySource::of(issuer);
        let fits = async |signer: &Signer, now: u64| {
            let token = signer.sign("JWT", &json!({ "sub": "a" }));
            source.verify(&Jws::read(&token).unwrap(), now).await.map(|claims| claims.is_some())
        };
        for _ in 0..3 {
            assert_eq!(fits(&old, 1_000).await, Ok(true));
        }
        assert_eq!((fits(&new, 1_010).await, asked.load(Ordering::SeqCst)), (Ok(false), 1), "not again so soon");
        *keys.lock().unwrap() = Some(JwkSet::from_iter([new.jwk()]));
        assert_eq!((fits(&new, 1_040).await, asked.load(Ordering::SeqCst)), (Ok(true), 2));
        *keys.lock().unwrap() = None;
        assert_eq!(fits(&new, 1_040 + FRESH_S).await, Ok(true), "old keys go on");
        assert_eq!(fits(&new, 1_100 + STALE_S).await, Err(Away), "for a day");
        assert_eq!(fits(&new, 1_101 + STALE_S).await, Err(Away), "nor until it is tried again");
    }
}
