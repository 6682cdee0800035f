//! How far the two cores are from each other. In a virtual machine that changes while it runs: the host moves its
//! cores, and once they no longer share a cache, all that goes from one to the other takes several times as long.
use crate::proc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Round trips timed together.
const TRIPS: u32 = 100;
const TIME_MAX: Duration = Duration::from_millis(20);
const END: u32 = u32::MAX;

/// Alone in its cache line.
#[repr(align(128))]
struct Ball(AtomicU32);

/// Nanoseconds for a cache line to go from the load's core to the server's and back; the least of many tries, so that
/// other work on the cores does not count.
pub fn line_ns() -> f64 {
    let ball = Ball(AtomicU32::new(0));
    let there = Barrier::new(2);
    let (server, load) = proc::pair();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            proc::pin(server);
            there.wait();
            loop {
                match ball.0.load(Ordering::Acquire) {
                    END => return,
                    at if at % 2 == 1 => ball.0.store(at + 1, Ordering::Release),
                    _ => std::hint::spin_loop(),
                }
            }
        });
        proc::pin(load);
        there.wait();
        let (begun, mut at, mut least) = (Instant::now(), 0, f64::MAX);
        while begun.elapsed() < TIME_MAX {
            let start = Instant::now();
            for _ in 0..TRIPS {
                ball.0.store(at + 1, Ordering::Release);
                at += 2;
                while ball.0.load(Ordering::Acquire) != at {
                    std::hint::spin_loop();
                }
            }
            least = least.min(start.elapsed().as_nanos() as f64 / f64::from(TRIPS));
        }
        ball.0.store(END, Ordering::Release);
        least
    })
}
