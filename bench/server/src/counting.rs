//! A global allocator that counts, and on demand notes who asked.
//!
//! Counting is per process and always on; it costs an atomic addition, so programs that are timed do not use it.
//! Recording call sites is for one call at a time: `record(true)`, one call, `take_sites()`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Install with `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

/// What has been asked of the allocator since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that made a new block.
    pub allocs: u64,
    /// Calls that resized one.
    pub reallocs: u64,
    /// Bytes asked for by both (of a resize, what it grew by).
    pub bytes: u64,
}

impl Counts {
    /// The counts now.
    pub fn now() -> Counts {
        Counts { allocs: ALLOCS.load(Relaxed), reallocs: REALLOCS.load(Relaxed), bytes: BYTES.load(Relaxed) }
    }

    /// What was added since `earlier`.
    pub fn since(self, earlier: Counts) -> Counts {
        Counts {
            allocs: self.allocs - earlier.allocs,
            reallocs: self.reallocs - earlier.reallocs,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// Bytes that are allocated now.
pub fn held() -> u64 {
    BYTES.load(Relaxed).wrapping_sub(FREED.load(Relaxed))
}

/// Starts or stops noting the call site of every allocation.
pub fn record(on: bool) {
    RECORDING.store(on, Relaxed);
}

/// What was noted: the bytes of each allocation and the stack it came from.
pub fn take_sites() -> Vec<(usize, String)> {
    RECORDING.store(false, Relaxed);
    let sites = std::mem::take(&mut *SITES.lock().expect("no holder panics"));
    sites.into_iter().map(|(bytes, trace)| (bytes, trace.to_string())).collect()
}

static ALLOCS: AtomicU64 = AtomicU64::new(0);
static REALLOCS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Bytes given back, of blocks and by those that shrank.
static FREED: AtomicU64 = AtomicU64::new(0);
static RECORDING: AtomicBool = AtomicBool::new(false);
static SITES: Mutex<Vec<(usize, Backtrace)>> = Mutex::new(Vec::new());

thread_local! {
    /// Taking a backtrace allocates; those allocations are not noted.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

fn note(bytes: usize) {
    if !RECORDING.load(Relaxed) || INSIDE.replace(true) {
        return;
    }
    let trace = Backtrace::force_capture();
    if let Ok(mut sites) = SITES.lock() {
        sites.push((bytes, trace));
    }
    INSIDE.set(false);
}

// SAFETY: every method hands its arguments on to the system allocator unchanged.
#[expect(unsafe_code, reason = "an allocator cannot be written without it")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as u64, Relaxed);
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        FREED.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as u64, Relaxed);
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        REALLOCS.fetch_add(1, Relaxed);
        BYTES.fetch_add(size.saturating_sub(layout.size()) as u64, Relaxed);
        FREED.fetch_add(layout.size().saturating_sub(size) as u64, Relaxed);
        note(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}
