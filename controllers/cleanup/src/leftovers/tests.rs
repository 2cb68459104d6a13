//! What the list says.

use serde_json::json;

use super::*;

fn domain(more: &Value) -> Value {
    let mut domain = json!({"name": "fd-a", "server": "a", "region": "r", "zone": "z",
        "topology": {"datacenter": "dc", "computeCluster": "/dc/host/c", "template": "/dc/vm/rhcos", "datastore": "/dc/datastore/fast one"}});
    for (key, value) in more.as_object().cloned().unwrap_or_default() {
        domain[key] = value;
    }
    domain
}

fn listed(domains: &[Value], volumes: &[Volume], categories_named: bool) -> String {
    let vcenters = [json!({"server": "a"})];
    text(&About { vmi: ("ns", "m"), infra_id: "prod-x", vcenters: &vcenters, domains, categories_named, volumes })
}

fn has(told: &str, commands: &[&str]) {
    let lines: Vec<&str> = told.lines().collect();
    commands.iter().for_each(|command| assert!(lines.contains(command), "{command:?} is not in:\n{told}"));
}

fn volume(name: &str, spec: &Value) -> Option<Volume> {
    let object = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    Volume::left(&object, &[("region-b", "zone-b")])
}

#[test]
fn everything_left_comes_with_the_command_that_removes_it() {
    let told = listed(&[domain(&json!({}))], &[], true);
    has(
        &told,
        &[
            "govc vm.destroy /dc/vm/rhcos",
            "govc object.destroy /dc/vm/prod-x",
            "govc storage.policy.rm openshift-storage-policy-prod-x",
            "govc tags.category.rm -f openshift-prod-x",
            "govc tags.detach -c openshift-region r /dc",
            "govc tags.detach -c openshift-zone z /dc/host/c",
            "oc -n ns delete secret vmi-m-metadata",
            "oc -n ns delete secret vmi-m-saved",
            "oc patch clustercsidriver csi.vsphere.vmware.com --type json -p \
             '[{\"op\": \"remove\", \"path\": \"/spec/driverConfig/vSphere/topologyCategories\"}]'",
        ],
    );
    assert!(!told.contains("govc volume.rm"), "{told}");
    assert!(!listed(&[domain(&json!({}))], &[], false).contains("clustercsidriver"));
}

#[test]
fn what_several_failure_domains_share_is_listed_once() {
    let other = domain(&json!({"name": "fd-a2", "zone": "z2",
        "topology": {"datacenter": "dc", "computeCluster": "/dc/host/c2", "template": "/dc/vm/rhcos"}}));
    let told = listed(&[domain(&json!({})), other], &[], false);
    for once in ["govc vm.destroy", "govc object.destroy", "openshift-region"] {
        assert_eq!(told.matches(once).count(), 1, "{once}: {told}");
    }
    has(&told, &["govc tags.detach -c openshift-zone z /dc/host/c", "govc tags.detach -c openshift-zone z2 /dc/host/c2"]);
}

#[test]
fn a_tag_is_taken_off_what_its_affinity_put_it_on() {
    let group = json!({"type": "HostGroup", "hostGroup": {"vmGroup": "vms", "hostGroup": "rack 7", "vmHostRule": "rule"}});
    let told = listed(&[domain(&json!({"regionAffinity": {"type": "ComputeCluster"}, "zoneAffinity": group}))], &[], false);
    has(
        &told,
        &[
            "govc tags.detach -c openshift-region r /dc/host/c",
            "govc cluster.group.ls -cluster /dc/host/c -name 'rack 7' | while read -r host; do \
             govc tags.detach -c openshift-zone z /dc/host/c/\"$host\"; done",
        ],
    );
}

#[test]
fn of_a_source_that_its_machines_told_the_template_is_looked_for_by_its_name() {
    let topology = json!({"datacenter": "dc", "computeCluster": "/dc/host/c", "template": "/dc/vm/guessed/rhcos"});
    let told = listed(&[domain(&json!({"name": source_domain::NAME, "topology": topology}))], &[], false);
    has(&told, &["govc find /dc/vm -type m -name rhcos"]);
    assert!(!told.contains("guessed/rhcos"), "{told}");
}

#[test]
fn names_with_blanks_and_quotes_survive_pasting() {
    let topology = json!({"datacenter": "DC 1", "computeCluster": "/DC 1/host/Bob's", "template": ""});
    let told = listed(&[domain(&json!({"region": "r 1", "topology": topology}))], &[], false);
    has(
        &told,
        &[
            "govc find '/DC 1/vm' -type m -name 'prod-x-rhcos-*'",
            "govc object.destroy '/DC 1/vm/prod-x'",
            "govc tags.detach -c openshift-region 'r 1' '/DC 1'",
            r"govc tags.detach -c openshift-zone z '/DC 1/host/Bob'\''s'",
        ],
    );
}

#[test]
fn claims_that_were_left_are_listed_with_their_data_and_those_on_the_target_are_not() {
    let claim = json!({"namespace": "shop", "name": "orders"});
    let csi = json!({"driver": "csi.vsphere.vmware.com", "volumeHandle": "0e1f"});
    let old = volume("pv-1", &json!({"claimRef": claim, "csi": csi, "persistentVolumeReclaimPolicy": "Delete"})).unwrap();
    let in_tree = volume("pv-2", &json!({"vsphereVolume": {"volumePath": "[fast one] kubevols/x.vmdk"}})).unwrap();
    let elsewhere = volume("pv-5", &json!({"vsphereVolume": {"volumePath": "[unknown] kubevols/x.vmdk"}})).unwrap();
    let told = listed(&[domain(&json!({}))], &[old, in_tree, elsewhere], false);
    has(
        &told,
        &[
            "govc volume.rm 0e1f",
            "govc datastore.rm -dc /dc -ds 'fast one' kubevols/x.vmdk",
            "govc datastore.rm -ds unknown kubevols/x.vmdk",
            "# claim shop/orders, whose data are on the source: once they are moved, or not wanted any more",
            "oc patch pv pv-1 -p '{\"spec\": {\"persistentVolumeReclaimPolicy\": \"Retain\"}}'",
            "oc -n shop delete --ignore-not-found pvc orders",
            "oc delete pv pv-1",
            "oc delete pv pv-2",
        ],
    );
    assert!(!told.contains("patch pv pv-2"), "{told}");
    let here =
        |key: &str, value: &str| json!({"key": format!("topology.csi.vmware.com/openshift-{key}"), "operator": "In", "values": [value]});
    let on_the_target =
        json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [here("region", "region-b"), here("zone", "zone-b")]}]}});
    assert!(volume("pv-3", &json!({"csi": csi, "nodeAffinity": on_the_target})).is_none());
    assert!(volume("pv-4", &json!({"csi": {"driver": "nfs.csi.k8s.io"}})).is_none());
}
