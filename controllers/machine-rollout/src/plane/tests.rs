//! What is done next with the control plane machine set, and when it has rolled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::sync::Arc;

use super::*;

type Edit<'a> = &'a dyn Fn(&mut DynamicObject);

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn spec(domain: &str, state: &str, strategy: &str) -> Value {
    let template =
        json!({"machines_v1beta1_machine_openshift_io": {"failureDomains": {"platform": "VSphere", "vsphere": [{"name": domain}]}}});
    json!({"state": state, "replicas": 3, "strategy": {"type": strategy}, "template": template})
}

fn set(domain: &str, state: &str, strategy: &str) -> DynamicObject {
    let told = |kind: &str, status: &str| json!({"type": kind, "status": status, "observedGeneration": 5, "message": "because"});
    let status = json!({"observedGeneration": 5, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
        "conditions": [told("Available", "True"), told("Progressing", "False"), told("Degraded", "False")]});
    object(json!({"metadata": {"name": "cluster", "generation": 5}, "spec": spec(domain, state, strategy), "status": status}))
}

fn masters(servers: [&str; 3]) -> Vec<Object> {
    let master = |server: &str| {
        object(json!({"metadata": {"name": format!("m-{server}")}, "status": {"phase": "Running"},
        "spec": {"providerSpec": {"value": {"workspace": {"server": server}}}}}))
    };
    servers.iter().map(|server| Arc::new(master(server))).collect()
}

fn goal(end: Option<&str>) -> Goal {
    let end = end.map(|strategy| json!({"type": strategy}));
    Goal { spec: spec("fd-b", "Inactive", "OnDelete"), servers: vec!["b".to_owned()], end, ..Goal::default() }
}

fn etcd(progressing: &str) -> DynamicObject {
    let told = |kind: &str, status: &str| json!({"type": kind, "status": status});
    object(
        json!({"metadata": {"name": "etcd"}, "status": {"conditions": [told("Available", "True"), told("Progressing", progressing), told("Degraded", "False")]}}),
    )
}

#[test]
fn one_write_sends_it_and_it_is_braked_and_released_and_put_back() {
    let (here, between, there) = (masters(["a", "a", "a"]), masters(["b", "a", "a"]), masters(["b", "b", "b"]));
    let active = |domain: &str, strategy: &str| set(domain, "Active", strategy);
    for (set, masters, end, complete, want, why) in [
        (
            Some(set("fd-a", "Inactive", "RollingUpdate")),
            &here,
            Some("RollingUpdate"),
            false,
            Next::Update,
            "the inactive one is told where to",
        ),
        (Some(active("fd-a", "OnDelete")), &here, Some("OnDelete"), true, Next::Update, "so is one that was made for it"),
        (None, &here, None, false, Next::Create, "there has to be one"),
        (None, &between, None, false, Next::Create, "also half way"),
        (Some(active("fd-b", "RollingUpdate")), &between, Some("RollingUpdate"), false, Next::Wait, "it rolls"),
        (Some(active("fd-b", "OnDelete")), &between, Some("RollingUpdate"), false, Next::Update, "the brake is released"),
        (Some(active("fd-b", "OnDelete")), &between, Some("OnDelete"), false, Next::Update, "also where OnDelete is its own"),
        (Some(active("fd-b", "RollingUpdate")), &there, Some("RollingUpdate"), true, Next::Done, "nothing to put back"),
        (Some(active("fd-b", "RollingUpdate")), &there, Some("OnDelete"), true, Next::PutBack, "its own strategy comes back"),
        (Some(active("fd-b", "OnDelete")), &there, Some("OnDelete"), false, Next::Wait, "until its operator has seen so"),
        (Some(active("fd-b", "OnDelete")), &there, Some("OnDelete"), true, Next::Done, "and it has"),
        (Some(active("fd-b", "RollingUpdate")), &there, None, true, Next::Delete, "one that was not at work goes"),
        (Some(set("fd-b", "Inactive", "RollingUpdate")), &there, None, false, Next::Done, "and its operator makes an inactive one"),
        (None, &there, None, false, Next::Done, "or none"),
        (None, &there, Some("RollingUpdate"), false, Next::Create, "one that was at work is missed"),
    ] {
        assert_eq!(next(set.as_ref(), masters, &goal(end), complete), want, "{why}");
    }
    let mut going = active("fd-b", "RollingUpdate");
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(next(Some(&going), &there, &goal(None), true), Next::Wait);
}

