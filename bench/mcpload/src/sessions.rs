//! Memory of idle legacy sessions: before, while open, and after they ended.
use crate::client::{Client, Target, close_session, handshake};
use crate::ops::{Era, Op};
use crate::{Args, Res, proc};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Deleting stops here, so that a slow server cannot stretch a run.
const DELETE_MAX: Duration = Duration::from_secs(3);

fn settle(pid: u32) -> Option<u64> {
    std::thread::sleep(Duration::from_millis(700));
    proc::rss_kib(pid)
}

/// Open one session, use it and close it, so that one-time costs are not counted.
fn warm(t: &Target, c: &mut Client, echo: &Op) -> Res<()> {
    let s = handshake(t, c)?.ok_or("server hands out no sessions")?;
    let (req, _) = t.post(Era::V2025, echo, Some(&s));
    let p = c.send(&req)?;
    if p.status != 200 {
        return Err(format!("echo in a session: {}", p.status).into());
    }
    close_session(t, c, &s)?;
    Ok(())
}

pub fn sessions(a: &Args) -> Res<Value> {
    let t = Target::parse(a.str("url"))?;
    let pid: u32 = a.num("pid", 0);
    let count: usize = a.num("count", 1000);
    let max = Duration::from_secs_f64(a.num("max-secs", 12.0));
    let mut c = Client::connect(&t)?;
    let echo = Op::parse("echo", 0);
    warm(&t, &mut c, &echo)?;
    let idle = settle(pid).ok_or("no such pid")?;

    let begin = Instant::now();
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count && begin.elapsed() < max {
        ids.push(handshake(&t, &mut c)?.ok_or("no session")?);
    }
    let open_s = begin.elapsed().as_secs_f64();
    let open = settle(pid).ok_or("server died")?;

    // A session must still answer after all the others were opened.
    let (req, _) = t.post(Era::V2025, &echo, Some(&ids[0]));
    let p = c.send(&req)?;
    let alive = p.status == 200 && echo.good(&p.body, p.body_len);

    let begin = Instant::now();
    let (mut deleted, mut last) = (0, 0);
    for s in &ids {
        if begin.elapsed() > DELETE_MAX {
            break;
        }
        last = close_session(&t, &mut c, s)?;
        deleted += usize::from((200..300).contains(&last));
    }
    let close_s = begin.elapsed().as_secs_f64();
    let closed = settle(pid).ok_or("server died")?;

    // Is a deleted session really gone?
    let (req, _) = t.post(Era::V2025, &echo, Some(&ids[0]));
    let gone = c.send(&req).map(|p| p.status).unwrap_or(0);
    let n = ids.len();
    Ok(json!({
        "rss_idle_kib": idle, "opened": n, "open_s": open_s, "rss_open_kib": open,
        "bytes_per_session": (open as f64 - idle as f64) * 1024.0 / n as f64,
        "first_still_answers": alive, "deleted": deleted, "last_delete_status": last,
        "close_s": close_s, "rss_closed_kib": closed, "status_after_delete": gone,
    }))
}
