//! Step 1: the cluster version operator leaves the two CRDs alone, because it does not run or because it is told so.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};
use vmi_crds::graph::StepName;
use vmi_crds::spec::Freeze;
use vmi_crds::status::Path;
use vmi_kit::kind::{CLUSTER_VERSION, DEPLOYMENT, POD};
use vmi_kit::{Stop, failure};
use vmi_steps::change::{self, Change};
use vmi_steps::{Migration, Seen, Step, Writer};

use super::path;
use crate::held::Held;
use crate::ledger::{self, Release};
use crate::rules::LOCKED;

/// Where the cluster version operator runs.
pub const NAMESPACE: &str = "openshift-cluster-version";
/// Its Deployment.
pub const NAME: &str = "cluster-version-operator";
const LABEL: (&str, &str) = ("k8s-app", NAME);
const REPLICAS: &str = "cvo-replicas";
const OVERRIDES: &str = "cvo-overrides";
/// What this step saves.
pub const KEYS: &[&str] = &[REPLICAS, OVERRIDES];

/// Step 1.
pub struct ClusterVersionFrozen {
    /// Once the holds are being released nobody has taken them away.
    pub thawing: bool,
}

impl Step for ClusterVersionFrozen {
    const NAME: StepName = StepName::ClusterVersionFrozen;
    type Act = Change;

    async fn observe(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        match path(m) {
            Err(waits) => return Ok(waits),
            Ok(Path::Native) => return Ok(Seen::done("NotNeeded", "this cluster takes another vCenter as it is")),
            Ok(Path::Legacy) => {}
        }
        if let Some(todo) = change::todo(changes(m)?) {
            return Ok(todo);
        }
        if m.spec().freeze == Freeze::Overrides {
            let seen = m.get(CLUSTER_VERSION, "", "version").is_some_and(|version| observed(&version));
            return Ok(match seen {
                true => Seen::done("Frozen", "the cluster version operator runs and leaves the two CRDs alone (spec.overrides)"),
                false => Seen::waiting("waits for the cluster version operator to take note of spec.overrides of ClusterVersion version"),
            });
        }
        let left = running(&m.list(POD, NAMESPACE));
        Ok(match left.first() {
            None => Seen::done("Frozen", "the cluster version operator is scaled to 0 and no pod of it is left"),
            Some(pod) => Seen::waiting(format!("waits for pod {NAMESPACE}/{pod} of the cluster version operator to end")),
        })
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        let mut release = release(m)?;
        if let Some(todo) = change::todo(std::mem::take(&mut release.changes)) {
            return Ok(todo);
        }
        Ok(unverified(m)?.unwrap_or_else(|| release.undone("the cluster version operator is as it was")))
    }

    async fn act(&self, _m: &Migration, act: Change, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act.make(writer).await
    }

    fn taken_away(&self, m: &Migration) -> Option<String> {
        if self.thawing || m.path() != Some(Path::Legacy) {
            return None;
        }
        if m.spec().freeze == Freeze::Overrides {
            let missing = overrides(&*m.get(CLUSTER_VERSION, "", "version")?);
            return missing
                .first()
                .map(|held| format!("spec.overrides of ClusterVersion version were changed by someone: {}", held.taking()));
        }
        let replicas = m.get(DEPLOYMENT, NAMESPACE, NAME).map_or(0, |deployment| replicas(&deployment));
        if replicas > 0 {
            return Some(format!("Deployment {NAMESPACE}/{NAME} was scaled to {replicas} by someone"));
        }
        running(&m.list(POD, NAMESPACE)).first().map(|pod| format!("pod {NAMESPACE}/{pod} of the cluster version operator runs"))
    }
}

/// What is left to be changed until the operator is held.
pub fn changes(m: &Migration) -> Result<Vec<Change>, Stop> {
    match m.spec().freeze {
        Freeze::ScaleDown => {
            let deployment = m.get(DEPLOYMENT, NAMESPACE, NAME).ok_or_else(|| missing("Deployment", &format!("{NAMESPACE}/{NAME}")))?;
            ledger::take(m, REPLICAS, || Held::field(DEPLOYMENT, &deployment, "/spec/replicas", Some(json!(0))).into_iter().collect())
        }
        Freeze::Overrides => {
            let version = m.get(CLUSTER_VERSION, "", "version").ok_or_else(|| missing("ClusterVersion", "version"))?;
            ledger::take(m, OVERRIDES, || overrides(&version))
        }
    }
}

fn missing(kind: &str, name: &str) -> Stop {
    let text = format!("there is no {kind} {name}, so the cluster version operator cannot be held back");
    failure("FRZ-002", text, "find out what became of it, then resume").into()
}

