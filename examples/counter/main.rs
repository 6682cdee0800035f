//! A counter for each session: rmcp's `counter` example, with Linchpin (`docs/guide/src/from-rmcp.md`).
//!
//!     cargo run -p linchpin-examples --example counter                          # standard input and output
//!     cargo run -p linchpin-examples --example counter -- --http 127.0.0.1:8931
//!
//! A session is the connection on stdio, and the `Mcp-Session-Id` over HTTP. Clients of 2026-07-28 have no sessions over
//! HTTP: for them every call starts at zero (see `Server::session_state`).

use linchpin::prelude::*;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The state of one session. Calls of a session run concurrently, so it is an atomic.
#[derive(Default)]
struct Counter(AtomicI64);

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: i32,
    /// The second number.
    b: i32,
}

#[register]
impl Counter {
    /// Adds one to the counter and returns its new value.
    #[tool(additive)]
    fn increment(&self) -> String {
        (self.0.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// Takes one from the counter and returns its new value.
    #[tool(additive)]
    fn decrement(&self) -> String {
        (self.0.fetch_sub(1, Ordering::Relaxed) - 1).to_string()
    }

    /// Returns the value of the counter.
    #[tool(read_only)]
    fn get_value(&self) -> String {
        self.value().to_string()
    }

    /// Greets the caller.
    #[tool(read_only)]
    fn say_hello() -> &'static str {
        "hello"
    }

    /// Returns its arguments, whatever they are.
    #[tool(read_only)]
    fn echo(object: Map<String, Value>) -> String {
        Value::Object(object).to_string()
    }

    /// Adds two numbers.
    #[tool(read_only)]
    fn sum(Sum { a, b }: Sum) -> Result<String> {
        let sum = a.checked_add(b).ok_or_else(|| Error::tool(format!("{a} + {b} does not fit into 32 bits")))?;
        Ok(sum.to_string())
    }

    /// Works for ten seconds and reports progress.
    #[tool(read_only)]
    async fn long_task(cx: &Cx) -> &'static str {
        // No cancellation token is needed: when the client cancels the call, this future is dropped.
        for second in 1..=10 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cx.progress(f64::from(second), Some(10.0));
        }
        "done"
    }

    /// Returns the id of the HTTP session.
    #[tool(read_only)]
    fn get_session_id(cx: &Cx) -> Result<String> {
        let id = cx.headers().get("mcp-session-id").ok_or_else(|| Error::tool("this call has no HTTP session"))?;
        Ok(id.to_str()?.to_owned())
    }

    /// The working folder.
    #[resource("str:////srv/counter/", name = "cwd")]
    fn folder() -> &'static str {
        "/srv/counter/"
    }

    /// What the counter has to say.
    #[resource("memo://insights", name = "insights")]
    fn insights(&self) -> String {
        match self.value() {
            0 => "Nothing has been counted yet.".to_owned(),
            value => format!("The counter of this session is at {value}."),
        }
    }

    /// Passes a message on.
    #[prompt]
    fn example_prompt(
        /// The message.
        message: String,
    ) -> String {
        format!("Answer this message in one sentence: {message}")
    }

    /// Asks how to bring the counter to a value.
    #[prompt]
    fn counter_analysis(
        &self,
        /// The value that the counter should reach.
        goal: i64,
        /// `fast` or `careful`; careful when left out.
        strategy: Option<String>,
    ) -> Vec<PromptMessage> {
        let (value, strategy) = (self.value(), strategy.as_deref().unwrap_or("careful"));
        let away = goal.saturating_sub(value);
        vec![
            PromptMessage::assistant("Tell me where the counter is and where it should go."),
            PromptMessage::user(format!(
                "It is at {value} and should reach {goal}, which is {away} away. Which tools do you call, and how often? \
                 Be {strategy}."
            )),
        ]
    }

    fn value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn server() -> Server {
    Server::new("counter", "1.0")
        .instructions("A counter of your own: `increment`, `decrement` and `get_value`.")
        .with_session(Counter::default)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => server().serve(stdio().with_graceful_shutdown(shutdown_signal())).await?,
        ["--http", addr] => server().serve(http(addr).with_graceful_shutdown(shutdown_signal())).await?,
        _ => {
            eprintln!("usage: counter [--http ADDR]");
            std::process::exit(2);
        }
    }
    Ok(())
}
