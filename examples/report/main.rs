//! A slow tool as a task that survives its process.
//!
//!     cargo run -p linchpin-examples --example report -- reports.db     # Streamable HTTP on 127.0.0.1:8931
//!
//! Call `yearly`, kill the server while it runs, start it again: the task goes on after its last step. Without a file, tasks
//! end with the process.

use linchpin::prelude::*;
use linchpin::{Tasks, store::Store};
use std::time::Duration;

struct Reports;

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    /// Publish the report?
    yes: bool,
}

#[register]
impl Reports {
    /// Builds and publishes the report of a year.
    #[tool(task, resumable)]
    async fn yearly(
        &self,
        cx: &Cx,
        /** For example 2025. */
        year: u16,
    ) -> Result<String> {
        let mut sum = 0_u64;
        for month in 1..=12_u64 {
            // Each month is a step: what was counted before a crash is not counted again.
            sum += cx.memoize(&format!("month {month}"), count(year, month)).await?;
            cx.progress_with(month as f64, Some(12.0), &format!("counted {month} of 12 months"));
        }
        let confirm: Confirm = cx.elicit("publish", &format!("{sum} orders in {year}. Publish?")).await?;
        Ok(if confirm.yes { format!("published: {sum} orders in {year}") } else { "kept back".to_owned() })
    }
}

/// Stands for work that takes a while.
async fn count(year: u16, month: u64) -> Result<u64> {
    tokio::time::sleep(Duration::from_millis(if cfg!(test) { 30 } else { 1_000 })).await;
    Ok(u64::from(year) + month)
}

fn server(tasks: Tasks) -> Server {
    Server::new("reports", "1.0").with(Reports).tasks(tasks)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tasks = match std::env::args().nth(1) {
        Some(file) => Tasks::at(Store::sqlite(file)?),
        None => Tasks::memory(),
    };
    Ok(server(tasks).serve(http("127.0.0.1:8931").with_graceful_shutdown(shutdown_signal())).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin::testing::TestClient;
    use linchpin::types::version::Revision;
    use serde_json::{Value, json};

    #[tokio::test]
    async fn the_report_is_counted_in_a_task_asked_for_and_published() {
        let (ours, theirs) = memory();
        let served = tokio::spawn(server(Tasks::memory()).serve(ours));
        let mut client = TestClient::new(theirs, Revision::LATEST)
            .capability("elicitation", json!({}))
            .capability("extensions", json!({ "io.modelcontextprotocol/tasks": {} }));
        client.open().await;
        let made = client.call("yearly", json!({ "year": 2025 })).await.expect("a task");
        assert_eq!(made["resultType"], "task", "{made}");
        let about = json!({ "taskId": made["taskId"] });
        let until = async |client: &mut TestClient<_>, status: &str| -> Value {
            for _ in 0..100 {
                let task = client.request("tasks/get", about.clone()).await.expect("the task");
                if task["status"] == status {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
            panic!("never {status}");
        };
        let asking = until(&mut client, "input_required").await;
        assert_eq!(asking["statusMessage"], "counted 12 of 12 months");
        assert_eq!(asking["inputRequests"]["publish"]["params"]["message"], "24378 orders in 2025. Publish?");
        let yes = json!({ "publish": { "action": "accept", "content": { "yes": true } } });
        client
            .request("tasks/update", json!({ "taskId": made["taskId"], "inputResponses": yes }))
            .await
            .expect("an acknowledgement");
        let done = until(&mut client, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], "published: 24378 orders in 2025");
        drop(client);
        let _ = served.await;
    }
}
