//! Rate limits: a token bucket for each caller and tool.

use crate::caller;
use linchpin_core::service::BoxFuture;
use linchpin_server::{Call, Next, Reply};
use ring::digest::{self, SHA256};
use serde_json::json;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Further rounds of calls that each token pays for.
const ROUNDS: u32 = 4;

/// The JSON-RPC error of a request that is refused; for tools it is a result with `isError`.
const LIMITED: i32 = -31005;

/// A limit on how often a caller may use each tool, resource and prompt.
///
/// A caller is identified by its principal, or else by its address (in IPv6, by its 64-bit network); clients without either,
/// on pipes and unix sockets, share one limit. Behind a proxy, addresses are those of the proxy unless a layer inserts the
/// client's `SocketAddr` into the request's extensions.
///
/// Each caller has a token bucket for each tool, prompt, resource and resource template, or [one for all of
/// them](RateLimit::over_all_items): a call takes one token, and tokens are refilled at a constant rate. In stateless
/// revisions, a request that brings the client's answer to a question takes no token, up to four times for each token.
/// In `Server::layer_requests`, where a name may not belong to any item, there is a bucket for each method instead. A
/// call that finds no token is refused: a tool call returns an error result that tells the model when to try again;
/// other requests fail with the JSON-RPC error -31005 and `retryAfterMs` in its data.
///
/// ```
/// use linchpin_middleware::RateLimit;
/// use linchpin_server::Server;
/// use std::time::Duration;
///
/// let limit = RateLimit::new(60, Duration::from_secs(60)).burst(10);
/// assert_eq!("60/min".parse::<RateLimit>()?.burst(10), limit);
/// let server = Server::new("notes", "1.0").layer(limit.layer());
/// # Ok::<(), linchpin_middleware::RateLimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "throttle")]
pub struct RateLimit {
    calls: u32,
    per: Duration,
    burst: u32,
    over_all_items: bool,
    buckets_max: usize,
}

impl RateLimit {
    /// Creates a limit of this many calls, at least one, per this duration. All of them may arrive at once.
    pub fn new(calls: u32, per: Duration) -> RateLimit {
        let calls = calls.max(1);
        RateLimit { calls, per, burst: calls, over_all_items: false, buckets_max: 10_000 }
    }

    /// Sets how many calls may arrive at once. Default: as many as are allowed in the whole time.
    #[must_use]
    pub fn burst(mut self, calls: u32) -> RateLimit {
        self.burst = calls.max(1);
        self
    }

    /// Counts all calls of a caller together, instead of separately for each item.
    ///
    /// ```
    /// use linchpin_middleware::RateLimit;
    /// use linchpin_server::Server;
    /// use std::time::Duration;
    ///
    /// // 100 calls a minute, of which at most 10 of one item.
    /// let minute = Duration::from_secs(60);
    /// let server = Server::new("notes", "1.0")
    ///     .layer(RateLimit::new(100, minute).over_all_items().layer())
    ///     .layer(RateLimit::new(10, minute).layer());
    /// ```
    #[must_use]
    pub fn over_all_items(mut self) -> RateLimit {
        self.over_all_items = true;
        self
    }

    /// Sets the maximum number of buckets. Default 10,000. Callers beyond that number share one bucket.
    #[must_use]
    pub fn buckets_max(mut self, buckets: usize) -> RateLimit {
        self.buckets_max = buckets;
        self
    }

    /// Returns the layer, for `Server::layer`. Each layer has its own buckets.
    pub fn layer(self) -> impl Fn(Call, Next) -> BoxFuture<'static, Reply> + Send + Sync + 'static {
        let buckets = Buckets::new(self);
        move |call, next| match buckets.take(&call) {
            Ok(()) => next.run(call),
            Err(wait) => Box::pin(std::future::ready(refuse(call, &buckets.limit, wait))),
        }
    }
}

fn refuse(call: Call, limit: &RateLimit, wait: Duration) -> Reply {
    tracing::info!(method = call.method(), "refused a call beyond the rate limit");
    let seconds = (wait.as_secs_f64() * 10.0).ceil() / 10.0;
    // A name may be as long as the request.
    let name = if call.name().is_empty() { call.method() } else { call.name() };
    let name: String = name.chars().take(80).collect();
    let message = format!("rate limit of {limit} exceeded for {name}; try again in {seconds} s");
    match call.method() {
        "tools/call" => call.refuse(&message),
        _ => {
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            call.refuse_protocol_with(LIMITED, &message, &json!({ "retryAfterMs": ms }))
        }
    }
}

