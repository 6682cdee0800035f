//! Client metadata documents: fetched from public addresses only, remembered, never followed.

use crate::client::{Client, check_document_address, of_document};
use crate::limits::{CLIENT_KEYS_AT_ONCE, DOCUMENT_BYTES_MAX, DOCUMENTS_AT_ONCE, DOCUMENTS_MAX, DOCUMENTS_PER_HOST};
use crate::records::{Away, Records};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use linchpin_oauth::{JwkSet, parse_object};
use linchpin_web::{Reach, Web, WebOptions};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Documents by their addresses.
pub(crate) struct Documents {
    web: Web,
    loopback: bool,
    schemes: Vec<String>,
    turns: Semaphore,
    known: Mutex<HashMap<String, Known>>,
    key_turns: Semaphore,
    key_sets: Mutex<HashMap<String, KnownKeys>>,
}

/// The keys of a client; `None`: they could not be fetched.
struct KnownKeys {
    until: u64,
    found: Option<Arc<JwkSet>>,
}

struct Known {
    until: u64,
    found: Result<Arc<Client>, &'static str>,
}

const FETCH_MS_MAX: u64 = 5000;
const FRESH_S_MIN: u64 = 300;
const FRESH_S_MAX: u64 = 86_400;
const FAILED_S: u64 = 60;

impl Documents {
    /// `loopback`: whether this server is on this computer, and fetches from there too.
    pub(crate) fn new(loopback: bool, schemes: Vec<String>) -> Documents {
        let web = Web::new(WebOptions::default().with(|options| {
            options.reach = if loopback { Reach::PublicOrLoopback } else { Reach::Public };
            options.https_only = !loopback;
            options.request_ms_max = Some(FETCH_MS_MAX);
            options.body_bytes_max = Some(DOCUMENT_BYTES_MAX);
            options.web_ports_only = true;
            options.proxy_trusts_dns = false;
        }));
        Documents {
            web,
            loopback,
            schemes,
            turns: Semaphore::new(DOCUMENTS_AT_ONCE),
            known: Mutex::default(),
            key_turns: Semaphore::new(CLIENT_KEYS_AT_ONCE),
            key_sets: Mutex::default(),
        }
    }

    /// Returns the client whose document is at `id`. The error is for the user.
    pub(crate) async fn client(&self, id: &str, records: &Records, now: u64) -> Result<Arc<Client>, &'static str> {
        if let Some(found) = self.known(id, now) {
            return found;
        }
        let url = check_document_address(id, self.loopback)?;
        let host = url.host_str().unwrap_or_default();
        if records.take(DOCUMENTS_PER_HOST, host).await.is_err() {
            return Err("too many clients of its host were asked for; try again in a minute");
        }
        let Ok(_turn) = self.turns.try_acquire() else { return Err("too many clients are being looked up; try again") };
        let fetched = self.fetch(id).await;
        let (found, fresh_s) = match fetched {
            Ok((client, fresh_s)) => (Ok(Arc::new(client)), fresh_s),
            Err(why) => (Err(why), FAILED_S),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= DOCUMENTS_MAX {
            known.retain(|_, document| document.until > now);
        }
        if known.len() >= DOCUMENTS_MAX {
            known.clear();
        }
        known.insert(id.to_owned(), Known { until: now + fresh_s, found: found.clone() });
        found
    }

    fn known(&self, id: &str, now: u64) -> Option<Result<Arc<Client>, &'static str>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|document| document.until > now).map(|document| document.found.clone())
    }

    async fn fetch(&self, id: &str) -> Result<(Client, u64), &'static str> {
        let (body, fresh_s) = self.get(id).await?;
        let document = parse_object(&body).ok_or("what is at its address is not a JSON object")?;
        Ok((of_document(id, &document, &self.schemes)?, fresh_s))
    }

    /// Returns the keys of a client, from where its metadata says; `None` if they are not there. They are remembered, also that they
    /// were not there. The error: too much is being fetched now.
    pub(crate) async fn keys(&self, url: &str, records: &Records, now: u64) -> Result<Option<Arc<JwkSet>>, Away> {
        let known = || self.key_sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = known().get(url).filter(|keys| keys.until > now) {
            return Ok(keys.found.clone());
        }
        let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        if records.take(DOCUMENTS_PER_HOST, &host).await.is_err() {
            return Err(Away);
        }
        let _turn = self.key_turns.try_acquire().map_err(|_| Away)?;
        let found = self.get(url).await.ok().and_then(|(body, _)| JwkSet::parse(&body)).map(Arc::new);
        let until = now + if found.is_some() { FRESH_S_MIN } else { FAILED_S };
        let mut known = known();
        if known.len() >= DOCUMENTS_MAX {
            known.retain(|_, keys| keys.until > now);
        }
        if known.len() >= DOCUMENTS_MAX {
            known.clear();
        }
        known.insert(url.to_owned(), KnownKeys { until, found: found.clone() });
        Ok(found)
    }

    async fn get(&self, url: &str) -> Result<(bytes::Bytes, u64), &'static str> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let asked = self.web.request(Method::GET, url, headers, bytes::Bytes::new()).await;
        let mut response = asked.map_err(|error| {
            tracing::debug!(%error, "a client metadata document was not fetched");
            "its address cannot be reached from here"
        })?;
        if response.parts.status != StatusCode::OK {
            return Err("there is nothing at its address");
        }
        let headers = &response.parts.headers;
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind != "application/json" && !kind.ends_with("+json") {
            return Err("what is at its address is not valid JSON");
        }
        let fresh_s = freshness(headers);
        let body = response.body.read_all(DOCUMENT_BYTES_MAX).await;
        body.map(|body| (body, fresh_s)).map_err(|_| "what is at its address is too long, or does not arrive")
    }
}

/// How long a response may be remembered, in seconds.
fn freshness(headers: &HeaderMap) -> u64 {
    let text = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let age = text.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse::<u64>().ok());
    age.unwrap_or(FRESH_S_MIN).clamp(FRESH_S_MIN, FRESH_S_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_oauth::{Alg, Signer};
    use linchpin_store::Store;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn the_keys_of_a_client_are_remembered_and_shorter_that_they_are_not_there() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (asked, set) = (Arc::new(AtomicUsize::new(0)), JwkSet::from_iter([Signer::generate(Alg::Es256).0.jwk()]));
        let (count, body) = (asked.clone(), set.to_value().to_string());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                count.fetch_add(1, Ordering::SeqCst);
                let status = if head[..read].starts_with(b"GET /keys") { "200 OK" } else { "404 X" };
                let head = "Content-Type: application/json\r\nConnection: close\r\nContent-Length";
                let answer = format!("HTTP/1.1 {status}\r\n{head}: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let (documents, records) = (Documents::new(true, Vec::new()), Records::new(&Store::memory()));
        let rows = [("keys", 0, true, 1), ("keys", 299, true, 1), ("keys", 300, true, 2)];
        let none = [("none", 0, false, 3), ("none", 59, false, 3), ("none", 60, false, 4)];
        for (path, now, is_there, fetched) in rows.into_iter().chain(none) {
            let found = documents.keys(&format!("{base}/{path}"), &records, 1000 + now).await.unwrap();
            assert_eq!((found.is_some(), asked.load(Ordering::SeqCst)), (is_there, fetched), "{path} {now}");
        }
    }
}
