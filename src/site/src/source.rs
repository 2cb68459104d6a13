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
        let lacks = |list: &str| spec["platformSpec"]["vsphere"][list].as_array().is_none_or(Vec::is_empty);
        if !lacks("vcenters") && !lacks("failureDomains") {
            return Ok(Source::default());
        }
        let machines = m.list(MACHINE, MACHINES);
        let master = witness(&machines).ok_or_else(|| format!("there is no Machine of the control plane in {MACHINES}"))?;
        let mut told =
            told_by(&master.data["spec"]["providerSpec"]["value"]).map_err(|why| format!("Machine {}: {why}", master.name_any()))?;
        if !lacks("vcenters") {
            told.vcenters.clear();
        }
        if !lacks("failureDomains") {
            told.failure_domains.clear();
        }
        Ok(told)
    }

    /// The spec of Infrastructure with the source in it, before anything else.
    pub fn described_in(&self, spec: &Value) -> Result<Value, Refused> {
        Ok(match extend(spec, &self.vcenters, &self.failure_domains)? {
            Outcome::Changed(described) => described,
            Outcome::AlreadyThere => spec.clone(),
        })
    }
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

    #[test]
    fn the_first_master_is_the_witness() {
        let machine = |name: &str, role: &str| -> std::sync::Arc<DynamicObject> {
            let labels = json!({"machine.openshift.io/cluster-api-machine-role": role});
            std::sync::Arc::new(serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap())
        };
        let machines = [machine("x-master-1", "master"), machine("x-master-0", "master"), machine("a-worker", "worker")];
        assert_eq!(witness(&machines).and_then(|machine| machine.metadata.name.as_deref()), Some("x-master-0"));
        assert!(witness(&machines[2..]).is_none());
    }
}
