//! `linchpin ping`: checks that a server responds, and how fast.

use super::plain::Plain;
use crate::client::session;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::out::Out;
use clap::Args;
use serde_json::json;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct PingArgs {
    /// Number of pings.
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    count: u32,

    /// Interval between pings, for example 1 or 200ms.
    #[arg(short, long, value_name = "SECONDS", value_parser = crate::duration::read, default_value = "1")]
    interval: Duration,

    #[command(flatten)]
    plain: Plain,
}

pub(crate) fn run(args: PingArgs) -> Result<(), Failure> {
    let begun = Instant::now();
    session::run(&args.plain.talk, args.plain.resolve()?, async |session| {
        let opened = begun.elapsed();
        let mut out = Out::new();
        for n in 0..args.count {
            if n > 0 {
                tokio::time::sleep(args.interval).await;
            }
            let asked = Instant::now();
            busy("pinging the server", session.connection.ping()).await.map_err(|e| session.told(&e))?;
            let ms = ms(asked.elapsed());
            if args.plain.talk.json {
                let revision = session.connection.revision().as_str();
                out.json_line(&json!({ "ms": ms, "openedMs": self::ms(opened), "revision": revision }))?;
            } else {
                let revision = session.connection.revision();
                out.line(format!("{} responded in {ms} ms ({revision})", session.target))?;
            }
            out.flush()?;
        }
        Ok(())
    })
}

/// Milliseconds with two decimals.
fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}
