//! Since when a step has been denied a write. An apiserver that has just started denies what it has not read the roles of yet, so
//! that only what it goes on denying is a right that is missing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use vmi_crds::graph::StepName;

/// Longer than an apiserver takes to read its roles.
const STARTING: Duration = Duration::from_secs(30);

/// By step.
#[derive(Default)]
pub struct Denials(Mutex<BTreeMap<StepName, Instant>>);

impl Denials {
    /// Whether what is denied now has been denied for so long that it will not be allowed by itself.
    pub fn last(&self, step: StepName, now: Instant) -> bool {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.duration_since(*since.entry(step).or_insert(now)) >= STARTING
    }

    /// Something was allowed.
    pub fn end(&self, step: StepName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_on_being_denied_is_a_right_that_is_missing() {
        let denials = Denials::default();
        let (one, other) = (StepName::TagsAttached, StepName::FolderCreated);
        let (now, later) = (Instant::now(), Instant::now() + STARTING);
        assert!(!denials.last(one, now));
        assert!(denials.last(one, later) && !denials.last(other, later));
        denials.end(one);
        assert!(!denials.last(one, later), "it was allowed meanwhile");
    }
}
