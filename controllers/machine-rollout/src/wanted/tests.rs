//! Which sets are asked for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::sync::Arc;

use super::*;

fn set(name: &str, server: &str, replicas: i64, more: &Value) -> Object {
    let provider = json!({"workspace": {"server": server}, "numCPUs": 4, "network": {"devices": []}});
    let template = json!({"metadata": {"labels": {"machine.openshift.io/cluster-api-machine-role": "worker"}},
        "spec": {"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}, "taints": more["taints"], "providerSpec": {"value": provider}}});
    let metadata = json!({"name": name, "namespace": "openshift-machine-api", "uid": name, "annotations": more["annotations"]});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": {}}, "template": template});
    Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
}

fn spec(more: &Value) -> VSphereMigrationInfraSpec {
    let domain = |name: &str| {
        json!({"name": name, "region": "r", "zone": format!("z-{name}"), "server": "b", "topology": {"datacenter": "dc",
        "computeCluster": "/dc/host/c", "networks": ["n"], "datastore": "/dc/datastore/d"}})
    };
    let mut spec = json!({"vcenters": [], "failureDomains": [domain("x"), domain("y")], "credentialsSecret": {"name": "s"}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

/// Name, failure domain and number of machines of each.
fn found(more: &Value, sets: &[Object]) -> Vec<(String, String, i64)> {
    let (spec, sources) = (spec(more), ["a".to_owned()]);
    let known = Known { spec: &spec, sets, sources: &sources, uid: "me", infrastructure_id: "id" };
    wanted(&known).unwrap().into_iter().map(|set| (set.name, set.domain, set.replicas)).collect()
}

fn is(name: &str, domain: &str, replicas: i64) -> (String, String, i64) {
    (name.to_owned(), domain.to_owned(), replicas)
}

#[test]
fn every_set_of_the_source_is_carried_over_one_to_one_and_spread_over_the_target() {
    let sets = [
        set("w-1", "a", 3, &json!({})),
        set("w-0", "a", 0, &json!({})),
        set("w-2", "a", 2, &json!({})),
        set("other", "z", 5, &json!({})),
        set("metal", "", 5, &json!({})),
    ];
    assert_eq!(found(&json!({}), &sets), [is("w-0-x", "x", 0), is("w-1-y", "y", 3), is("w-2-x", "x", 2)]);
}

#[test]
fn what_was_made_stays_in_its_failure_domain_when_a_set_comes_or_goes() {
    let marks = json!({"annotations": {OWNER: "me", SOURCE_SET: "w-1", DOMAIN: "y"}});
    let sets = [set("w-1", "a", 3, &json!({})), set("w-1-y", "b", 0, &marks)];
    assert_eq!(found(&json!({}), &sets), [is("w-1-y", "y", 3)], "alone it would be in x");
    let theirs = json!({"annotations": {OWNER: "another", SOURCE_SET: "w-1", DOMAIN: "y"}});
    assert_eq!(found(&json!({}), &[set("w-1", "a", 3, &json!({})), set("w-1-y", "b", 0, &theirs)]), [is("w-1-x", "x", 3)]);
}

#[test]
fn two_sets_never_share_one_and_what_was_made_keeps_its_name() {
    let said = |sets: &[&str]| {
        let place = |name: &&str| json!({"name": name, "failureDomains": [if name.ends_with("-x") { "y" } else { "x-y" }]});
        let mut spec = spec(&json!({"machineSets": sets.iter().map(place).collect::<Vec<_>>()}));
        spec.failure_domains[0].name = "x-y".to_owned();
        spec
    };
    let names = |sets: &[Object]| {
        let (spec, sources) = (said(&["w", "w-x"]), ["a".to_owned()]);
        let known = Known { spec: &spec, sets, sources: &sources, uid: "me", infrastructure_id: "id" };
        wanted(&known).unwrap().into_iter().map(|set| (set.source, set.name)).collect::<Vec<_>>()
    };
    let (one, other) = (set("w", "a", 3, &json!({})), set("w-x", "a", 3, &json!({})));
    let both = names(&[one.clone(), other.clone()]);
    assert_ne!(both[0].1, both[1].1);
    assert!(both.iter().all(|(_, name)| name.starts_with("w-x-y-")), "{both:?}");
    assert_eq!(names(std::slice::from_ref(&one)), [("w".to_owned(), "w-x-y".to_owned())]);
    // The first was made while it was alone.
    let made = set("w-x-y", "b", 3, &json!({"annotations": {OWNER: "me", SOURCE_SET: "w", DOMAIN: "x-y"}}));
    let then = names(&[one, other.clone(), made.clone()]);
    assert_eq!(then, [("w".to_owned(), "w-x-y".to_owned()), both[1].clone()]);
    assert_eq!(names(&[other, made]), both[1..], "also when its source has gone");
}

#[test]
fn the_vmi_may_say_where_and_how_many() {
    let said = json!({"machineSets": [{"name": "w-0", "failureDomains": ["y", "x"], "replicas": 5}, {"name": "w-1", "replicas": 0}]});
    let sets = [set("w-0", "a", 3, &json!({})), set("w-1", "a", 3, &json!({}))];
    assert_eq!(found(&said, &sets), [is("w-0-y", "y", 3), is("w-0-x", "x", 2), is("w-1-y", "y", 0)]);
}

#[test]
fn in_keep_only_the_named_sets_are_made_like_plain_workers() {
    let tainted = json!({"taints": [{"key": "infra", "effect": "NoSchedule"}]});
    let sets = [set("infra", "a", 1, &tainted), set("worker", "a", 3, &json!({}))];
    let keep = |named: Value| json!({"sourceRetirement": "Keep", "machineSets": named});
    assert_eq!(found(&keep(json!([])), &sets), []);
    let named = keep(json!([{"name": "extra"}, {"name": "wide", "failureDomains": ["x", "y"], "replicas": 3}]));
    assert_eq!(found(&named, &sets), [is("extra", "x", 3), is("wide-x", "x", 2), is("wide-y", "y", 1)]);
    let spec = spec(&named);
    let known = Known { spec: &spec, sets: &sets[..0], sources: &["a".to_owned()], uid: "me", infrastructure_id: "id" };
    assert!(wanted(&known).unwrap_err().contains("no MachineSet makes machines on a"));
}

#[test]
fn nodes_have_to_have_the_labels_of_their_set_and_of_their_place() {
    let spec = spec(&json!({}));
    let sets = [set("w-0", "a", 3, &json!({}))];
    let known = Known { spec: &spec, sets: &sets, sources: &["a".to_owned()], uid: "me", infrastructure_id: "id" };
    let labels = wanted(&known).unwrap().remove(0).labels;
    let want = [("node-role.kubernetes.io/infra", ""), (NODE_REGION, "r"), (NODE_ZONE, "z-x")];
    assert_eq!(labels, want.map(|(label, value)| (label.to_owned(), value.to_owned())).into());
}

#[test]
fn what_only_the_source_knows_is_named_and_not_carried_over() {
    let mut linked = set("w-0", "a", 3, &json!({})).as_ref().clone();
    let provider = &mut linked.data["spec"]["template"]["spec"]["providerSpec"]["value"];
    provider["cloneMode"] = json!("linkedClone");
    provider["snapshot"] = json!("golden");
    let (spec, sets) = (spec(&json!({})), [Arc::new(linked), set("w-1", "a", 1, &json!({}))]);
    let known = Known { spec: &spec, sets: &sets, sources: &["a".to_owned()], uid: "me", infrastructure_id: "id" };
    let all = wanted(&known).unwrap();
    assert_eq!(all[0].left_out, ["snapshot golden", "cloneMode linkedClone"]);
    let made = &all[0].object["spec"]["template"]["spec"]["providerSpec"]["value"];
    assert_eq!((made.get("cloneMode"), made.get("snapshot")), (None, None));
    assert!(all[1].left_out.is_empty());
}
