//! Live copies of everything the controllers touch: one watch for each, shared by all, and one signal that wakes whoever waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::answers::Answers;
use crate::kind::{CLUSTER_VERSION, CONTROL_PLANE_MACHINE_SET, INFRASTRUCTURE, Kind, MACHINE, MACHINE_SET, VMI};
use crate::touch::{OWN, Touch};

/// Kinds without which there is no cluster to migrate; any other may be missing.
const REQUIRED: &[Kind] = &[VMI, INFRASTRUCTURE, CLUSTER_VERSION, MACHINE, MACHINE_SET, CONTROL_PLANE_MACHINE_SET];
/// How long until a kind that is not served is looked for again: no event tells of that.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const DELETION_SEEN: Duration = Duration::from_secs(10);

/// Watches until dropped.
pub struct Cache {
    own: String,
    stores: BTreeMap<Kind, Vec<Arc<Watched>>>,
    signal: Arc<Signal>,
    strays: Mutex<BTreeSet<String>>,
    _watches: JoinSet<()>,
}

struct Watched {
    touch: Touch,
    namespace: String,
    store: Store<DynamicObject>,
    state: Mutex<State>,
    answers: Mutex<Answers>,
}

/// Wakes whoever waits, and counts what changed of each kind.
#[derive(Default)]
struct Signal {
    changes: watch::Sender<u64>,
    revisions: Mutex<BTreeMap<Kind, u64>>,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Starting,
    Listed,
    NotServed,
    Failing(String),
}

impl Cache {
    /// Starts a watch for each thing touched, those that cover each other once.
    pub fn start(client: &Client, own: &str, touches: &[Touch]) -> Self {
        let signal = Arc::new(Signal::default());
        let mut watches = JoinSet::new();
        let mut stores: BTreeMap<Kind, Vec<Arc<Watched>>> = BTreeMap::new();
        for touch in widest(touches, own) {
            let namespace = if touch.namespace == OWN { own } else { touch.namespace }.to_owned();
            let writer = Writer::<DynamicObject>::new(touch.kind.resource());
            let (store, state) = (writer.as_reader(), Mutex::new(State::Starting));
            let watched = Arc::new(Watched { touch, namespace, store, state, answers: Mutex::default() });
            stores.entry(touch.kind).or_default().push(Arc::clone(&watched));
            watches.spawn(follow(client.clone(), watched, writer, Arc::clone(&signal)));
        }
        Self { own: own.to_owned(), stores, signal, strays: Mutex::default(), _watches: watches }
    }

    /// Returns when everything that is served has been listed.
    pub async fn ready(&self) {
        let mut changes = self.changes();
        while !self.not_ready().is_empty() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// What has not been listed yet, and why.
    pub fn not_ready(&self) -> Vec<String> {
        let missing = |watched: &Arc<Watched>| {
            let state = lock(&watched.state).clone();
            let why = match state {
                State::Listed => return None,
                State::NotServed if !REQUIRED.contains(&watched.touch.kind) => return None,
                State::NotServed => "is not served by this cluster".to_owned(),
                State::Starting => "not listed yet".to_owned(),
                State::Failing(why) => why,
            };
            Some(format!("{} {}/{}: {why}", watched.touch.kind.plural, watched.namespace, watched.touch.name))
        };
        self.stores.values().flatten().filter_map(missing).collect()
    }

    /// Whether the cluster serves the kind.
    pub fn serves(&self, kind: Kind) -> bool {
        self.stores.get(&kind).into_iter().flatten().any(|watched| *lock(&watched.state) == State::Listed)
    }

    /// The object, as last seen.
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        let mut key = ObjectRef::new_with(name, kind.resource());
        if kind.namespaced {
            key = key.within(namespace);
        }
        let watched = self.covering(kind, namespace, name)?;
        let told = watched.store.get(&key).into_iter().collect();
        let within = |object: &DynamicObject| !kind.namespaced || object.metadata.namespace.as_deref() == Some(namespace);
        lock(&watched.answers).over(told, |object| object.metadata.name.as_deref() == Some(name) && within(object)).pop()
    }

    /// All objects of a kind in a namespace, or everywhere; only what is watched.
    pub fn list(&self, kind: Kind, namespace: &str) -> Vec<Arc<DynamicObject>> {
        let Some(watched) = self.stores.get(&kind) else {
            self.stray(kind, namespace, "");
            return Vec::new();
        };
        let all = watched.iter().flat_map(|watched| lock(&watched.answers).over(watched.store.state(), |_| true));
        all.filter(|object| namespace.is_empty() || object.namespace().is_none_or(|here| here == namespace)).collect()
    }

