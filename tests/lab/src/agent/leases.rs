//! Whose turn it is to hold a Lease: the next process waits until the one before has ended. One that is ending still renews its
//! Lease, or makes it anew where it was deleted, and its successor would wait for as long as that lasts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

#[derive(Default)]
pub(super) struct Leases(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// Lasts as long as the process that may hold the Lease.
pub(super) type Turn = OwnedMutexGuard<()>;

impl Leases {
    /// Returns when no process is left that may hold the Lease, `namespace/name`.
    pub async fn turn(&self, lease: &str) -> Turn {
        let turns = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(lease.to_owned()).or_default());
        turns.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn the_next_process_waits_until_the_one_before_has_ended() {
        let leases = Leases::default();
        let first = leases.turn("ns/a").await;
        assert!(leases.turn("ns/b").now_or_never().is_some(), "another lease is another matter");
        assert!(leases.turn("ns/a").now_or_never().is_none());
        drop(first);
        assert!(leases.turn("ns/a").now_or_never().is_some());
    }
}
