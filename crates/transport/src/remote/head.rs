//! Request headers: the constant ones are built once, credentials are marked sensitive.

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use linchpin_core::Features;
use linchpin_core::connector::Outgoing;
use linchpin_proto::http::request_headers;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The common headers of a kind of requests.
pub(super) struct Heads {
    post: HeaderMap,
    stream: HeaderMap,
    bare: HeaderMap,
}

impl Heads {
    pub(super) fn new(own: &[(HeaderName, HeaderValue)]) -> Heads {
        let mut bare = HeaderMap::with_capacity(16);
        bare.insert(USER_AGENT, HeaderValue::from_static(concat!("linchpin/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in own {
            bare.insert(name, value.clone());
        }
        let (mut post, mut stream) = (bare.clone(), bare.clone());
        post.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        post.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        stream.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        Heads { post, stream, bare }
    }

    /// Whether the host's own headers have credentials.
    pub(super) fn have_credentials(&self) -> bool {
        self.bare.values().any(HeaderValue::is_sensitive)
    }

    /// For a message.
    pub(super) fn post(&self, out: &Outgoing, session: Option<HeaderValue>) -> HeaderMap {
        // A clone would have no room for more.
        let mut headers = HeaderMap::with_capacity(self.post.len() + out.mirrored.len() + ADDED);
        for (name, value) in &self.post {
            headers.append(name, value.clone());
        }
        request_headers::insert(&mut headers, out);
        with(headers, session, "")
    }

    /// For the standalone event stream, new or resumed.
    pub(super) fn stream(
        &self,
        features: Option<&'static Features>,
        session: Option<HeaderValue>,
        last: &str,
    ) -> HeaderMap {
        with(versioned(self.stream.clone(), features), session, last)
    }

    /// For the end of a session.
    pub(super) fn delete(&self, features: Option<&'static Features>, session: HeaderValue) -> HeaderMap {
        with(versioned(self.bare.clone(), features), Some(session), "")
    }
}

fn versioned(mut headers: HeaderMap, features: Option<&'static Features>) -> HeaderMap {
    let nothing = Outgoing::new("", features, bytes::Bytes::new());
    request_headers::insert(&mut headers, &nothing);
    headers
}

fn with(mut headers: HeaderMap, session: Option<HeaderValue>, last: &str) -> HeaderMap {
    if let Some(session) = session {
        headers.insert(SESSION, session);
    }
    // Ids that are not valid header values cannot be resumed.
    if !last.is_empty()
        && let Ok(last) = HeaderValue::from_str(last)
    {
        headers.insert(LAST_EVENT_ID, last);
    }
    headers
}

/// Marks credentials, so that they appear nowhere.
pub(super) fn mark(headers: &mut HeaderMap) {
    for name in [AUTHORIZATION, COOKIE, SET_COOKIE, PROXY_AUTHORIZATION, DPOP, SESSION] {
        if let Some(value) = headers.get_mut(name) {
            value.set_sensitive(true);
        }
    }
    // Including further values of the same name.
    if headers.len() != headers.keys_len() {
        let all = headers.iter_mut().filter(|(name, _)| is_credential(name));
        all.for_each(|(_, value)| value.set_sensitive(true));
    }
}

/// Whether a header's name suggests a credential.
pub(super) fn is_credential(name: &HeaderName) -> bool {
    let name = name.as_str();
    [AUTHORIZATION, COOKIE, SET_COOKIE, PROXY_AUTHORIZATION, DPOP, SESSION].iter().any(|known| known == name)
        || ["auth", "token", "secret", "key", "password", "credential", "signature", "session"]
            .iter()
            .any(|part| name.contains(part))
}

/// Headers that a message has beside those of all, and those that the HTTP client adds.
const ADDED: usize = 8;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
