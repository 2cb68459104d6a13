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
        Self::Again(format!("the apiserver: {}", words(&error)))
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

/// What the apiserver says while it has just started, as if it had been decided: of an admission policy when it does not know all
/// kinds yet, and of any admission that has not read what it judges by.
const NOT_READY: [&str; 2] = ["failed to configure policy", "not yet ready to handle request"];

/// All that the apiserver says of a JSON patch whose `test` fails.
const TEST_FAILED: &str = "the server rejected our request due to an error in our request";

/// Whether the apiserver may say something else in a moment: somebody else wrote meanwhile, or it has trouble of its own.
pub fn may_change(answer: &kube::core::Status) -> bool {
    matches!(answer.code, 409 | 429 | 500..) || NOT_READY.iter().any(|words| answer.message.contains(words)) || overtaken(answer)
}

/// Whether a write was not made because the object is no longer what the write was based on.
pub fn overtaken(answer: &kube::core::Status) -> bool {
    answer.code == 409 || (answer.code == 422 && answer.message.contains(TEST_FAILED))
}

/// What went wrong with a request, without the fields of the answer that only a program reads.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(answer) if answer.message.contains(TEST_FAILED) => "somebody else changed it meanwhile".to_owned(),
        kube::Error::Api(answer) if !answer.message.is_empty() => answer.message.clone(),
        error => error.to_string(),
    }
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
            (422, TEST_FAILED, true),
            (403, "machinesets \"a\" is forbidden: not yet ready to handle request", true),
        ] {
            assert_eq!(may_change(&answer(code, message)), wanted, "{code} {message}");
        }
    }

    #[test]
    fn an_answer_of_the_apiserver_is_told_in_its_own_words_alone() {
        let answer = |code, message: &str| {
            kube::Error::Api(Box::new(kube::core::Status { code, message: message.to_owned(), ..Default::default() }))
        };
        assert_eq!(words(&answer(403, "secrets is forbidden")), "secrets is forbidden");
        assert_eq!(words(&answer(422, TEST_FAILED)), "somebody else changed it meanwhile");
        let Stop::Again(text) = Stop::from(answer(503, "etcd has no leader")) else { panic!("it does not get better by itself") };
        assert_eq!(text, "the apiserver: etcd has no leader");
    }
}
