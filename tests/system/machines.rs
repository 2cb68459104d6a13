//! Machines and nodes, by the real machine-api controllers, the real cloud controller manager and the simulator.

use kube::ResourceExt as _;
use serde_json::json;
use vmi_lab::kubernetes::{self, MACHINE, MACHINE_SET, NODE, condition};
use vmi_lab::nodes::{BOOTS, smbios};

use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, copy_machine_set, scale, scaled, virtual_machines};
use crate::support::suite::TestResult;

pub async fn a_machine_set_is_scaled_from_two_to_four_to_zero_by_the_real_controllers(lab: &Lab) -> TestResult {
    let set = "lab-x7k2p-scaled";
    copy_machine_set(lab, set, 2).await?;
    scaled(lab, set, 2).await?;
    scale(lab, set, 4).await?;
    let names = scaled(lab, set, 4).await?;
    let there = virtual_machines(lab, "a").await?;
    assert!(names.iter().all(|name| there.contains(name)), "{names:?} of {there:?}");
    scale(lab, set, 0).await?;
    scaled(lab, set, 0).await?;
    let mut nodes = lab.watch(&[NODE]).await;
    nodes
        .until("the nodes to leave", PATIENCE, |cache| match names.iter().find(|name| cache.get(NODE, "", name).is_some()) {
            Some(left) => Err(format!("{left} is still there")),
            None => Ok(()),
        })
        .await?;
    let left = virtual_machines(lab, "a").await?;
    assert!(!names.iter().any(|name| left.contains(name)), "{left:?}");
    kubernetes::delete(&lab.client, MACHINE_SET, MACHINE_API, set).await?;
    Ok(())
}

pub async fn the_real_cloud_controller_manager_initialises_nodes_from_their_virtual_machines(lab: &Lab) -> TestResult {
    let guests = lab.control.get("/vms").await?;
    for node in kubernetes::list(&lab.client, NODE, "").await? {
        let name = node.name_any();
        let guest = guests.as_array().into_iter().flatten().find(|vm| vm["name"] == name.as_str()).ok_or("no such virtual machine")?;
        let uuid = guest["uuid"].as_str().unwrap_or_default();
        assert_eq!(node.data["status"]["nodeInfo"]["systemUUID"], smbios(uuid).as_str(), "{name}");
        assert_eq!(node.data["spec"]["providerID"], format!("vsphere://{uuid}").as_str(), "{name}");
        assert!(node.labels().contains_key("node.kubernetes.io/instance-type"), "{name}: {:?}", node.labels());
        let addresses = node.data["status"]["addresses"].to_string();
        assert!(addresses.contains(guest["ip"].as_str().unwrap_or("?")), "{name}: {addresses}");
    }
    Ok(())
}

pub async fn a_switched_off_machine_makes_its_node_unready_until_it_boots_again(lab: &Lab) -> TestResult {
    let name = worker(lab).await?;
    let mut nodes = lab.watch(&[NODE]).await;
    for (action, ready, boots) in [("poweroff", "Unknown", "1"), ("poweron", "True", "2")] {
        lab.control.post(&format!("/vms/a/{name}/{action}"), &json!({})).await?;
        nodes
            .until(&format!("{name} to follow {action}"), PATIENCE, |cache| {
                let node = cache.get(NODE, "", &name).ok_or("the node is gone")?;
                let (is, counted) = (condition(&node, "Ready"), node.annotations().get(BOOTS).cloned().unwrap_or_default());
                if is == ready && counted == boots { Ok(()) } else { Err(format!("Ready is {is}, {counted} boots")) }
            })
            .await?;
    }
    Ok(())
}

pub async fn a_deleted_machine_is_replaced_and_its_node_and_virtual_machine_leave(lab: &Lab) -> TestResult {
    let name = worker(lab).await?;
    kubernetes::delete(&lab.client, MACHINE, MACHINE_API, &name).await?;
    let mut cache = lab.watch(&[MACHINE, NODE]).await;
    cache
        .until("the machine to be gone", PATIENCE, |cache| {
            let gone = cache.get(MACHINE, MACHINE_API, &name).is_none() && cache.get(NODE, "", &name).is_none();
            if gone { Ok(()) } else { Err(format!("{name} is still there")) }
        })
        .await?;
    assert!(!virtual_machines(lab, "a").await?.contains(&name));
    // The set makes a new one; the lab counts as settled only when it has.
    Ok(())
}

async fn worker(lab: &Lab) -> TestResult<String> {
    let machines = kubernetes::list(&lab.client, MACHINE, MACHINE_API).await?;
    let worker = machines.iter().find(|machine| machine.name_any().contains("worker")).ok_or("no worker")?;
    Ok(worker.name_any())
}
