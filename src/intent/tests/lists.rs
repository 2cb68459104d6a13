//! The lists of Infrastructure: the source first, both lists at once, nothing overwritten.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use serde_json::{Value, json};
use vmi_intent::infrastructure::{Outcome, Refused, extend, retract};

fn vcenter(server: &str) -> Value {
    json!({"server": server, "port": 443, "datacenters": ["dc-1", "dc-2"]})
}

fn domain(name: &str, server: &str) -> Value {
    let topology = json!({"datacenter": "dc-1", "networks": ["net"], "datastore": "/dc-1/datastore/d"});
    json!({"name": name, "server": server, "region": format!("r-{name}"), "zone": "z", "topology": topology})
}

fn spec(vcenters: &[Value], domains: &[Value]) -> Value {
    let vsphere = json!({"vcenters": vcenters, "failureDomains": domains, "apiServerInternalIPs": ["192.0.2.1"], "unknown": 1});
    json!({"cloudConfig": {"name": "cloud-provider-config"}, "platformSpec": {"type": "VSphere", "vsphere": vsphere}})
}

fn changed(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Changed(spec) => spec,
        Outcome::AlreadyThere => panic!("nothing changed"),
    }
}

fn old() -> Value {
    spec(&[vcenter("a")], &[domain("fd-a", "a")])
}

#[test]
fn the_target_comes_after_the_source_and_everything_else_stays() {
    let new = changed(extend(&old(), &[vcenter("b")], &[domain("fd-b", "b")]).unwrap());
    assert_eq!(new, spec(&[vcenter("a"), vcenter("b")], &[domain("fd-a", "a"), domain("fd-b", "b")]));
}

#[test]
fn taking_the_target_back_gives_the_old_spec() {
    let new = changed(extend(&old(), &[vcenter("b")], &[domain("fd-b", "b")]).unwrap());
    assert_eq!(changed(retract(&new, &["b"]).unwrap()), old());
    assert_eq!(retract(&old(), &["b"]).unwrap(), Outcome::AlreadyThere);
}

#[test]
fn an_equal_target_is_already_there_whatever_the_order_of_its_fields() {
    let same = json!({"datacenters": ["dc-2", "dc-1"], "server": "a"});
    assert_eq!(extend(&old(), &[same], &[domain("fd-a", "a")]).unwrap(), Outcome::AlreadyThere);
}

#[test]
fn what_is_half_there_is_completed() {
    let new = changed(extend(&old(), &[vcenter("a")], &[domain("fd-a", "a"), domain("fd-2", "a")]).unwrap());
    assert_eq!(new, spec(&[vcenter("a")], &[domain("fd-a", "a"), domain("fd-2", "a")]));
}

#[test]
fn an_unequal_target_is_refused_with_every_difference() {
    let other = json!({"server": "a", "port": 8443, "datacenters": ["dc-1"]});
    let said = extend(&old(), &[other], &[]).unwrap_err().to_string();
    assert_eq!(
        said,
        r#"vCenter a is there already, but differs: port is 443, wanted 8443; datacenters is ["dc-1","dc-2"], wanted ["dc-1"]"#
    );

    let mut other = domain("fd-a", "a");
    other["topology"]["folder"] = json!("/dc-1/vm/f");
    let said = extend(&old(), &[], &[other]).unwrap_err().to_string();
    assert_eq!(said, r#"failure domain fd-a is there already, but differs: topology.folder is not set, wanted "/dc-1/vm/f""#);
}

#[test]
fn a_failure_domain_of_an_unlisted_server_is_refused() {
    let refused = extend(&old(), &[], &[domain("fd-b", "b")]).unwrap_err();
    assert_eq!(refused, Refused::UnknownServer { name: "fd-b".to_owned(), server: "b".to_owned() });
}

#[test]
fn a_region_and_zone_that_are_taken_are_refused() {
    let mut twin = domain("fd-b", "b");
    twin["region"] = json!("r-fd-a");
    let said = extend(&old(), &[vcenter("b")], &[twin]).unwrap_err().to_string();
    assert_eq!(said, "failure domains fd-a and fd-b have the same region r-fd-a and zone z");
}

#[test]
fn a_fourth_vcenter_is_refused() {
    let added: Vec<_> = ["b", "c", "d"].map(vcenter).to_vec();
    assert_eq!(extend(&old(), &added, &[]).unwrap_err(), Refused::TooMany(4));
}

#[test]
fn the_last_vcenter_cannot_be_taken_away() {
    assert_eq!(retract(&old(), &["a"]).unwrap_err(), Refused::NoneLeft);
}

#[test]
fn a_cluster_born_without_the_lists_gets_them() {
    for born in [json!({"platformSpec": {"type": "VSphere"}}), json!({"platformSpec": {"type": "VSphere", "vsphere": null}})] {
        let new = changed(extend(&born, &[vcenter("a")], &[domain("fd-a", "a")]).unwrap());
        let vsphere = json!({"vcenters": [vcenter("a")], "failureDomains": [domain("fd-a", "a")]});
        assert_eq!(new, json!({"platformSpec": {"type": "VSphere", "vsphere": vsphere}}));
    }
}

#[test]
fn other_platforms_and_odd_shapes_are_refused() {
    let aws = json!({"platformSpec": {"type": "AWS"}});
    assert_eq!(extend(&aws, &[], &[]).unwrap_err(), Refused::NotVsphere("AWS".to_owned()));
    let odd = json!({"platformSpec": {"type": "VSphere", "vsphere": {"vcenters": {}}}});
    assert!(extend(&odd, &[], &[]).unwrap_err().to_string().contains("spec.platformSpec.vsphere.vcenters"));
    assert!(extend(&old(), &[json!({"port": 1})], &[]).unwrap_err().to_string().contains("vcenters[].server"));
}
