//! Hooks and members of etcd.

use serde_json::{Value, json};
use vmi_lab::kubernetes::{self, CLUSTER_OPERATOR, CONFIG_MAP, MACHINE, NODE};
use vmi_lab::standins::etcd;

use super::{AtWork, MANAGER, VERSION, becomes, reported};
use crate::support::lab::Lab;
use crate::support::openshift::MACHINE_API;
use crate::support::suite::TestResult;

/// A control plane Machine whose Node is Ready; nothing in this lab but the stand-in looks at it.
async fn master(lab: &Lab, index: usize) -> TestResult {
    let (name, node) = (format!("master-{index}"), kubernetes::list(&lab.client, NODE, "").await?.remove(0));
    let machine = json!({
        "apiVersion": MACHINE.api_version(), "kind": MACHINE.kind,
        "metadata": {"name": name, "namespace": MACHINE_API, "labels": {"machine.openshift.io/cluster-api-machine-role": "master"}},
        "spec": {},
        "status": {"addresses": [{"type": "InternalIP", "address": format!("10.0.1.{index}")}], "nodeRef": {"kind": "Node", "name": node.metadata.name}},
    });
    kubernetes::apply(&lab.client, MANAGER, &machine).await?;
    Ok(())
}

async fn members(lab: &Lab, wanted: &[usize]) -> TestResult {
    let wanted: Vec<String> = wanted.iter().map(|index| format!("10.0.1.{index}")).collect();
    becomes(lab, CONFIG_MAP, "openshift-etcd", "etcd-endpoints", |map| {
        let entries = map["data"].as_object().into_iter().flatten();
        let mut listed: Vec<&str> = entries.filter_map(|(_, address)| address.as_str()).collect();
        listed.sort_unstable();
        if listed == wanted { Ok(()) } else { Err(format!("{listed:?}")) }
    })
    .await
}

async fn hooked(lab: &Lab, index: usize, wanted: bool) -> TestResult {
    becomes(lab, MACHINE, MACHINE_API, &format!("master-{index}"), |machine| {
        let hooks = &machine["spec"]["lifecycleHooks"]["preDrain"];
        let is = *hooks == json!([{"name": "EtcdQuorumOperator", "owner": "clusteroperator/etcd"}]);
        if is == wanted { Ok(()) } else { Err(hooks.to_string()) }
    })
    .await
}

pub async fn a_control_plane_machine_goes_when_another_member_votes_in_its_place(lab: &Lab) -> TestResult {
    use vmi_lab::faults::{Fault, Faults};
    // Before it is at work, for it learns of faults and of machines by different watches. The first three vote all the same.
    let faults = Faults::of(&lab.record).await?;
    let stuck = faults.add(&Fault::EtcdMemberStuck).await?;
    let client = lab.client.clone();
    let at_work = AtWork::start(async move { etcd::keep(&client, VERSION).await });
    for index in 0..3 {
        master(lab, index).await?;
    }
    for index in 0..3 {
        hooked(lab, index, true).await?;
    }
    members(lab, &[0, 1, 2]).await?;
    reported(lab, "etcd", "Degraded", "False").await?;

    // Kept from going at once, so that its hook can be seen to go.
    let finalizer = |value: Value| json!({"metadata": {"finalizers": value}});
    kubernetes::merge(&lab.client, MACHINE, MACHINE_API, "master-0", &finalizer(json!(["vmi-lab/test"]))).await?;
    kubernetes::delete(&lab.client, MACHINE, MACHINE_API, "master-0").await?;
    master(lab, 3).await?;
    let message = reported(lab, "etcd", "Degraded", "True").await?;
    assert!(message.contains("3 of 4 members are available, master-3 is unhealthy"), "{message}");
    hooked(lab, 0, true).await?;
    members(lab, &[0, 1, 2]).await?;

    faults.lift(&stuck).await?;
    members(lab, &[1, 2, 3]).await?;
    hooked(lab, 0, false).await?;
    reported(lab, "etcd", "Degraded", "False").await?;
    drop(at_work);
    kubernetes::merge(&lab.client, MACHINE, MACHINE_API, "master-0", &finalizer(Value::Null)).await?;
    for index in 1..4 {
        kubernetes::delete(&lab.client, MACHINE, MACHINE_API, &format!("master-{index}")).await?;
    }
    kubernetes::delete(&lab.client, CLUSTER_OPERATOR, "", "etcd").await?;
    Ok(kubernetes::delete(&lab.client, CONFIG_MAP, "openshift-etcd", "etcd-endpoints").await?)
}
