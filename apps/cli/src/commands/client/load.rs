//! `linchpin load`: calls a tool repeatedly and reports throughput and latency.

use super::call::{failed, given};
use super::input::Input;
use crate::client::session::{self, Session, TalkArgs};
use crate::client::target::TargetArgs;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::bar::waiting;
use crate::show::out::{Out, count};
use clap::Args;
use linchpin::client::Error;
use linchpin_core::exact;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    input: Input,

    /// Number of concurrent calls.
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    concurrency: u32,

    /// Duration of the run, for example 10 or 1m [default: 10 without --requests].
    #[arg(short, long, value_name = "SECONDS", value_parser = crate::duration::read)]
    duration: Option<Duration>,

    /// Total number of calls.
    #[arg(short = 'n', long, value_name = "N")]
    requests: Option<u64>,

    /// Number of calls before the measurement starts [default: the concurrency].
    #[arg(long, value_name = "N")]
    warm_up: Option<u64>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

/// Maximum number of latencies kept; percentiles cover only the first this many calls.
const LATENCIES_MAX: usize = 10_000_000;

/// Maximum number of distinct errors shown.
const ERRORS_MAX: usize = 5;

/// The results of a run.
#[derive(Default)]
struct Tally {
    /// In microseconds.
    latencies: Vec<u32>,
    calls: u64,
    failed: u64,
    errors: Vec<(String, u64)>,
    /// The first error that was not a tool's.
    first: Option<Error>,
}

impl Tally {
    fn add(&mut self, took: Duration, outcome: Result<(), String>) {
        self.calls += 1;
        if self.latencies.len() < LATENCIES_MAX {
            self.latencies.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
        }
        let Err(why) = outcome else { return };
        self.failed += 1;
        let room = self.errors.len() < ERRORS_MAX;
        match self.errors.iter_mut().find(|(known, _)| *known == why) {
            Some((_, n)) => *n += 1,
            None if room => self.errors.push((why, 1)),
            None => {}
        }
    }

