//! Why something stopped, for whoever reads it at three in the morning.

use vmi_crds::status::{Failure, RefusedCredentials};

/// Why a controller cannot go on for now.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// It may be better in a moment: tried again, more and more slowly, until the step's deadline.
    #[error("{0}")]
    Again(String),
    /// It does not get better by itself: the step fails.
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
    /// A vCenter refused a password: the step fails, and nobody tries that password again.
    #[error("{}", .1.message)]
    Refused(RefusedCredentials, Box<Failure>),
    /// It is no longer its turn, or no longer this process's: nothing was written.
    #[error("nothing was written: {0}")]
    Fenced(String),
}

impl Stop {
    /// May be better in a moment.
    pub fn again(why: impl std::fmt::Display) -> Self {
        Self::Again(why.to_string())
    }
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Self {
        Self::Again(format!("the apiserver: {error}"))
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

/// What the apiserver says of an admission policy while it has just started and does not know all kinds yet, as if it had been decided.
const NOT_READY: &str = "failed to configure policy";

/// Whether the apiserver may say something else in a moment: somebody else wrote meanwhile, or it has trouble of its own.
pub fn may_change(answer: &kube::core::Status) -> bool {
    matches!(answer.code, 409 | 429 | 500..) || answer.message.contains(NOT_READY)
}

/// A failure by its rule, with what is said of every failure still to be filled in by [`explained`].
pub fn failure(rule: &str, message: impl Into<String>, next: impl Into<String>) -> Failure {
    Failure {
        rule: rule.to_owned(),
        message: crate::text::cut(&message.into(), 1024),
        component: None,
        pod: None,
        container: None,
        line: None,
        look: Vec::new(),
        cluster_state: String::new(),
        safe_to_stop: true,
        next: crate::text::cut(&next.into(), 512),
    }
}

/// With commands that show more.
pub fn look(mut failure: Failure, commands: impl IntoIterator<Item = String>) -> Failure {
    failure.look = commands.into_iter().map(|command| crate::text::cut(&command, 300)).take(8).collect();
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apiserver_that_has_just_started_has_not_refused_what_its_policies_could_not_judge() {
        let answer = |code, message: &str| kube::core::Status { code, message: message.to_owned(), ..Default::default() };
        let policy = "infrastructures \"cluster\" is forbidden: ValidatingAdmissionPolicy 'in-use' denied request: ";
        let early = format!("{policy}failed to configure policy: failed to find resource referenced by paramKind");
        let judged = format!("{policy}failure domain a is still in use");
        for (code, message, wanted) in [
            (403, early.as_str(), true),
            (422, early.as_str(), true),
            (403, judged.as_str(), false),
            (422, "spec: Invalid value", false),
            (409, "the object has been modified", true),
            (429, "slow down", true),
            (500, "failed calling webhook", true),
            (503, "apiserver is shutting down", true),
        ] {
            assert_eq!(may_change(&answer(code, message)), wanted, "{code} {message}");
        }
    }
}
