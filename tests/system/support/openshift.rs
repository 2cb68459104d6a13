//! What tests do to the cluster by hand where the operator will do it later.

use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use vmi_lab::cluster::config;
use vmi_lab::health;
use vmi_lab::kubernetes::{self, CONFIG_MAP, INFRASTRUCTURE, MACHINE, MACHINE_SET, NODE, SECRET};
use vmi_lab::migration::verdict::Check;
use vmi_lab::vcenter::{INFRA_ID, Vcenter};

use crate::support::lab::Lab;
use crate::support::suite::TestResult;

pub const MACHINE_API: &str = "openshift-machine-api";
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A vCenter of the lab with its credentials.
pub fn vcenter(lab: &Lab, name: &str) -> TestResult<Vcenter> {
    let all = vmi_lab::vcenter::of(&lab.folder(), &lab.shape, &lab.record.vcenters)?;
    Ok(all.into_iter().find(|vcenter| vcenter.name == name).ok_or("no such vCenter")?)
}

/// How often a vCenter has refused the operator's logins so far, by the simulator's own count.
pub async fn refused_logins(lab: &Lab, vcenter: &str) -> TestResult<u64> {
    let all = lab.control.get("/sessions").await?;
    let one = all.as_array().into_iter().flatten().find(|one| one["vcenter"] == vcenter).ok_or("no such vCenter")?;
    let clients = one["clients"].as_object().into_iter().flatten();
    Ok(clients.filter(|(name, _)| name.starts_with("vmi-operator/")).filter_map(|(_, count)| count["refusedLogins"].as_u64()).sum())
}

/// The Infrastructure patch that adds a vCenter and its failure domains after what is there.
pub async fn extended_infrastructure(lab: &Lab, target: &Vcenter) -> TestResult<Value> {
    let current = kubernetes::get(&lab.client, INFRASTRUCTURE, "", "cluster").await?.ok_or("no Infrastructure")?;
    let vsphere = &current.data["spec"]["platformSpec"]["vsphere"];
    let mut vcenters = vsphere["vcenters"].as_array().cloned().unwrap_or_default();
    let mut domains = vsphere["failureDomains"].as_array().cloned().unwrap_or_default();
    vcenters.push(config::vcenter_entry(target));
    for zone in &target.zones {
        domains.push(config::failure_domain_entry(&config::named_domain(target, zone), target, zone));
    }
    Ok(json!({"spec": {"platformSpec": {"vsphere": {"vcenters": vcenters, "failureDomains": domains}}}}))
}

/// The patch of Infrastructure as a server-side dry run.
pub async fn try_infrastructure(lab: &Lab, patch: &Value) -> Result<(), kube::Error> {
    let api: Api<DynamicObject> = INFRASTRUCTURE.api(&lab.client, "");
    api.patch("cluster", &PatchParams { dry_run: true, ..PatchParams::default() }, &Patch::Merge(patch)).await.map(|_| ())
}

