//! Since when a step has been denied a write. Whoever denies judges by what he has read, which may be old, so that only what he goes on
//! denying stays denied.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use vmi_crds::graph::StepName;

/// By step.
#[derive(Default)]
pub struct Denials(Mutex<BTreeMap<StepName, Instant>>);

impl Denials {
    /// Whether what is denied now has been denied for all of `patience`, so that it will not be allowed by itself.
    pub fn last(&self, step: StepName, now: Instant, patience: Duration) -> bool {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.duration_since(*since.entry(step).or_insert(now)) >= patience
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
        let (now, little) = (Instant::now(), Duration::from_secs(30));
        let later = now + little;
        assert!(!denials.last(one, now, little));
        assert!(denials.last(one, later, little) && !denials.last(other, later, little));
        assert!(!denials.last(one, later, little * 2), "with more patience");
        denials.end(one);
        assert!(!denials.last(one, later, little), "it was allowed meanwhile");
    }
}
