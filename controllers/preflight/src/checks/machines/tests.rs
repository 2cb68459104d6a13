//! What each check on machines and volumes lets pass.

use super::*;
use crate::checks::sample::{self, says};

fn machine(name: &str, region: &str, zone: &str) -> Object {
    sample::object(&json!({"metadata": {"name": name, "labels": {REGION: region, ZONE: zone}}, "spec": {}}))
}

#[test]
fn labels_that_fit_no_failure_domain_are_told_and_empty_ones_pass() {
    let facts = sample::changed(|cluster| cluster.machines = vec![machine("m-1", "", ""), machine("m-2", "region-a", "zone-a")]);
    assert!(matches!(labels(&facts), Finding::Passed(_)));
    let facts = sample::changed(|cluster| cluster.machines = (0..7).map(|n| machine(&format!("m-{n}"), "x", "y")).collect());
    says(&labels(&facts), &["Machine m-0: its labels say region x, zone y", "and 2 more"]);
    let template = json!({"metadata": {"labels": {REGION: "x", ZONE: "y"}}});
    let set = sample::object(&json!({"metadata": {"name": "w"}, "spec": {"template": template}}));
    says(&labels(&sample::changed(|cluster| cluster.machine_sets = vec![set])), &["MachineSet w: its template says region x"]);
}

#[test]
fn machines_of_the_cluster_api_are_refused() {
    for (field, value, refused) in [("spec", "ClusterAPI", true), ("status", "Migrating", true), ("spec", "MachineAPI", false)] {
        let set = sample::object(&json!({"metadata": {"name": "w"}, field: {"authoritativeAPI": value}}));
        let found = authority(&sample::changed(|cluster| cluster.machine_sets = vec![set]));
        assert_eq!(matches!(found, Finding::Wrong(_)), refused, "{field} {value}: {found:?}");
    }
}

#[test]
fn a_master_that_is_in_no_failure_domain_is_refused_with_what_differs() {
    let master = |pool: &str, datastore: &str| {
        let workspace =
            json!({"server": sample::SOURCE, "datacenter": "dc-a", "datastore": datastore, "resourcePool": pool, "folder": "/dc-a/vm/x"});
        let value = json!({"workspace": workspace, "template": "t", "network": {"devices": [{"networkName": "n"}]}});
        sample::object(&json!({"metadata": {"name": "m-0", "labels": {ROLE: "master"}}, "spec": {"providerSpec": {"value": value}}}))
    };
    let (pool, datastore) = ("/dc-a/host/cluster-a/Resources", "/dc-a/datastore/datastore-a");
    let judged = |domains: bool, pool: &str, datastore: &str| {
        masters(&sample::changed(|cluster| {
            cluster.machines = vec![master(pool, datastore)];
            if !domains {
                let bare = json!({"metadata": {"name": "cluster"}, "spec": {"platformSpec": {"type": "VSphere"}}});
                cluster.infrastructure = Some(sample::object(&bare));
            }
        }))
    };
    assert!(matches!(judged(true, pool, datastore), Finding::Passed(_)));
    assert!(matches!(judged(false, pool, datastore), Finding::Passed(_)), "one can be told from it");
    says(
        &judged(true, "", datastore),
        &["Machine m-0: it is in no failure domain of the source; nearest is fd-a: resourcePool is \"\", the domain says"],
    );
    says(&judged(true, pool, "datastore-a"), &["datastore is \"datastore-a\", the domain says \"/dc-a/datastore/datastore-a\""]);
    says(&judged(false, pool, "datastore-a"), &["nearest is migration-source: datastore is \"datastore-a\""]);
    says(&judged(false, "", datastore), &["no failure domain can be told from it", "resourcePool is empty", "in Infrastructure by hand"]);
    says(&judged(true, pool.trim_start_matches('/'), datastore), &["resourcePool is \"dc-a/host/cluster-a/Resources\""]);
}

