//! What becomes of a Lease whose holder ends without giving it up, so that nobody waits for the dead.
//!
//! A Lease of one process at a time: the next one waits until the one before has ended. One that is ending still renews its Lease,
//! or makes it anew where it was deleted, and its successor would wait for as long as that lasts.
//!
//! A Lease that several processes wait for: when one of them has ended, its holder is gone if it was taken before any that is left
//! was started.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, Preconditions};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::kubernetes::{self, LEASE};

#[derive(Default)]
pub(super) struct Leases {
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    living: Living,
}

/// When the living processes that may hold a Lease were started.
type Living = Arc<Mutex<HashMap<String, Vec<Timestamp>>>>;

/// Lasts as long as the process that may hold the Lease.
pub(super) enum Claim {
    Alone { _turn: OwnedMutexGuard<()> },
    Shared(Share),
}

pub(super) struct Share {
    living: Living,
    lease: String,
    started: Timestamp,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
        let of_lease = living.entry(self.lease.clone()).or_default();
        if let Some(place) = of_lease.iter().position(|other| *other == self.started) {
            of_lease.swap_remove(place);
        }
    }
}

impl Leases {
    /// Returns when no process is left that may hold the Lease, `namespace/name`.
    pub async fn alone(&self, lease: &str) -> Claim {
        let turns = Arc::clone(self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(lease.to_owned()).or_default());
        Claim::Alone { _turn: turns.lock_owned().await }
    }

    /// For a process that is about to be started.
    pub fn shared(&self, lease: &str) -> Share {
        let started = Timestamp::now();
        self.living.lock().unwrap_or_else(PoisonError::into_inner).entry(lease.to_owned()).or_default().push(started);
        Share { living: Arc::clone(&self.living), lease: lease.to_owned(), started }
    }

    /// The process has ended.
    pub async fn ended(&self, client: &Client, claim: Claim) {
        let Claim::Shared(share) = claim else { return };
        let lease = share.lease.clone();
        drop(share);
        if let Err(error) = self.free(client, &lease).await {
            // Whoever waits for it then waits until it is over, as on a real cluster.
            tracing::warn!(lease, %error, "the lease of a process that has ended cannot be deleted");
        }
    }

    /// Whether nobody who lives can have taken the Lease.
    fn is_of_the_dead(&self, lease: &str, taken: Timestamp) -> bool {
        let living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
        living.get(lease).into_iter().flatten().all(|started| taken < *started)
    }

    async fn free(&self, client: &Client, lease: &str) -> Result<(), kubernetes::Error> {
        let (namespace, name) = lease.split_once('/').unwrap_or(("default", lease));
        let Some(object) = kubernetes::get(client, LEASE, namespace, name).await? else { return Ok(()) };
        if taken(&object.data).is_some_and(|taken| self.is_of_the_dead(lease, taken)) {
            let exactly = Preconditions { uid: object.metadata.uid, resource_version: object.metadata.resource_version };
            let parameters = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
            // Somebody took it meanwhile, and lives.
            match LEASE.api(client, namespace).delete(name, &parameters).await {
                Err(kube::Error::Api(answer)) if answer.code == 409 || answer.code == 404 => {}
                other => drop(other.map_err(kubernetes::failed("delete", LEASE, name))?),
            }
        }
        Ok(())
    }
}

fn taken(lease: &Value) -> Option<Timestamp> {
    lease["spec"]["acquireTime"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use serde_json::json;

    #[tokio::test]
    async fn the_next_process_waits_until_the_one_before_has_ended() {
        let leases = Leases::default();
        let first = leases.alone("ns/a").await;
        assert!(leases.alone("ns/b").now_or_never().is_some(), "another lease is another matter");
        assert!(leases.alone("ns/a").now_or_never().is_none());
        drop(first);
        assert!(leases.alone("ns/a").now_or_never().is_some());
    }

    #[test]
    fn a_lease_taken_before_any_living_process_was_started_is_of_the_dead() {
        let leases = Leases::default();
        let before = Timestamp::now();
        let (first, second) = (leases.shared("ns/a"), leases.shared("ns/a"));
        assert!(leases.is_of_the_dead("ns/a", before));
        let since = taken(&json!({"spec": {"acquireTime": Timestamp::now().to_string()}})).unwrap();
        assert!(!leases.is_of_the_dead("ns/a", since), "either of them may hold it");
        drop(first);
        assert!(!leases.is_of_the_dead("ns/a", since), "the second may");
        drop(second);
        assert!(leases.is_of_the_dead("ns/a", since));
    }
}
