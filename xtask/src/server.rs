//! A server under test: a child process on a free loopback port, ended when dropped.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process;

/// How long a server may take until it accepts connections.
const READY_MS_MAX: u64 = 60_000;

/// A running child process.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    /// Starts `command` and waits until something accepts connections on `port`.
    pub(crate) fn start(command: &mut Command, port: u16, log: &Path) -> Result<Running> {
        let mut running = Running { child: process::spawn_logged(command, log)? };
        let started = Instant::now();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        loop {
            if TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
                return Ok(running);
            }
            let said = || {
                let bytes = std::fs::read(log).unwrap_or_default();
                String::from_utf8_lossy(&bytes).trim_end().to_string()
            };
            if let Some(status) = running.child.try_wait().context("cannot wait")? {
                bail!(
                    "{} ended with {status} before it listened:\n{}",
                    command.get_program().to_string_lossy(),
                    said()
                );
            }
            if started.elapsed() > Duration::from_millis(READY_MS_MAX) {
                bail!(
                    "{} does not listen on port {port} after {READY_MS_MAX} ms:\n{}",
                    command.get_program().to_string_lossy(),
                    said()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        process::kill_group(&mut self.child);
    }
}

/// The ports that servers get: below those that systems give to outgoing connections. A connection to a port of that range
/// on which nobody listens can come from the very same port, and then succeeds.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// A loopback port that was free a moment ago, and that this process has given to nobody else.
pub(crate) fn free_port() -> Result<u16> {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    // Runs at the same time begin at other places.
    let start = u16::try_from(std::process::id() * 97 % u32::from(count)).unwrap_or_default();
    for _ in 0..count {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + (start + given % count) % count;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free loopback port among {PORTS:?}")
}
