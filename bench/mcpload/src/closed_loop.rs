//! HTTP/1.1 by hand: one thread, epoll, keep-alive, closed loop.
use crate::client::{Client, Target, close_session, open_sessions};
use crate::ops::{Era, ID0, Op, patch_id};
use crate::parser::Parser;
use crate::proc::Usage;
use crate::stats::Lat;
use crate::{Args, Res, proc};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde_json::{Value, json};
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// A run never lasts longer than this, warm-up included.
const RUN_SECS_MAX: f64 = 14.0;
const BAD_MAX: u64 = 50;
const RECONNECTS_MAX: u64 = 2000;

struct Conn {
    sock: TcpStream,
    req: Vec<u8>,
    id_at: usize,
    id: u64,
    sent: usize,
    start: Instant,
    p: Parser,
}

enum Step {
    Pending,
    Complete,
    Closed,
}

impl Conn {
    fn connect(t: &Target, poll: &Poll, tok: usize) -> io::Result<TcpStream> {
        // Blocking connect, then non-blocking use: set-up is not measured.
        let s = std::net::TcpStream::connect_timeout(&t.addr, Duration::from_secs(5))?;
        s.set_nodelay(true)?;
        s.set_nonblocking(true)?;
        let mut s = TcpStream::from_std(s);
        poll.registry().register(&mut s, Token(tok), Interest::READABLE | Interest::WRITABLE)?;
        Ok(s)
    }