/// What is left to be changed until the operator is as it was.
pub fn release(m: &Migration) -> Result<Release, Stop> {
    let unsaved = m.path() == Some(Path::Legacy) && m.spec().freeze == Freeze::ScaleDown && ledger::saved(m, REPLICAS)?.is_none();
    if unsaved && m.get(DEPLOYMENT, NAMESPACE, NAME).is_some_and(|deployment| replicas(&deployment) == 0) {
        let secret = vmi_steps::saved::secret_name(&m.name());
        let text =
            format!("Deployment {NAMESPACE}/{NAME} is at 0 replicas and Secret {}/{secret} does not say what it had", m.cx.namespace);
        let next = format!("run: oc -n {NAMESPACE} scale deployment/{NAME} --replicas=1; then resume");
        return Err(failure("FRZ-004", text, next).into());
    }
    Release::of(m, KEYS.iter().copied())
}

/// What is waited for until the cluster has taken note of the release.
pub fn unverified<A>(m: &Migration) -> Result<Option<Seen<A>>, Stop> {
    let objects = [(REPLICAS, DEPLOYMENT, NAMESPACE, NAME), (OVERRIDES, CLUSTER_VERSION, "", "version")];
    for (key, kind, namespace, name) in objects {
        let late = m.get(kind, namespace, name).is_some_and(|object| !observed(&object));
        if late && ledger::saved(m, key)?.is_some() {
            return Ok(Some(Seen::waiting(format!("waits for the change of {} {name} to be taken note of", kind.kind))));
        }
    }
    Ok(None)
}

fn observed(object: &DynamicObject) -> bool {
    object.data["status"]["observedGeneration"].as_i64().unwrap_or_default() >= object.metadata.generation.unwrap_or_default()
}

fn replicas(deployment: &DynamicObject) -> i64 {
    deployment.data["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// Names of the operator's pods that have not ended.
fn running(pods: &[Arc<DynamicObject>]) -> Vec<String> {
    let ended = |pod: &DynamicObject| matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let is_operator = |pod: &DynamicObject| pod.labels().get(LABEL.0).is_some_and(|value| value == LABEL.1);
    pods.iter().filter(|pod| is_operator(pod) && !ended(pod)).map(|pod| pod.name_any()).collect()
}

/// The entries that ClusterVersion lacks for the operator to leave the two CRDs alone.
fn overrides(version: &DynamicObject) -> Vec<Held> {
    let entry = |(name, _): &(&str, &str)| {
        let by = json!({"kind": "CustomResourceDefinition", "group": "apiextensions.k8s.io", "namespace": "", "name": name});
        let by: Map<String, Value> = by.as_object().cloned().unwrap_or_default();
        let mut ours = by.clone();
        ours.insert("unmanaged".to_owned(), json!(true));
        Held::entry(CLUSTER_VERSION, version, "/spec/overrides", by, Some(Value::Object(ours)))
    };
    LOCKED.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use super::*;

    fn object(body: Value) -> DynamicObject {
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn a_pod_counts_until_it_has_ended_and_only_if_it_is_the_operators() {
        let pod = |name: &str, label: &str, phase: &str| {
            Arc::new(object(json!({"metadata": {"name": name, "labels": {"k8s-app": label}}, "status": {"phase": phase}})))
        };
        let pods = [
            pod("a", NAME, "Running"),
            pod("b", NAME, "Pending"),
            pod("c", NAME, "Failed"),
            pod("d", NAME, "Succeeded"),
            pod("e", "x", "Running"),
        ];
        assert_eq!(running(&pods), ["a", "b"]);
    }

    #[test]
    fn only_the_overrides_that_are_missing_are_added() {
        let entry = |name: &str, unmanaged: bool| json!({"kind": "CustomResourceDefinition", "group": "apiextensions.k8s.io", "namespace": "", "name": name, "unmanaged": unmanaged});
        let version = |entries: Value| object(json!({"metadata": {"name": "version"}, "spec": {"clusterID": "x", "overrides": entries}}));
        let [one, two] = [LOCKED[0].0, LOCKED[1].0];
        assert_eq!(overrides(&version(json!([]))).len(), 2);
        assert_eq!(overrides(&object(json!({"metadata": {"name": "version"}, "spec": {}}))).len(), 2);
        let left = overrides(&version(json!([entry(one, true), entry(two, false)])));
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].was.clone(), left[0].ours.clone()), (Some(entry(two, false)), Some(entry(two, true))));
        assert_eq!(overrides(&version(json!([entry(one, true), entry(two, true)]))), []);
    }

    #[test]
    fn a_change_is_observed_when_the_generation_is() {
        let at = |generation: i64, observed: i64| {
            object(json!({"metadata": {"name": "x", "generation": generation}, "status": {"observedGeneration": observed}}))
        };
        assert!(observed(&at(2, 2)));
        assert!(!observed(&at(3, 2)));
    }
}
