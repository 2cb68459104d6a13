//! Replaces the pods that read the vCenters, and watches until they are well; holds the migration while they are not.
//!
//! Consumes: CloudConfigExtended (and its undo), SourceDetached, SourceRemoved; status.baseline.
//! Produces: PodsRestarted, PodsHealthy, PodsRestartedAfterDetach, PodsHealthyAfterDetach, PodsHealthyAfterRemoval; Held.
//! Touches: pods and their logs, their owners and leases in the namespaces of [`workloads`]; operators, pools, the CSI driver,
//! ClusterVersion, Infrastructure and Nodes are only read.
//! Undo: the same once more, for the vCenters that are configured then; the conditions end False, reason Undone.
//! Gives up when: a workload wants pods and has none (POD-001), or the pods are not healthy within spec.health.deadline: then the
//! reason is the rule of what was found last, or of the sign that is missing (EVD-nnn). Naming it in spec.health.accept goes on.
//!
//! From the moment the pods that have to go are written down, logs are read in tasks of their own ([`follow`]), judged by
//! [`rules`], and kept in a [`ledger`]; [`trouble`] and [`health`] decide, purely, from that and from the cache.

#![deny(missing_docs)]

mod cluster;
pub mod explain;
mod follow;
mod health;
mod held;
mod ledger;
pub mod lines;
mod restart;
pub mod rules;
mod steps;
mod trouble;
mod view;
pub mod workloads;

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;
use tokio::sync::watch;
use vmi_crds::graph;
use vmi_crds::spec::LogPattern;
use vmi_kit::kind::{
    CLUSTER_CSI_DRIVER, CLUSTER_OPERATOR, CLUSTER_VERSION, DAEMON_SET, DEPLOYMENT, INFRASTRUCTURE, LEASE, MACHINE_CONFIG_POOL, NODE, POD,
    SECRET,
};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_steps::step::sooner;
use vmi_steps::{Controller, Migration, Report, Wake, take};

use crate::follow::{Readers, Shared, Wanted};
use crate::health::{Health, LeaseView};
use crate::held::Known;
use crate::ledger::{Signs, Source};
use crate::restart::Round;
pub use crate::rules::BadRules;
use crate::rules::Catalogue;
use crate::steps::{Detached, Extended, Healthy, Removed, Restarted};
use crate::view::View;
use crate::workloads::{CLOUD, CLOUD_OPERATOR, CONFIGS, CREDENTIALS, CSI, MACHINES, STORAGE};

/// The controller.
pub struct PodHealthWatch {
    shared: Arc<Shared>,
    attention: Mutex<Attention>,
}

/// What is being read at the moment, and for whom.
struct Attention {
    readers: Readers,
    catalogue: Arc<Catalogue>,
    patterns: Vec<LogPattern>,
    about: Option<(String, Timestamp)>,
    nodes: u64,
    /// Of which vmi that has not started, and the UIDs of pods that end again and again already.
    before: (String, BTreeSet<String>),
}

impl PodHealthWatch {
    /// Reads nothing yet.
    pub fn new() -> Result<Self, BadRules> {
        let shared = Shared::new(Signs::new()?);
        let catalogue = Arc::new(Catalogue::new(&[])?);
        let readers = Readers::new(Arc::clone(&shared));
        let attention = Attention { readers, catalogue, patterns: Vec::new(), about: None, nodes: 0, before: Default::default() };
        Ok(Self { shared, attention: Mutex::new(attention) })
    }

    fn attention(&self) -> MutexGuard<'_, Attention> {
        self.attention.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets exactly the logs be read that matter to this migration now.
    fn attend(&self, m: &Migration, round: Option<&Round>) -> Result<(), Stop> {
        let mut attention = self.attention();
        let Some(round) = round else {
            if attention.about.as_ref().is_some_and(|(uid, _)| *uid == m.uid()) {
                attention.about = None;
                attention.readers.stop();
            }
            return Ok(());
        };
        let patterns = &m.spec().health.patterns;
        if attention.patterns != *patterns {
            let catalogue = Catalogue::new(patterns).map_err(Stop::again)?;
            attention.catalogue = Arc::new(catalogue);
            attention.patterns.clone_from(patterns);
            attention.about = None;
        }
        // Another restart, or other rules: what was read is judged anew, from the logs themselves.
        let about = Some((m.uid(), round.since));
        if attention.about != about {
            attention.readers.stop();
            attention.about = about;
        }
        let catalogue = Arc::clone(&attention.catalogue);
        attention.readers.keep(&m.cx, &catalogue, wanted(&views(m, round), round, &out_of_reach(m, &self.shared.muted())));
        Ok(())
    }