    /// Returns the latency that `part` of the calls did not exceed, in milliseconds.
    fn at(&self, part: f64) -> f64 {
        let rank = (part * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(rank.saturating_sub(1)).map_or(0.0, |us| f64::from(*us) / 1000.0)
    }
}

pub(crate) fn run(mut args: LoadArgs) -> Result<(), Failure> {
    args.talk.json &= !args.input.by_json;
    let target = args.target.restrict_to(&mut args.input.words)?;
    if args.input.words.is_empty() {
        return Err(Failure::usage("missing tool name").hint("`linchpin tools` lists the tools"));
    }
    let name = args.input.words.remove(0);
    session::run(&args.talk, target, async |session| {
        let arguments = given(session, &name, &args.input.words, args.input.json.as_deref()).await?;
        let warm_up = args.warm_up.unwrap_or(u64::from(args.concurrency));
        let warm = drive(session, &name, &arguments, args.concurrency, Some(warm_up), None).await;
        if let (Some((why, _)), true) = (warm.errors.first(), warm.failed == warm.calls && warm_up > 0) {
            return Err(match &warm.first {
                Some(e) => failed(session, &name, e).await,
                None => Failure::new(format!("all warm-up calls failed: {why}")).exit(Exit::Failed),
            });
        }
        let duration = match (args.duration, args.requests) {
            (None, None) => Some(Duration::from_secs(10)),
            (duration, _) => duration,
        };
        let begun = Instant::now();
        let mut tally = drive(session, &name, &arguments, args.concurrency, args.requests, duration).await;
        let took = begun.elapsed();
        tally.latencies.sort_unstable();
        report(&tally, took, &name, &args, session)?;
        if tally.failed > 0 { Err(Failure::silent(Exit::Failed)) } else { Ok(()) }
    })
}

/// Keeps `concurrency` calls in flight until `requests` were sent or `duration` has elapsed.
async fn drive(
    session: &Session,
    name: &str,
    arguments: &Map<String, Value>,
    concurrency: u32,
    requests: Option<u64>,
    duration: Option<Duration>,
) -> Tally {
    let tally = Arc::new(Mutex::new(Tally::default()));
    let begun = Arc::new(AtomicU64::new(0));
    let until = duration.map(|time| Instant::now() + time);
    let raw: Arc<RawValue> = exact::raw(&Value::Object(arguments.clone())).into();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..concurrency {
        let (connection, name, raw) = (session.connection.clone(), name.to_owned(), raw.clone());
        let (tally, begun) = (tally.clone(), begun.clone());
        workers.spawn(async move {
            let more = || begun.fetch_add(1, Ordering::Relaxed) < requests.unwrap_or(u64::MAX);
            while until.is_none_or(|end| Instant::now() < end) && more() {
                let asked = Instant::now();
                let called = connection.call(&name, &*raw).await;
                let took = asked.elapsed();
                let outcome = match called {
                    Ok(result) if result.is_error() => {
                        Err(format!("the tool returned an error: {}", first_line(&result.text())))
                    }
                    Ok(_) => Ok(()),
                    Err(e) => {
                        let why = first_line(&e.to_string());
                        tally.lock().unwrap_or_else(PoisonError::into_inner).first.get_or_insert(e);
                        Err(why)
                    }
                };
                let lost = outcome.is_err() && connection.lost().is_some();
                tally.lock().unwrap_or_else(PoisonError::into_inner).add(took, outcome);
                if lost {
                    break;
                }
            }
        });
    }
    let counted = tally.clone();
    let said = move |took: Duration| {
        let calls = counted.lock().unwrap_or_else(PoisonError::into_inner).calls;
        format!("{} in {} s", count(calls as usize, "call"), took.as_secs())
    };
    waiting(async { while workers.join_next().await.is_some() {} }, None, said).await;
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *tally)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

fn report(tally: &Tally, took: Duration, name: &str, args: &LoadArgs, session: &Session) -> Result<(), Failure> {
    let round = |x: f64| (x * 1000.0).round() / 1000.0;
    let per_second = round((tally.calls - tally.failed) as f64 / took.as_secs_f64().max(1e-9));
    let max = tally.latencies.last().map_or(0.0, |us| f64::from(*us) / 1000.0);
    let mut out = Out::new();
    if args.talk.json {
        let errors: Vec<Value> = tally.errors.iter().map(|(why, n)| json!({ "error": why, "calls": n })).collect();
        out.json(&json!({
            "tool": name,
            "target": session.target,
            "revision": session.connection.revision().as_str(),
            "concurrency": args.concurrency,
            "seconds": round(took.as_secs_f64()),
            "calls": tally.calls,
            "failed": tally.failed,
            "callsPerSecond": per_second,
            "latencyMs": {
                "p50": round(tally.at(0.5)), "p90": round(tally.at(0.9)), "p99": round(tally.at(0.99)), "max": round(max),
            },
            "errors": errors,
        }))?;
    } else {
        let style = out.style;
        out.line(format!(
            "{} of {} in {:.2} s, {} concurrent",
            count(tally.calls as usize, "call"),
            style.bold(name),
            took.as_secs_f64(),
            args.concurrency
        ))?;
        out.line(format!("  {} calls/s", style.bold(&format!("{per_second:.1}"))))?;
        out.line(format!(
            "  p50 {:.3} ms   p90 {:.3} ms   p99 {:.3} ms   max {max:.3} ms",
            tally.at(0.5),
            tally.at(0.9),
            tally.at(0.99)
        ))?;
        if tally.failed > 0 {
            out.line(style.bad(&format!("  {} failed", count(tally.failed as usize, "call"))))?;
            for (why, n) in &tally.errors {
                out.line(format!("    {n} × {why}"))?;
            }
        }
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_latencies_that_occurred() {
        let mut tally = Tally::default();
        (1..=100).for_each(|ms| tally.add(Duration::from_millis(ms), Ok(())));
        tally.add(Duration::from_millis(500), Err("x".into()));
        tally.add(Duration::from_millis(500), Err("x".into()));
        tally.latencies.sort_unstable();
        assert_eq!((tally.at(0.5), tally.at(0.99), tally.at(1.0)), (51.0, 500.0, 500.0));
        assert_eq!((tally.calls, tally.failed, tally.errors), (102, 2, vec![("x".to_owned(), 2)]));
        assert_eq!(Tally::default().at(0.5), 0.0);
    }
}