/// `10/s`: calls in a time.
impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, unit)| *unit == self.per) {
            Some((name, _)) => write!(f, "{}/{name}", self.calls),
            None => write!(f, "{} in {} s", self.calls, self.per.as_secs_f64()),
        }
    }
}

const UNITS: [(&str, Duration); 4] = [
    ("s", Duration::from_secs(1)),
    ("min", Duration::from_secs(60)),
    ("h", Duration::from_secs(3_600)),
    ("day", Duration::from_secs(86_400)),
];

impl FromStr for RateLimit {
    type Err = RateLimitError;

    /// Reads `10/s`, `60/min`, `1000/h` or `5000/day`.
    fn from_str(text: &str) -> Result<RateLimit, RateLimitError> {
        let unreadable = || RateLimitError(text.chars().take(40).collect());
        let (calls, unit) = text.split_once('/').ok_or_else(unreadable)?;
        let calls = calls.trim().parse().ok().filter(|calls| *calls > 0).ok_or_else(unreadable)?;
        let (_, per) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(unreadable)?;
        Ok(RateLimit::new(calls, *per))
    }
}

/// The error of parsing an invalid [`RateLimit`].
///
/// ```
/// use linchpin_middleware::{RateLimit, RateLimitError};
///
/// let error: RateLimitError = "10 per second".parse::<RateLimit>().unwrap_err();
/// assert!(error.to_string().starts_with("`10 per second` is not a rate such as 10/s"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitError(String);

impl fmt::Display for RateLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a rate such as 10/s, 60/min, 1000/h or 5000/day", self.0)
    }
}

impl std::error::Error for RateLimitError {}

/// A token bucket.
#[derive(Clone, Copy)]
struct Bucket {
    /// When it will be full again: it is full while that has passed.
    full_at: Instant,
    /// Further rounds that the tokens taken have paid for.
    rounds: u32,
}

impl Bucket {
    fn full(now: Instant) -> Bucket {
        Bucket { full_at: now, rounds: 0 }
    }
}

/// All buckets.
struct Buckets {
    limit: RateLimit,
    /// The time after which one token is back.
    each: Duration,
    table: Mutex<Table>,
}

/// The digest of a caller, a method and an item.
type Key = [u8; 32];

fn key(caller: &str, method: &str, name: &str) -> Key {
    let mut all = digest::Context::new(&SHA256);
    for part in [caller, method, name] {
        // Its length keeps a part from ending in the next.
        all.update(&part.len().to_le_bytes());
        all.update(part.as_bytes());
    }
    let mut key = Key::default();
    key.copy_from_slice(all.finish().as_ref());
    key
}

struct Table {
    buckets: HashMap<Key, Bucket>,
    /// The bucket of callers for which there is no room.
    others: Bucket,
    /// When full buckets are looked for again.
    sweep_at: Instant,
}

impl Buckets {
    fn new(limit: RateLimit) -> Buckets {
        let now = Instant::now();
        let each = limit.per / limit.calls;
        let table = Table { buckets: HashMap::new(), others: Bucket::full(now), sweep_at: now };
        Buckets { limit, each, table: Mutex::new(table) }
    }

    /// Takes a token, or says how long to wait for one.
    fn take(&self, call: &Call) -> Result<(), Duration> {
        let caller = caller::key(call);
        let (method, item) = if self.limit.over_all_items { ("", None) } else { (call.method(), call.item()) };
        self.take_at(key(&caller, method, item.unwrap_or_default()), call.round_trip() > 0, Instant::now())
    }

