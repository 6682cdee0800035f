//! What /proc says about the server and about the noise on each core, and how
//! servers are started.
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Instant;

/// CPU seconds (user, system) used by all threads of `pid`.
///
/// The total is the scheduler's own nanosecond count summed over live threads
/// where that is more than the 10 ms ticks of /proc/pid/stat say; the ticks
/// (which include exited threads) give the split.
pub fn cpu(pid: u32) -> Option<(f64, f64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after = &stat[stat.rfind(')')? + 2..];
    let f: Vec<&str> = after.split(' ').collect();
    // Fields 14 and 15 of proc(5), counted after the command name; 100 ticks per second.
    let (user, sys) = (f[11].parse::<f64>().ok()? / 100.0, f[12].parse::<f64>().ok()? / 100.0);
    let mut ns = 0.0;
    for t in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let line = fs::read_to_string(t.path().join("schedstat")).unwrap_or_default();
        let first = line.split(' ').next().and_then(|v| v.parse::<f64>().ok());
        ns += first.unwrap_or(0.0);
    }
    let (total, ticks) = (ns / 1e9, user + sys);
    // Ticks lag or lead by at most a tick per thread; a larger lead means threads have exited.
    if ticks > total + 0.05 || ticks == 0.0 {
        return Some((user, sys));
    }
    Some((total * user / ticks, total * sys / ticks))
}

/// Resident set in KiB.
pub fn rss_kib(pid: u32) -> Option<u64> {
    status(pid, "VmRSS:")
}

/// Largest resident set so far in KiB.
pub fn peak_rss_kib(pid: u32) -> Option<u64> {
    status(pid, "VmHWM:")
}

fn status(pid: u32, key: &str) -> Option<u64> {
    let s = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = s.lines().find(|l| l.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A point from which CPU use is counted.
pub struct Usage {
    pub at: Instant,
    pid: Option<u32>,
    server: Option<(f64, f64)>,
    own: Option<(f64, f64)>,
    cores: [f64; 4],
}

impl Usage {
    pub fn now(pid: Option<u32>) -> Self {
        let own = cpu(std::process::id());
        Usage { at: Instant::now(), pid, server: pid.and_then(cpu), own, cores: cores() }
    }

    /// What the server used per request since then, and what others used of
    /// the two cores while we measured (as fractions of one core).
    pub fn add_to(&self, out: &mut Value, wall: f64, done: f64) {
        let later = Usage::now(self.pid);
        let spent = |a: Option<(f64, f64)>, b: Option<(f64, f64)>| Some((b?.0 - a?.0, b?.1 - a?.1));
        let server = spent(self.server, later.server);
        if let Some((user, sys)) = server {
            out["server_cpu"] = json!((user + sys) / wall);
            out["cpu_us_per_req"] = json!((user + sys) * 1e6 / done);
            out["user_us_per_req"] = json!(user * 1e6 / done);
        }
        let own = spent(self.own, later.own).map_or(0.0, |(u, s)| (u + s) / wall);
        out["load_cpu"] = json!(own);
        let used = |i: usize| (later.cores[i] - self.cores[i]) / wall;
        let ours = server.map_or(0.0, |(u, s)| (u + s) / wall);
        out["foreign_core0"] = json!((used(0) - ours).max(0.0));
        out["foreign_core1"] = json!((used(1) - own).max(0.0));
        out["steal"] = json!(used(2) + used(3));
    }
}

/// Busy seconds of the server's and the load's core: everything but idle,
/// iowait and steal; then the stolen seconds of each.
fn cores() -> [f64; 4] {
    let (server, load) = pair();
    let s = fs::read_to_string("/proc/stat").unwrap_or_default();
    let row = |core: usize| -> Vec<f64> {
        let name = format!("cpu{core}");
        s.lines()
            .find(|l| l.split(' ').next() == Some(&name))
            .map(|l| {
                let ticks = l.split_whitespace().skip(1);
                ticks.map(|v| v.parse::<f64>().unwrap_or(0.0) / 100.0).collect()
            })
            .unwrap_or_else(|| vec![0.0; 8])
    };
    // user nice system idle iowait irq softirq steal
    let busy = |r: &[f64]| r[0] + r[1] + r[2] + r[5] + r[6];
    let (a, b) = (row(server), row(load));
    [busy(&a), busy(&b), a[7], b[7]]
}

/// The core of the server and that of the load.
pub fn pair() -> (usize, usize) {
    let names = std::env::var("MCPLOAD_CORES").unwrap_or_default();
    let parsed = names.split_once(',').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed.unwrap_or((0, 1))
}

/// Keeps the calling thread on this core.
pub fn pin(core: usize) {
    // SAFETY: the set is plain memory of this function, and the call only reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// A command that runs on the server's core and dies with this process, so
/// that an interrupted run leaves nothing behind.
pub fn server(cmd: &[String]) -> Command {
    let (core, _) = pair();
    let mut command = Command::new(&cmd[0]);
    command.args(&cmd[1..]);
    // SAFETY: between fork and exec only these two system calls are made, on
    // values that were computed before; both are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            pin(core);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command
}