/// Makes the cluster know a second vCenter: credentials, tags, folder, Infrastructure, cloud config, in that order.
pub async fn add_vcenter(lab: &Lab, target: &Vcenter) -> TestResult {
    let pair = json!({"stringData": config::credentials(target)});
    kubernetes::merge(&lab.client, SECRET, "kube-system", "vsphere-creds", &pair).await?;
    let key = format!("{}.username", target.server);
    let mut secrets = lab.watch(&[SECRET]).await;
    secrets
        .until("the credentials to be copied", PATIENCE, |cache| {
            let copy = cache.get(SECRET, MACHINE_API, "vsphere-cloud-credentials").ok_or("no copy")?;
            copy.data["data"].get(&key).map(|_| ()).ok_or_else(|| "the copy lacks the target".to_owned())
        })
        .await?;
    let tags = format!("/vcenters/{}/tags", target.name);
    lab.control.post(&format!("/vcenters/{}/folders", target.name), &json!({"datacenter": target.datacenter(), "path": INFRA_ID})).await?;
    let owner = json!({"category": format!("openshift-{INFRA_ID}"), "tag": INFRA_ID, "type": "Folder", "object": INFRA_ID});
    lab.control.post(&tags, &owner).await?;
    let region = json!({"category": "openshift-region", "tag": format!("region-{}", target.name), "type": "Datacenter", "object": target.datacenter()});
    lab.control.post(&tags, &region).await?;
    for zone in &target.zones {
        let zone = json!({"category": "openshift-zone", "tag": format!("zone-{zone}"), "type": "ClusterComputeResource", "object": format!("cluster-{zone}")});
        lab.control.post(&tags, &zone).await?;
    }
    let patch = extended_infrastructure(lab, target).await?;
    kubernetes::merge(&lab.client, INFRASTRUCTURE, "", "cluster", &patch).await?;
    let current = kubernetes::get(&lab.client, CONFIG_MAP, "openshift-config", "cloud-provider-config").await?.ok_or("no cloud config")?;
    let mut text = vmi_lab::yaml::parse(current.data["data"]["config"].as_str().unwrap_or_default())?;
    text["vcenter"][&target.server] = json!({"server": target.server, "port": target.port, "datacenters": [target.datacenter()]});
    text["labels"] = json!({"zone": "openshift-zone", "region": "openshift-region"});
    let patch = json!({"data": {"config": vmi_lab::yaml::print(&text)?}});
    kubernetes::merge(&lab.client, CONFIG_MAP, "openshift-config", "cloud-provider-config", &patch).await?;
    Ok(())
}

/// Which server a Machine is on.
pub fn server(machine: &DynamicObject) -> &str {
    machine.data["spec"]["providerSpec"]["value"]["workspace"]["server"].as_str().unwrap_or_default()
}

/// Whether a Machine belongs to the control plane.
pub fn is_master(machine: &DynamicObject) -> bool {
    machine.labels().get("machine.openshift.io/cluster-api-machine-role").is_some_and(|role| role == "master")
}

/// Names of the virtual machines in a vCenter, templates left out.
pub async fn virtual_machines(lab: &Lab, vcenter: &str) -> TestResult<Vec<String>> {
    let all = lab.control.get("/vms").await?;
    let here = all.as_array().into_iter().flatten().filter(|vm| vm["vcenter"] == vcenter && vm["template"] != true);
    Ok(here.filter_map(|vm| vm["name"].as_str()).map(str::to_owned).collect())
}

/// Waits until a MachineSet has exactly so many machines, all Running with a Ready node, and returns their names.
pub async fn scaled(lab: &Lab, set: &str, replicas: usize) -> TestResult<Vec<String>> {
    let mut cache = lab.watch(&[MACHINE, NODE]).await;
    Ok(cache.until(&format!("{set} to have {replicas} machines"), PATIENCE, |cache| health::machine_set(cache, set, replicas)).await?)
}

/// A copy of the shape's first MachineSet under another name, with so many replicas, applied.
pub async fn copy_machine_set(lab: &Lab, name: &str, replicas: u8) -> TestResult {
    let source = vcenter(lab, "a")?;
    let mut set = vmi_lab::cluster::machines::machine_sets(&lab.shape, &source).remove(0);
    let labels = json!({"machine.openshift.io/cluster-api-machineset": name});
    set["metadata"]["name"] = json!(name);
    set["spec"]["replicas"] = json!(replicas);
    set["spec"]["selector"]["matchLabels"]["machine.openshift.io/cluster-api-machineset"] =
        labels["machine.openshift.io/cluster-api-machineset"].clone();
    set["spec"]["template"]["metadata"]["labels"]["machine.openshift.io/cluster-api-machineset"] = json!(name);
    kubernetes::apply(&lab.client, "system-test", &set).await?;
    Ok(())
}

pub async fn scale(lab: &Lab, set: &str, replicas: u8) -> TestResult {
    kubernetes::merge(&lab.client, MACHINE_SET, MACHINE_API, set, &json!({"spec": {"replicas": replicas}})).await?;
    Ok(())
}

/// Fails with what was not as it should be.
pub fn passed(checks: &[Check]) -> TestResult {
    let failed: Vec<&Check> = checks.iter().filter(|check| !check.passed).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("{failed:#?}").into()) }
}
