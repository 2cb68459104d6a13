//! What the lab sees of pods and leases while a migration runs, each with the moment it was seen: their own times have whole
//! seconds only, which is too coarse to measure by.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use tokio::task::JoinSet;

use super::NAMESPACE;
use crate::cache::Cache;
use crate::kubernetes::{LEASE, POD, condition, full_name};

/// Watches until dropped.
pub struct Witness {
    seen: Arc<Mutex<Seen>>,
    _watch: JoinSet<()>,
}

/// What was seen since the beginning.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Namespaces of pods that were not there at the beginning and became Ready, and when.
    pub ready: Vec<(String, Timestamp)>,
    /// Since when they are Ready by their own word, which is what the operator goes by.
    pub since: Vec<Timestamp>,
    /// When leases that are not the operator's got another holder.
    pub taken: Vec<Timestamp>,
    known_pods: HashSet<String>,
    holders: HashMap<String, String>,
}

impl Seen {
    /// Takes in what there is now.
    fn look(&mut self, cache: &Cache, now: Timestamp) {
        for pod in cache.list(POD) {
            let is_ready = condition(&pod, "Ready") == "True";
            if is_ready && self.known_pods.insert(pod.uid().unwrap_or_default()) {
                self.ready.push((pod.namespace().unwrap_or_default(), now));
                self.since.extend(ready_since(&pod));
            }
        }
        for lease in cache.list(LEASE).iter().filter(|lease| lease.metadata.namespace.as_deref() != Some(NAMESPACE)) {
            let holder = lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let before = self.holders.get(&full_name(lease));
            if !holder.is_empty() && before.is_none_or(|before| before != holder) {
                self.holders.insert(full_name(lease), holder.to_owned());
                self.taken.push(now);
            }
        }
    }
}

fn ready_since(pod: &DynamicObject) -> Option<Timestamp> {
    let conditions = pod.data["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready")?["lastTransitionTime"].as_str()?.parse().ok()
}

impl Witness {
    pub async fn start(client: &Client) -> Witness {
        let mut cache = Cache::start(client, &[(POD, ""), (LEASE, "")]).await;
        let mut first = Seen::default();
        first.look(&cache, Timestamp::now());
        // What was there before is known, and nothing that happened.
        let seen = Arc::new(Mutex::new(Seen { ready: Vec::new(), since: Vec::new(), taken: Vec::new(), ..first }));
        let mut watch = JoinSet::new();
        let shared = Arc::clone(&seen);
        watch.spawn(async move {
            loop {
                cache.changed().await;
                let now = Timestamp::now();
                shared.lock().unwrap_or_else(PoisonError::into_inner).look(&cache, now);
            }
        });
        Witness { seen, _watch: watch }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
