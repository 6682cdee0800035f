//! From spawning an HTTP server to its first right answer.
use crate::client::{Client, Target};
use crate::ops::{Era, Op};
use crate::{Args, Res, proc};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};

const GIVE_UP: Duration = Duration::from_secs(14);
/// A refused connection is tried again after this long; the error of the figure.
const RETRY: Duration = Duration::from_micros(200);

pub fn startup(a: &Args) -> Res<Value> {
    let t = Target::parse(a.str("url"))?;
    let era = Era::parse(a.str("era"));
    let op = Op::hello(era);
    let (req, _) = t.post(era, &op, None);
    let begin = Instant::now();
    let mut child = proc::server(&a.rest).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let result = loop {
        if begin.elapsed() > GIVE_UP {
            break Err("no answer in 14 s".to_owned());
        }
        let Ok(mut c) = Client::connect(&t) else {
            std::thread::sleep(RETRY);
            continue;
        };
        let connected = begin.elapsed();
        match c.send(&req) {
            Ok(p) if p.status == 200 && op.good(&p.body, p.body_len) => {
                break Ok((connected, begin.elapsed()));
            }
            Ok(p) => break Err(format!("{} {}", p.status, String::from_utf8_lossy(&p.body))),
            Err(_) => std::thread::sleep(RETRY),
        }
    };
    std::thread::sleep(Duration::from_millis(50));
    let rss = proc::rss_kib(child.id());
    child.kill()?;
    child.wait()?;
    let (connected, answered) = result?;
    Ok(json!({
        "listen_ms": connected.as_secs_f64() * 1e3,
        "first_answer_ms": answered.as_secs_f64() * 1e3,
        "rss_idle_kib": rss,
    }))
}
