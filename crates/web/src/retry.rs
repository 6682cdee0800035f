//! Retries when a server is busy.

use super::{Web, WebError, WebResponse};
use bytes::Bytes;
use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, Method};
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant, SystemTime};

impl Web {
    /// Sends a GET for a URL as users write it, and waits for the headers of its response.
    ///
    /// Redirects are not followed (see [`WebResponse::next`]). A request that gets status 429, 502, 503 or 504 is
    /// retried, at most [`retries_max`](super::WebOptions::retries_max) times, after the delay of `Retry-After` (in
    /// seconds or as a date) or an increasing one with jitter. All attempts, the response's body included, share the
    /// timeout [`request_ms_max`](super::WebOptions::request_ms_max). If the delay is more than half of the remaining
    /// time, or more than five seconds without a timeout, or `Retry-After` is invalid, the response is returned as
    /// it is.
    ///
    /// Cancel-safe: dropping the future drops the request.
    ///
    /// # Errors
    /// See [`Web::send`].
    pub async fn get(&self, url: &str, headers: HeaderMap) -> Result<WebResponse, WebError> {
        self.get_until(url, headers, self.deadline()).await
    }

    /// Sends a GET like [`Web::get`], with a deadline in addition to the client's timeout; the earlier one applies.
    ///
    /// Use it for several requests with a common deadline. Cancel-safe.
    ///
    /// # Errors
    /// See [`Web::send`].
    pub async fn get_by(&self, url: &str, headers: HeaderMap, by: Instant) -> Result<WebResponse, WebError> {
        self.get_until(url, headers, Some(self.deadline().map_or(by, |own| own.min(by)))).await
    }

    async fn get_until(
        &self,
        url: &str,
        headers: HeaderMap,
        deadline: Option<Instant>,
    ) -> Result<WebResponse, WebError> {
        let address = url.parse()?;
        for tried in 0.. {
            let answer = self.request_until(Method::GET, &address, headers.clone(), Bytes::new(), deadline).await?;
            let busy = matches!(answer.parts.status.as_u16(), 429 | 502 | 503 | 504);
            if !busy || tried >= self.options().retries_max.min(RETRIES_MAX) {
                return Ok(answer);
            }
            let most = deadline.map_or(PAUSE_MAX, |at| at.saturating_duration_since(Instant::now()) / 2);
            let pause = pause(&answer.parts.headers, tried, SystemTime::now()).filter(|pause| *pause <= most);
            let Some(pause) = pause else { return Ok(answer) };
            drop(answer);
            tokio::time::sleep(pause + Duration::from_millis(chance() % 100)).await;
        }
        unreachable!("the loop ends by returning")
    }
}

/// The maximum number of retries, regardless of the options.
pub const RETRIES_MAX: u32 = 3;

/// Returns the delay that the `Retry-After` of a response requests, in seconds or as a date; `None` without a valid
/// one.
///
/// ```
/// let mut headers = http::HeaderMap::new();
/// headers.insert("retry-after", "120".parse()?);
/// assert_eq!(linchpin_web::retry_after(&headers), Some(std::time::Duration::from_secs(120)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    demanded(headers, SystemTime::now()).flatten()
}

/// Returns the delay before a retry; `None` if the server's value is invalid.
fn pause(headers: &HeaderMap, tried: u32, now: SystemTime) -> Option<Duration> {
    demanded(headers, now).unwrap_or(Some(Duration::from_millis(200 << tried.min(4))))
}

/// What the server says; the inner `None` if that is invalid.
fn demanded(headers: &HeaderMap, now: SystemTime) -> Option<Option<Duration>> {
    let named = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let text = named(RETRY_AFTER)?;
    Some(read(text, named(DATE), now))
}

fn read(text: &str, date_there: Option<&str>, now: SystemTime) -> Option<Duration> {
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = date(text)?;
    // Relative to the server's own date, because clocks may differ. A time in the past means now.
    let now = date_there.and_then(date).unwrap_or(now);
    Some(then.duration_since(now).unwrap_or_default())
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
    fn what_the_server_says_counts_in_both_of_its_forms() {
        let at = |text: &str| httpdate::parse_http_date(text).unwrap();
        let now = at("Sun, 06 Nov 1994 08:49:37 GMT");
        let wait = |value: Option<&str>, date: Option<&str>, tried| {
            let mut headers = HeaderMap::new();
            for (name, value) in [(RETRY_AFTER, value), (DATE, date)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            pause(&headers, tried, now).map(|pause| pause.as_millis())
        };
        assert_eq!(wait(None, None, 0), Some(200));
        assert_eq!(wait(None, None, 2), Some(800));
        assert_eq!(wait(Some("1"), None, 2), Some(1_000));
        assert_eq!(wait(Some("0"), None, 2), Some(0));
        assert_eq!(wait(Some("86400"), None, 0), Some(86_400_000));
        assert_eq!(wait(Some("18446744073709551615"), None, 0), Some(u128::from(u64::MAX) * 1_000));
        // All three forms of dates, one in the past, and a server whose clock is an hour ahead.
        assert_eq!(wait(Some("Sun, 06 Nov 1994 08:49:40 GMT"), None, 0), Some(3_000));
        assert_eq!(wait(Some("Sunday, 06-Nov-94 08:49:40 GMT"), None, 0), Some(3_000));
        assert_eq!(wait(Some("Sun Nov  6 08:49:40 1994"), None, 0), Some(3_000));
        assert_eq!(wait(Some("Sun, 06 Nov 1994 08:49:30 GMT"), None, 0), Some(0));
        let ahead = Some("Sun, 06 Nov 1994 09:49:37 GMT");
        assert_eq!(wait(Some("Sun, 06 Nov 1994 09:49:40 GMT"), ahead, 0), Some(3_000));
        assert_eq!(wait(Some("Sun, 06 Nov 1994 08:49:40 GMT"), Some("nonsense"), 0), Some(3_000));
        for nonsense in ["-1", "x", "1.5", "", "Sun, 06 Nov 1994", "18446744073709551616"] {
            assert_eq!(wait(Some(nonsense), None, 0), None, "{nonsense}");
        }
    }
}
