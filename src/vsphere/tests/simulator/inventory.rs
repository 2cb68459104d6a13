//! The inventory: one read, whatever the size, and the same whatever the pages.

use serde_json::json;
use vsphere::{Client, Fault, Kind, Want, escape_name, only_one};

use crate::vcsim::Vcsim;

#[tokio::test]
async fn one_request_gives_everything_with_its_path() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.clock().await.unwrap();
    sim.reset_calls();
    let found = client.inventory(Want::Folders).await.unwrap();
    assert_eq!(sim.traffic().0, 1);
    for (path, kind) in [
        ("/", Kind::Folder),
        ("/dc-a", Kind::Datacenter),
        ("/dc-a/vm", Kind::Folder),
        ("/dc-a/vm/lab-x7k2p", Kind::Folder),
        ("/dc-a/vm/outer/inner", Kind::Folder),
        ("/dc-a/host/cluster-a", Kind::ClusterComputeResource),
        ("/dc-a/host/cluster-a/Resources", Kind::ResourcePool),
        ("/dc-a/host/cluster-a/Resources/ocp-a", Kind::ResourcePool),
        ("/dc-a/datastore/datastore-a", Kind::Datastore),
    ] {
        let node = found.by_path(path).unwrap_or_else(|| panic!("{path} is missing"));
        assert_eq!(node.reference.kind, kind, "{path}");
        if path != "/" {
            assert_eq!(client.find_by_path(path).await.unwrap().as_ref(), Some(&node.reference), "the server agrees on {path}");
        }
    }
    assert!(found.networks.iter().any(|network| network.node.path == "/dc-a/network/network-a"));
    assert!(found.vms.is_empty() && found.templates.is_empty(), "not asked for");
    assert_eq!(found.unreadable, []);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn hosts_clusters_and_datastores_come_with_versions_capacity_and_reach() {
    let sim = Vcsim::start();
    let client = sim.client();
    let found = client.inventory(Want::Infrastructure).await.unwrap();
    let cluster = only_one(&found.clusters, "cluster-a").unwrap();
    assert_eq!((cluster.hosts, cluster.effective_hosts), (2, 2));
    assert!(cluster.cpu_mhz > 0 && cluster.memory_mib > 0, "{cluster:?}");
    assert_eq!(found.hosts.len(), 2);
    for host in &found.hosts {
        assert!(
            !host.version.is_empty()
                && host.connected == Some(true)
                && host.maintenance == Some(false)
                && host.cpu_cores > 0
                && host.memory_mib > 0,
            "{host:?}"
        );
        assert!(host.node.path.starts_with("/dc-a/host/cluster-a/"));
    }
    let datastore = only_one(&found.datastores, "datastore-a").unwrap();
    assert!(datastore.capacity > 0 && datastore.accessible == Some(true), "{datastore:?}");
    let reach = found.reach(&cluster.node.reference);
    let network = only_one(&found.networks, "network-a").unwrap();
    for (what, seen) in [(&network.node.reference, &reach.networks), (&datastore.node.reference, &reach.datastores)] {
        assert_eq!(seen.iter().find(|one| one.object == *what).unwrap().not_by, [], "every host sees {what}");
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn templates_and_virtual_machines_come_when_asked_for() {
    let sim = Vcsim::with(&["a"], 7);
    let client = sim.client();
    let templates = client.inventory(Want::Templates).await.unwrap();
    assert_eq!(templates.templates.len(), 1);
    assert_eq!(templates.templates[0].node.path, "/dc-a/vm/rhcos-a");
    assert!(templates.vms.is_empty());
    let all = client.inventory(Want::Vms).await.unwrap();
    assert_eq!((all.templates.len(), all.vms.len()), (1, 7));
    for vm in &all.vms {
        assert!(vm.powered_on == Some(false) && vm.template == Some(false) && vm.node.path.starts_with("/dc-a/vm/"), "{vm:?}");
        let uuid = vm.uuid.parse().unwrap();
        assert_eq!(all.by_uuid(uuid).unwrap().node.reference, vm.node.reference);
        assert_eq!(all.by_uuid(vsphere::Uuid::swapped(uuid)).unwrap().node.reference, vm.node.reference);
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn names_with_slashes_and_per_cent_signs_keep_their_place() {
    let sim = Vcsim::start();
    let client = sim.client();
    let parent = client.find_by_path("/dc-a/vm").await.unwrap().unwrap();
    for name in ["a/b", "50% & <c>", "back\\slash", "ümläut"] {
        let made = client.ensure_folder(&parent, name).await.unwrap();
        let found = client.inventory(Want::Folders).await.unwrap();
        let path = format!("/dc-a/vm/{}", escape_name(name));
        let node = found.by_path(&path).unwrap_or_else(|| panic!("{path} is missing"));
        assert_eq!((node.name.as_str(), &node.reference), (name, &made.folder));
        assert_eq!(client.find_by_path(&path).await.unwrap(), Some(made.folder));
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_datacenter_in_a_folder_of_a_folder_has_its_whole_path_and_so_has_all_in_it() {
    let sim = Vcsim::with_datacenter_in("outer/in & out");
    let client = sim.client();
    let found = client.inventory(Want::Vms).await.unwrap();
    let at = "/outer/in & out/dc-a";
    for path in ["", "/vm/outer/inner", "/host/cluster-a/Resources/ocp-a", "/datastore/datastore-a", "/vm/rhcos-a"] {
        let path = format!("{at}{path}");
        let node = found.by_path(&path).unwrap_or_else(|| panic!("{path} is missing"));
        assert_eq!(client.find_by_path(&path).await.unwrap().as_ref(), Some(&node.reference), "the server agrees on {path}");
    }
    assert_eq!(only_one(&found.datacenters, "dc-a").unwrap().node.path, at);
    assert_eq!((found.vms.len(), found.vms.iter().all(|vm| vm.node.path.starts_with(at))), (2, true));
    client.logout().await.unwrap();
}

#[tokio::test]
async fn the_size_of_the_pages_does_not_change_what_is_read() {
    let sim = Vcsim::with(&["a"], 30);
    let whole = sim.client();
    let expected = whole.inventory(Want::Vms).await.unwrap();
    for page in [1, 7, 500] {
        let mut settings = sim.settings();
        settings.page = page;
        let client = Client::new(settings).unwrap();
        sim.reset_calls();
        assert_eq!(client.inventory(Want::Vms).await.unwrap(), expected, "{page}");
        let vms = expected.vms.len() + expected.templates.len();
        let others = expected.nodes().count() - vms;
        let requests = (sim.count("RetrievePropertiesEx"), sim.count("ContinueRetrievePropertiesEx"));
        assert_eq!(requests, (1 + vms.div_ceil(page) as u64, others.div_ceil(page) as u64 - 1), "{page}");
        client.logout().await.unwrap();
    }
    whole.logout().await.unwrap();
}

#[tokio::test]
async fn a_read_in_many_pages_is_the_same_as_in_one_and_survives_a_lost_session() {
    let sim = Vcsim::with(&["a"], 60);
    let whole = sim.client();
    let calm = whole.inventory(Want::Vms).await.unwrap();
    let mut settings = sim.settings();
    settings.page = 5;
    let client = Client::new(settings).unwrap();
    client.clock().await.unwrap();
    // The session goes while the read of the folders is between two pages.
    sim.fault(&json!({ "kind": "fault", "method": "ContinueRetrievePropertiesEx", "type": "NotAuthenticated", "count": 1 }));
    sim.reset_calls();
    let shaken = client.inventory(Want::Vms).await.unwrap();
    assert_eq!(calm, shaken, "nothing twice, nothing missing");
    let vms = (calm.vms.len() + calm.templates.len()).div_ceil(5) as u64;
    assert_eq!((sim.count("RetrievePropertiesEx"), sim.count("Login")), (2 + vms, 1));
    client.logout().await.unwrap();
    whole.logout().await.unwrap();
}

#[tokio::test]
async fn fifty_thousand_virtual_machines_do_not_make_the_infrastructure_larger() {
    let sim = Vcsim::with(&["a"], 50_000);
    let client = sim.client();
    client.clock().await.unwrap();
    for want in [Want::Infrastructure, Want::Folders] {
        sim.reset_calls();
        let found = client.inventory(want).await.unwrap();
        let (requests, bytes) = sim.traffic();
        assert_eq!((requests, found.datacenters.len()), (1, 1));
        assert!(bytes < 64 * 1024, "{want:?}: {bytes} bytes");
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn two_vcenters_are_told_apart_by_their_instance_and_the_same_one_twice_is_seen() {
    let sim = Vcsim::with(&["a", "b"], 0);
    let [a, b] = [0, 1].map(|number| Client::new(sim.settings_of(number)).unwrap());
    let (first, second) = (a.about().await.unwrap(), b.about().await.unwrap());
    assert_ne!(first.instance_uuid, second.instance_uuid);
    assert_eq!(first.instance_uuid, sim.client().about().await.unwrap().instance_uuid);
    assert_eq!((first.api_type.as_str(), first.version.as_str(), first.name.as_str()), ("VirtualCenter", "8.0.3", "VMware vCenter Server"));
    assert!(first.at_least([7, 0, 2]) && !first.at_least([9, 0, 0]));
    assert_eq!(sim.sessions().logins, 0, "that takes no login");
    assert_eq!(b.inventory(Want::Infrastructure).await.unwrap().datacenters[0].node.name, "dc-b");
    b.logout().await.unwrap();
}

#[tokio::test]
async fn a_name_that_two_have_is_ambiguous_and_one_that_nobody_has_is_not_found() {
    let sim = Vcsim::start();
    let client = sim.client();
    let found = client.inventory(Want::Folders).await.unwrap();
    let mut twice = found.folders.clone();
    twice.extend(found.folders.clone());
    assert!(matches!(only_one(&twice, "lab-x7k2p"), Err(Fault::Ambiguous { count: 2, .. })));
    assert_eq!(only_one(&found.folders, "nobody").unwrap_err(), Fault::NotFound { object: None });
    assert_eq!(only_one(&found.folders, "lab-x7k2p").unwrap().node.path, "/dc-a/vm/lab-x7k2p");
    client.logout().await.unwrap();
}
