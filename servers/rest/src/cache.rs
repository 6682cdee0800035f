//! Responses that the server may confirm instead of sending them again.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use std::collections::VecDeque;

const ENTRIES_MAX: usize = 64;
const BYTES_MAX: usize = 8 << 20;

/// The responses to GET that had an `ETag`, the most recently used first; bounded in number and bytes.
#[derive(Debug, Default)]
pub(crate) struct Cache(VecDeque<(String, Response<Bytes>)>);

impl Cache {
    /// The tag to ask with, and the response that has it.
    pub(crate) fn tag(&self, key: &str) -> Option<(HeaderValue, Response<Bytes>)> {
        let (_, kept) = self.0.iter().find(|(known, _)| known == key)?;
        Some((kept.headers().get(ETAG)?.clone(), kept.clone()))
    }

    /// The response that counts: the one asked with if the server confirms it, which may have left the cache meanwhile.
    pub(crate) fn settle(
        &mut self,
        key: &str,
        asked_with: Option<Response<Bytes>>,
        response: Response<Bytes>,
    ) -> Response<Bytes> {
        if let Some(at) = self.0.iter().position(|(known, _)| known == key) {
            self.0.remove(at);
        }
        match (response.status(), asked_with) {
            (StatusCode::NOT_MODIFIED, Some(mut kept)) => {
                // What it says now, about limits for example, replaces what it said then.
                kept.headers_mut().extend(response.headers().clone());
                self.0.push_front((key.to_owned(), kept.clone()));
                kept
            }
            (StatusCode::OK, _) if may_be_kept(response.headers()) && response.body().len() <= BYTES_MAX => {
                self.0.push_front((key.to_owned(), response.clone()));
                let bytes = |cache: &Self| cache.0.iter().map(|(_, kept)| kept.body().len()).sum::<usize>();
                while self.0.len() > ENTRIES_MAX || bytes(self) > BYTES_MAX {
                    self.0.pop_back();
                }
                response
            }
            _ => response,
        }
    }
}

fn may_be_kept(headers: &HeaderMap) -> bool {
    let control = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    headers.contains_key(ETAG) && !control.to_ascii_lowercase().contains("no-store")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, tag: &str, body: &str) -> Response<Bytes> {
        let response = Response::builder().status(status).header(ETAG, tag);
        response.body(Bytes::copy_from_slice(body.as_bytes())).unwrap()
    }

    fn settle(cache: &mut Cache, key: &str, response: Response<Bytes>) -> Response<Bytes> {
        let asked_with = cache.tag(key).map(|(_, kept)| kept);
        cache.settle(key, asked_with, response)
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_and_the_bounds_hold() {
        let mut cache = Cache::default();
        for n in 0..200 {
            settle(&mut cache, &n.to_string(), response(200, "\"t\"", "body"));
            settle(&mut cache, "0", response(304, "\"t\"", ""));
        }
        assert!(cache.0.len() == ENTRIES_MAX && cache.tag("0").is_some() && cache.tag("1").is_none());
        for n in 0..20 {
            settle(&mut cache, &format!("large{n}"), response(200, "\"t\"", &"x".repeat(BYTES_MAX / 10)));
        }
        assert!(cache.0.len() <= 10, "{}", cache.0.len());
        settle(&mut cache, "huge", response(200, "\"t\"", &"x".repeat(BYTES_MAX + 1)));
        assert!(cache.tag("huge").is_none());
    }

    #[test]
    fn a_changed_or_fleeting_response_replaces_the_kept_one() {
        let mut cache = Cache::default();
        settle(&mut cache, "k", response(200, "\"1\"", "one"));
        assert_eq!(settle(&mut cache, "k", response(304, "\"1\"", "")).body(), "one");
        settle(&mut cache, "k", response(200, "\"2\"", "two"));
        assert_eq!(cache.tag("k").unwrap().0, "\"2\"");
        let mut fleeting = response(200, "\"3\"", "three");
        fleeting.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, No-Store"));
        settle(&mut cache, "k", fleeting);
        assert!(cache.tag("k").is_none());
        assert_eq!(settle(&mut cache, "k", response(304, "\"3\"", "")).status(), 304);
    }

    #[test]
    fn a_confirmation_replaces_headers_and_counts_although_the_entry_is_gone() {
        let mut cache = Cache::default();
        let with_left = |status, left: &str| {
            let mut response = response(status, "\"1\"", "one");
            response.headers_mut().insert("remaining", left.parse().unwrap());
            response
        };
        settle(&mut cache, "k", with_left(200, "5"));
        for left in ["4", "3", "0"] {
            let confirmed = settle(&mut cache, "k", with_left(304, left));
            assert_eq!((confirmed.body(), confirmed.headers().len()), (&Bytes::from("one"), 2));
            assert_eq!(confirmed.headers()["remaining"], left);
        }
        let asked_with = cache.tag("k").map(|(_, kept)| kept);
        settle(&mut cache, "k", response(503, "", ""));
        assert!(cache.tag("k").is_none());
        assert_eq!(cache.settle("k", asked_with, with_left(304, "9")).body(), "one");
    }
}
