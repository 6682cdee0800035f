//! A server that is a function of the messages it gets, and records them all.

use linchpin::client::Connection;
use linchpin::prelude::*;
use linchpin::transport::{Pipes, pipes};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// All lines that the client sent.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn messages(&self) -> Vec<Value> {
        self.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn methods(&self) -> Vec<String> {
        self.messages().iter().map(|m| m["method"].as_str().unwrap_or("(response)").to_owned()).collect()
    }

    pub fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|m| *m == method).count()
    }
}

/// A server that sends this in response to each message, one message per line, with `ID` for the request's id.
pub fn scripted(mut answer: impl FnMut(&Value) -> String + Send + 'static) -> (Pipes, Heard) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (read, write) = tokio::io::split(ours);
    let heard = Heard::default();
    let written = heard.clone();
    tokio::spawn(async move {
        let (read, mut write) = tokio::io::split(theirs);
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            written.0.lock().unwrap().push(line);
            let answer = answer(&message).replace("ID", &message["id"].to_string());
            write.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (pipes(read, write), heard)
}

/// Connects to such a server.
pub async fn connect(client: Client, answer: impl FnMut(&Value) -> String + Send + 'static) -> (Connection, Heard) {
    let (place, heard) = scripted(answer);
    (client.connect(place).await.unwrap(), heard)
}

/// A response with this result.
pub fn result(result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{result}}}\n")
}

/// A response with an error of this code.
pub fn refusal(code: i32) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{{\"code\":{code},\"message\":\"no\"}}}}\n")
}