#[test]
fn a_failure_domain_of_the_target_is_no_place_for_a_master_that_is_to_move() {
    let mut facts = sample::good();
    let mut domain = facts.listed_domains()[0].clone();
    domain["server"] = json!(sample::TARGET);
    let workspace = json!({"server": sample::TARGET, "datacenter": "dc-a", "datastore": domain["topology"]["datastore"],
        "resourcePool": domain["topology"]["resourcePool"]});
    let value = json!({"workspace": workspace});
    let master = json!({"metadata": {"name": "m-0", "labels": {ROLE: "master"}}, "spec": {"providerSpec": {"value": value}}});
    facts.cluster.machines = vec![sample::object(&master)];
    let vcenter = json!({"server": sample::TARGET, "datacenters": ["dc-a"]});
    sample::extend_infrastructure(&mut facts, &vcenter, &domain);
    says(&masters(&facts), &["Machine m-0: it is in no failure domain of the source; nearest is fd-a: server is \"b.example.com\""]);
    sample::set(&mut facts.cluster.infrastructure, "/spec/platformSpec/vsphere/failureDomains", json!([domain]));
    says(&masters(&facts), &["Machine m-0: it is on \"b.example.com\", and no failure domain is on a.example.com"]);
}

#[test]
fn a_csi_driver_that_runs_beside_vsphere_is_told_with_the_nodes() {
    let node = |name: &str, spec: Value| sample::object(&json!({"metadata": {"name": name}, "spec": spec}));
    let nodes = || vec![node("vm-1", json!({"providerID": "vsphere://1"})), node("host-1", json!({}))];
    let driver = |pods: Value| sample::object(&json!({"metadata": {"name": "driver"}, "spec": {"template": {"spec": pods}}}));
    let judged = |nodes: Vec<Object>, pods: Option<Value>| {
        strangers(&sample::changed(|cluster| {
            cluster.nodes = nodes;
            cluster.csi_nodes = pods.map(driver);
        }))
    };
    let terms = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
    let said = |key: &str, operator: &str| json!({"matchExpressions": [{"key": key, "operator": operator}]});
    let by = |key: &str| said(key, "Exists");
    says(&judged(nodes(), Some(json!({}))), &["DaemonSet driver: it also runs on host-1"]);
    says(&judged(nodes(), Some(terms(json!([by(TELL_VSPHERE[0]), by("other")])))), &["it also runs on host-1"]);
    // Both let in a node without the label.
    for operator in ["DoesNotExist", "NotIn"] {
        says(&judged(nodes(), Some(terms(json!([said(TELL_VSPHERE[0], operator)])))), &["it also runs on host-1"]);
    }
    for good in [
        judged(nodes(), Some(terms(json!([by(TELL_VSPHERE[0])])))),
        judged(nodes(), Some(terms(json!([said(TELL_VSPHERE[1], "In")])))),
        judged(nodes(), Some(json!({"nodeSelector": {TELL_VSPHERE[1]: "vsphere"}}))),
        judged(nodes(), None),
        judged(vec![node("vm-1", json!({"providerID": "vsphere://1"}))], Some(json!({}))),
    ] {
        assert!(matches!(good, Finding::Passed(_)), "{good:?}");
    }
}

#[test]
fn volumes_block_only_where_the_source_leaves_and_nobody_said_ignore() {
    let mut facts = sample::with_volumes(&["shop/data"]);
    assert!(matches!(volumes(&facts), Finding::Passed(text) if text.contains("shop/data")));
    facts.spec.source_retirement = SourceRetirement::Remove;
    says(&volumes(&facts), &["spec.volumes: Refuse, and 1 volumes live on the source: shop/data"]);
    facts.spec.volumes = Volumes::Ignore;
    assert!(matches!(volumes(&facts), Finding::Noted(_)));
}

#[test]
fn a_set_with_an_autoscaler_is_not_spread_over_several_failure_domains() {
    let judged = |domains: &[&str], owner: &str, retirement: SourceRetirement| {
        let annotations = json!({AUTOSCALER: owner});
        let set = sample::object(&json!({"metadata": {"name": "w", "annotations": annotations}, "spec": {}}));
        let mut facts = sample::changed(|cluster| cluster.machine_sets = vec![set]);
        facts.spec.machine_sets = vec![serde_json::from_value(json!({"name": "w", "failureDomains": domains})).unwrap()];
        facts.spec.source_retirement = retirement;
        split(&facts)
    };
    let scaler = "openshift-machine-api/workers";
    says(
        &judged(&["fd-b", "fd-c"], scaler, SourceRetirement::Remove),
        &["spec.machineSets[w].failureDomains: it is to be spread over fd-b, fd-c, and MachineAutoscaler openshift-machine-api/workers"],
    );
    for good in [
        judged(&["fd-b"], scaler, SourceRetirement::Remove),
        judged(&["fd-b", "fd-c"], "", SourceRetirement::Remove),
        judged(&["fd-b", "fd-c"], scaler, SourceRetirement::Keep),
    ] {
        assert!(matches!(good, Finding::Passed(_)), "{good:?}");
    }
}
