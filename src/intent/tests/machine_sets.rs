//! MachineSets carried over: what stays, what changes, what goes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use serde_json::{Value, json};
use vmi_intent::machine_sets::{SET, carried_over};

fn source() -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {
            "name": "id-infra-0", "namespace": "openshift-machine-api", "uid": "u", "resourceVersion": "7", "generation": 3,
            "labels": {"team": "shop"},
            "annotations": {
                "machine.openshift.io/vCPU": "8", "capacity.cluster-autoscaler.kubernetes.io/labels": "a=b",
                "machine.openshift.io/cluster-api-autoscaler-node-group-min-size": "1",
                "machine.openshift.io/cluster-api-autoscaler-node-group-max-size": "9",
                "autoscaling.openshift.io/machineautoscaler": "openshift-machine-api/x",
                "config.openshift.io/vmi-uid": "earlier", "config.openshift.io/vmi-source-machineset": "id-infra",
                "config.openshift.io/vmi-failure-domain": "fd-a",
            },
        },
        "spec": {
            "replicas": 4, "minReadySeconds": 30, "deletePolicy": "Oldest",
            "selector": {"matchLabels": {"cluster": "id", SET: "id-infra-0"}},
            "template": {
                "metadata": {"labels": {"cluster": "id", SET: "id-infra-0", "role": "infra", "machine.openshift.io/region": "region-a", "machine.openshift.io/zone": "zone-a"}},
                "spec": {
                    "lifecycleHooks": {"preDrain": [{"name": "h", "owner": "o"}]},
                    "metadata": {"labels": {"node-role.kubernetes.io/infra": "", "topology.kubernetes.io/zone": "zone-a"}, "annotations": {"n": "1"}},
                    "taints": [{"key": "infra", "effect": "NoSchedule"}],
                    "providerSpec": {"value": {"numCPUs": 8, "tagIDs": ["urn:x"], "workspace": {"server": "a"}, "template": "t", "network": {"devices": []}}},
                },
            },
        },
        "status": {"replicas": 4},
    })
}

fn domain() -> Value {
    json!({"name": "fd-b", "region": "region-b", "zone": "zone-b", "server": "b", "topology": {
        "datacenter": "dc", "computeCluster": "/dc/host/c", "networks": ["n"], "datastore": "/dc/datastore/d", "template": "/dc/vm/t"}})
}

fn made() -> Value {
    carried_over(&source(), "id-infra-0-fd-b", &domain(), "id", &[("mark", "ours")])
}

#[test]
fn labels_annotations_taints_hooks_and_policies_stay() {
    let (old, new) = (source(), made());
    for pointer in [
        "/metadata/labels",
        "/metadata/namespace",
        "/metadata/annotations/machine.openshift.io~1vCPU",
        "/metadata/annotations/capacity.cluster-autoscaler.kubernetes.io~1labels",
        "/spec/minReadySeconds",
        "/spec/deletePolicy",
        "/spec/template/metadata/labels/role",
        "/spec/template/spec/lifecycleHooks",
        "/spec/template/spec/taints",
        "/spec/template/spec/metadata/annotations",
        "/spec/template/spec/metadata/labels/node-role.kubernetes.io~1infra",
        "/spec/template/spec/providerSpec/value/numCPUs",
    ] {
        assert!(old.pointer(pointer).is_some() && old.pointer(pointer) == new.pointer(pointer), "{pointer}");
    }
}

#[test]
fn it_begins_with_no_machine_and_with_nothing_that_was_the_old_ones_alone() {
    let new = made();
    assert_eq!(new["spec"]["replicas"], 0);
    assert_eq!(new.get("status"), None);
    assert_eq!(new["metadata"].as_object().unwrap().keys().collect::<Vec<_>>(), ["name", "namespace", "labels", "annotations"]);
    let annotations: Vec<&String> = new["metadata"]["annotations"].as_object().unwrap().keys().collect();
    assert_eq!(annotations, ["machine.openshift.io/vCPU", "capacity.cluster-autoscaler.kubernetes.io/labels", "mark"]);
}

#[test]
fn its_machines_are_its_own_and_say_where_they_are() {
    let new = made();
    assert_eq!(new["spec"]["selector"]["matchLabels"], json!({"cluster": "id", SET: "id-infra-0-fd-b"}));
    let labels = &new["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels[SET], "id-infra-0-fd-b");
    assert_eq!((&labels["machine.openshift.io/region"], &labels["machine.openshift.io/zone"]), (&json!("region-b"), &json!("zone-b")));
    let node = &new["spec"]["template"]["spec"]["metadata"]["labels"];
    assert_eq!(node["topology.kubernetes.io/zone"], "zone-b");
    assert_eq!(node.get("topology.kubernetes.io/region"), None, "what was not said is not said");
    let provider = &new["spec"]["template"]["spec"]["providerSpec"]["value"];
    assert_eq!((&provider["workspace"]["server"], &provider["template"]), (&json!("b"), &json!("/dc/vm/t")));
}

#[test]
fn a_set_that_knows_its_machines_by_another_label_gets_one_that_tells_them_apart() {
    let mut other = source();
    other["spec"]["selector"] = json!({"matchLabels": {"pool": "id-infra-0"}, "matchExpressions": [{"key": "pool", "operator": "In", "values": ["id-infra-0", "x"]}]});
    other["spec"]["template"]["metadata"]["labels"] = json!({"pool": "id-infra-0"});
    let new = carried_over(&other, "new", &domain(), "id", &[]);
    assert_eq!(new["spec"]["selector"]["matchLabels"], json!({"pool": "new", SET: "new"}));
    assert_eq!(new["spec"]["selector"]["matchExpressions"][0]["values"], json!(["new", "x"]));
    assert_eq!(new["spec"]["template"]["metadata"]["labels"], json!({"pool": "new", SET: "new"}));
}

#[test]
fn a_selector_that_says_where_selects_what_the_template_makes() {
    let mut placed = source();
    placed["spec"]["selector"]["matchLabels"]["machine.openshift.io/zone"] = json!("zone-a");
    let new = carried_over(&placed, "new", &domain(), "id", &[]);
    let (selector, labels) = (&new["spec"]["selector"]["matchLabels"], &new["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(selector["machine.openshift.io/zone"], "zone-b");
    assert!(selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value), "{selector} {labels}");
    assert_eq!(selector.get("machine.openshift.io/region"), None, "what was not said is not said");
}

#[test]
fn what_a_set_does_not_say_is_not_made_up() {
    let mut silent = source();
    silent["spec"]["template"]["spec"]["metadata"] = json!({});
    silent["metadata"] = json!({"name": "id-infra-0", "namespace": "openshift-machine-api"});
    let new = carried_over(&silent, "new", &domain(), "id", &[]);
    assert_eq!(new["spec"]["template"]["spec"]["metadata"], json!({}));
    assert_eq!((&new["metadata"]["labels"], &new["metadata"]["annotations"]), (&json!({}), &json!({})));
}
