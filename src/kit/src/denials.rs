//! Since when a step has been denied a write. Whoever denies judges by what he has read, which may be old, so that only what he goes on
//! denying stays denied.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use vmi_crds::graph::StepName;

/// Longer than an apiserver that has just started takes to read its roles.
pub const ROLES: Duration = Duration::from_secs(30);
/// Longer than a webhook whose watch has ended waits before it reads anew: up to a minute, by client-go's reflector.
pub const WEBHOOKS: Duration = Duration::from_secs(120);

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
        let (now, later) = (Instant::now(), Instant::now() + ROLES);
        assert!(!denials.last(one, now, ROLES));
        assert!(denials.last(one, later, ROLES) && !denials.last(other, later, ROLES));
        assert!(!denials.last(one, later, WEBHOOKS) && denials.last(one, now + WEBHOOKS, WEBHOOKS), "a webhook may take longer");
        denials.end(one);
        assert!(!denials.last(one, later, ROLES), "it was allowed meanwhile");
    }
}