    fn next(&mut self) -> io::Result<()> {
        self.id += 1;
        patch_id(&mut self.req, self.id_at, self.id);
        self.sent = 0;
        self.p.reset();
        self.start = Instant::now();
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.req.len() {
            match self.sock.write(&self.req[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Read what is there. A short read means the socket is drained: the next
    /// arrival makes a new (edge-triggered) event.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<Step> {
        loop {
            match self.sock.read(buf) {
                Ok(0) => {
                    let whole = self.p.eof() && self.p.status != 0;
                    return Ok(if whole { Step::Complete } else { Step::Closed });
                }
                Ok(n) => {
                    if self.p.feed(&buf[..n]).map_err(io::Error::other)? {
                        return Ok(Step::Complete);
                    }
                    if n < buf.len() {
                        return Ok(Step::Pending);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Step::Pending),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// What one window saw.
#[derive(Default)]
struct Tally {
    lat: Lat,
    bad: u64,
    bad_example: Option<String>,
    reconnects: u64,
    body_bytes: u64,
}

impl Tally {
    fn answer(&mut self, c: &Conn, op: &Op, measuring: bool) -> Res<()> {
        let took = c.start.elapsed();
        if c.p.status == 200 && op.good(&c.p.body, c.p.body_len) {
            if measuring {
                self.lat.push(took);
                self.body_bytes += c.p.body_len as u64;
            }
            return Ok(());
        }
        self.bad += 1;
        let example = self.bad_example.get_or_insert_with(|| {
            let shown = &c.p.body[..c.p.body.len().min(300)];
            format!("{} {}", c.p.status, String::from_utf8_lossy(shown))
        });
        if self.bad > BAD_MAX {
            return Err(format!("too many bad answers: {example}").into());
        }
        Ok(())
    }
}

struct Load<'a> {
    target: &'a Target,
    op: &'a Op,
    poll: Poll,
    conns: Vec<Conn>,
    buf: Vec<u8>,
    tally: Tally,
}

impl Load<'_> {
    /// Handle what arrived on one connection and send its next request.
    fn advance(&mut self, tok: usize, measuring: bool) -> Res<()> {
        let c = &mut self.conns[tok];
        match c.read(&mut self.buf) {
            Ok(Step::Pending) => return Ok(()),
            Ok(Step::Complete) => {
                self.tally.answer(c, self.op, measuring)?;
                if c.p.close {
                    self.tally.reconnects += 1;
                    c.sock = Conn::connect(self.target, &self.poll, tok)?;
                }
            }
            Ok(Step::Closed) | Err(_) => {
                self.tally.reconnects += 1;
                if self.tally.reconnects > RECONNECTS_MAX {
                    return Err("server keeps closing connections".into());
                }
                c.sock = Conn::connect(self.target, &self.poll, tok)?;
            }
        }
        // Its answer cannot be here yet; wait for its event.
        Ok(c.next()?)
    }

    /// Warm up until `t1`, then measure until `t2`.
    fn run(&mut self, t1: Instant, t2: Instant, pid: Option<u32>) -> Res<(Usage, Instant)> {
        let mut events = Events::with_capacity(1024);
        let mut begun = None;
        for c in &mut self.conns {
            c.next()?;
        }
        loop {
            let now = Instant::now();
            if begun.is_none() && now >= t1 {
                begun = Some(Usage::now(pid));
            }
            if now >= t2 {
                return Ok((begun.ok_or("no measuring window")?, now));
            }
            let until = if begun.is_none() { t1 } else { t2 };
            match self.poll.poll(&mut events, Some(until.saturating_duration_since(now))) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                r => r?,
            }
            for ev in events.iter() {
                let tok = ev.token().0;
                let c = &mut self.conns[tok];
                if ev.is_writable() && c.sent < c.req.len() {
                    c.write()?;
                }
                if ev.is_readable() {
                    self.advance(tok, begun.is_some())?;
                }
            }
        }
    }
}

pub fn closed_loop(a: &Args) -> Res<Value> {
    let t = Target::parse(a.str("url"))?.with_header(a.opt("header"));
    let era = Era::parse(a.str("era"));
    let op = Op::parse(a.str("op"), a.num("tools", 5));
    let n: usize = a.num("conns", 1);
    let secs: f64 = a.num("secs", 3.0);
    let warmup: f64 = a.num("warmup", 0.7);
    if secs + warmup > RUN_SECS_MAX {
        return Err("a run is limited to 14 s".into());
    }
    let pid: Option<u32> = a.opt("pid").map(|_| a.num("pid", 0));

    let sessions = open_sessions(&t, era, n)?;
    let poll = Poll::new()?;
    let mut conns = Vec::with_capacity(n);
    for (i, s) in sessions.iter().enumerate() {
        let (req, id_at) = t.post(era, &op, s.as_deref());
        let sock = Conn::connect(&t, &poll, i)?;
        let (start, p) = (Instant::now(), Parser::new());
        conns.push(Conn { sock, req, id_at, id: ID0, sent: 0, start, p });
    }
    let request_bytes = conns[0].req.len();
    let t1 = Instant::now() + Duration::from_secs_f64(warmup);
    let t2 = t1 + Duration::from_secs_f64(secs);
    let (buf, tally) = (vec![0u8; 256 << 10], Tally::default());
    let mut load = Load { target: &t, op: &op, poll, conns, buf, tally };
    let (usage, end) = load.run(t1, t2, pid)?;
    drop(load.conns);
    let mut tally = load.tally;

    let (done, wall) = (tally.lat.len() as f64, (end - usage.at).as_secs_f64());
    let body = if done > 0.0 { tally.body_bytes as f64 / done } else { 0.0 };
    let mut out = json!({
        "rps": done / wall, "requests": tally.lat.len(), "bad": tally.bad,
        "reconnects": tally.reconnects, "wall_s": wall, "request_bytes": request_bytes,
        "body_bytes": body,
    });
    tally.lat.add_to(&mut out);
    usage.add_to(&mut out, wall, done);
    if let Some(pid) = pid {
        out["rss_kib"] = json!(proc::rss_kib(pid));
        out["peak_rss_kib"] = json!(proc::peak_rss_kib(pid));
    }
    if let Some(b) = tally.bad_example {
        out["bad_example"] = json!(b);
    }
    leave_no_sessions(&t, &sessions)?;
    Ok(out)
}

fn leave_no_sessions(t: &Target, sessions: &[Option<String>]) -> Res<()> {
    if sessions.iter().all(Option::is_none) {
        return Ok(());
    }
    let mut c = Client::connect(t)?;
    for s in sessions.iter().flatten() {
        if close_session(t, &mut c, s).is_err() {
            break;
        }
    }
    Ok(())
}
