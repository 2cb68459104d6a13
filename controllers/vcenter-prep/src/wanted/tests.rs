use serde_json::json;

use super::*;

fn domain(name: &str, region: &str, zone: &str, more: &serde_json::Value) -> FailureDomain {
    let mut domain = json!({
        "name": name, "region": region, "zone": zone, "server": "vc",
        "topology": {"datacenter": "dc", "computeCluster": format!("/dc/host/{zone}"), "networks": ["n"], "datastore": "/dc/datastore/d"},
    });
    for (key, value) in more.as_object().unwrap() {
        domain[key] = value.clone();
    }
    serde_json::from_value(domain).unwrap()
}

fn places(domains: &[FailureDomain]) -> Vec<(&'static str, String, Place)> {
    let wanted = Wanted::of("vc", domains, "lab-x").unwrap();
    wanted.attachments.into_iter().map(|one| (one.category, one.tag, one.place)).collect()
}

#[test]
fn a_region_is_a_datacenter_and_a_zone_a_cluster_unless_the_domain_says_otherwise() {
    let cluster = |name: &str| Place::Cluster(format!("/dc/host/{name}"));
    let datacenter = Place::Datacenter("dc".into());
    let plain = domain("a", "r", "z", &json!({}));
    assert_eq!(places(&[plain]), [(REGION, "r".into(), datacenter.clone()), (ZONE, "z".into(), cluster("z"))]);
    let by_cluster = domain("a", "r", "z", &json!({"regionAffinity": {"type": "ComputeCluster"}}));
    assert_eq!(places(&[by_cluster]), [(REGION, "r".into(), cluster("z")), (ZONE, "z".into(), cluster("z"))]);
    let group = json!({"vmGroup": "v", "hostGroup": "h", "vmHostRule": "r"});
    let by_hosts = domain("a", "r", "z", &json!({"zoneAffinity": {"type": "HostGroup", "hostGroup": group}}));
    let hosts = Place::HostGroup { cluster: "/dc/host/z".into(), group: "h".into() };
    assert_eq!(places(std::slice::from_ref(&by_hosts)), [(REGION, "r".into(), datacenter), (ZONE, "z".into(), hosts)]);
    let wanted = Wanted::of("vc", &[by_hosts], "lab-x").unwrap();
    let on_hosts: Vec<bool> = wanted.categories.iter().map(|spec| spec.types.contains(&Kind::HostSystem)).collect();
    assert_eq!(on_hosts, [false, true, false]);
}

#[test]
fn domains_that_share_a_datacenter_want_its_tag_and_its_folder_once() {
    let wanted = Wanted::of("vc", &[domain("a", "r", "z1", &json!({})), domain("b", "r", "z2", &json!({}))], "lab-x").unwrap();
    assert_eq!(wanted.attachments.len(), 3);
    assert_eq!(wanted.folders, ["/dc/vm/lab-x"]);
    assert_eq!(wanted.tags(), [("openshift-lab-x", "lab-x"), (REGION, "r"), (ZONE, "z1"), (ZONE, "z2")]);
}

#[test]
fn a_folder_that_is_named_is_taken_as_it_is_named() {
    let mut named = domain("a", "r", "z", &json!({}));
    named.topology.folder = Some("/dc/vm/team/ocp/".into());
    assert_eq!(Wanted::of("vc", &[named], "lab-x").unwrap().folders, ["/dc/vm/team/ocp"]);
}

#[test]
fn the_clusters_own_category_is_as_the_installer_makes_it() {
    let wanted = Wanted::of("vc", &[domain("a", "r", "z", &json!({}))], "lab-x").unwrap();
    let own = wanted.categories.last().unwrap();
    assert_eq!((own.name.as_str(), own.description.as_str()), ("openshift-lab-x", "Added by openshift-install do not remove"));
    assert!(wanted.categories.iter().all(|spec| spec.cardinality == Cardinality::Single));
    let types: Vec<&str> = own.types.iter().map(Kind::as_str).collect();
    assert_eq!(types, ["VirtualMachine", "ResourcePool", "Folder", "Datastore", "StoragePod"]);
}

#[test]
fn a_vcenter_without_a_failure_domain_is_refused_by_name() {
    let failure = Wanted::of("vc-old", &[], "lab-x").unwrap_err();
    assert_eq!(failure.rule, "TAG-005");
    assert!(failure.message.contains("vc-old"), "{}", failure.message);
}
