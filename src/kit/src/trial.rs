//! Passwords that no vCenter has accepted yet. From the moment one is sent until its refusal stands in the vmi, this process writes
//! nothing else: if it ends right after a write, whichever controller made it, the next process knows what was refused.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use vmi_crds::status::RefusedCredentials;

/// A vCenter that takes its time over a login does not hold up the rest for longer.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(10) };

/// Keeps writes and passwords on trial apart. Several writes may go on at once, and several trials.
#[derive(Clone, Default)]
pub struct Trials(Arc<watch::Sender<Open>>);

#[derive(Default)]
struct Open {
    /// Writes that have not been answered.
    writes: usize,
    /// Passwords that have not been answered.
    sent: usize,
    /// Refusals that the vmi does not tell of yet.
    untold: Vec<RefusedCredentials>,
    accepted: Vec<RefusedCredentials>,
}

/// A password that is being tried; dropped without a word, nobody knows what became of it.
pub struct Trial(Trials);

/// A write that goes on.
pub struct Writing {
    trials: Trials,
    tells: Vec<RefusedCredentials>,
}

impl Trials {
    /// Whether a vCenter has accepted these from this process.
    pub fn accepted(&self, which: &RefusedCredentials) -> bool {
        self.0.borrow().accepted.contains(which)
    }

    /// Waits until nobody writes; nobody does as long as the trial lasts.
    pub async fn begin(&self) -> Trial {
        self.enter(|open| open.writes == 0, |open| open.sent += 1).await;
        Trial(self.clone())
    }

    /// Waits until no password is on trial and no refusal untold, but for one that this very write tells of.
    pub async fn write(&self, tells: Vec<RefusedCredentials>) -> Writing {
        let may = |open: &Open| open.sent == 0 && (open.untold.is_empty() || open.untold.iter().any(|one| tells.contains(one)));
        self.enter(may, |open| open.writes += 1).await;
        Writing { trials: self.clone(), tells }
    }

    /// What is on record already need not be told.
    pub fn told(&self, tells: &[RefusedCredentials]) {
        self.0.send_if_modified(|open| {
            let before = open.untold.len();
            open.untold.retain(|one| !tells.contains(one));
            open.untold.len() != before
        });
    }

    async fn enter(&self, may: impl Fn(&Open) -> bool, go: impl Fn(&mut Open)) {
        let mut changes = self.0.subscribe();
        let free = async {
            loop {
                let gone = self.0.send_if_modified(|open| {
                    let may = may(open);
                    if may {
                        go(open);
                    }
                    may
                });
                if gone || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        if tokio::time::timeout(PATIENCE, free).await.is_err() {
            self.0.send_modify(go);
        }
    }
}

impl Trial {
    /// It is the right one.
    pub fn accepted(self, which: RefusedCredentials) {
        self.0.0.send_modify(|open| {
            open.accepted.retain(|one| one.server != which.server);
            open.accepted.push(which);
        });
    }

    /// It is not: until that is told nobody else writes.
    pub fn refused(self, which: RefusedCredentials) {
        self.0.0.send_modify(|open| open.untold.push(which));
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| open.sent = open.sent.saturating_sub(1));
    }
}

impl Drop for Writing {
    /// Also after a write that failed: it is made again with the next one, and others cannot wait for ever.
    fn drop(&mut self) {
        self.trials.0.send_modify(|open| {
            open.writes = open.writes.saturating_sub(1);
            open.untold.retain(|one| !self.tells.contains(one));
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn which(server: &str) -> RefusedCredentials {
        RefusedCredentials { server: server.to_owned(), uid: "u".to_owned(), resource_version: "7".to_owned() }
    }

    fn may_write(trials: &Trials, tells: &[RefusedCredentials]) -> bool {
        trials.write(tells.to_vec()).now_or_never().is_some()
    }

    #[tokio::test]
    async fn nobody_writes_from_a_password_being_sent_until_its_refusal_is_told() {
        let trials = Trials::default();
        let trial = trials.begin().await;
        assert!(!may_write(&trials, &[]) && !may_write(&trials, &[which("b")]), "nobody knows yet what to tell");
        trial.refused(which("b"));
        assert!(!may_write(&trials, &[]) && !may_write(&trials, &[which("c")]));
        assert!(trials.begin().now_or_never().is_some(), "another may be tried meanwhile");
        let mut waits = Box::pin(trials.write(Vec::new()));
        assert!(waits.as_mut().now_or_never().is_none());
        drop(trials.write(vec![which("b")]).await);
        drop(waits.await);
        assert!(may_write(&trials, &[]) && !trials.accepted(&which("b")));
    }

    #[tokio::test]
    async fn no_password_is_sent_while_somebody_writes_and_an_accepted_one_keeps_nobody() {
        let trials = Trials::default();
        let (one, other) = (trials.write(Vec::new()).await, trials.write(Vec::new()).await);
        assert!(trials.begin().now_or_never().is_none());
        drop((one, other));
        trials.begin().await.accepted(which("b"));
        assert!(may_write(&trials, &[]) && trials.accepted(&which("b")));
        let newer = RefusedCredentials { resource_version: "8".to_owned(), ..which("b") };
        assert!(!trials.accepted(&newer));
        trials.begin().await.accepted(newer.clone());
        assert!(trials.accepted(&newer) && !trials.accepted(&which("b")));
    }

    #[tokio::test]
    async fn a_vcenter_that_does_not_answer_holds_up_a_write_for_a_while_only() {
        let trials = Trials::default();
        let silent = trials.begin().await;
        let before = std::time::Instant::now();
        drop(trials.write(Vec::new()).await);
        assert!(before.elapsed() >= PATIENCE);
        drop(silent);
        assert!(may_write(&trials, &[]));
    }
}
