//! stdio: spawn the server, speak JSON lines.
use crate::ops::{Era, ID0, Op, find, patch_id};
use crate::proc::Usage;
use crate::stats::Lat;
use crate::{Args, Res, proc};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// No new burst begins when it might end later than this after the first began.
const BURSTS_MAX: Duration = Duration::from_secs(6);
const BAD_MAX: u64 = 20;
/// In a virtual machine, a core that waits is put to sleep by the host or not, for seconds at a time, and what wakes it takes several times
/// as long as most servers take to answer. A window in which a request took longer than this on average measured that.
const AWAKE_US_MAX: f64 = 7.0;
/// Windows measured at most to find one in which the core stayed awake.
const AWAKE_WINDOWS_MAX: usize = 6;

struct Lines {
    out: ChildStdout,
    buf: Vec<u8>,
    start: usize,
    scanned: usize,
    end: usize,
}

impl Lines {
    fn new(out: ChildStdout) -> Self {
        Lines { out, buf: vec![0; 4 << 20], start: 0, scanned: 0, end: 0 }
    }
    /// Where the next line is in `buf`, without its newline.
    fn next(&mut self) -> Res<std::ops::Range<usize>> {
        loop {
            if let Some(p) = self.buf[self.scanned..self.end].iter().position(|&b| b == b'\n') {
                let (s, e) = (self.start, self.scanned + p);
                self.start = e + 1;
                self.scanned = self.start;
                return Ok(s..e);
            }
            self.scanned = self.end;
            if self.end == self.buf.len() {
                self.buf.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.scanned -= self.start;
                self.start = 0;
                if self.end == self.buf.len() {
                    self.buf.resize(self.buf.len() * 2, 0);
                }
            }
            let n = self.read()?;
            if n == 0 {
                return Err("server closed its stdout".into());
            }
            self.end += n;
        }
    }
    fn read(&mut self) -> Res<usize> {
        loop {
            match self.out.read(&mut self.buf[self.end..]) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                r => return Ok(r?),
            }
        }
    }

    /// Whether to spin until something arrives instead of sleeping. A server
    /// that wakes a sleeping reader pays for it: in a virtual machine that is
    /// an exit to the hypervisor, dearer than the request itself.
    fn spin(&self, on: bool) -> Res<()> {
        let flags = if on { libc::O_NONBLOCK } else { 0 };
        // SAFETY: the descriptor is open for as long as `self.out` lives, and it
        // is this process's own end of the pipe.
        match unsafe { libc::fcntl(self.out.as_raw_fd(), libc::F_SETFL, flags) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error().into()),
        }
    }

    /// The next line that answers a request (servers may also send notifications).
    fn answer(&mut self) -> Res<(u64, &[u8])> {
        loop {
            let at = self.next()?;
            if let Some(id) = id_of(&self.buf[at.clone()]) {
                return Ok((id, &self.buf[at]));
            }
        }
    }
}

/// The ten-digit id of an answer. It is near the start or near the end of the
/// line in every implementation; look only there in long lines.
fn id_of(line: &[u8]) -> Option<u64> {
    let parse = |part: &[u8]| {
        let at = find(part, b"\"id\":1")? + 5;
        let d = part.get(at..at + 10)?;
        std::str::from_utf8(d).ok()?.parse().ok()
    };
    if line.len() <= 8192 {
        return parse(line);
    }
    parse(&line[..4096]).or_else(|| parse(&line[line.len() - 4096..]))
}

struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines,
}

fn line(op: &Op, era: Era) -> (Vec<u8>, usize) {
    let (mut s, at) = op.render(era);
    s.push('\n');
    (s.into_bytes(), at)
}

