//! Checks of single nodes: whose virtual machine each is, what hardware, host and disks it has, and what the account may do where it
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;
use vsphere::{Host, Identity, Kind, Ref, Uuid, VmDetails};

use super::super::View;
use super::metrics::Metrics;
use super::permissions::{CLUSTER, lacking};
use super::results::Results;
use super::say;
use super::vcenter::Vcenter;

const CHECKS: [&str; 7] = [
    "CheckNodeDiskUUID",
    "CheckNodeProviderID",
    "CollectNodeHWVersion",
    "CollectNodeESXiVersion",
    "CheckComputeClusterPermissions",
    "CheckResourcePoolPermissions",
    "CollectNodeCBT",
];

/// What a round has met on its nodes.
#[derive(Default)]
struct Met {
    hardware: BTreeMap<String, u32>,
    /// The version of each host, by the server and the host.
    hosts: BTreeMap<(String, Ref), String>,
    tracking: BTreeMap<&'static str, u32>,
    /// The names of compute clusters whose privileges were looked at.
    clusters: BTreeSet<String>,
}

pub async fn all(view: &View, vcenters: &[Vcenter], nodes: &[Arc<DynamicObject>], metrics: &Metrics, results: &mut Results) {
    let mut met = Met::default();
    for node in nodes {
        match virtual_machine(view, vcenters, node).await {
            Ok((vcenter, vm)) => {
                for (check, outcome) in CHECKS.into_iter().zip(met.check(view, vcenter, node, &vm).await) {
                    results.node(check, &node.name_any(), outcome.err());
                }
            }
            Err(why) => results.lost(&CHECKS, &why),
        }
    }
    let mut versions = BTreeMap::<&str, u32>::new();
    met.hosts.values().for_each(|version| *versions.entry(version).or_default() += 1);
    metrics.counted("vsphere_node_hw_version_total", "hw_version", &met.hardware);
    metrics.counted("vsphere_esxi_version_total", "version", &versions);
    metrics.counted("vsphere_vm_cbt_checks", "cbt", &met.tracking);
    let [on, off] = ["enabled", "disabled"].map(|key| met.tracking.get(key).copied().unwrap_or_default());
    say('I', "node_cbt.go:62", &format!("Enabled ({on}) Disabled ({off})"));
}

impl Met {
    /// What every check says of a node, in their order.
    async fn check(&mut self, view: &View, vcenter: &Vcenter, node: &DynamicObject, vm: &VmDetails) -> [Result<(), String>; CHECKS.len()] {
        *self.hardware.entry(vm.hardware.clone()).or_default() += 1;
        *self.tracking.entry(if vm.change_tracking == Some(true) { "enabled" } else { "disabled" }).or_default() += 1;
        // A node without an id was lost before.
        let (id, version, tracking) = (Ok(()), Ok(()), Ok(()));
        let domains: Vec<&Value> = view.vsphere("failureDomains").collect();
        let cluster = self.compute_cluster(vcenter, vm, has_own_pool(node, &domains)).await;
        [disk_uuids(vm.disk_uuids), id, version, self.host(vcenter, node, vm), cluster, resource_pool(vcenter, vm).await, tracking]
    }

    fn host(&mut self, vcenter: &Vcenter, node: &DynamicObject, vm: &VmDetails) -> Result<(), String> {
        let host = host(vcenter, vm);
        let host = host.ok_or_else(|| format!("error getting ESXi host for node {}: vm.runtime.host is empty", node.name_any()))?;
        self.hosts.insert((vcenter.server.clone(), host.node.reference.clone()), host.version.clone());
        Ok(())
    }

