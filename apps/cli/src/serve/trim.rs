//! Returns the memory of large messages to the system after use.
//!
//! The allocator of glibc keeps what is freed for what comes next, which is half a GiB after forty messages of 12 MB at once.
//! [`when_large`] tells it to give that back now and then, while a process that serves is larger than it has to be. But
//! `malloc_trim` leaves the free end of each arena but the first alone, up to 64 MiB of it once large blocks have been freed:
//! [`set_thresholds`] bounds that.

use std::time::Duration;

/// Interval between checks.
const EVERY: Duration = Duration::from_secs(5);
/// At most this many times `EVERY` passes between two trims of a process that stays large.
const PAUSE_MAX: u32 = 12;
/// KiB of its own, without the program's file, that it may keep.
const KEPT_KIB: u64 = 24 << 10;

/// Blocks of this size are mapped on their own and returned when they are freed; smaller ones are reused.
const MMAP_THRESHOLD: libc::c_int = 4 << 20;
/// The free end of an arena may grow to this size before it is returned.
const TRIM_THRESHOLD: libc::c_int = 8 << 20;

/// Sets the thresholds, which glibc otherwise raises whenever a large block is freed. Call it before the first such.
#[allow(unsafe_code, reason = "the allocator is told in C only")]
pub(crate) fn set_thresholds() {
    // SAFETY: `mallopt` takes no pointer; it locks the allocator while it sets a number.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD);
    }
}

/// Checks the process size periodically, forever.
pub(crate) async fn when_large() {
    let size = || own_kib(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()).unwrap_or(0);
    // What a trim leaves may be in use now and freed soon after, which the size does not show: it is tried again, but
    // less and less often while that gives nothing back.
    let (mut left, mut pause, mut waited) = (0, 1, 0);
    loop {
        tokio::time::sleep(EVERY).await;
        let before = size();
        waited += 1;
        let grown = before > left + left / 4;
        if before <= KEPT_KIB || !(grown || waited >= pause) {
            continue;
        }
        let _ = tokio::task::spawn_blocking(trim).await;
        left = size();
        let fruitless = left + left / 8 > before;
        pause = if fruitless { (pause * 2).min(PAUSE_MAX) } else { 1 };
        waited = 0;
    }
}

/// What `/proc/PID/status` says of it.
fn own_kib(status: &str) -> Option<u64> {
    let size = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    size.trim().strip_suffix(" kB")?.parse().ok()
}

#[allow(unsafe_code, reason = "the allocator is told in C only")]
fn trim() {
    // SAFETY: it may be called at any time and from any thread; it takes no pointer and gives none back.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_size_is_that_of_the_process_itself() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(super::own_kib(&status).is_some_and(|kib| (100..1 << 20).contains(&kib)), "{status}");
        for status in ["", "RssAnon:", "RssAnon:\t  12\n", "RssFile:\t   12 kB\n"] {
            assert_eq!(super::own_kib(status), None, "{status}");
        }
    }
}
