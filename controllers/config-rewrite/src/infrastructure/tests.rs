//! The spec of Infrastructure, there and back, as tables.

use serde_json::{Value, json};
use vmi_site::source::Source;

use super::extend::{Wanted, extend, lost};
use super::retract::{Saved, retract, source_stands};

fn vcenter(server: &str) -> Value {
    json!({"server": server, "port": 443, "datacenters": [format!("dc-{server}")]})
}

fn domain(name: &str, server: &str) -> Value {
    json!({"name": name, "region": format!("region-{server}"), "zone": name, "server": server, "topology": {"datacenter": format!("dc-{server}")}})
}

fn spec(vcenters: &[&str], domains: &[(&str, &str)]) -> Value {
    let vcenters: Vec<_> = vcenters.iter().map(|server| vcenter(server)).collect();
    let domains: Vec<_> = domains.iter().map(|(name, server)| domain(name, server)).collect();
    json!({
        "cloudConfig": {"name": "cloud-provider-config", "key": "config"},
        "platformSpec": {"type": "VSphere", "vsphere": {"apiServerInternalIPs": ["192.0.2.1"], "failureDomains": domains, "vcenters": vcenters}},
    })
}

fn before() -> Value {
    spec(&["a"], &[("fd-a", "a")])
}

fn after() -> Value {
    spec(&["a", "b"], &[("fd-a", "a"), ("fd-b", "b")])
}

fn wanted() -> Wanted {
    Wanted { vcenters: vec![vcenter("b")], failure_domains: vec![domain("fd-b", "b")], ..Wanted::default() }
}

fn saved(spec: &Value) -> Saved {
    Saved { before: spec["platformSpec"]["vsphere"].clone(), source: Source::default() }
}

#[test]
fn the_target_follows_the_source_in_one_change_that_keeps_all_the_rest() {
    let extended = extend(&before(), &wanted()).unwrap().unwrap();
    assert_eq!(extended.spec, after());
    assert_eq!(extended.source_only, None);
    assert_eq!(
        extended.changes,
        ["Infrastructure cluster: vCenter b is added", "Infrastructure cluster: failure domain fd-b (region-b/fd-b) of b is added"]
    );
    assert_eq!(extend(&after(), &wanted()), Ok(None), "once is enough");
}

#[test]
fn what_is_lost_of_the_target_is_told_and_what_came_besides_is_not() {
    let told = |spec: &Value| lost(spec, &wanted());
    assert_eq!(told(&after()), None);
    assert_eq!(told(&spec(&["a", "b", "c"], &[("fd-a", "a"), ("fd-b", "b"), ("fd-c", "c")])), None);
    assert_eq!(told(&spec(&["b"], &[("fd-b", "b")])), None, "the source is not this step's");
    let gone = "Infrastructure cluster does not list vCenter b, failure domain fd-b any more";
    assert_eq!(told(&before()).as_deref(), Some(gone));
    assert_eq!(told(&json!({})).as_deref(), Some(gone));
    let gone = "Infrastructure cluster does not list failure domain fd-b any more";
    assert_eq!(told(&spec(&["a", "b"], &[("fd-a", "a")])).as_deref(), Some(gone));
    let mut other = after();
    other["platformSpec"]["vsphere"]["failureDomains"][1]["zone"] = json!("elsewhere");
    assert!(told(&other).is_some_and(|text| text.ends_with("zone is \"elsewhere\", wanted \"fd-b\"")), "{:?}", told(&other));
    let networking = Wanted { node_networking: Some(json!({"internal": {"network": "n"}})), ..wanted() };
    assert!(lost(&after(), &networking).is_some_and(|text| text.contains("nodeNetworking")));
}

#[test]
fn a_target_that_is_there_but_differs_is_refused_with_the_difference() {
    let mut other = after();
    other["platformSpec"]["vsphere"]["vcenters"][1]["port"] = json!(8443);
    let text = extend(&other, &wanted()).unwrap_err().to_string();
    assert_eq!(text, "vCenter b is there already, but differs: port is 8443, wanted 443");
}

