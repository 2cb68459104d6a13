//! What every controller works with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::api::DynamicObject;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Resource, ResourceExt};
use tokio::sync::{mpsc, watch};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;

use crate::cache::Cache;
use crate::denials::Denials;
use crate::kind::VMI;
use crate::lane::Lane;
use crate::metrics::Metrics;
use crate::vcenters::Vcenters;

/// What every controller works with.
pub struct Context {
    /// The apiserver.
    pub client: Client,
    /// Live copies of what is touched.
    pub cache: Cache,
    /// The operator's namespace, the only one with vmis.
    pub namespace: String,
    /// Sessions with vCenters.
    pub vcenters: Vcenters,
    /// What is measured.
    pub metrics: Metrics,
    /// What the apiserver denies to which step.
    pub denials: Denials,
    /// The way into the vmi.
    pub lane: Lane,
    /// The vmis as last read, by UID and version: every controller looks at each version, and reading one takes its time.
    read: Mutex<HashMap<(String, String), Arc<VSphereMigrationInfra>>>,
    leads: watch::Receiver<bool>,
    events: mpsc::UnboundedSender<(Arc<VSphereMigrationInfra>, Event)>,
}

impl Context {
    /// For a process that leads while `leads` says so.
    pub fn new(client: Client, cache: Cache, namespace: &str, metrics: Metrics, leads: watch::Receiver<bool>) -> Arc<Self> {
        let (events, received) = mpsc::unbounded_channel();
        tokio::spawn(publish(client.clone(), received));
        Arc::new(Self {
            client,
            cache,
            namespace: namespace.to_owned(),
            vcenters: Vcenters::new(),
            metrics,
            denials: Denials::default(),
            lane: Lane::default(),
            read: Mutex::default(),
            leads,
            events,
        })
    }

    /// Whether this process leads now.
    pub fn leads(&self) -> bool {
        *self.leads.borrow()
    }

    /// Follows who leads.
    pub fn leadership(&self) -> watch::Receiver<bool> {
        self.leads.clone()
    }

    /// Every vmi of the namespace, the oldest first.
    pub fn vmis(&self) -> Vec<Arc<VSphereMigrationInfra>> {
        let mut before = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |object: Arc<DynamicObject>| {
            let key = (object.uid().unwrap_or_default(), object.resource_version().unwrap_or_default());
            let known = before.get(&key).cloned();
            known.or_else(|| parse(&object)).map(|vmi| (key, vmi))
        };
        let now: HashMap<_, _> = self.cache.list(VMI, &self.namespace).into_iter().filter_map(read).collect();
        let mut all: Vec<Arc<VSphereMigrationInfra>> = now.values().cloned().collect();
        *before = now;
        all.sort_by_key(|vmi| (vmi.creation_timestamp().map(|time| time.0), vmi.name_any()));
        all
    }

    /// Tells of something in the vmi's events.
    pub fn event(&self, vmi: &Arc<VSphereMigrationInfra>, step: StepName, reason: &str, message: &str, bad: bool) {
        let event = Event {
            type_: if bad { EventType::Warning } else { EventType::Normal },
            reason: reason.to_owned(),
            note: Some(crate::text::cut(&format!("{step}: {message}"), 1000)),
            action: step.as_str().to_owned(),
            secondary: None,
        };
        // The receiver lives as long as the process.
        let _ = self.events.send((Arc::clone(vmi), event));
    }
}

fn parse(object: &Arc<DynamicObject>) -> Option<Arc<VSphereMigrationInfra>> {
    match object.as_ref().clone().try_parse() {
        Ok(vmi) => Some(Arc::new(vmi)),
        Err(error) => {
            tracing::error!(vmi = object.name_any(), %error, "this vmi cannot be read; was it written past the CRD's schema?");
            None
        }
    }
}

async fn publish(client: Client, mut events: mpsc::UnboundedReceiver<(Arc<VSphereMigrationInfra>, Event)>) {
    let reporter = Reporter { controller: "config.openshift.io/vmi-operator".to_owned(), instance: None };
    let recorder = Recorder::new(client, reporter);
    while let Some((vmi, event)) = events.recv().await {
        if let Err(error) = recorder.publish(&event, &vmi.object_ref(&())).await {
            tracing::warn!(%error, reason = event.reason, "cannot publish an event");
        }
    }
}