    /// Learns which nodes are not vSphere's: what is said there, and what happens there, tells nothing of the vCenters.
    fn look_at_nodes(&self, m: &Migration) {
        let nodes = m.cx.cache.revision(&[NODE]);
        if std::mem::replace(&mut self.attention().nodes, nodes) != nodes {
            self.shared.mute(not_vspheres(m));
        }
    }

    /// Remembers, until the migration starts, which pods end again and again.
    fn look_before(&self, m: &Migration, now: Timestamp) {
        let pods = View::all(m).into_iter().flat_map(|view| view.pods);
        let ailing = pods.filter(|pod| pod.ails(now)).map(|pod| pod.uid).collect();
        self.attention().before = (m.uid(), ailing);
    }

    /// Pods that are not replaced and ended again and again before the migration started.
    fn ailing(&self, m: &Migration, views: &[View]) -> BTreeSet<String> {
        let (uid, before) = self.attention().before.clone();
        let before = if uid == m.uid() { before } else { BTreeSet::new() };
        restart::ailing(views, &before, m.vmi.seen().started_at.as_ref().map(|time| time.0))
    }

    /// Whether the new pods are healthy.
    fn health(&self, m: &Migration, round: &Round, now: Timestamp) -> Health {
        let (troubles, crash) = self.judge(m, round, now, |facts| (trouble::troubles(facts).0, trouble::last_crash(facts)));
        let views = views(m, round);
        let leases: Vec<LeaseView> =
            [CLOUD, MACHINES].iter().flat_map(|namespace| m.list(LEASE, namespace)).map(|lease| LeaseView::of(&lease)).collect();
        let spec = &m.spec().health;
        let catalogue = Arc::clone(&self.attention().catalogue);
        let ledger = self.shared.ledger();
        health::health(&health::Facts {
            restarted: round.since,
            views: &views,
            leases: &leases,
            servers: &servers(m),
            ledger: &ledger,
            catalogue: &catalogue,
            worse: &cluster::worse(m, m.vmi.seen().baseline.as_ref()),
            troubles: &troubles,
            crash: crash.as_ref(),
            accept: &spec.accept,
            quiet: SignedDuration::try_from(spec.quiet_period.duration()).unwrap_or(SignedDuration::MAX),
            now,
        })
    }

    /// Judges what is known of the logs and of the cluster.
    fn judge<T>(&self, m: &Migration, round: &Round, now: Timestamp, judge: impl FnOnce(&trouble::Facts<'_>) -> T) -> T {
        let catalogue = Arc::clone(&self.attention().catalogue);
        let status = m.vmi.seen();
        judge(&trouble::Facts {
            runs: self.shared.ledger().runs().cloned().collect(),
            catalogue: &catalogue,
            views: &views(m, round),
            not_vspheres: &self.shared.muted(),
            ailing: &round.ailing,
            worse: &cluster::worse(m, status.baseline.as_ref()),
            update: cluster::update(m, status.started_at.as_ref().map(|time| time.0)),
            accept: &m.spec().health.accept,
            restarted: round.since,
            now,
        })
    }

    async fn steps(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        let mut wake = take(&Restarted::<Extended>(self, PhantomData), m, report).await?;
        wake = sooner(wake, take(&Healthy::<Extended>(self, PhantomData), m, report).await?);
        wake = sooner(wake, take(&Restarted::<Detached>(self, PhantomData), m, report).await?);
        wake = sooner(wake, take(&Healthy::<Detached>(self, PhantomData), m, report).await?);
        Ok(sooner(wake, take(&Healthy::<Removed>(self, PhantomData), m, report).await?))
    }
}

impl Controller for PodHealthWatch {
    const NAME: graph::Controller = graph::Controller::PodHealthWatch;
    const TOUCHES: &'static [Touch] = &[
        reads(SECRET).within(OWN).writes(&["create", "patch"]),
        reads(INFRASTRUCTURE).named("cluster"),
        reads(CLUSTER_VERSION).named(cluster::VERSION),
        reads(CLUSTER_OPERATOR),
        reads(MACHINE_CONFIG_POOL),
        reads(CLUSTER_CSI_DRIVER).named(cluster::CSI_DRIVER),
        reads(NODE),
        reads(POD).within(CLOUD).writes(&["delete", "log"]),
        reads(POD).within(MACHINES).writes(&["delete", "log"]),
        reads(POD).within(CSI).writes(&["delete", "log"]),
        reads(POD).within(STORAGE).writes(&["delete", "log"]),
        reads(POD).within(CLOUD_OPERATOR).writes(&["log"]),
        reads(POD).within(CREDENTIALS).writes(&["log"]),
        reads(POD).within(CONFIGS).writes(&["log"]),
        reads(DEPLOYMENT).within(CLOUD),
        reads(DEPLOYMENT).within(MACHINES),
        reads(DEPLOYMENT).within(CSI),
        reads(DEPLOYMENT).within(STORAGE),
        reads(DEPLOYMENT).within(CLOUD_OPERATOR),
        reads(DEPLOYMENT).within(CREDENTIALS),
        reads(DEPLOYMENT).within(CONFIGS),
        reads(DAEMON_SET).within(CSI),
        reads(LEASE).within(CLOUD),
        reads(LEASE).within(MACHINES),
    ];

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        let judged = !m.vmi.over() && m.vmi.seen().started_at.is_some();
        self.look_at_nodes(m);
        self.attend(m, steps::latest_round(m).filter(|_| judged).as_ref())?;
        if m.vmi.seen().started_at.is_none() {
            self.look_before(m, Timestamp::now());
        }
        let taken = self.steps(m, report).await;
        // Also after an error: what holds the migration is told.
        let round = steps::latest_round(m).filter(|_| judged);
        let (troubles, wake) = round.as_ref().map_or((Vec::new(), None), |round| self.judge(m, round, Timestamp::now(), trouble::troubles));
        let catalogue = Arc::clone(&self.attention().catalogue);
        let unread = self.shared.ledger().unread().next().is_some();
        held::tell(m, report, &Known { judged: round.is_some(), unread, unusable: &catalogue.unusable }, &troubles);
        Ok(sooner(taken?, wake))
    }

    fn wakes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.wakes())
    }
}