    /// Like the real one it says of a cluster that something is missing for the first node on it alone.
    async fn compute_cluster(&mut self, vcenter: &Vcenter, vm: &VmDetails, read_only: bool) -> Result<(), String> {
        let above = host(vcenter, vm).and_then(|host| vcenter.inventory.cluster(host.node.parent.as_ref()?));
        let Some(cluster) = above.map(|cluster| &cluster.node).filter(|node| node.reference.kind == Kind::ClusterComputeResource) else {
            say('I', "node_cluster_permissions.go:31", &format!("compute cluster resource could not be obtained for {}", vm.vm));
            return Ok(());
        };
        if read_only {
            say('I', "node_cluster_permissions.go:37", &format!("confirmed read-only permissions for {}", vm.vm));
            return Ok(());
        }
        if !self.clusters.insert(cluster.name.clone()) {
            let known = format!("privileges for compute cluster {} have already been checked", cluster.name);
            say('I', "node_cluster_permissions.go:42", &known);
            return Ok(());
        }
        let wrong = lacking(vcenter, &cluster.reference, CLUSTER, &format!("compute cluster {}", cluster.name)).await;
        wrong.map_or(Ok(()), Err)
    }
}

fn host<'a>(vcenter: &'a Vcenter, vm: &VmDetails) -> Option<&'a Host> {
    let wanted = vm.host.as_ref()?;
    vcenter.inventory.hosts.iter().find(|known| known.node.reference == *wanted)
}

fn disk_uuids(shown: Option<bool>) -> Result<(), String> {
    match shown {
        Some(true) => Ok(()),
        Some(false) => Err("the node has disk.enableUUID = FALSE".to_owned()),
        None => Err("the node has empty disk.enableUUID".to_owned()),
    }
}

/// Whether the node's machine is in a pool that somebody made for it: then the cluster itself need only be read.
fn has_own_pool(node: &DynamicObject, domains: &[&Value]) -> bool {
    let made = |domain: &&&Value| {
        let pool = domain["topology"]["resourcePool"].as_str().unwrap_or_default();
        !pool.is_empty() && !pool.ends_with("/Resources")
    };
    let [region, zone] = labels(node).map(|label| label.map_or("", String::as_str));
    match domains {
        [only] => made(&only),
        several => several.iter().filter(|domain| domain["region"] == region && domain["zone"] == zone).any(|domain| made(&domain)),
    }
}

/// The pool that a cluster came with is not looked at.
async fn resource_pool(vcenter: &Vcenter, vm: &VmDetails) -> Result<(), String> {
    let known = |reference: &Ref| vcenter.inventory.by_reference(reference);
    let Some(pool) = vm.resource_pool.as_ref().and_then(known) else {
        say('I', "node_resource_pool_permissions.go:32", &format!("resource pool could not be obtained for {}", vm.vm));
        return Ok(());
    };
    if pool.name.ends_with("Resources") {
        return Ok(());
    }
    // Of a vApp the pool that it lies in counts.
    let above = if pool.reference.kind == Kind::VirtualApp { pool.parent.as_ref().and_then(known) } else { None };
    let pool = above.unwrap_or(pool);
    let wrong = lacking(vcenter, &pool.reference, CLUSTER, &format!("resource pool {}", pool.path)).await;
    wrong.map_or(Ok(()), Err)
}

async fn virtual_machine<'a>(view: &View, vcenters: &'a [Vcenter], node: &DynamicObject) -> Result<(&'a Vcenter, VmDetails), String> {
    let (name, id) = (node.name_any(), node.data["spec"]["providerID"].as_str().unwrap_or_default());
    let id = id.trim_start_matches("vsphere://").trim().to_lowercase();
    if id.is_empty() {
        return Err(format!("VMUUID is not set for node {name}"));
    }
    let domains: Vec<&Value> = view.vsphere("failureDomains").collect();
    let server = place(node, &domains).map_err(|why| format!("failed to find VM for node {name}: {why}"))?;
    let known = vcenters.iter().find(|vcenter| server.as_ref().is_none_or(|server| vcenter.server == *server));
    let vcenter = known.ok_or_else(|| format!("failed to find VM for node {name}: unable to determine vcenter for node {name}"))?;
    let missing = || format!("failed to find VM by UUID {id}");
    let uuid: Uuid = id.parse().map_err(|error| format!("{}: {error}", missing()))?;
    let failed = |error: vsphere::Error| format!("{}: {error}", missing());
    let found = vcenter.session.find_vms(&[uuid], Identity::Bios).await.map_err(failed)?;
    let details = vcenter.session.vm_details(&found.concat()).await.map_err(failed)?;
    Ok((vcenter, details.into_iter().next().ok_or_else(missing)?))
}

