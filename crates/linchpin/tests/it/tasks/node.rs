//! A server in a process of its own, which tests pause and kill. Its handlers write what they do into files.

use super::Sure;
use linchpin::prelude::*;
use linchpin::store::{Secrets, Store};
use linchpin::testing::TestClient;
use linchpin::types::version::Revision;
use linchpin::{Tasks, transport};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::net::UnixStream;

/// Where the files are; the name of the node; the Redis server, if the tasks are there.
const FOLDER: &str = "LINCHPIN_TEST_TASK_FOLDER";
const NAME: &str = "LINCHPIN_TEST_TASK_NODE";
const REDIS: &str = "LINCHPIN_TEST_TASK_REDIS";

pub(super) const STEPS: usize = 5;
pub(super) const LEASE_MS: u64 = 400;

#[derive(Deserialize, JsonSchema)]
struct Long {
    /// How long a step takes.
    ms: Option<u64>,
}

/// Adds a line to a file, at once and whole.
fn log(folder: &Path, file: &str, line: &str) {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(folder.join(file)).expect("a file");
    file.write_all(format!("{line}\n").as_bytes()).expect("a line");
}

fn server(folder: &Path, store: Store) -> Server<PathBuf> {
    let steps = async |folder: &PathBuf, cx: &Cx, q: Long| -> Result<String> {
        cx.become_task().await;
        let id = cx.task_id().unwrap_or_default();
        log(folder, "starts", &id);
        for n in 0..STEPS {
            let effect = async {
                log(folder, "effects", &format!("{id} {n}"));
                tokio::time::sleep(Duration::from_millis(q.ms.unwrap_or(15))).await;
                Ok(n)
            };
            cx.memoize(&format!("{n}"), effect).await?;
            log(folder, "kept", &format!("{id} {n}"));
        }
        let sure: Sure = cx.elicit("sure", "Really?").await?;
        log(folder, "answered", &format!("{id} {}", sure.yes));
        Ok(format!("{STEPS} steps, {}", sure.yes))
    };
    let once = async |folder: &PathBuf, cx: &Cx, q: Long| -> Result<&'static str> {
        cx.become_task().await;
        log(folder, "once", &cx.task_id().unwrap_or_default());
        tokio::time::sleep(Duration::from_millis(q.ms.unwrap_or(150))).await;
        Ok("once")
    };
    Server::new("killed", "1")
        .limits(|limits| {
            (limits.tasks.lease_ms, limits.tasks.suspend_ms) = (LEASE_MS, 100);
            limits.tasks.running_per_owner_max = 2_000;
            limits.tasks.running_max = 2_000;
            limits.tasks.kept_per_owner_max = 5_000;
            limits.tasks.polls_per_second_max = 1_000;
            limits.calls.per_peer_max = 4_096;
        })
        .tasks(Tasks::at(store))
        .state(folder.to_owned())
        .tool(Tool::new("steps", "").task_required().resumable(), steps)
        .tool(Tool::new("once", "").task_required(), once)
}

/// Not a test: the process.
#[test]
#[ignore = "the process that other tests start and kill"]
fn child() {
    let (Some(folder), Some(name)) = (std::env::var_os(FOLDER).map(PathBuf::from), std::env::var_os(NAME)) else {
        return;
    };
    let store = match std::env::var(REDIS) {
        Ok(url) => Store::redis(url.as_str(), Secrets::new([7; 32])).expect("a store"),
        Err(_) => Store::sqlite(folder.join("tasks.db")).expect("a store"),
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let served = runtime.block_on(server(&folder, store).serve(transport::unix(folder.join(name))));
    panic!("served: {served:?}");
}

/// A running process. Dropping it is SIGKILL.
pub(super) struct Node {
    process: Child,
    socket: PathBuf,
}

impl Node {
    /// Starts one, with its tasks in a file, or in Redis.
    pub(super) fn start(folder: &Path, name: &str, redis: Option<&str>) -> Node {
        let socket = folder.join(name);
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "tasks::node::child", "--ignored", "--nocapture"]);
        command.env(FOLDER, folder).env(NAME, name).env_remove(REDIS).envs(redis.map(|url| (REDIS, url)));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process");
        Node { process, socket }
    }

    pub(super) async fn client(&self) -> TestClient<UnixStream> {
        let begun = Instant::now();
        loop {
            match UnixStream::connect(&self.socket).await {
                Ok(stream) => {
                    return TestClient::new(stream, Revision::LATEST)
                        .capability("elicitation", json!({}))
                        .capability("extensions", json!({ "io.modelcontextprotocol/tasks": {} }));
                }
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(20), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// `STOP` or `CONT`.
    pub(super) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([&format!("-{signal}"), &self.process.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) async fn make(client: &mut TestClient<UnixStream>, tool: &str, arguments: Value) -> String {
    let made = client.call(tool, arguments).await.expect("a task");
    made["taskId"].as_str().expect("an id").to_owned()
}

pub(super) async fn get(client: &mut TestClient<UnixStream>, id: &str) -> Value {
    client.request("tasks/get", json!({ "taskId": id })).await.expect("no task is lost")
}

pub(super) async fn answer(client: &mut TestClient<UnixStream>, id: &str) {
    let answers = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    let params = json!({ "taskId": id, "inputResponses": answers });
    client.request("tasks/update", params).await.expect("an acknowledgement");
}

/// Looks until a task has this status.
pub(super) async fn until(client: &mut TestClient<UnixStream>, id: &str, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let task = get(client, id).await;
        if task["status"] == status {
            return task;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "not {status}: {task}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The lines that handlers have written into a file, and how often each.
pub(super) fn counts(folder: &Path, file: &str) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    let mut counts = BTreeMap::new();
    text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}
