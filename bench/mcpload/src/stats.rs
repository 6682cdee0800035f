//! Latency samples and their quantiles.
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Default)]
pub struct Lat(Vec<u32>);

impl Lat {
    /// Stored in units of 100 ns; 2^32 of them is 429 s.
    pub fn push(&mut self, d: Duration) {
        self.0.push((d.as_nanos() / 100).min(u32::MAX as u128) as u32);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds p50, p90, p99 and the maximum, in microseconds.
    pub fn add_to(&mut self, out: &mut Value) {
        self.0.sort_unstable();
        for (key, p) in [("p50_us", 0.50), ("p90_us", 0.90), ("p99_us", 0.99), ("max_us", 1.0)] {
            let rank = (self.0.len() as f64 * p).ceil() as usize;
            let at = rank.clamp(1, self.0.len().max(1)) - 1;
            out[key] = json!(self.0.get(at).map(|v| f64::from(*v) / 10.0));
        }
    }
}
