//! An MCP App: a tool whose result is shown by a page, which keeps itself up to date with a tool of its own.
//!
//! ```sh
//! cargo run -p linchpin-examples --example clock
//! ```
//!
//! Hosts that show pages get the face; others get the time as text.

use linchpin::apps::App;
use linchpin::prelude::*;
use std::time::{SystemTime, UNIX_EPOCH};

struct Clock;

#[derive(Serialize, JsonSchema)]
struct Time {
    /// Hours, minutes and seconds (UTC).
    time: String,
}

fn utc() -> Json<Time> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Json(Time { time: format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) })
}

#[register]
impl Clock {
    /// Returns the time (UTC).
    #[tool(read_only, ui = "ui://clock/face")]
    fn now(&self) -> Json<Time> {
        utc()
    }

    /// Returns the time for the face.
    #[tool(read_only, ui = "ui://clock/face", visible = "app")]
    fn tick(&self) -> Json<Time> {
        utc()
    }
}

fn server() -> Server {
    let face = App::new("ui://clock/face", include_str!("face.html")).name("face").border(true);
    Server::new("clock", "1.0").with(face).with(Clock)
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    server().serve(stdio()).await
}

#[cfg(test)]
mod tests;
