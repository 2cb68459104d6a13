//! Live copies of several kinds, one watch each, and one signal for all of them: whoever waits here is woken by an event and
//! never asks twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::kubernetes::Kind;

/// Watches until dropped.
pub struct Cache {
    stores: HashMap<Kind, Vec<(String, Store<DynamicObject>)>>,
    changes: watch::Receiver<u64>,
    _watches: JoinSet<()>,
}

#[derive(Debug, thiserror::Error)]
#[error("gave up after {waited:?} waiting for {what}: {missing}")]
pub struct GaveUp {
    pub what: String,
    pub waited: Duration,
    pub missing: String,
}

impl Cache {
    /// Starts a watch per (kind, namespace), an empty namespace meaning all, and returns once each has listed what there is.
    pub async fn start(client: &Client, wanted: &[(Kind, &str)]) -> Cache {
        Cache::start_selected(client, wanted, &watcher::Config::default()).await
    }

    /// The same for those objects that `selected` lets through.
    pub async fn start_selected(client: &Client, wanted: &[(Kind, &str)], selected: &watcher::Config) -> Cache {
        let (bump, changes) = watch::channel(0);
        let mut watches = JoinSet::new();
        let mut stores: HashMap<Kind, Vec<(String, Store<DynamicObject>)>> = HashMap::new();
        for &(kind, namespace) in wanted {
            let writer = Writer::<DynamicObject>::new(kind.resource());
            let store = writer.as_reader();
            let stream = watcher(kind.api(client, namespace), selected.clone()).default_backoff().reflect(writer);
            let bump = bump.clone();
            watches.spawn(async move {
                let mut stream = std::pin::pin!(stream);
                while let Some(event) = stream.next().await {
                    match event {
                        Ok(_) => bump.send_modify(|changes| *changes += 1),
                        Err(error) => tracing::debug!(kind = kind.kind, %error, "watch interrupted, it is taken up again"),
                    }
                }
            });
            stores.entry(kind).or_default().push((namespace.to_owned(), store));
        }
        for (_, store) in stores.values().flatten() {
            // The only error is a writer dropped before the first list, which happens when this cache is dropped too.
            let _ = store.wait_until_ready().await;
        }
        Cache { stores, changes, _watches: watches }
    }

    /// All objects of a watched kind.
    pub fn list(&self, kind: Kind) -> Vec<Arc<DynamicObject>> {
        self.stores.get(&kind).into_iter().flatten().flat_map(|(_, store)| store.state()).collect()
    }

    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        let mut key = ObjectRef::new_with(name, kind.resource());
        if kind.namespaced {
            key = key.within(namespace);
        }
        self.stores.get(&kind)?.iter().find_map(|(_, store)| store.get(&key))
    }

    /// The signal itself, for tasks that share this cache.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Returns after the next change, or at once if there was one since the last call.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // Every watch task ended, which they only do with this cache; never wake again.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until `look` is satisfied; its error says what is still missing and ends up in the message if `deadline` passes.
    pub async fn until<T>(
        &mut self,
        what: &str,
        deadline: Duration,
        mut look: impl FnMut(&Cache) -> Result<T, String>,
    ) -> Result<T, GaveUp> {
        let end = tokio::time::Instant::now() + deadline;
        loop {
            let missing = match look(self) {
                Ok(found) => return Ok(found),
                Err(missing) => missing,
            };
            if tokio::time::timeout_at(end, self.changed()).await.is_err() {
                return Err(GaveUp { what: what.to_owned(), waited: deadline, missing });
            }
        }
    }
}
