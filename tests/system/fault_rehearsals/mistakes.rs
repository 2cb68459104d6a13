//! What somebody got wrong in a Secret or in the cloud configuration while a cluster grows.

use serde_json::{Value, json};
use vmi_crds::spec::SourceRetirement;
use vmi_lab::kubernetes::{self, CONFIG_MAP, SECRET};
use vmi_lab::migration::verdict;
use vmi_lab::yaml;

use super::underway::Underway;
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, passed};
use crate::support::suite::TestResult;

const CLOUD: &str = "openshift-cloud-controller-manager";
const STORAGE: &str = "openshift-cluster-storage-operator";
const CREDENTIALS: &str = "vsphere-cloud-credentials";

/// A lab of its own: a growth that was completed is not taken back. With secrets made by hand, since a component's own mistake would
/// be put right by the cloud credential operator else.
pub async fn a_growth_stops_for_a_wrong_password_a_foreign_key_and_a_missing_datacenter_and_is_completed() -> TestResult {
    let lab = Lab::start("manual-cco", "three-mistakes").await?;
    let result = three_mistakes(&lab).await;
    lab.stop().await?;
    result
}

async fn three_mistakes(lab: &Lab) -> TestResult {
    let (mut growth, no_folder) = Underway::standing(lab, SourceRetirement::Keep).await?;

    let password = format!("{}.password", growth.site.source.server);
    let right = growth.site.source.password.clone();
    change(lab, MACHINE_API, &json!({"stringData": {&password: "of-another-vcenter"}})).await?;
    growth.faults.lift(&no_folder).await?;
    growth.resume().await?;
    let refused = growth.stops("MAO-001", Some("machine-api")).await?;
    assert_eq!(refused.container.as_deref(), Some("machine-controller"));
    assert!(refused.next.contains("openshift-machine-api/vsphere-cloud-credentials"), "{}", refused.next);

    change(lab, CLOUD, &json!({"stringData": {"note": "made by hand"}})).await?;
    growth.restart_pods(CLOUD, "vsphere-cloud-controller-manager").await?;
    change(lab, MACHINE_API, &json!({"stringData": {&password: right}})).await?;
    growth.replace_pod(&refused).await?;
    let foreign = growth.stops("CCM-003", Some("cloud-controller-manager")).await?;
    assert!(foreign.line.as_deref().is_some_and(|line| line.contains("note")), "{foreign:?}");
    assert!(foreign.next.contains("openshift-cloud-controller-manager/vsphere-cloud-credentials"), "{}", foreign.next);

    let target = growth.site.target.server.clone();
    let datacenters = datacenters(lab, &target, &json!(["dc-of-another-time"])).await?;
    growth.restart_pods(STORAGE, "vsphere-problem-detector-operator").await?;
    change(lab, CLOUD, &json!({"data": {"note": null}})).await?;
    growth.replace_pod(&foreign).await?;
    let missing = growth.stops("VPD-007", Some("problem-detector")).await?;
    assert!(missing.line.as_deref().is_some_and(|line| line.contains(&target)), "{missing:?}");

    self::datacenters(lab, &target, &datacenters).await?;
    growth.replace_pod(&missing).await?;
    let (site, before, operator) = growth.completed().await?;
    let checks = verdict::growth(&site, &before).await?;
    operator.stop().await;
    passed(&checks)
}

async fn change(lab: &Lab, namespace: &str, patch: &Value) -> TestResult {
    kubernetes::merge(&lab.client, SECRET, namespace, CREDENTIALS, patch).await?;
    Ok(())
}

/// Lets the cloud configuration list these datacenters of a vCenter, and returns those it listed before.
async fn datacenters(lab: &Lab, server: &str, listed: &Value) -> TestResult<Value> {
    let (namespace, name) = ("openshift-config", "cloud-provider-config");
    let map = kubernetes::get(&lab.client, CONFIG_MAP, namespace, name).await?.ok_or("no cloud configuration")?;
    let mut text = yaml::parse(map.data["data"]["config"].as_str().unwrap_or_default())?;
    let entry = text["vcenter"].as_object_mut().and_then(|all| all.get_mut(server)).ok_or("the vCenter is not configured")?;
    let before = std::mem::replace(&mut entry["datacenters"], listed.clone());
    let patch = json!({"data": {"config": yaml::print(&text)?}});
    kubernetes::merge(&lab.client, CONFIG_MAP, namespace, name, &patch).await?;
    Ok(before)
}
