//! Counts every write, to an apiserver or a vCenter, so that a test can end the process right after any of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

static WRITES: AtomicU64 = AtomicU64::new(0);
static LAST: OnceLock<Option<u64>> = OnceLock::new();

/// One more write was made. Leases do not count: they are renewed for ever.
pub fn counted() {
    let count = WRITES.fetch_add(1, Ordering::SeqCst) + 1;
    if cfg!(debug_assertions) && *LAST.get_or_init(last) == Some(count) {
        // As hard as a power cut: nothing is flushed, released or logged out.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

fn last() -> Option<u64> {
    std::env::var("VMI_EXIT_AFTER_WRITE").ok()?.parse().ok()
}
