use super::*;
use crate::workloads::WORKLOADS;

#[test]
fn the_touches_cover_every_workload_and_delete_only_where_pods_are_replaced() {
    let touches = |kind, namespace: &str| PodHealthWatch::TOUCHES.iter().find(|touch| touch.kind == kind && touch.namespace == namespace);
    for workload in WORKLOADS {
        assert!(touches(workload.kind, workload.namespace).is_some(), "{workload}");
        let pods = touches(POD, workload.namespace).unwrap();
        assert!(pods.writes.contains(&"log"), "{workload}");
        let replaced = WORKLOADS.iter().any(|other| other.namespace == workload.namespace && other.restart.is_some());
        assert_eq!(pods.writes.contains(&"delete"), replaced, "{workload}");
        assert!(workload.leases.is_empty() || touches(LEASE, workload.namespace).is_some(), "{workload}");
    }
}

#[test]
fn logs_are_read_whole_where_pods_are_new_and_since_the_restart_elsewhere_and_while_a_container_waits_to_begin_again() {
    let since: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
    let round = Round { since, uids: ["old".to_owned()].into(), ailing: ["ailing".to_owned()].into() };
    let pod = |uid: &str, containers: &[&str]| view::PodView {
        uid: uid.into(),
        name: uid.into(),
        has_run: true,
        containers: containers.iter().map(|name| (*name).to_owned()).collect(),
        ..view::PodView::default()
    };
    let manager = |uid| pod(uid, &["cloud-controller-manager"]);
    let operator = |uid| pod(uid, &["kube-rbac-proxy", "config-sync-controllers"]);
    let waits = vec![("config-sync-controllers".to_owned(), "CrashLoopBackOff".to_owned(), String::new())];
    let view = |place: usize, pods| View { workload: &WORKLOADS[place], wanted: Some(1), short_since: None, pods };
    let views = [
        view(0, vec![manager("new"), view::PodView { has_run: false, ..manager("not-started") }]),
        view(4, vec![view::PodView { restarts: 1, waits, ..operator("crashed") }, operator("ailing")]),
    ];
    let wanted = wanted(&views, &round, &[]);
    let told: Vec<(&str, &str, Option<Timestamp>, bool)> =
        wanted.iter().map(|log| (log.source.uid.as_str(), log.source.container, log.since, log.crashed)).collect();
    assert_eq!(
        told,
        [("new", "cloud-controller-manager", None, false), ("crashed", "config-sync-controllers", Some(since), true)],
        "those that the pod has, of those that are read"
    );
}

#[test]
fn what_runs_on_every_node_is_read_but_not_on_nodes_that_are_not_vspheres_or_do_not_answer() {
    let place = WORKLOADS.iter().position(|workload| workload.kind == DAEMON_SET).unwrap();
    let pod = |node: &str| view::PodView {
        uid: node.into(),
        node: node.into(),
        has_run: true,
        containers: vec!["csi-driver".into(), "csi-node-driver-registrar".into()],
        ..view::PodView::default()
    };
    let pods = ["worker-0", "bare-metal-0", "worker-1"].map(pod).into();
    let views = [View { workload: &WORKLOADS[place], wanted: Some(3), short_since: None, pods }];
    let round = Round { since: Timestamp::UNIX_EPOCH, uids: BTreeSet::new(), ailing: BTreeSet::new() };
    let read = wanted(&views, &round, &["bare-metal-0".to_owned()]);
    let read: Vec<(&str, &str)> = read.iter().map(|log| (log.source.uid.as_str(), log.source.container)).collect();
    assert_eq!(read, [("worker-0", "csi-driver"), ("worker-1", "csi-driver")]);
}