#[test]
fn node_networking_is_set_where_there_is_none_and_refused_where_it_differs() {
    let networking = json!({"internal": {"networkSubnetCidr": ["192.0.2.0/24"]}});
    let wanted = Wanted { node_networking: Some(networking.clone()), ..wanted() };
    let extended = extend(&before(), &wanted).unwrap().unwrap();
    assert_eq!(extended.spec["platformSpec"]["vsphere"]["nodeNetworking"], networking);
    assert!(extended.changes.contains(&"Infrastructure cluster: nodeNetworking.internal is set".to_owned()));
    assert_eq!(extend(&extended.spec, &wanted), Ok(None));
    let mut other = before();
    other["platformSpec"]["vsphere"]["nodeNetworking"] = json!({"internal": {"networkSubnetCidr": ["198.51.100.0/24"]}});
    let text = extend(&other, &wanted).unwrap_err().to_string();
    assert!(text.starts_with("nodeNetworking.internal is there already, but differs") && text.contains("198.51.100.0/24"), "{text}");
    let back = retract(&extended.spec, &saved(&before()), &wanted);
    assert_eq!(back.spec, Some(before()));
    let mut theirs = extended.spec;
    theirs["platformSpec"]["vsphere"]["nodeNetworking"]["internal"]["network"] = json!("theirs");
    let back = retract(&theirs, &saved(&before()), &wanted);
    assert_eq!(back.left, ["nodeNetworking.internal was changed by somebody else"]);
    assert_eq!(back.spec.unwrap()["platformSpec"]["vsphere"]["nodeNetworking"]["internal"]["network"], "theirs");
}

#[test]
fn what_was_added_goes_in_one_change_and_nothing_else_does() {
    let back = retract(&after(), &saved(&before()), &wanted());
    assert_eq!((back.spec, back.source_kept, back.left), (Some(before()), None, Vec::new()));
    let again = retract(&before(), &saved(&before()), &wanted());
    assert_eq!((again.spec, again.left), (None, Vec::new()), "twice is once");
}

#[test]
fn what_was_there_before_stays() {
    let half = spec(&["a", "b"], &[("fd-a", "a")]);
    let back = retract(&after(), &saved(&half), &wanted());
    assert_eq!(back.spec, Some(half), "the vCenter was listed before, its failure domain was not");
}

#[test]
fn what_somebody_else_changed_since_stays_with_what_it_needs_and_is_named() {
    let mut edited = after();
    edited["platformSpec"]["vsphere"]["failureDomains"][1]["topology"]["folder"] = json!("/dc-b/vm/theirs");
    let back = retract(&edited, &saved(&before()), &wanted());
    assert_eq!(back.spec, None);
    assert_eq!(back.left, ["failure domain fd-b was changed by somebody else", "vCenter b holds failure domain fd-b, which stays"]);

    let mut added = spec(&["a", "b"], &[("fd-a", "a"), ("fd-b", "b"), ("theirs", "b")]);
    let back = retract(&added, &saved(&before()), &wanted());
    assert_eq!(back.spec, Some(spec(&["a", "b"], &[("fd-a", "a"), ("theirs", "b")])));
    assert_eq!(back.left, ["vCenter b holds failure domain theirs, which stays"]);

    added = spec(&["a", "b", "c"], &[("fd-a", "a"), ("fd-b", "b"), ("fd-c", "c")]);
    let back = retract(&added, &saved(&before()), &wanted());
    assert_eq!((back.spec, back.left), (Some(spec(&["a", "c"], &[("fd-a", "a"), ("fd-c", "c")])), Vec::new()));
}

#[test]
fn an_undescribed_source_comes_first_and_goes_again_where_that_is_allowed() {
    let bare = json!({"cloudConfig": {"name": "c", "key": "k"}, "platformSpec": {"type": "VSphere"}});
    let source = Source { vcenters: vec![vcenter("a")], failure_domains: vec![domain("migration-source", "a")] };
    let wanted = Wanted { source: source.clone(), ..wanted() };
    let extended = extend(&bare, &wanted).unwrap().unwrap();
    let lists = |spec: &Value, list: &str| spec["platformSpec"]["vsphere"][list].as_array().unwrap().len();
    assert_eq!(extended.spec["platformSpec"]["vsphere"]["vcenters"], json!([vcenter("a"), vcenter("b")]));
    assert_eq!(extended.changes.len(), 4);
    let first = extended.source_only.clone().unwrap();
    assert_eq!((lists(&first, "vcenters"), lists(&first, "failureDomains")), (1, 1), "for an API that takes one at first");
    let then = extend(&first, &Wanted { source: Source::default(), ..wanted.clone() }).unwrap().unwrap();
    assert_eq!(then.spec, extended.spec, "and then the target");

    let saved = Saved { before: Value::Null, source };
    let back = retract(&extended.spec, &saved, &wanted);
    assert_eq!(back.spec, Some(bare.clone()));
    assert_eq!(back.source_kept, Some(first.clone()), "where the list may not go");
    assert!(source_stands(&first, &saved) && !source_stands(&bare, &saved));
    assert_eq!(retract(&first, &saved, &wanted).spec, None, "then it ends there");
}