/// The region and zone of a node, by the newer or the older names of their labels.
fn labels(node: &DynamicObject) -> [Option<&String>; 2] {
    ["region", "zone"].map(|part| {
        let names = [format!("topology.kubernetes.io/{part}"), format!("failure-domain.beta.kubernetes.io/{part}")];
        names.iter().find_map(|name| node.labels().get(name).filter(|value| !value.is_empty()))
    })
}

/// The server of a node: by its labels where there are several failure domains, else that of the first one. Without any it does
/// not matter.
fn place(node: &DynamicObject, domains: &[&Value]) -> Result<Option<String>, String> {
    let server = |domain: &&&Value| domain["server"].as_str().map(str::to_owned);
    match labels(node) {
        [Some(region), Some(zone)] if domains.len() > 1 => {
            let own = domains.iter().find(|domain| domain["region"] == region.as_str() && domain["zone"] == zone.as_str());
            own.as_ref().and_then(server).map(Some).ok_or_else(|| format!("unable to determine vcenter for node {}", node.name_any()))
        }
        _ => Ok(domains.first().as_ref().and_then(server)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(labels: &Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "n", "labels": labels}})).unwrap()
    }

    #[test]
    fn a_node_is_sought_where_its_labels_say_and_else_in_the_first_failure_domain() {
        let (a, b) = (json!({"server": "a", "region": "r1", "zone": "z1"}), json!({"server": "b", "region": "r2", "zone": "z2"}));
        let labelled =
            |region: &str, zone: &str| node(&json!({"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone}));
        let both = [&a, &b];
        assert_eq!(place(&labelled("r2", "z2"), &both), Ok(Some("b".to_owned())));
        assert_eq!(place(&node(&json!({})), &both), Ok(Some("a".to_owned())));
        assert_eq!(place(&labelled("r2", "z1"), &both), Err("unable to determine vcenter for node n".to_owned()));
        assert_eq!(place(&labelled("r2", "z2"), &both[..1]), Ok(Some("a".to_owned())), "one domain turns topology off");
        assert_eq!(place(&labelled("r2", "z2"), &[]), Ok(None));
    }

    #[test]
    fn disks_must_show_their_uuids() {
        assert_eq!(disk_uuids(Some(true)), Ok(()));
        assert_eq!(disk_uuids(Some(false)).unwrap_err(), "the node has disk.enableUUID = FALSE");
        assert_eq!(disk_uuids(None).unwrap_err(), "the node has empty disk.enableUUID");
    }

    #[test]
    fn a_pool_of_its_own_is_that_of_the_nodes_failure_domain_or_of_the_only_one() {
        let domain = |zone: &str, pool: &str| json!({"region": "r", "zone": zone, "topology": {"resourcePool": pool}});
        let (own, given, unsaid) = (domain("z1", "/dc/host/c/Resources/ocp"), domain("z2", "/dc/host/c/Resources"), domain("z3", ""));
        let at = |zone: &str| node(&json!({"topology.kubernetes.io/region": "r", "failure-domain.beta.kubernetes.io/zone": zone}));
        assert_eq!(["z1", "z2", "z3", "z4"].map(|zone| has_own_pool(&at(zone), &[&own, &given, &unsaid])), [true, false, false, false]);
        assert!(has_own_pool(&at("z4"), &[&own]) && !has_own_pool(&at("z2"), &[&given]));
        assert!(!has_own_pool(&at("z1"), &[]));
    }
}
