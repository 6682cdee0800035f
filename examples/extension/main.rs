//! A protocol extension of one's own: announced, negotiated, with a method for clients that declare it.
//!
//! ```sh
//! cargo run -p linchpin-examples --example extension
//! ```

use linchpin::Extension;
use linchpin::prelude::*;
use serde_json::json;
use std::io::Write as _;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Query {
    query: String,
}

#[derive(Serialize, Deserialize)]
struct Found {
    notes: Vec<String>,
}

struct Notes([&'static str; 3]);

async fn run(notes: &Notes, q: Query) -> Json<Found> {
    Json(Found {
        notes: notes.0.iter().filter(|note| note.contains(&q.query)).map(|note| (*note).to_owned()).collect(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let notes = Notes(["buy milk", "call Ada", "milk the cow"]);
    let search = Extension::new("com.example/search", json!({})).state(notes).method("run", run).named_by("query");
    let server = Server::new("notes", "1.0").with(search);

    let client = Client::new("example", "1.0").extension("com.example/search", &json!({}));
    let connection = client.connect(in_process(server)).await?;
    let query = Query { query: "milk".to_owned() };
    let found = connection.request("com.example/search/run", &query).named(&query.query).json::<Found>().await?;
    writeln!(std::io::stdout(), "{}", found.notes.join(", "))?;
    Ok(())
}