impl Server {
    fn spawn(a: &Args) -> Res<Self> {
        let mut child =
            proc::server(&a.rest).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take();
        let lines = Lines::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Server { child, input, lines })
    }

    fn write(&mut self, bytes: &[u8]) -> Res<()> {
        Ok(self.input.as_mut().ok_or("stdin is closed")?.write_all(bytes)?)
    }

    fn hello(&mut self, era: Era) -> Res<()> {
        let op = Op::hello(era);
        let (req, _) = line(&op, era);
        self.write(&req)?;
        let (_, l) = self.lines.answer()?;
        if !op.good(l, l.len()) {
            let said = String::from_utf8_lossy(&l[..l.len().min(300)]);
            return Err(format!("hello: {said}").into());
        }
        if era == Era::V2025 {
            self.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        }
        Ok(())
    }

    /// Closes stdin; milliseconds until the process is gone, or `None` when it
    /// had to be killed.
    fn stop(mut self) -> Option<f64> {
        let t = Instant::now();
        drop(self.input.take());
        while t.elapsed() < Duration::from_secs(2) {
            if let Ok(Some(_)) = self.child.try_wait() {
                return Some(t.elapsed().as_secs_f64() * 1e3);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

/// The request in flight: its bytes, where its id is, and the last id used.
struct Call {
    op: Op,
    req: Vec<u8>,
    at: usize,
    id: u64,
}

impl Call {
    fn next(&mut self) -> &[u8] {
        self.id += 1;
        patch_id(&mut self.req, self.at, self.id);
        &self.req
    }
}

/// One request at a time, for `secs` seconds after a warm-up.
fn ping_pong(s: &mut Server, call: &mut Call, warmup: f64, secs: f64) -> Res<Value> {
    let pid = s.child.id();
    let mut lat = Lat::default();
    let warm = Instant::now() + Duration::from_secs_f64(warmup);
    let mut window: Option<Usage> = None;
    let mut bad = 0u64;
    loop {
        let now = Instant::now();
        match &window {
            None if now >= warm => window = Some(Usage::now(Some(pid))),
            Some(w) if now >= w.at + Duration::from_secs_f64(secs) => break,
            _ => {}
        }
        s.write(call.next())?;
        let (got, l) = s.lines.answer()?;
        if window.is_some() {
            lat.push(now.elapsed());
        }
        if got != call.id || !call.op.good(l, l.len()) {
            bad += 1;
            if bad > BAD_MAX {
                let said = String::from_utf8_lossy(&l[..l.len().min(300)]);
                return Err(format!("bad answer: {said}").into());
            }
        }
    }
    let window = window.ok_or("no measuring window")?;
    let (wall, done) = (window.at.elapsed().as_secs_f64(), lat.len() as f64);
    let mut out = json!({"rps": done / wall, "bad": bad});
    lat.add_to(&mut out);
    window.add_to(&mut out, wall, done);
    Ok(out)
}

/// The first window in which the server's core stayed awake, or the fastest of several: a slow server never answers so fast.
fn spinning(s: &mut Server, call: &mut Call, secs: f64) -> Res<Value> {
    let us = |window: &Value| window["rps"].as_f64().map_or(f64::MAX, |rps| 1e6 / rps);
    let mut best = ping_pong(s, call, 0.1, secs)?;
    for _ in 1..AWAKE_WINDOWS_MAX {
        if us(&best) <= AWAKE_US_MAX {
            break;
        }
        let window = ping_pong(s, call, 0.1, secs)?;
        if us(&window) < us(&best) {
            best = window;
        }
    }
    Ok(best)
}

/// `count` requests written by one thread without waiting; the answers are read
/// by this one, and each id must come once.
fn burst(s: &mut Server, call: &mut Call, count: usize) -> Res<Value> {
    let first = call.id + 1;
    let mut all = Vec::with_capacity(call.req.len() * count);
    for _ in 0..count {
        all.extend_from_slice(call.next());
    }
    let mut input = s.input.take().ok_or("stdin is closed")?;
    let window = Usage::now(Some(s.child.id()));
    let writer = std::thread::spawn(move || {
        let r = input.write_all(&all);
        (input, r)
    });
    let mut seen = vec![false; count];
    let mut left = count;
    let mut in_order = true;
    let mut last = 0;
    while left > 0 {
        let (got, l) = s.lines.answer()?;
        let k = got.wrapping_sub(first) as usize;
        if k >= count || seen[k] || !call.op.good(l, l.len()) {
            let said = String::from_utf8_lossy(&l[..l.len().min(300)]);
            return Err(format!("pipelined: wrong or repeated answer {got}: {said}").into());
        }
        seen[k] = true;
        left -= 1;
        in_order &= got > last;
        last = got;
    }
    let wall = window.at.elapsed().as_secs_f64();
    let mut out = json!({"rps": count as f64 / wall, "in_order": in_order});
    window.add_to(&mut out, wall, count as f64);
    let (input, r) = writer.join().map_err(|_| "the writer panicked")?;
    r?;
    s.input = Some(input);
    Ok(out)
}

pub fn run(a: &Args) -> Res<Value> {
    let era = Era::parse(a.str("era"));
    let pipelined: usize = a.num("pipelined", 10_000);
    let repeat: usize = a.num("repeat", 5);

    let t0 = Instant::now();
    let mut s = Server::spawn(a)?;
    s.hello(era)?;
    let first_ms = t0.elapsed().as_secs_f64() * 1e3;
    let startup = a.opt("what") == Some("startup");
    std::thread::sleep(Duration::from_millis(if startup { 50 } else { 300 }));
    let pid = s.child.id();
    let mut out = json!({"first_answer_ms": first_ms, "rss_idle_kib": proc::rss_kib(pid)});
    if startup {
        out["exit_ms"] = json!(s.stop());
        return Ok(out);
    }

    let op = Op::parse("echo", 0);
    let (req, at) = line(&op, era);
    let mut call = Call { op, req, at, id: ID0 };
    let (warmup, secs) = (a.num("warmup", 0.4), a.num("secs", 3.0));
    out["pingpong"] = ping_pong(&mut s, &mut call, warmup, secs)?;
    s.lines.spin(true)?;
    out["spinning"] = spinning(&mut s, &mut call, secs / 3.0)?;
    s.lines.spin(false)?;

    let mut runs = Vec::new();
    let began = Instant::now();
    for _ in 0..repeat {
        runs.push(burst(&mut s, &mut call, pipelined)?);
        if began.elapsed() + began.elapsed() / runs.len() as u32 > BURSTS_MAX {
            break;
        }
    }
    out["pipelined"] = Value::Array(runs);
    out["rss_after_kib"] = json!(proc::rss_kib(pid));
    out["exit_ms"] = json!(s.stop());
    Ok(out)
}
