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
    /// The tag to ask with.
    pub(crate) fn tag(&self, key: &str) -> Option<HeaderValue> {
        let (_, kept) = self.0.iter().find(|(known, _)| known == key)?;
        kept.headers().get(ETAG).cloned()
    }

    /// The response that counts: the kept one if the server confirms it.
    pub(crate) fn settle(&mut self, key: &str, response: Response<Bytes>) -> Response<Bytes> {
        let found = self.0.iter().position(|(known, _)| known == key).and_then(|at| self.0.remove(at));
        match (response.status(), found) {
            (StatusCode::NOT_MODIFIED, Some((key, mut kept))) => {
                // What it says now, about limits for example, counts.
                kept.headers_mut().extend(response.headers().clone().into_iter().filter_map(|(n, v)| Some((n?, v))));
                self.0.push_front((key, kept.clone()));
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

    #[test]
    fn what_was_used_longest_ago_goes_first_and_the_bounds_hold() {
        let mut cache = Cache::default();
        for n in 0..200 {
            cache.settle(&n.to_string(), response(200, "\"t\"", "body"));
            cache.settle("0", response(304, "\"t\"", ""));
        }
        assert!(cache.0.len() == ENTRIES_MAX && cache.tag("0").is_some() && cache.tag("1").is_none());
        for n in 0..20 {
            cache.settle(&format!("large{n}"), response(200, "\"t\"", &"x".repeat(BYTES_MAX / 10)));
        }
        assert!(cache.0.len() <= 10, "{}", cache.0.len());
        cache.settle("huge", response(200, "\"t\"", &"x".repeat(BYTES_MAX + 1)));
        assert!(cache.tag("huge").is_none());
    }

    #[test]
    fn a_changed_or_fleeting_response_replaces_the_kept_one() {
        let mut cache = Cache::default();
        cache.settle("k", response(200, "\"1\"", "one"));
        assert_eq!(cache.settle("k", response(304, "\"1\"", "")).body(), "one");
        cache.settle("k", response(200, "\"2\"", "two"));
        assert_eq!(cache.tag("k").unwrap(), "\"2\"");
        let mut fleeting = response(200, "\"3\"", "three");
        fleeting.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, No-Store"));
        cache.settle("k", fleeting);
        assert!(cache.tag("k").is_none());
        assert_eq!(cache.settle("k", response(304, "\"3\"", "")).status(), 304);
    }
}
