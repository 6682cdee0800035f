//! A server for strangers: each client may call each tool ten times a minute, and who called what is written down.
//!
//! `cargo run -p linchpin-examples --example rate-limited-and-audited -- audit.jsonl`
//!
//! Probes ask http://127.0.0.1:8931/healthz and /readyz, Prometheus asks /metrics.

use linchpin::BoxError;
use linchpin::middleware::{Audit, Metrics, RateLimit};
use linchpin::prelude::*;
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct Roll {
    /// How many sides the die has.
    sides: u32,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "audit.jsonl".to_owned());
    let metrics = Metrics::new();
    let server = dice().layer_requests(Audit::file(file)?.layer()).observe(metrics.clone());
    let transport = http("127.0.0.1:8931")
        .health()
        .metrics(move || metrics.render())
        .on_ready(|addr| eprintln!("http://{addr}/mcp"))
        .with_graceful_shutdown(shutdown_signal());
    server.serve(transport).await?;
    Ok(())
}

/// Only calls that have a handler are limited; the audit is around all requests, so it also records what is refused.
fn dice() -> Server {
    Server::new("dice", "1.0")
        .tool(("roll", "Rolls a die."), roll)
        .layer(RateLimit::new(10, Duration::from_secs(60)).burst(3).layer())
}

async fn roll(q: Roll) -> Result<String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_err(Error::internal)?;
    match q.sides {
        0 => Err(Error::tool("a die has at least one side")),
        sides => Ok((now.subsec_nanos() % sides + 1).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_fourth_call_in_a_row_is_refused() -> Result<(), BoxError> {
        let host = Client::new("test", "1.0").connect(in_process(dice())).await?;
        for _ in 0..3 {
            assert_eq!(host.call("roll", serde_json::json!({ "sides": 1 })).await?.text(), "1");
        }
        let refused = host.call("roll", serde_json::json!({ "sides": 1 })).await?;
        assert!(refused.is_error() && refused.text().contains("try again in 6 s"), "{}", refused.text());
        Ok(())
    }
}