#[test]
fn it_has_rolled_only_when_everybody_says_so() {
    let there = masters(["b", "b", "b"]);
    let rolled = |edit: Edit<'_>, masters: &[Object], etcd: Option<&DynamicObject>| {
        let mut set = set("fd-b", "Active", "RollingUpdate");
        edit(&mut set);
        complete(&set, masters, &goal(None), etcd)
    };
    assert_eq!(rolled(&|_| {}, &there, Some(&etcd("False"))), Ok(()));
    let edits: [(Edit<'_>, &str); 6] = [
        (&|set| set.metadata.generation = Some(6), "has not seen the change"),
        (&|set| set.data["status"]["conditions"][1]["status"] = json!("True"), "Progressing is True: because"),
        (&|set| set.data["status"]["conditions"][2]["observedGeneration"] = json!(4), "Degraded"),
        (&|set| set.data["status"]["updatedReplicas"] = json!(2), "updatedReplicas 2, not 3"),
        (&|set| set.data["status"]["replicas"] = json!(4), "replicas 4, not 3"),
        (&|set| set.data["status"]["unavailableReplicas"] = json!(1), "available"),
    ];
    for (edit, why) in edits {
        let missing = rolled(edit, &there, Some(&etcd("False"))).unwrap_err();
        assert!(missing.contains(why), "{why}: {missing}");
    }
    assert!(rolled(&|_| {}, &masters(["b", "b", "a"]), Some(&etcd("False"))).unwrap_err().contains("m-a is Running on a"));
    assert!(rolled(&|_| {}, &there, Some(&etcd("True"))).unwrap_err().contains("etcd says Progressing is True"));
    assert!(rolled(&|_| {}, &there, None).unwrap_err().contains("no ClusterOperator etcd"));
}

#[test]
fn a_member_of_etcd_that_is_not_well_is_told_by_its_operator() {
    let told = |status: &str| -> DynamicObject {
        let conditions = json!([{"type": "Degraded", "status": status, "message": "2 of 3 members are available, m-1 is unhealthy"}]);
        serde_json::from_value(json!({"metadata": {"name": "etcd"}, "status": {"conditions": conditions}})).unwrap()
    };
    assert!(sick_member(Some(&told("True"))).unwrap().contains("m-1 is unhealthy"));
    assert_eq!(sick_member(Some(&told("False"))), None);
    assert_eq!(sick_member(None), None);
}

#[test]
fn only_one_that_was_at_work_stays() {
    let saved = |state: &str| Saved::of(&set("fd-a", state, "OnDelete"));
    assert_eq!((saved("Active").end(), saved("Inactive").end()), (Some(json!({"type": "OnDelete"})), None));
    let goal = goal(None);
    let rolls = goal.spec("RollingUpdate");
    assert_eq!(
        (&rolls["state"], &rolls["strategy"]["type"], domains(&rolls)),
        (&json!("Active"), &json!("RollingUpdate"), vec!["fd-b".to_owned()])
    );
}

#[test]
fn what_its_owner_wrote_on_a_set_that_stays_comes_back_beside_what_is_there_now() {
    let saved = |state: &str| -> Saved {
        let labels = json!({"team": "shop", "tier": "one"});
        serde_json::from_value(json!({"uid": "u", "spec": spec("fd-a", state, "OnDelete"), "labels": labels, "annotations": {"note": "n"}}))
            .unwrap()
    };
    let mut made = set("fd-a", "Inactive", "RollingUpdate");
    made.metadata.labels = Some([("tier".to_owned(), "two".to_owned())].into());
    let operations = saved("Active").goal().missing(&made);
    assert_eq!(
        json!(operations),
        json!([
            {"op": "test", "path": "/metadata/labels", "value": {"tier": "two"}},
            {"op": "add", "path": "/metadata/labels", "value": {"team": "shop", "tier": "two"}},
            {"op": "add", "path": "/metadata/annotations", "value": {"note": "n"}},
        ])
    );
    assert!(saved("Inactive").goal().missing(&made).is_empty(), "that one goes in the end");
    assert!(Saved::of(&made).goal().missing(&made).is_empty());
    let older: Saved = serde_json::from_value(json!({"spec": spec("fd-a", "Active", "OnDelete")})).unwrap();
    assert!(older.goal().missing(&made).is_empty());
}
