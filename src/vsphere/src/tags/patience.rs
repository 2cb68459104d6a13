//! Linked vCenters copy categories and tags to each other, which takes up to minutes and has no event.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::settings::from_now;

/// What this client made so recently that it may still be on its way.
pub(crate) struct Recent {
    made: Mutex<HashMap<String, Instant>>,
    limit: Duration,
}

impl Recent {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { made: Mutex::default(), limit }
    }

    /// Remembers what was made just now.
    pub(super) fn add(&self, id: &str) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|_, at| at.elapsed() < self.limit);
        made.insert(id.to_owned(), Instant::now());
    }

    /// Whether this may still be on its way.
    pub(super) fn has(&self, id: &str) -> bool {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).get(id).is_some_and(|at| at.elapsed() < self.limit)
    }
}

/// Pauses that grow, up to a deadline.
pub(super) struct Patience {
    until: Instant,
    next: Duration,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        Self { until: from_now(limit), next: Duration::from_millis(100) }
    }

    /// Waits; `false` once the deadline has passed.
    pub(super) async fn pause(&mut self) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        // Linked vCenters tell nobody when they have copied a tag: asking again is all there is.
        tokio::time::sleep(self.next.min(left)).await;
        self.next = (self.next * 2).min(Duration::from_secs(10));
        true
    }
}
