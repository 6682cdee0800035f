//! Tasks whose process is killed again and again: none that was told is lost, each ends once, and no step is repeated that was
//! kept.

use linchpin::prelude::*;
use linchpin::testing::TestClient;
use linchpin::types::version::Revision;
use linchpin::{Tasks, store::Store};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;

const FOLDER: &str = "LINCHPIN_TEST_TASK_FOLDER";
const STEPS: usize = 5;
const LEASE_MS: u64 = 400;

#[derive(Deserialize, JsonSchema)]
struct Sure {
    yes: bool,
}

/// Adds a line to a file, at once and whole.
fn log(folder: &Path, file: &str, line: &str) {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(folder.join(file)).expect("a file");
    file.write_all(format!("{line}\n").as_bytes()).expect("a line");
}

fn server(folder: &Path) -> Server<PathBuf> {
    let steps = async |folder: &PathBuf, cx: &Cx| -> Result<String> {
        cx.become_task().await;
        let id = cx.task_id().unwrap_or_default();
        log(folder, "starts", &id);
        for n in 0..STEPS {
            let effect = async {
                log(folder, "effects", &format!("{id} {n}"));
                tokio::time::sleep(Duration::from_millis(15)).await;
                Ok(n)
            };
            cx.memoize(&format!("{n}"), effect).await?;
            log(folder, "kept", &format!("{id} {n}"));
        }
        let sure: Sure = cx.elicit("sure", "Really?").await?;
        Ok(format!("{STEPS} steps, {}", sure.yes))
    };
    let once = async |folder: &PathBuf, cx: &Cx| -> Result<&'static str> {
        cx.become_task().await;
        log(folder, "once", &cx.task_id().unwrap_or_default());
        tokio::time::sleep(Duration::from_millis(150)).await;
        Ok("once")
    };
    let store = Store::sqlite(folder.join("tasks.db")).expect("a store");
    Server::new("killed", "1")
        .limits(|limits| {
            limits.tasks.lease_ms = LEASE_MS;
            limits.tasks.running_per_owner_max = 2_000;
            limits.tasks.running_max = 2_000;
            limits.tasks.kept_per_owner_max = 5_000;
            limits.calls.per_peer_max = 4_096;
        })
        .tasks(Tasks::at(store))
        .state(folder.to_owned())
        .tool(Tool::new("steps", "").task_required().resumable(), steps)
        .tool(Tool::new("once", "").task_required(), once)
}

/// Not a test: the process that is killed.
#[test]
#[ignore = "the process that the other tests start and kill"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let served = runtime.block_on(server(&folder).serve(linchpin::transport::unix(folder.join("socket"))));
    panic!("served: {served:?}");
}

struct Running(Child);

impl Running {
    fn start(folder: &Path) -> Running {
        let _ = std::fs::remove_file(folder.join("socket"));
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "task_kills::child", "--ignored", "--nocapture"]).env(FOLDER, folder);
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process"))
    }

    async fn client(&self, folder: &Path) -> TestClient<UnixStream> {
        let begun = Instant::now();
        loop {
            match UnixStream::connect(folder.join("socket")).await {
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
}

impl Drop for Running {
    /// SIGKILL.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lines(folder: &Path, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn counts(lines: Vec<String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    lines.into_iter().for_each(|line| *counts.entry(line).or_default() += 1);
    counts
}

/// Makes tasks, kills the process so many times while they run, then answers and fetches all.
async fn survive(tasks: usize, kills: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = Arc::new(folder.path().to_owned());
    let mut running = Running::start(&folder);
    let mut client = running.client(&folder).await;
    let mut ids = Vec::new();
    for n in 0..tasks {
        let tool = if n % 4 == 3 { "once" } else { "steps" };
        let made = client.call(tool, json!({})).await.expect("a task");
        ids.push((made["taskId"].as_str().expect("an id").to_owned(), tool));
    }
    for kill in 0..kills {
        tokio::time::sleep(Duration::from_millis(20 + 37 * (kill as u64 % 7))).await;
        drop(running);
        running = Running::start(&folder);
        client = running.client(&folder).await;
        // Taken over, and a little on.
        tokio::time::sleep(Duration::from_millis(LEASE_MS + LEASE_MS / 2)).await;
    }
    let (mut ends, begun) = (HashMap::<String, Value>::new(), Instant::now());
    while ends.len() < ids.len() {
        for (id, _) in &ids {
            if ends.contains_key(id) {
                continue;
            }
            let task = client.request("tasks/get", json!({ "taskId": id })).await.expect("no task is lost");
            match task["status"].as_str().expect("a status") {
                "input_required" => {
                    let keys = task["inputRequests"].as_object().expect("questions").keys();
                    assert_eq!(keys.collect::<Vec<_>>(), ["sure"], "it is asked under one key, once");
                    let answers = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
                    let params = json!({ "taskId": id, "inputResponses": answers });
                    client.request("tasks/update", params).await.expect("an acknowledgement");
                }
                "working" => {}
                _ => drop(ends.insert(id.clone(), task)),
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{} of {} ended", ends.len(), ids.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for (id, tool) in &ids {
        let end = &ends[id];
        let text = end["result"]["content"][0]["text"].as_str();
        let why = end["error"]["message"].as_str().unwrap_or_default();
        match *tool {
            "steps" => {
                // Killed more than twice, it is given up, and says so.
                let gave_up = kills > 2 && why.contains("and not once more");
                assert!(text == Some("5 steps, true") || gave_up, "{end}");
            }
            _ => assert!(text == Some("once") || why.contains("it was not started again"), "{end}"),
        }
        let again = client.request("tasks/get", json!({ "taskId": id })).await.expect("the task");
        assert_eq!(again["status"], end["status"], "an end is an end");
    }
    assert!(counts(lines(&folder, "once")).values().all(|count| *count == 1), "what is not resumable ran once");
    assert!(counts(lines(&folder, "kept")).values().all(|count| *count <= kills + 1));
    // A step is repeated only if the process died between its effect and its entry: at most once a kill.
    let effects = counts(lines(&folder, "effects"));
    let repeated: usize = effects.values().map(|count| count - 1).sum();
    assert!(repeated <= kills * tasks, "{repeated} effects were repeated in {kills} kills");
    assert!(effects.values().all(|count| *count <= kills + 1), "{effects:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_is_lost_when_its_process_is_killed() {
    survive(12, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes: the long form, a thousand tasks and twenty kills"]
async fn a_thousand_tasks_survive_twenty_kills() {
    survive(1_000, 20).await;
}
