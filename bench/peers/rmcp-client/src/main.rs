//! The client of rmcp under load; takes the arguments of `bench-client`.

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error>;
type Connection = RunningService<RoleClient, ()>;

fn main() -> Result<(), Error> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{}", runtime.block_on(run())?);
    Ok(())
}

async fn run() -> Result<Value, Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, era, count, secs, target @ ..] = words.as_slice() else {
        return Err("usage: peer-rmcp-client calls|idle|first ERA COUNT SECS TARGET…".into());
    };
    let (count, secs): (usize, f64) = (count.parse()?, secs.parse()?);
    let open = || open(era, target);
    match what.as_str() {
        "calls" => calls(open().await?, count, secs).await,
        "idle" => {
            let mut held = vec![open().await?];
            let before = rss()?;
            for _ in 0..count {
                held.push(open().await?);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(json!({ "bytes_each": (rss()? - before) as f64 / count as f64 }))
        }
        "first" => {
            let mut times = Vec::new();
            for _ in 0..count {
                let began = Instant::now();
                let connection = open().await?;
                call(&connection).await?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
                connection.cancel().await?;
            }
            times.sort_by(f64::total_cmp);
            Ok(json!({ "ms": times[times.len() / 2], "fastest": times[0] }))
        }
        _ => Err("the first word is calls, idle or first".into()),
    }
}

async fn open(era: &str, target: &[String]) -> Result<Connection, Error> {
    let mode = match era {
        "2026" => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        _ => ClientLifecycleMode::Initialize,
    };
    Ok(match target {
        [url] if url.starts_with("http") => {
            ().serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url.as_str()), mode).await?
        }
        [program, args @ ..] => {
            let mut command = tokio::process::Command::new(program);
            command.args(args);
            ().serve_with_lifecycle(TokioChildProcess::new(command)?, mode).await?
        }
        [] => return Err("no target".into()),
    })
}

async fn call(connection: &Connection) -> Result<(), Error> {
    let Value::Object(arguments) = json!({ "message": "hello" }) else { return Err("no object".into()) };
    let result = connection.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await?;
    let text = result.content.first().and_then(|block| block.as_text()).map_or("", |text| &text.text);
    if text.is_empty() { Err("the echo is empty".into()) } else { Ok(()) }
}

async fn calls(connection: Connection, count: usize, secs: f64) -> Result<Value, Error> {
    let connection = Rc::new(connection);
    window(&connection, count, (secs / 4.0).min(0.3)).await?;
    let (cpu, began) = (cpu_seconds()?, Instant::now());
    let done = window(&connection, count, secs).await?;
    let (wall, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    Ok(json!({ "calls_per_s": done as f64 / wall, "cpu_us": cpu * 1e6 / done as f64, "calls": done }))
}

async fn window(connection: &Rc<Connection>, count: usize, secs: f64) -> Result<u64, Error> {
    let end = Instant::now() + Duration::from_secs_f64(secs);
    let local = tokio::task::LocalSet::new();
    let workers: Vec<_> = (0..count)
        .map(|_| {
            let connection = connection.clone();
            local.spawn_local(async move {
                let mut done = 0;
                while Instant::now() < end {
                    call(&connection).await.map_err(|e| e.to_string())?;
                    done += 1;
                }
                Ok::<u64, String>(done)
            })
        })
        .collect();
    let mut all = 0;
    local
        .run_until(async {
            for worker in workers {
                all += worker.await.map_err(|e| e.to_string())??;
            }
            Ok::<(), String>(())
        })
        .await?;
    Ok(all)
}

/// CPU time of this process, children excluded.
fn cpu_seconds() -> Result<f64, Error> {
    let stat = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos: f64 = stat.split(' ').next().unwrap_or("0").parse()?;
    Ok(nanos / 1e9)
}

fn rss() -> Result<i64, Error> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    Ok(statm.split(' ').nth(1).unwrap_or("0").parse::<i64>()? * 4096)
}
