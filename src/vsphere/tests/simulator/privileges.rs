//! What the user may do: over many objects in one call, with the exact list of what is missing.

use serde_json::json;
use vsphere::{Missing, Want};

use crate::vcsim::Vcsim;

#[tokio::test]
async fn the_exact_missing_privileges_of_many_objects_come_in_one_call() {
    let sim = Vcsim::start();
    let client = sim.client();
    let found = client.inventory(Want::Folders).await.unwrap();
    let at = |path: &str| found.by_path(path).unwrap().reference.clone();
    let (datacenter, folder, store) = (at("/dc-a"), at("/dc-a/vm/lab-x7k2p"), at("/dc-a/datastore/datastore-a"));
    let wanted = [
        (datacenter.clone(), vec!["Folder.Create", "System.Read"]),
        (folder.clone(), vec!["Folder.Create", "VirtualMachine.Provisioning.Clone", "Folder.Delete"]),
        (store.clone(), vec!["Datastore.AllocateSpace"]),
    ];
    assert_eq!(client.missing_privileges(&wanted).await.unwrap(), []);
    sim.fault(&json!({ "kind": "privileges", "missing": ["Folder.Create", "Folder.Delete"], "object": "lab-x7k2p" }));
    sim.fault(&json!({ "kind": "privileges", "missing": ["Datastore.AllocateSpace"], "object": "*" }));
    sim.reset_calls();
    assert_eq!(
        client.missing_privileges(&wanted).await.unwrap(),
        [
            Missing { object: folder, privileges: vec!["Folder.Create".into(), "Folder.Delete".into()] },
            Missing { object: store, privileges: vec!["Datastore.AllocateSpace".into()] },
        ]
    );
    assert_eq!(sim.count("FetchUserPrivilegeOnEntities"), 1);
    assert_eq!(client.missing_privileges(&[]).await.unwrap(), []);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_privilege_this_vcenter_does_not_know_is_not_missing() {
    let sim = Vcsim::start();
    let client = sim.client();
    let root = client.root_folder().await.unwrap();
    let unknown = "InventoryService.Tagging.ObjectAttachable";
    sim.fault(&json!({ "kind": "privileges", "unknown": [unknown], "missing": ["Folder.Create"], "object": "*" }));
    let missing = client.missing_privileges(&[(root.clone(), vec![unknown, "No.Such.Privilege", "Folder.Create"])]).await.unwrap();
    assert_eq!(missing, [Missing { object: root.clone(), privileges: vec!["Folder.Create".into()] }]);
    assert_eq!(client.missing_privileges(&[(root, vec![unknown])]).await.unwrap(), []);
    client.logout().await.unwrap();
}
