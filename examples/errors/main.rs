//! Errors of every kind: standard ones with `?`, `anyhow` together with elicitation, and causes that stay in the log.
//!
//!     cargo run -p linchpin-examples --example errors
//!
//! The server runs inside this program; it prints what a client receives for each failure.

use anyhow::Context as _;
use linchpin::client::ErrorKind;
use linchpin::prelude::*;
use std::io::Write as _;

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// How many seats.
    seats: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    yes: bool,
}

/// `linchpin::Result`: `?` takes any standard error, whose text the model reads.
async fn count(order: Order) -> Result<String> {
    let seats: u8 = order.seats.parse()?;
    if seats > 4 {
        return Err(Error::tool(format!("there are 4 seats left, not {seats}; order fewer")));
    }
    Ok(format!("{seats} seats are free"))
}

/// `anyhow::Result`: the model reads the outermost context. An elicitation passes through `?` like any other
/// error, and the call continues once the user has responded.
async fn book(cx: &Cx, order: Order) -> anyhow::Result<String> {
    let seats: u8 = order.seats.parse().context("`seats` is not a number of seats")?;
    let sure: Sure = cx.elicit("sure", "Book them?").await?;
    anyhow::ensure!(sure.yes, "the user changed their mind");
    // Functions that return `linchpin::Result` can be called with `?`.
    let receipt = charge(seats).await?;
    Ok(receipt)
}

/// The cause is for the operator only: it is logged, and the model reads "internal error".
async fn charge(seats: u8) -> Result<String> {
    let ledger = std::fs::read_to_string("/nowhere/ledger").map_err(Error::internal)?;
    Ok(format!("{seats} seats are booked; {} bookings so far", ledger.lines().count()))
}

/// A library that uses anyhow, called from a handler that returns `linchpin::Result`.
async fn price(order: Order) -> Result<String> {
    fn lookup(seats: &str) -> anyhow::Result<f64> {
        anyhow::bail!("no price for {seats} seats")
    }
    Ok(format!("{} EUR", lookup(&order.seats).tool_err()?))
}

/// Not for the model but for the calling program: a JSON-RPC error with a custom code.
async fn refund() -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    Err(Error::protocol(1001, "refunds are closed"))?
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::new("booking", "1.0")
        .tool(Tool::new("count", "Counts free seats.").read_only(), count)
        .tool(Tool::new("book", "Books seats."), book)
        .tool(Tool::new("price", "What seats cost.").read_only(), price)
        .tool(Tool::new("refund", "Gives money back."), refund);
    // The library's own errors are standard errors: here `ConfigError`, below those of the client.
    server.tools().insert(("hello", "Says hello."), || "hello").context("cannot add `hello`")?;

    let host =
        Client::new("errors", "1.0").on_elicitation(async |form| form.accept(serde_json::json!({ "yes": true })));
    let client = host.connect(in_process(server)).await.context("cannot connect")?;
    let mut out = std::io::stdout();
    for (tool, seats) in
        [("count", "two"), ("count", "5"), ("count", "3"), ("book", "two"), ("book", "2"), ("price", "2")]
    {
        let result = client.call(tool, serde_json::json!({ "seats": seats })).await?;
        writeln!(out, "{tool} {seats}: {}", result.text())?;
    }
    // A failed tool is a result; a request that the server rejects is an error, with a kind.
    for tool in ["refund", "nosuch"] {
        let error = client.call(tool, ()).await.expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Rpc);
        writeln!(out, "{tool}: {error}")?;
    }
    client.close().await;
    assert!(client.ping().await.is_err_and(|error| error.is_closed()));
    Ok(())
}