/// The workloads without the pods that had to go.
fn views(m: &Migration, round: &Round) -> Vec<View> {
    let mut views = View::all(m);
    for view in &mut views {
        view.pods.retain(|pod| !round.uids.contains(&pod.uid));
    }
    views
}

/// Which logs are read. What runs on every node is read where the node can tell of a vCenter: not on those `out_of_reach`.
fn wanted(views: &[View], round: &Round, out_of_reach: &[String]) -> Vec<Wanted> {
    let logs = |view: &View| -> Vec<Wanted> {
        let since = view.workload.restart.is_none().then_some(round.since);
        let source = |uid: &str, pod: &str, container| Source {
            uid: uid.to_owned(),
            container,
            component: view.workload.component,
            namespace: view.workload.namespace,
            pod: pod.to_owned(),
        };
        // Also while a container waits to begin again: its last words are what tells why it ended.
        let pods = view.pods.iter().filter(|pod| pod.has_run && !round.ailing.contains(&pod.uid));
        let pods = pods.filter(|pod| view.workload.kind != DAEMON_SET || !out_of_reach.contains(&pod.node));
        pods.flat_map(|pod| {
            // Not every release and every configuration has them all.
            let containers = view.workload.containers.iter().filter(|name| pod.containers.iter().any(|its| its == *name));
            containers.map(|container| Wanted { source: source(&pod.uid, &pod.name, container), since, crashed: pod.restarts > 0 })
        })
        .collect()
    };
    views.iter().flat_map(logs).collect()
}

/// The vCenters that are configured now.
fn servers(m: &Migration) -> Vec<String> {
    let infrastructure = m.infrastructure();
    let listed = infrastructure.iter().flat_map(|object| view::list(&object.data["spec"]["platformSpec"]["vsphere"]["vcenters"]));
    let servers: Vec<String> = listed.filter_map(|vcenter| vcenter["server"].as_str()).map(str::to_owned).collect();
    // Clusters from before failure domains name their vCenter only in the cloud configuration.
    if servers.is_empty() { m.sources() } else { servers }
}

/// The names of nodes whose own pods tell nothing: those that are not vSphere's, and those whose kubelet does not answer.
fn out_of_reach(m: &Migration, not_vspheres: &[String]) -> Vec<String> {
    let ready = |node: &DynamicObject| {
        view::list(&node.data["status"]["conditions"]).any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let silent = m.list(NODE, "").into_iter().filter(|node| !ready(node)).map(|node| node.name_any());
    silent.chain(not_vspheres.iter().cloned()).collect()
}

/// The names of nodes that are not vSphere's.
fn not_vspheres(m: &Migration) -> Vec<String> {
    let nodes = m.list(NODE, "");
    let others = nodes.iter().filter(|node| {
        let metadata = json!({"labels": node.metadata.labels, "annotations": node.metadata.annotations});
        let node = json!({"metadata": metadata, "spec": node.data["spec"]});
        vmi_intent::nodes::class(&node) == vmi_intent::nodes::Class::BareMetal
    });
    others.map(|node| node.name_any()).collect()
}

#[cfg(test)]
mod tests;