    fn take_at(&self, key: Key, goes_on: bool, now: Instant) -> Result<(), Duration> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let table = &mut *table;
        if table.buckets.len() >= self.limit.buckets_max && now >= table.sweep_at {
            table.buckets.retain(|_, bucket| bucket.full_at > now);
            // Not at every call while all of them are in use.
            table.sweep_at = now + Duration::from_secs(1);
        }
        let has_room = table.buckets.len() < self.limit.buckets_max;
        let bucket = match table.buckets.get_mut(&key) {
            Some(bucket) => bucket,
            None if has_room => table.buckets.entry(key).or_insert(Bucket::full(now)),
            None => &mut table.others,
        };
        if goes_on && bucket.rounds > 0 {
            bucket.rounds -= 1;
            return Ok(());
        }
        let after = bucket.full_at.max(now) + self.each;
        // Empty is as far from full as all tokens take to come back.
        match after.checked_duration_since(now + self.each * self.limit.burst) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                bucket.full_at = after;
                // A call that has used up its rounds begins new ones with this token.
                let most = self.limit.burst.saturating_mul(ROUNDS);
                bucket.rounds = bucket.rounds.saturating_add(ROUNDS).min(most);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_one_token_at_a_time() {
        let buckets = Buckets::new(RateLimit::new(10, ms(1_000)).burst(3));
        let start = Instant::now();
        let take = |at: u64| buckets.take_at(key("a", "", ""), false, start + ms(at));
        assert_eq!([take(0), take(0), take(0)], [Ok(()); 3]);
        assert_eq!([take(0), take(40), take(99)], [Err(ms(100)), Err(ms(60)), Err(ms(1))]);
        assert_eq!([take(100), take(100)], [Ok(()), Err(ms(100))]);
        // Refused calls cost nothing, and more than the burst is never saved.
        assert_eq!([take(9_000), take(9_000), take(9_000), take(9_000)], [Ok(()), Ok(()), Ok(()), Err(ms(100))]);
        assert_eq!(buckets.take_at(key("b", "", ""), false, start), Ok(()));
    }

    #[test]
    fn a_token_pays_for_four_further_rounds_and_no_more() {
        let buckets = Buckets::new(RateLimit::new(1, ms(1_000)));
        let start = Instant::now();
        let take = |goes_on: bool, at: u64| buckets.take_at(key("a", "", ""), goes_on, start + ms(at)).is_ok();
        assert!(take(false, 0) && !take(false, 0));
        assert_eq!([0; 5].map(|at| take(true, at)), [true, true, true, true, false]);
        // What was not used is not saved up.
        assert!(take(false, 1_000) && take(false, 2_000));
        assert_eq!([2_000; 5].map(|at| take(true, at)), [true, true, true, true, false]);
    }

    #[test]
    fn caller_method_and_name_have_a_bucket_of_their_own() {
        let keys = [key("a", "b", "c"), key("ab", "", "c"), key("a", "bc", ""), key("", "ab", "c"), key("a", "b", "")];
        assert_eq!(std::collections::HashSet::from(keys).len(), keys.len());
        assert_eq!(key("a", "b", "c"), keys[0]);
        assert_eq!(size_of_val(&key("a", "b", &"c".repeat(1 << 20))), 32);
    }

    #[test]
    fn buckets_are_bounded_and_those_in_use_are_not_given_up() {
        let buckets = Buckets::new(RateLimit::new(1, ms(1_000)).buckets_max(2));
        let start = Instant::now();
        let take = |caller: &str, at: u64| buckets.take_at(key(caller, "", ""), false, start + ms(at)).is_ok();
        assert!(take("a", 0) && take("b", 0) && take("c", 0));
        // "c" and "d" share a bucket; "a" and "b" keep theirs.
        assert!(!take("d", 0) && !take("a", 0) && !take("b", 0));
        assert!(take("d", 1_000) && take("e", 1_000));
        assert_eq!(buckets.table.lock().unwrap().buckets.len(), 2);
    }

    #[test]
    fn rates_are_read_as_they_are_written() {
        for text in ["10/s", "60/min", "1000/h", "5000/day"] {
            assert_eq!(text.parse::<RateLimit>().unwrap().to_string(), text);
        }
        for text in ["", "10", "0/s", "-1/s", "10/week", "ten/s", "10/s/s", "4294967296/s"] {
            let error = text.parse::<RateLimit>().unwrap_err().to_string();
            assert_eq!(error, format!("`{text}` is not a rate such as 10/s, 60/min, 1000/h or 5000/day"));
        }
        assert_eq!(RateLimit::new(3, ms(1_500)).to_string(), "3 in 1.5 s");
    }
}
