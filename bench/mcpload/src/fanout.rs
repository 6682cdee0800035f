//! Many open streams, one notification: how long until the last one has it,
//! and what it cost the server.
use crate::client::{Client, Target, handshake, open_sessions};
use crate::ops::{Era, ID0, Op, find, patch_id};
use crate::{Args, Res, proc};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

const OPEN_MAX: Duration = Duration::from_secs(10);
const ARRIVE_MAX: Duration = Duration::from_secs(2);
const CHANGED: &[u8] = b"notifications/tools/list_changed";

struct Stream {
    sock: TcpStream,
    tail: Vec<u8>,
    eof: bool,
    /// When the bytes looked for had arrived.
    hit: Option<Instant>,
}

impl Stream {
    /// Takes what has arrived.
    fn drain(&mut self, buf: &mut [u8]) -> Res<()> {
        loop {
            match self.sock.read(buf) {
                Ok(0) => {
                    self.eof = true;
                    return Ok(());
                }
                Ok(k) => {
                    self.tail.extend_from_slice(&buf[..k]);
                    if k < buf.len() {
                        return Ok(());
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
    }
}

struct Streams {
    all: Vec<Stream>,
    poll: Poll,
    events: Events,
    buf: Vec<u8>,
}

impl Streams {
    fn open(t: &Target, era: Era, n: usize) -> Res<Self> {
        let sessions = open_sessions(t, era, n)?;
        if era == Era::V2025 && sessions[0].is_none() {
            return Err("server hands out no sessions, so no GET streams".into());
        }
        let listen = Op::parse("listen", 0);
        let poll = Poll::new()?;
        let mut all = Vec::with_capacity(n);
        for (i, s) in sessions.iter().enumerate() {
            let req = match s {
                Some(s) => t.bodyless("GET", s),
                None => t.post(era, &listen, None).0,
            };
            let mut std = std::net::TcpStream::connect_timeout(&t.addr, Duration::from_secs(5))?;
            std.set_nodelay(true)?;
            std.write_all(&req)?;
            std.set_nonblocking(true)?;
            let mut sock = TcpStream::from_std(std);
            poll.registry().register(&mut sock, Token(i), Interest::READABLE)?;
            all.push(Stream { sock, tail: Vec::new(), eof: false, hit: None });
        }
        let (events, buf) = (Events::with_capacity(1024), vec![0u8; 64 << 10]);
        let mut streams = Streams { all, poll, events, buf };
        let ready: &[u8] = if era == Era::V2026 { b"acknowledged" } else { b"\r\n\r\n" };
        let opened = streams.pump(ready, Instant::now() + OPEN_MAX)?;
        if let Some(s) = streams.all.iter().find(|s| s.hit.is_none()) {
            let said = String::from_utf8_lossy(&s.tail[..s.tail.len().min(300)]);
            return Err(format!("only {opened} of {n} streams opened: {said}").into());
        }
        Ok(streams)
    }

    fn forget(&mut self) {
        for s in &mut self.all {
            s.tail.clear();
            s.hit = None;
        }
    }

    /// Reads until every stream has had `mark`, has ended, or the deadline has
    /// passed. Returns how many had it.
    fn pump(&mut self, mark: &[u8], deadline: Instant) -> Res<usize> {
        let done = |s: &Stream| s.hit.is_some() || s.eof;
        let mut left = self.all.iter().filter(|s| !done(s)).count();
        while left > 0 && Instant::now() < deadline {
            self.poll.poll(&mut self.events, Some(Duration::from_millis(50)))?;
            for ev in self.events.iter() {
                let s = &mut self.all[ev.token().0];
                let was = done(s);
                s.drain(&mut self.buf)?;
                if s.hit.is_none() && find(&s.tail, mark).is_some() {
                    s.hit = Some(Instant::now());
                }
                left -= usize::from(!was && done(s));
            }
        }
        Ok(self.all.iter().filter(|s| s.hit.is_some()).count())
    }
}

pub fn fanout(a: &Args) -> Res<Value> {
    let t = Target::parse(a.str("url"))?;
    let era = Era::parse(a.str("era"));
    let n: usize = a.num("streams", 1000);
    let repeat: u64 = a.num("repeat", 5);
    let pid: Option<u32> = a.opt("pid").map(|_| a.num("pid", 0));
    let rss0 = pid.and_then(proc::rss_kib);
    let mut streams = Streams::open(&t, era, n)?;
    std::thread::sleep(Duration::from_millis(500));
    let rss1 = pid.and_then(proc::rss_kib);

    // A separate client triggers the notification.
    let mut c = Client::connect(&t)?;
    let own = if era == Era::V2025 { handshake(&t, &mut c)? } else { None };
    let (mut req, at) = t.post(era, &Op::parse("fanout", 0), own.as_deref());
    let (mut all_ms, mut half_ms, mut first_ms, mut cpu_us) = (vec![], vec![], vec![], vec![]);
    let mut received = n;
    for k in 0..repeat {
        streams.forget();
        patch_id(&mut req, at, ID0 + 1 + k);
        let cpu0 = pid.and_then(proc::cpu);
        let t0 = Instant::now();
        c.sock.write_all(&req)?;
        received = received.min(streams.pump(CHANGED, t0 + ARRIVE_MAX)?);
        let hits = streams.all.iter().filter_map(|s| s.hit);
        let mut times: Vec<f64> = hits.map(|h| (h - t0).as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        if times.len() == n {
            all_ms.push(times[n - 1]);
            half_ms.push(times[n / 2]);
            first_ms.push(times[0]);
        }
        c.finish()?;
        std::thread::sleep(Duration::from_millis(150));
        if let (Some((u0, s0)), Some((u1, s1))) = (cpu0, pid.and_then(proc::cpu)) {
            cpu_us.push((u1 - u0 + s1 - s0) * 1e6 / n as f64);
        }
    }
    let per_stream = rss0.zip(rss1).map(|(x, y)| (y as f64 - x as f64) * 1024.0 / n as f64);
    Ok(json!({
        "streams": n, "received_min": received, "all_ms": all_ms, "half_ms": half_ms,
        "first_ms": first_ms, "cpu_us_per_stream": cpu_us, "rss_per_stream_bytes": per_stream,
        "rss_open_kib": rss1,
    }))
}
