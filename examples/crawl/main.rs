//! Connects to many servers concurrently and lists what each offers.
//!
//!     cargo run -p linchpin-examples --example crawl -- https://a.example/mcp "npx -y some-server" …
//!
//! Arguments that begin with `http` are URLs, all others command lines. A server that hangs, misbehaves or exits does not affect
//! the others: each has its own deadline and limits. Without arguments it uses two servers inside this program.

use linchpin::prelude::*;
use linchpin::transport::Connector;
use std::io::Write;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Concurrent connections.
const AT_ONCE: usize = 16;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let client = Client::new("crawl", "1.0").limits(|limits| {
        limits.connections.open_ms_max = 30_000;
        limits.calls.run_ms_max = 10_000;
        limits.lists.items_max = 10_000;
        limits.messages.frame_bytes_max = 8 << 20;
    });
    let mut places: Vec<(String, Arc<dyn Connector>)> = Vec::new();
    for word in std::env::args().skip(1) {
        let place: Arc<dyn Connector> =
            if word.starts_with("http") { Arc::new(remote(&word)?) } else { Arc::new(child(&word)?) };
        places.push((word, place));
    }
    if places.is_empty() {
        places.push(("one".into(), Arc::new(in_process(Server::new("one", "1.0")))));
        let two = Server::new("two", "1.0").tool(Tool::new("hello", "Says hello."), || "hello");
        places.push(("two".into(), Arc::new(in_process(two))));
    }
    let free = Arc::new(Semaphore::new(AT_ONCE));
    let mut looks = JoinSet::new();
    for (name, place) in places {
        let (client, free) = (client.clone(), free.clone());
        looks.spawn(async move {
            let _one = free.acquire_owned().await;
            match look(&client, place).await {
                Ok(found) => format!("{name}\n{found}"),
                Err(why) => format!("{name}\n    {why}\n"),
            }
        });
    }
    let mut out = std::io::stdout();
    while let Some(report) = looks.join_next().await {
        if let Ok(report) = report {
            out.write_all(report.as_bytes())?;
        }
    }
    Ok(())
}

async fn look(client: &Client, place: Arc<dyn Connector>) -> Result<String, linchpin::client::Error> {
    let server = client.connect_to(place).await?;
    let tools = server.tools().await?;
    let mut found = format!(
        "    {} speaks {}: {} tools, {} resources, {} prompts\n",
        server.server().map_or("somebody".to_owned(), |s| format!("{} {}", s.name, s.version)),
        server.revision().as_str(),
        tools.len(),
        server.resources().await?.len(),
        server.prompts().await?.len(),
    );
    for refused in &tools.refused {
        found.push_str(&format!("    refused {}: {}\n", refused.name, refused.why));
    }
    server.close().await;
    Ok(found)
}
