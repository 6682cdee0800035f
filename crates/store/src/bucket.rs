//! Rate limits.

use crate::BoxFuture;
use crate::clock::micros;
use crate::error::Error;
use std::time::Duration;

/// Token buckets, identified by keys: within any time `t`, at most `burst + rate · t` tokens are taken.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Rate, Store, Take};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let rate = Rate::new(20, Duration::from_secs(60), 2)?; // 20 a minute, 2 at once
/// assert_eq!(store.bucket().take("rate/ada", 2, rate).await?, Take::Ok);
/// assert!(matches!(store.bucket().take("rate/ada", 1, rate).await?, Take::RetryAfter(_)));
/// # Ok(())
/// # }
/// ```
pub trait Bucket: Send + Sync + 'static {
    /// Takes `cost` tokens from a bucket, or returns how long to wait until that is possible.
    ///
    /// Retrying after an error may take the tokens twice. A cost greater than the burst is an error.
    fn take<'a>(&'a self, key: &'a str, cost: u32, rate: Rate) -> BoxFuture<'a, Result<Take, Error>>;
}

/// The result of [`Bucket::take`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Rate, Store, Take};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let rate = Rate::new(60, Duration::from_secs(60), 1)?;
/// match store.bucket().take("rate/ada", 1, rate).await? {
///     Take::Ok => println!("go ahead"),
///     Take::RetryAfter(wait) => println!("try again in {wait:?}"),
/// }
/// # assert!(matches!(store.bucket().take("rate/ada", 1, rate).await?, Take::RetryAfter(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Take {
    /// The tokens were taken.
    Ok,
    /// Nothing was taken. After this time the bucket has enough tokens, unless other callers take them first.
    RetryAfter(Duration),
}

/// How fast a bucket fills, and how much it holds.
///
/// # Example
///
/// ```
/// use linchpin_store::Rate;
/// use std::time::Duration;
///
/// let rate = Rate::new(100, Duration::from_secs(60), 10)?; // 100 a minute, at most 10 at once
/// assert_eq!(rate, Rate::new(200, Duration::from_secs(120), 10)?);
/// assert!(Rate::new(0, Duration::from_secs(60), 10).is_err());
/// # Ok::<(), linchpin_store::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Microseconds for one.
    interval_us: f64,
    burst: u32,
}

impl Rate {
    /// Creates a rate of `count` tokens per `per`, in a bucket that holds up to `burst` tokens.
    ///
    /// # Errors
    /// If one of the arguments is zero.
    pub fn new(count: u32, per: Duration, burst: u32) -> Result<Rate, Error> {
        if count == 0 || per.is_zero() || burst == 0 {
            return Err(Error::invalid(format!(
                "a rate of {count} in {per:?} with a burst of {burst}: none may be zero"
            )));
        }
        Ok(Rate { interval_us: per.as_secs_f64() * 1e6 / f64::from(count), burst })
    }

    /// How long `cost` takes to fill, and the whole bucket, in microseconds.
    pub(crate) fn times_us(self, cost: u32) -> Result<(f64, f64), Error> {
        if cost > self.burst {
            return Err(Error::invalid(format!("a cost of {cost} is more than the burst of {}", self.burst)));
        }
        Ok((self.interval_us * f64::from(cost), self.interval_us * f64::from(self.burst)))
    }
}

/// The generic cell rate algorithm: the time at which the bucket is full again, in microseconds, or how long to wait.
pub(crate) fn gcra(
    full_at_us: Option<f64>,
    now: Duration,
    cost: u32,
    rate: Rate,
) -> Result<Result<f64, Duration>, Error> {
    let (cost_us, burst_us) = rate.times_us(cost)?;
    let now_us = micros(now) as f64;
    let next = full_at_us.unwrap_or(now_us).max(now_us) + cost_us;
    let wait_us = next - now_us - burst_us;
    // Rounding: a wait of less than this is none.
    match wait_us > 0.01 {
        true => Ok(Err(Duration::from_micros(wait_us.ceil() as u64))),
        false => Ok(Ok(next)),
    }
}
