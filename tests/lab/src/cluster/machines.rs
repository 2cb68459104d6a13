//! Machines: the control plane as the installer leaves it, worker sets for the real MachineSet controller, and the control plane
//! machine set.

use serde_json::{Value, json};

use super::Error;
use super::config::failure_domain;
use crate::shape::{FailureDomains, Shape};
use crate::vcenter::{Control, INFRA_ID, Vcenter};

pub const NAMESPACE: &str = "openshift-machine-api";
/// By this label a Machine says which set it belongs to.
pub const SET_LABEL: &str = "machine.openshift.io/cluster-api-machineset";

/// What every Machine of a role carries.
pub fn labels(role: &str) -> Value {
    json!({
        "machine.openshift.io/cluster-api-cluster": INFRA_ID,
        "machine.openshift.io/cluster-api-machine-role": role,
        "machine.openshift.io/cluster-api-machine-type": role,
    })
}

/// What a machine is made of on `vcenter`.
pub fn provider_spec(vcenter: &Vcenter, zone: &str, role: &str) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "VSphereMachineProviderSpec",
        "credentialsSecret": {"name": "vsphere-cloud-credentials"},
        "userDataSecret": {"name": format!("{role}-user-data")},
        "numCPUs": 4, "numCoresPerSocket": 4, "memoryMiB": 16384, "diskGiB": 120, "snapshot": "",
        "template": vcenter.template().rsplit('/').next().unwrap_or_default(),
        "network": {"devices": [{"networkName": vcenter.network()}]},
        "workspace": {
            "server": vcenter.server,
            "datacenter": vcenter.datacenter(),
            "datastore": vcenter.datastore(),
            "folder": vcenter.folder(),
            "resourcePool": vcenter.resource_pool(zone),
        },
    })
}

/// Has the simulator make the control plane's virtual machines, as the installer does, and returns their Machines.
pub async fn install_control_plane(shape: &Shape, source: &Vcenter, control: &Control) -> Result<Vec<Value>, Error> {
    let mut machines = Vec::new();
    for index in 0..shape.control_plane {
        let zone = &source.zones[usize::from(index) % source.zones.len()];
        let name = format!("{INFRA_ID}-master-{index}");
        let request = json!({
            "name": name, "template": source.template(), "folder": source.folder(),
            "resourcePool": source.resource_pool(zone), "datastore": source.datastore(), "cpus": 4, "memoryMiB": 16384,
        });
        control.post(&format!("/vcenters/{}/vms", source.name), &request).await?;
        machines.push(json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels("master")},
            "spec": {"metadata": {}, "providerSpec": {"value": provider_spec(source, zone, "master")}},
        }));
    }
    Ok(machines)
}

/// The worker sets, spread over the source's zones.
pub fn machine_sets(shape: &Shape, source: &Vcenter) -> Vec<Value> {
    let mut sets = Vec::new();
    for (index, planned) in shape.machine_sets.iter().enumerate() {
        let zone = &source.zones[index % source.zones.len()];
        let mut set = machine_set(&format!("{INFRA_ID}-{}-{zone}", planned.name), source, zone, planned.replicas);
        if shape.failure_domains == FailureDomains::Named {
            let domain = failure_domain(shape, source, zone);
            let labels = &mut set["spec"]["template"]["metadata"]["labels"];
            labels["machine.openshift.io/region"] = json!(domain.region);
            labels["machine.openshift.io/zone"] = json!(domain.zone);
        }
        let template = &mut set["spec"]["template"]["spec"];
        if !planned.labels.is_empty() {
            template["metadata"]["labels"] = json!(planned.labels);
        }
        if !planned.taints.is_empty() {
            template["taints"] = json!(planned.taints);
        }
        if !planned.data_disks.is_empty() {
            template["providerSpec"]["value"]["dataDisks"] = json!(planned.data_disks);
        }
        for (label, value) in &planned.set_labels {
            set["metadata"]["labels"][label] = json!(value);
        }
        if !planned.set_annotations.is_empty() {
            set["metadata"]["annotations"] = json!(planned.set_annotations);
        }
        if let Some(policy) = &planned.delete_policy {
            set["spec"]["deletePolicy"] = json!(policy);
        }
        if let Some(seconds) = planned.min_ready_seconds {
            set["spec"]["minReadySeconds"] = json!(seconds);
        }
        sets.push(set);
    }
    sets
}

/// A set of workers in a zone of `vcenter`.
pub fn machine_set(name: &str, vcenter: &Vcenter, zone: &str, replicas: u8) -> Value {
    let mut template_labels = labels("worker");
    template_labels[SET_LABEL] = json!(name);
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"machine.openshift.io/cluster-api-cluster": INFRA_ID}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"machine.openshift.io/cluster-api-cluster": INFRA_ID, SET_LABEL: name}},
            "template": {
                "metadata": {"labels": template_labels},
                "spec": {"metadata": {}, "providerSpec": {"value": provider_spec(vcenter, zone, "worker")}},
            },
        },
    })
}

/// The control plane machine set over these failure domains; the installer leaves it active.
pub fn control_plane_machine_set(source: &Vcenter, domains: &[String], state: &str) -> Value {
    let mut provider = provider_spec(source, &source.zones[0], "master");
    // What the failure domain decides must be empty in the template: the webhook refuses it otherwise.
    provider["workspace"] = json!({});
    provider["template"] = json!("");
    provider["network"] = json!({"devices": null});
    json!({
        "apiVersion": "machine.openshift.io/v1", "kind": "ControlPlaneMachineSet",
        "metadata": {"name": "cluster", "namespace": NAMESPACE},
        "spec": {
            "state": state, "replicas": 3, "strategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": labels("master")},
            "template": {
                "machineType": "machines_v1beta1_machine_openshift_io",
                "machines_v1beta1_machine_openshift_io": {
                    "failureDomains": {"platform": "VSphere", "vsphere": domains.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()},
                    "metadata": {"labels": labels("master")},
                    "spec": {"metadata": {}, "providerSpec": {"value": provider}},
                },
            },
        },
    })
}

/// The failure domains the control plane is installed on.
pub fn source_domains(shape: &Shape, source: &Vcenter) -> Vec<String> {
    source.zones.iter().map(|zone| failure_domain(shape, source, zone).name).collect()
}
