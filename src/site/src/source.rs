//! The source as Infrastructure shall describe it where it does not: told from the machine of the control plane that comes first.

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vmi_intent::infrastructure::{Outcome, Refused, extend};
use vmi_intent::source_domain::failure_domain;
use vmi_kit::kind::MACHINE;
use vmi_steps::Migration;

/// Where Machines live.
pub const MACHINES: &str = "openshift-machine-api";

/// What Infrastructure lacks of the source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Its vCenter.
    pub vcenters: Vec<Value>,
    /// Its failure domain.
    pub failure_domains: Vec<Value>,
}

impl Source {
    /// What this spec of Infrastructure lacks; an error says why no machine tells.
    pub fn lacking(m: &Migration, spec: &Value) -> Result<Source, String> {
        lacking(spec, || m.list(MACHINE, MACHINES))
    }

    /// The spec of Infrastructure with the source in it, before anything else.
    pub fn described_in(&self, spec: &Value) -> Result<Value, Refused> {
        Ok(match extend(spec, &self.vcenters, &self.failure_domains)? {
            Outcome::Changed(described) => described,
            Outcome::AlreadyThere => spec.clone(),
        })
    }
}

/// Machines are only looked at where something lacks.
fn lacking<M: AsRef<DynamicObject>>(spec: &Value, machines: impl FnOnce() -> Vec<M>) -> Result<Source, String> {
    let lacks = |list: &str| spec["platformSpec"]["vsphere"][list].as_array().is_none_or(Vec::is_empty);
    if !lacks("vcenters") && !lacks("failureDomains") {
        return Ok(Source::default());
    }
    let machines = machines();
    let master = witness(&machines).ok_or_else(|| format!("there is no Machine of the control plane in {MACHINES}"))?;
    let mut told = told_by(&master.data["spec"]["providerSpec"]["value"]).map_err(|why| format!("Machine {}: {why}", master.name_any()))?;
    if !lacks("vcenters") {
        told.vcenters.clear();
    }
    if !lacks("failureDomains") {
        told.failure_domains.clear();
    }
    Ok(told)
}

/// The first master, whose place is the control plane's.
fn witness(machines: &[impl AsRef<DynamicObject>]) -> Option<&DynamicObject> {
    let is_master = |machine: &&DynamicObject| {
        machine.labels().get("machine.openshift.io/cluster-api-machine-role").is_some_and(|role| role == "master")
    };
    machines.iter().map(AsRef::as_ref).filter(is_master).min_by_key(|machine| machine.name_any())
}

/// The source by a machine's provider spec; an error names the field that does not tell.
fn told_by(provider: &Value) -> Result<Source, String> {
    let domain = failure_domain(provider)?;
    let vcenter = json!({"server": domain["server"], "datacenters": [domain["topology"]["datacenter"]]});
    Ok(Source { vcenters: vec![vcenter], failure_domains: vec![domain] })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use std::sync::Arc;

    use vmi_intent::source_domain::{NAME, REGION, ZONE};

    use super::*;

    fn provider() -> Value {
        json!({
            "template": "rhcos",
            "network": {"devices": [{"networkName": "VM Network"}]},
            "workspace": {"server": "a", "datacenter": "dc", "datastore": "fast", "folder": "/dc/vm/id", "resourcePool": "/dc/host/cl/Resources"},
        })
    }

    #[test]
    fn a_source_that_is_not_described_is_told_from_a_machine() {
        let source = told_by(&provider()).unwrap();
        assert_eq!(source.vcenters, [json!({"server": "a", "datacenters": ["dc"]})]);
        let domain = &source.failure_domains[0];
        assert_eq!([&domain["name"], &domain["region"], &domain["zone"]], [NAME, REGION, ZONE]);
        assert_eq!(
            domain["topology"],
            json!({
                "datacenter": "dc", "computeCluster": "/dc/host/cl", "networks": ["VM Network"], "datastore": "/dc/datastore/fast",
                "resourcePool": "/dc/host/cl/Resources", "folder": "/dc/vm/id", "template": "/dc/vm/id/rhcos",
            })
        );
        let described = source.described_in(&json!({"platformSpec": {"type": "VSphere"}})).unwrap();
        assert_eq!(described["platformSpec"]["vsphere"]["failureDomains"], json!([domain]));
        assert_eq!(Source::default().described_in(&described), Ok(described), "where nothing lacks nothing changes");
        for (field, value, why) in [
            ("/workspace/server", "", "workspace.server is empty"),
            ("/workspace/resourcePool", "pool", "no path that names the cluster"),
            ("/workspace/resourcePool", "", "workspace.resourcePool is empty"),
        ] {
            let mut broken = provider();
            *broken.pointer_mut(field).unwrap() = json!(value);
            assert!(told_by(&broken).unwrap_err().contains(why), "{field}");
        }
    }

    fn machine(name: &str, role: &str) -> Arc<DynamicObject> {
        let labels = json!({"machine.openshift.io/cluster-api-machine-role": role});
        let spec = json!({"providerSpec": {"value": provider()}});
        Arc::new(serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "spec": spec})).unwrap())
    }

    #[test]
    fn only_what_infrastructure_does_not_list_is_told_from_the_machine() {
        let whole = told_by(&provider()).unwrap();
        let listed = |vcenters: &[Value], domains: &[Value]| {
            let vsphere = json!({"vcenters": vcenters, "failureDomains": domains});
            json!({"platformSpec": {"type": "VSphere", "vsphere": vsphere}})
        };
        let master = || vec![machine("x-master-0", "master")];
        let theirs = [json!({"server": "a", "datacenters": ["dc", "other"]})];

        let described = listed(&theirs, &[json!({"name": "fd", "server": "a"})]);
        let nobody = || -> Vec<Arc<DynamicObject>> { panic!("where all is described no machine is asked") };
        assert_eq!(lacking(&described, nobody), Ok(Source::default()));

        let half = listed(&theirs, &[]);
        let lacks = lacking(&half, master).unwrap();
        assert_eq!(lacks, Source { vcenters: Vec::new(), ..whole.clone() });
        assert_eq!(lacks.described_in(&half), Ok(listed(&theirs, &whole.failure_domains)), "the vCenter stays as they wrote it");

        for nothing in [listed(&[], &[]), json!({"platformSpec": {"type": "VSphere"}})] {
            assert_eq!(lacking(&nothing, master), Ok(whole.clone()), "{nothing}");
        }
        let why = lacking(&half, || vec![machine("a-worker", "worker")]).unwrap_err();
        assert!(why.contains("no Machine of the control plane"), "{why}");
    }

    #[test]
    fn the_first_master_is_the_witness() {
        let machines = [machine("x-master-1", "master"), machine("x-master-0", "master"), machine("a-worker", "worker")];
        assert_eq!(witness(&machines).and_then(|machine| machine.metadata.name.as_deref()), Some("x-master-0"));
        assert!(witness(&machines[2..]).is_none());
    }
}
