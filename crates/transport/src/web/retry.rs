//! Asking again when a server says that it is busy.

use super::{Web, WebError, WebResponse};
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method};
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;
use url::Url;

impl Web {
    /// Sends a GET for a URL as people write it, and waits for the head of its answer; redirects are answers like others
    /// (see [`WebResponse::next`]).
    ///
    /// An answer of status 429, 502, 503 or 504 is asked for again, at most [`retries_max`](super::WebOptions::retries_max)
    /// times, after the time its `Retry-After` names or a growing one with chance in it. Where the server wants more than
    /// five seconds, its answer is returned as it is.
    ///
    /// Cancel-safe: dropping the future drops the request.
    ///
    /// # Errors
    /// As [`Web::send`].
    pub async fn get(&self, url: &str, headers: HeaderMap) -> Result<WebResponse, WebError> {
        let url = Url::parse(url).map_err(|e| WebError::invalid(format!("not a usable URL: {e}")))?;
        for tried in 0.. {
            let answer = self.request(Method::GET, &url, headers.clone(), Bytes::new()).await?;
            let busy = matches!(answer.parts.status.as_u16(), 429 | 502 | 503 | 504);
            if !busy || tried >= self.options().retries_max {
                return Ok(answer);
            }
            let Some(pause) = pause(&answer.parts.headers, tried) else { return Ok(answer) };
            drop(answer);
            tokio::time::sleep(pause).await;
        }
        unreachable!("the loop ends by returning")
    }
}

/// How long to wait before asking again; `None` when the server wants too much.
fn pause(headers: &HeaderMap, tried: u32) -> Option<Duration> {
    let named = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
    let named = match named {
        // A date is somewhere in the future; the client has no business waiting for it.
        Some(text) => Duration::from_secs(text.parse().ok()?),
        None => Duration::from_millis(200 << tried.min(4)),
    };
    if named > PAUSE_MAX {
        return None;
    }
    Some(named + Duration::from_millis(chance() % 100))
}

/// Something that differs from client to client, so that those that were turned away together do not come back together.
fn chance() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

const PAUSE_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_short_and_what_the_server_says_counts() {
        let wait = |value: Option<&str>, tried| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(RETRY_AFTER, value.parse().unwrap());
            }
            pause(&headers, tried).map(|pause| pause.as_millis() / 100)
        };
        assert_eq!(wait(None, 0), Some(2));
        assert_eq!(wait(None, 2), Some(8));
        assert_eq!(wait(Some("1"), 2), Some(10));
        assert_eq!(wait(Some("0"), 2), Some(0));
        for long in ["6", "86400", "Wed, 21 Oct 2099 07:28:00 GMT", "-1", "x"] {
            assert_eq!(wait(Some(long), 0), None, "{long}");
        }
    }
}