    /// Wakes on every change of anything.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.signal.changes.subscribe()
    }

    /// A number that grows with every change of one of these kinds.
    pub fn revision(&self, kinds: &[Kind]) -> u64 {
        let revisions = lock(&self.signal.revisions);
        kinds.iter().filter_map(|kind| revisions.get(kind)).sum()
    }

    /// What was asked for without being watched: a controller that reads more than it says.
    pub fn strays(&self) -> Vec<String> {
        lock(&self.strays).iter().cloned().collect()
    }

    /// Takes the apiserver's answer to an own write, so that it can be read here at once and wakes whoever waits for it.
    pub fn take(&self, mut written: DynamicObject, kind: Kind) {
        if !self.stores.contains_key(&kind) {
            return;
        }
        let Some(watched) = self.covering(kind, &written.namespace().unwrap_or_default(), &written.name_any()) else { return };
        slim(&mut written);
        if lock(&watched.answers).keep(written) {
            self.signal.tell(kind);
        }
    }

    /// Waits until a deletion can be read here.
    pub async fn until_deleted(&self, kind: Kind, namespace: &str, name: &str, uid: &str) {
        let goes = |object: Arc<DynamicObject>| object.metadata.deletion_timestamp.is_some() || object.uid().is_none_or(|seen| seen != uid);
        let mut changes = self.changes();
        let wait = async { while !self.get(kind, namespace, name).is_none_or(goes) && changes.changed().await.is_ok() {} };
        if tokio::time::timeout(DELETION_SEEN, wait).await.is_err() {
            tracing::warn!(kind = kind.kind, namespace, name, "not seen in time that it was deleted; going on with what is known");
        }
    }

    fn covering(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Watched> {
        let found = self.stores.get(&kind)?.iter().find(|watched| watched.touch.covers(kind, namespace, name, &self.own));
        if found.is_none() {
            self.stray(kind, namespace, name);
        }
        found.map(Arc::as_ref)
    }

    fn stray(&self, kind: Kind, namespace: &str, name: &str) {
        if lock(&self.strays).insert(format!("{} {namespace}/{name}", kind.plural)) {
            tracing::error!(kind = kind.kind, namespace, name, "read without being watched: add it to the controller's touches");
        }
    }
}

impl Signal {
    fn tell(&self, kind: Kind) {
        *lock(&self.revisions).entry(kind).or_default() += 1;
        self.changes.send_modify(|changes| *changes += 1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Without those that another one covers.
fn widest(touches: &[Touch], own: &str) -> Vec<Touch> {
    let mut kept: Vec<Touch> = Vec::new();
    let mut sorted: Vec<Touch> = touches.iter().filter(|touch| touch.watched).copied().collect();
    sorted.sort_by_key(|touch| (!touch.namespace.is_empty(), !touch.name.is_empty()));
    for touch in sorted {
        let namespace = if touch.namespace == OWN { own } else { touch.namespace };
        if !kept.iter().any(|wide| wide.covers(touch.kind, namespace, touch.name, own)) {
            kept.push(touch);
        }
    }
    kept
}

async fn follow(client: Client, watched: Arc<Watched>, writer: Writer<DynamicObject>, signal: Arc<Signal>) {
    let Touch { kind, name, .. } = watched.touch;
    let config =
        if name.is_empty() { watcher::Config::default() } else { watcher::Config::default().fields(&format!("metadata.name={name}")) };
    let mut stream = std::pin::pin!(watcher(kind.api(&client, &watched.namespace), config).modify(slim).reflect(writer));
    let mut pause = FIRST_PAUSE;
    while let Some(event) = stream.next().await {
        let error = match event {
            Err(error) => error,
            Ok(event) => {
                let news = lock(&watched.answers).told(&event);
                if matches!(event, watcher::Event::InitDone) {
                    *lock(&watched.state) = State::Listed;
                }
                if news {
                    pause = FIRST_PAUSE;
                    signal.tell(kind);
                }
                continue;
            }
        };
        let not_served = is_missing(&error, watched.touch.optional);
        let was = fail(&mut lock(&watched.state), not_served, &error);
        if !not_served || was == State::Starting {
            tracing::info!(kind = kind.kind, namespace = watched.namespace, %error, "cannot watch; trying again");
        }
        signal.tell(kind);
        // Nothing tells when the apiserver can be reached again or serves a kind it did not.
        tokio::time::sleep(if not_served && was != State::Listed { LOOK_AGAIN } else { pause }).await;
        pause = (pause * 2).min(Duration::from_secs(10));
    }
}

/// What was listed once stays known while its watch fails: that goes on from there, and says nothing of it until something changes.
/// An apiserver that has just started does not even serve yet what it served before.
fn fail(state: &mut State, not_served: bool, error: &watcher::Error) -> State {
    let was = state.clone();
    if was != State::Listed {
        *state = if not_served { State::NotServed } else { State::Failing(error.to_string()) };
    }
    was
}

/// Whether the cluster has no such thing, or none for us where that is as good.
fn is_missing(error: &watcher::Error, optional: bool) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status)) => status.code == 404 || (optional && status.code == 403),
        _ => false,
    }
}

/// Who wrote which field is of no use here and is often the larger part, and so are a node's images and what a schema tells readers.
fn slim(object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
    if let Some(status) = object.data.get_mut("status").and_then(Value::as_object_mut) {
        status.shift_remove("images");
    }
    object.data.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten().for_each(undescribed);
}

fn undescribed(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    fields.retain(|name, value| name != "description" || !value.is_string());
    fields.values_mut().for_each(undescribed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_listed_stays_known_while_its_watch_fails() {
        let error = || watcher::Error::NoResourceVersion;
        let after = |mut state: State, not_served: bool| {
            fail(&mut state, not_served, &error());
            state
        };
        assert_eq!(after(State::Listed, false), State::Listed);
        assert_eq!(after(State::Listed, true), State::Listed);
        assert_eq!(after(State::Starting, true), State::NotServed);
        assert_eq!(after(State::Starting, false), State::Failing(error().to_string()));
        assert_eq!(after(State::NotServed, false), State::Failing(error().to_string()));
    }

    #[test]
    fn a_schema_is_kept_without_what_it_tells_readers() {
        let mut version =
            serde_json::json!({"schema": {"description": "a", "properties": {"description": {"description": "b", "maxItems": 1}}}});
        undescribed(&mut version);
        assert_eq!(version, serde_json::json!({"schema": {"properties": {"description": {"maxItems": 1}}}}));
    }
}
