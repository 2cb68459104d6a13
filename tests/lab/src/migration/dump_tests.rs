use super::*;

fn dump(kind: Kind, object: Value) -> Dump {
    let mut dump = Dump::default();
    dump.add(kind, &serde_json::from_value(object).unwrap());
    dump
}

#[test]
fn who_an_object_is_and_when_it_was_made_does_not_count() {
    let object = |uid: &str, at: &str| {
        json!({
            "apiVersion": "v1", "kind": "Infrastructure",
            "metadata": {"name": "cluster", "uid": uid, "resourceVersion": uid, "generation": 7, "creationTimestamp": at,
                "annotations": {"seen-at": at, "note": "kept"}},
            "spec": {"infra": {"metadata": {"name": "cluster", "resourceVersion": uid}, "spec": {"a": 1}}},
            "status": {"at": at},
        })
    };
    let (one, other) = (object("1", "2026-01-01T00:00:00Z"), object("2", "2026-02-02T00:00:00Z"));
    assert_eq!(dump(INFRASTRUCTURE, one).difference(&dump(INFRASTRUCTURE, other)), Vec::<String>::new());
}

#[test]
fn a_change_is_told_by_object_and_field() {
    let set = |replicas: u8, zone: &str| {
        json!({"apiVersion": "v1", "kind": "MachineSet", "metadata": {"name": "w", "namespace": "m"},
            "spec": {"replicas": replicas, "zones": ["a", zone]}})
    };
    let lines = dump(MACHINE_SET, set(3, "b")).difference(&dump(MACHINE_SET, set(2, "c")));
    assert_eq!(lines, ["MachineSet m/w: spec.replicas: 3 -> 2", "MachineSet m/w: spec.zones[1]: \"b\" -> \"c\""]);
}

#[test]
fn of_a_longer_or_shorter_list_only_the_difference_is_told() {
    let object =
        |list: Value| json!({"apiVersion": "v1", "kind": "Infrastructure", "metadata": {"name": "cluster"}, "spec": {"vcenters": list}});
    let (one, two) = (object(json!(["a"])), object(json!(["a", "b"])));
    let (one, two) = (dump(INFRASTRUCTURE, one), dump(INFRASTRUCTURE, two));
    assert_eq!(one.difference(&two), ["Infrastructure cluster: spec.vcenters: now also \"b\""]);
    assert_eq!(two.difference(&one), ["Infrastructure cluster: spec.vcenters: no longer \"b\""]);
    let twice = dump(INFRASTRUCTURE, object(json!(["a", "a"])));
    assert_eq!(one.difference(&twice).len(), 1);
}

#[test]
fn an_object_that_came_or_went_is_told() {
    let (with, without) = (dump(MACHINE, json!({"apiVersion": "v1", "kind": "Machine", "metadata": {"name": "m"}})), Dump::default());
    assert_eq!(with.difference(&without), ["Machine m: gone"]);
    assert_eq!(without.difference(&with), ["Machine m: new"]);
}

#[test]
fn a_secret_is_compared_but_never_told() {
    let secret = |password: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vsphere-creds", "namespace": "kube-system"},
            "data": {"a.password": password}})
    };
    let lines = dump(SECRET, secret("aHVudGVyMg==")).difference(&dump(SECRET, secret("c3dvcmRmaXNo")));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("Secret kube-system/vsphere-creds: data.a.password: "), "{lines:?}");
    assert!(!lines[0].contains("aHVudGVyMg") && !lines[0].contains("c3dvcmRmaXNo"), "{lines:?}");
}

#[test]
fn the_region_and_zone_of_a_machine_do_not_count_but_its_other_labels_do() {
    let machine = |zone: &str, role: &str| json!({"apiVersion": "v1", "kind": "Machine", "metadata": {"name": "m", "labels": {"machine.openshift.io/zone": zone, "role": role}}});
    assert_eq!(dump(MACHINE, machine("", "w")).difference(&dump(MACHINE, machine("zone-a", "w"))), Vec::<String>::new());
    assert_eq!(dump(MACHINE, machine("", "w")).difference(&dump(MACHINE, machine("", "x"))).len(), 1);
}

#[test]
fn what_is_empty_is_as_good_as_not_there() {
    let object = |spec: Value| json!({"apiVersion": "v1", "kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": spec});
    let (one, other) = (object(json!({"overrides": []})), object(json!({})));
    assert_eq!(dump(CLUSTER_VERSION, one).difference(&dump(CLUSTER_VERSION, other)), Vec::<String>::new());
}

#[test]
fn some_kinds_can_be_compared_alone() {
    let before = dump(MACHINE, json!({"apiVersion": "v1", "kind": "Machine", "metadata": {"name": "m"}}));
    assert_eq!(before.difference_of(&Dump::default(), |kind| kind == "Secret"), Vec::<String>::new());
    assert_eq!(before.difference_of(&Dump::default(), |kind| kind == "Machine"), ["Machine m: gone"]);
}
