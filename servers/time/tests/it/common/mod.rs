//! A server in this program, a clock that stands still, and calls by name as a client makes them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use linchpin::client::{Client, Connection};
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin_time::{Clock, Config, Time};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// A clock that stands at this Unix second.
pub fn clock_at(second: u64) -> Clock {
    Clock::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(second))
}

/// 2026-11-21T09:30:15Z, a Saturday.
pub const NOW: u64 = 1_795_253_415;

/// The server of this configuration, whose clock stands at [`NOW`] and whose local zone is Paris unless it says otherwise.
pub fn config() -> Config {
    Config::default().with(|config| {
        config.local_timezone = Some("Europe/Paris".into());
        config.clock = clock_at(NOW);
    })
}

pub fn server(config: Config) -> Server<Time> {
    let (time, warnings) = Time::open(config).expect("it opens");
    assert_eq!(warnings, Vec::<String>::new());
    time.add_to(Server::new("linchpin-time", "0")).expect("it is put together rightly")
}

pub struct Caller(pub Connection);

/// A tool's text and structured content, or the text of its error.
pub type Answer = Result<(String, Value), String>;

impl Caller {
    /// Of the server as [`config`] has it.
    pub async fn new() -> Self {
        Self::of(config()).await
    }

    pub async fn of(config: Config) -> Self {
        Self::speaking(config, &Revision::ALL).await
    }

    pub async fn speaking(config: Config, revisions: &[Revision]) -> Self {
        let client = Client::new("test", "0").revisions(revisions).check_results(true);
        Self(client.connect(in_process(server(config))).await.expect("it connects"))
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Answer {
        let result = self.0.call(tool, arguments).await.expect("an answer");
        if result.is_error() {
            return Err(result.text());
        }
        let structured = result.structured().map(|json| serde_json::from_str(json).expect("JSON"));
        Ok((result.text(), structured.unwrap_or(Value::Null)))
    }

    /// The structured content of a call that must succeed; its text must say the same.
    pub async fn value(&self, tool: &str, arguments: Value) -> Value {
        let (text, value) =
            self.call(tool, arguments.clone()).await.unwrap_or_else(|e| panic!("{tool} {arguments}: {e}"));
        let said: Value = serde_json::from_str(&text).expect("the text is JSON");
        assert_eq!(said, value, "{tool} {arguments}");
        assert_eq!(text, serde_json::to_string_pretty(&value).expect("JSON"), "indented by two: {tool} {arguments}");
        value
    }

    /// The error of a call that must fail.
    pub async fn error(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments.clone()).await {
            Err(error) => error,
            Ok((text, _)) => panic!("{tool} {arguments} succeeded: {text}"),
        }
    }
}
