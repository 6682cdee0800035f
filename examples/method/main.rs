//! A method that the specification does not have, and a client that calls it.
//!
//! ```sh
//! cargo run -p linchpin-examples --example method
//! ```

use linchpin::prelude::*;
use serde_json::{Value, json};
use std::io::Write as _;

struct Notes(Vec<&'static str>);

#[derive(Deserialize, JsonSchema)]
struct Search {
    text: String,
}

async fn search(notes: &Notes, q: Search) -> Json<Value> {
    let found: Vec<_> = notes.0.iter().filter(|note| note.contains(&q.text)).collect();
    Json(json!({ "found": found }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let notes = Notes(vec!["buy milk", "call Ada", "milk the cow"]);
    let server = Server::new("notes", "1.0").state(notes).method("example.com/search", search);
    let connection = Client::new("example", "1.0").connect(in_process(server)).await?;
    let found = connection.request("example.com/search", json!({ "text": "milk" })).await?;
    writeln!(std::io::stdout(), "{}", found.get())?;
    Ok(())
}
