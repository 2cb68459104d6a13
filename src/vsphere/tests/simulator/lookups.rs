//! Single things: by path and by UUID.

use std::time::Duration;

use serde_json::json;
use vsphere::{Client, Fault, HostGroup, Identity, Kind, Ref, Uuid, Want};

use crate::{plain::make_groups, vcsim::Vcsim};

async fn vms(client: &Client) -> Vec<(Uuid, Uuid, Ref)> {
    let found = client.inventory(Want::Vms).await.unwrap();
    let parse = |vm: &vsphere::Vm| (vm.uuid.parse().unwrap(), vm.instance_uuid.parse().unwrap(), vm.node.reference.clone());
    found.vms.iter().map(parse).collect()
}

#[tokio::test]
async fn a_path_is_found_with_and_without_its_slash_and_an_unknown_one_is_none() {
    let sim = Vcsim::start();
    let client = sim.client();
    let found = client.find_by_path("/dc-a/host/cluster-a").await.unwrap();
    assert_eq!(found.as_ref().unwrap().kind, Kind::ClusterComputeResource);
    assert_eq!(client.find_by_path("dc-a/host/cluster-a").await.unwrap(), found);
    assert_eq!(client.find_by_path("/dc-a/host/Cluster-A").await.unwrap(), None, "names keep their case");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_virtual_machine_is_found_by_either_uuid_and_the_bios_one_in_either_byte_order() {
    let sim = Vcsim::with(&["a"], 5);
    let client = sim.client();
    let (bios, instance, vm) = vms(&client).await.remove(3);
    for (uuid, identity) in [(bios, Identity::Bios), (bios.swapped(), Identity::Bios), (instance, Identity::Instance)] {
        assert_eq!(client.find_vms(&[uuid], identity).await.unwrap(), [vec![vm.clone()]], "{identity:?} {uuid}");
    }
    assert_eq!(client.find_vms(&[instance.swapped()], Identity::Instance).await.unwrap(), [vec![]]);
    let unknown = "00000000-0000-0000-0000-00000000dead".parse().unwrap();
    assert_eq!(client.find_vms(&[unknown], Identity::Bios).await.unwrap(), [vec![]]);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn many_lookups_cost_few_requests_and_find_the_same() {
    let sim = Vcsim::with(&["a"], 1200);
    let client = sim.client();
    let all = vms(&client).await;
    // Every second one, in the other byte order, and one that is nobody's.
    let mut uuids: Vec<Uuid> = all.iter().step_by(3).map(|(bios, _, _)| bios.swapped()).collect();
    uuids.push("00000000-0000-0000-0000-00000000dead".parse().unwrap());
    sim.reset_calls();
    let mut found = client.find_vms(&uuids, Identity::Bios).await.unwrap();
    assert!(sim.traffic().0 <= 5, "{} requests for {} lookups", sim.traffic().0, uuids.len());
    assert_eq!(found.pop().unwrap(), []);
    let expected: Vec<Vec<Ref>> = all.iter().step_by(3).map(|(_, _, vm)| vec![vm.clone()]).collect();
    assert_eq!(found, expected);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn some_lookups_among_very_many_machines_do_not_read_them_all() {
    let sim = Vcsim::with(&["a"], 3000);
    let client = sim.client();
    let all = vms(&client).await;
    let wanted: Vec<_> = all.iter().rev().step_by(100).take(20).collect();
    sim.reset_calls();
    let found = client.find_vms(&wanted.iter().map(|(bios, _, _)| *bios).collect::<Vec<_>>(), Identity::Bios).await.unwrap();
    assert_eq!(found, wanted.iter().map(|(_, _, vm)| vec![vm.clone()]).collect::<Vec<_>>());
    assert_eq!(sim.count("RetrievePropertiesEx") + sim.count("ContinueRetrievePropertiesEx"), 2, "two pages, then one by one");
    assert_eq!(sim.count("CancelRetrievePropertiesEx"), 1, "the rest is given back to the server");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_template_tells_its_hardware_and_a_running_machine_its_address() {
    let sim = Vcsim::with(&["a"], 1);
    let client = sim.client();
    let template = client.find_by_path("/dc-a/vm/rhcos-a").await.unwrap().unwrap();
    let details = client.vm_details(std::slice::from_ref(&template)).await.unwrap().remove(0);
    assert_eq!((details.vm, details.name.as_str(), details.hardware.as_str()), (template, "rhcos-a", "vmx-19"));
    assert_eq!((details.template, details.powered_on, details.address), (Some(true), Some(false), None));
    assert!(!details.datastores.is_empty() && !details.uuid.is_empty());
    assert_eq!((details.disk_uuids, details.change_tracking), (None, None), "nobody has set them");
    assert!(client.vm_details(&[]).await.unwrap().is_empty());
    let running = client.inventory(Want::Vms).await.unwrap().vms.remove(0).node;
    sim.control("POST", &format!("/vms/a/{}/poweron", running.name), &serde_json::Value::Null);
    let details = client.vm_details(std::slice::from_ref(&running.reference)).await.unwrap().remove(0);
    assert_eq!((details.template, details.powered_on, details.host_name), (Some(false), Some(true), Some(running.name)));
    assert!(details.address.as_ref().is_some_and(|address| address.starts_with("10.31.")), "{:?}", details.address);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_machine_of_the_installer_shows_its_disks_uuids_and_its_making_is_among_the_recent_tasks() {
    let sim = Vcsim::start();
    let client = sim.client();
    sim.control(
        "POST",
        "/vcenters/a/vms",
        &json!({
            "name": "master-0", "template": "/dc-a/vm/rhcos-a", "folder": "/dc-a/vm", "resourcePool": "/dc-a/host/cluster-a/Resources",
            "datastore": "/dc-a/datastore/datastore-a", "cpus": 4, "memoryMiB": 16384,
        }),
    );
    let master = client.find_by_path("/dc-a/vm/master-0").await.unwrap().unwrap();
    assert_eq!(client.vm_details(&[master]).await.unwrap().remove(0).disk_uuids, Some(true));
    assert!(client.recent_tasks().await.unwrap().iter().all(|task| task.kind == Kind::Task));
    assert!(!client.recent_tasks().await.unwrap().is_empty());
    sim.fault(&json!({
        "kind": "fault", "type": "NoPermission", "privilege": "System.Read", "method": "RetrievePropertiesEx", "count": 1,
    }));
    let denied = client.recent_tasks().await.unwrap_err();
    assert!(matches!(denied.fault(), Fault::NoPermission { .. }), "{denied}");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn the_servers_clock_is_compared_with_ours() {
    let sim = Vcsim::start();
    let client = sim.client();
    let near = Duration::from_secs(30);
    let clock = client.clock().await.unwrap();
    assert!(clock.ahead.unsigned_abs() < near, "the simulator runs on this machine: {clock:?}");
    for wrong in [jiff::SignedDuration::from_hours(1), jiff::SignedDuration::from_hours(-1)] {
        let time = jiff::Timestamp::now() + wrong;
        let answer = format!("<CurrentTimeResponse><returnval>{time}</returnval></CurrentTimeResponse>");
        let body = format!(r#"<e:Envelope xmlns:e="e"><e:Body>{answer}</e:Body></e:Envelope>"#);
        sim.fault(&json!({ "kind": "garbage", "body": body, "method": "CurrentTime", "count": 1 }));
        let clock = client.clock().await.unwrap();
        assert!((clock.ahead - wrong).unsigned_abs() < near, "{wrong:?}: {clock:?}");
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn the_groups_of_hosts_of_a_cluster_are_told_with_their_hosts_and_those_of_machines_left_out() {
    let sim = Vcsim::start();
    let client = sim.client();
    let cluster = client.find_by_path("/dc-a/host/cluster-a").await.unwrap().unwrap();
    assert_eq!(client.host_groups(&cluster).await.unwrap(), [], "nobody has made any");
    let inventory = client.inventory(Want::Infrastructure).await.unwrap();
    let hosts: Vec<Ref> = inventory.hosts.iter().map(|host| host.node.reference.clone()).collect();
    make_groups(&sim, &cluster, &[("zone-1", &hosts[..1]), ("both", &hosts), ("none", &[])], "machines").await;
    let group = |name: &str, hosts: &[Ref]| HostGroup { name: name.into(), hosts: hosts.to_vec() };
    let expected = [group("zone-1", &hosts[..1]), group("both", &hosts), group("none", &[])];
    assert_eq!(hosts.len(), 2);
    assert_eq!(client.host_groups(&cluster).await.unwrap(), expected);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn groups_of_hosts_that_cannot_be_read_are_an_error_and_not_none() {
    let sim = Vcsim::start();
    let client = sim.client();
    let cluster = client.find_by_path("/dc-a/host/cluster-a").await.unwrap().unwrap();
    // Refused as a whole, and as vCenter does it more often: in a success that leaves the property out and says why.
    let denied = r#"<objects><obj type="ClusterComputeResource">domain-c1</obj><missingSet><path>configurationEx.group</path>
        <fault><fault i:type="NoPermission"><object type="ClusterComputeResource">domain-c1</object>
        <privilegeId>System.Read</privilegeId></fault></fault></missingSet></objects>"#;
    let body = format!(
        r#"<e:Envelope xmlns:e="e" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><e:Body><r><returnval>{denied}</returnval></r></e:Body></e:Envelope>"#
    );
    let method = "RetrievePropertiesEx";
    for fault in [
        json!({ "kind": "fault", "type": "NoPermission", "privilege": "System.Read", "method": method, "count": 1 }),
        json!({ "kind": "garbage", "body": body, "method": method, "count": 1 }),
    ] {
        sim.fault(&fault);
        let error = client.host_groups(&cluster).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::NoPermission { privilege, .. } if privilege == "System.Read"), "{fault}: {error}");
        assert_eq!(error.method(), method);
    }
    let gone = Ref::new("ClusterComputeResource", "domain-c4711");
    let error = client.host_groups(&gone).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::NotFound { object: Some(gone) });
    client.logout().await.unwrap();
}
