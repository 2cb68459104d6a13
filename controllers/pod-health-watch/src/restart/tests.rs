use super::*;
use crate::workloads::WORKLOADS;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

fn pod(uid: &str, ready: bool) -> PodView {
    PodView { name: format!("pod-{uid}"), uid: uid.to_owned(), ready, ..PodView::default() }
}

fn leaving(uid: &str) -> PodView {
    PodView { leaves: true, ..pod(uid, false) }
}

/// The first two workloads that are replaced; the others are not installed.
fn views(ccm: &[PodView], machines: &[PodView]) -> Vec<View> {
    let view = |workload: &'static _, wanted, pods: &[PodView]| View { workload, wanted, short_since: None, pods: pods.to_vec() };
    let mut views = vec![view(&WORKLOADS[0], Some(2), ccm), view(&WORKLOADS[1], Some(1), machines)];
    views.extend(WORKLOADS[2..].iter().map(|workload| view(workload, None, &[])));
    views
}

fn round(uids: &[&str]) -> Round {
    Round { since: at(0), uids: uids.iter().map(|uid| (*uid).to_owned()).collect(), ailing: BTreeSet::new() }
}

#[test]
fn pods_are_written_down_deleted_one_by_one_awaited_and_done_when_all_are_new() {
    let old = views(&[pod("a", true), pod("b", true)], &[pod("c", true)]);
    assert_eq!(next(&old, None, at(0)), Next::Save(round(&["a", "b", "c"])));
    let list = round(&["a", "b", "c"]);
    let deletes = |views: &[View]| match next(views, Some(&list), at(1)) {
        Next::Delete { namespace, pod } => format!("{namespace}/{pod}"),
        other => format!("{other:?}"),
    };
    assert_eq!(deletes(&old), "openshift-cloud-controller-manager/pod-a");
    assert_eq!(
        deletes(&views(&[leaving("a"), pod("b", true), pod("d", true)], &[pod("c", true)])),
        "openshift-cloud-controller-manager/pod-b"
    );
    assert_eq!(deletes(&views(&[leaving("a"), leaving("b"), pod("d", true)], &[pod("c", true)])), "openshift-machine-api/pod-c");
    let waits = |views: &[View]| match next(views, Some(&list), at(1)) {
        Next::Wait { message, .. } => message,
        other => format!("{other:?}"),
    };
    let end = waits(&views(&[pod("d", true), leaving("b"), pod("e", true)], &[pod("f", true)]));
    assert_eq!(end, "waits for pod openshift-cloud-controller-manager/pod-b to end");
    let mut crashing = pod("e", false);
    crashing.waits = vec![("cloud-controller-manager".into(), "CrashLoopBackOff".into(), "back-off".into())];
    let ready = waits(&views(&[pod("d", true), crashing], &[pod("f", true)]));
    assert_eq!(
        ready,
        "waits for Deployment openshift-cloud-controller-manager/vsphere-cloud-controller-manager: 1 of 2 new pods are Ready; \
         container cloud-controller-manager of pod openshift-cloud-controller-manager/pod-e waits: CrashLoopBackOff"
    );
    assert!(waits(&views(&[pod("d", true)], &[pod("f", true)])).ends_with("the next one is not made yet"));
    let done = next(&views(&[pod("d", true), pod("e", true)], &[pod("f", true)]), Some(&list), at(2));
    let told = "new pods are Ready: cloud-controller-manager, machine-api; not installed: csi-driver-operator, problem-detector";
    assert_eq!(done, Next::Done(told.to_owned()));
}

#[test]
fn a_pod_that_was_replaced_by_others_meanwhile_is_not_deleted_again() {
    let list = round(&["a", "b", "c"]);
    let done = next(&views(&[pod("x", true), pod("y", true)], &[pod("z", true)]), Some(&list), at(1));
    assert!(matches!(done, Next::Done(_)), "{done:?}");
}

#[test]
fn a_workload_that_wants_pods_and_has_none_for_minutes_is_an_error_and_for_a_moment_is_awaited() {
    let mut views = views(&[], &[pod("d", true)]);
    let waits = |views: &[View], round: Option<&Round>, limit: Option<Timestamp>| match next(views, round, at(119)) {
        Next::Wait { message, until } => {
            assert!(message.contains("has no pod at the moment"), "{message}");
            assert_eq!(until, limit);
        }
        other => panic!("{other:?}"),
    };
    waits(&views, None, None);
    views[0].short_since = Some(at(0));
    waits(&views, Some(&round(&["c"])), Some(at(120)));
    for round in [None, Some(round(&["c"]))] {
        match next(&views, round.as_ref(), at(120)) {
            Next::Fail(failure) => {
                assert_eq!(failure.rule, "POD-001");
                assert!(failure.message.contains("vsphere-cloud-controller-manager wants pods and has none"), "{}", failure.message);
                assert!(failure.look[0].starts_with("oc -n openshift-cloud-controller-manager describe deployment "), "{:?}", failure.look);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn while_others_replace_the_pods_of_one_workload_those_of_the_next_are_replaced_too() {
    let mut views = views(&[], &[pod("c", true)]);
    views[0].short_since = Some(at(0));
    assert_eq!(next(&views, None, at(1)), Next::Save(Round { since: at(1), ..round(&["c"]) }));
    let deletes = next(&views, Some(&round(&["c"])), at(1));
    assert_eq!(deletes, Next::Delete { namespace: "openshift-machine-api", pod: "pod-c".to_owned() });
}

#[test]
fn a_workload_that_is_scaled_to_0_is_left_alone_and_told() {
    let mut views = views(&[], &[pod("c", true)]);
    views[0].wanted = Some(0);
    assert_eq!(next(&views, None, at(0)), Next::Save(round(&["c"])));
    views[1].pods = vec![pod("d", true)];
    match next(&views, Some(&round(&["c"])), at(1)) {
        Next::Done(told) => assert!(told.ends_with("; scaled to 0: cloud-controller-manager"), "{told}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_plan_names_what_is_installed_and_why_in_words_that_do_not_change_with_the_pods() {
    let plan = changes(&views(&[pod("a", true)], &[]));
    assert_eq!(plan.len(), 2);
    assert_eq!(
        plan[1],
        "delete the pods of Deployment openshift-machine-api/machine-api-controllers, since it remembers for 12 hours which tags it did not find"
    );
    assert_eq!(plan, changes(&views(&[pod("b", false), pod("c", true)], &[pod("d", true)])));
    assert!(plan.iter().all(|change| change.len() <= 160), "{plan:?}");
}

#[test]
fn what_ended_again_and_again_before_the_start_is_known_from_then_or_by_how_long_it_has_not_been_ready() {
    let crashing = |uid: &str, since| PodView {
        since: Some(at(since)),
        waits: vec![("csi-driver".into(), "CrashLoopBackOff".into(), "back-off".into())],
        restarts: 7,
        ..pod(uid, false)
    };
    let watched = WORKLOADS.iter().find(|workload| workload.restart.is_none()).unwrap();
    let pods = vec![
        crashing("long-since", 99),
        crashing("since-the-start", 100),
        crashing("seen-before", 150),
        PodView { waits: vec![], ..crashing("only-not-ready", 50) },
    ];
    let mut views = views(&[crashing("replaced", 50)], &[]);
    views.push(View { workload: watched, wanted: Some(4), short_since: None, pods });
    let before: BTreeSet<String> = ["seen-before", "gone", "replaced"].map(str::to_owned).into();
    assert_eq!(ailing(&views, &before, Some(at(100))), ["long-since", "seen-before"].map(str::to_owned).into());
    assert_eq!(ailing(&views, &before, None), ["seen-before"].map(str::to_owned).into());
}

#[test]
fn a_list_of_pods_that_was_written_by_an_older_process_can_be_read() {
    let written = serde_json::json!({"since": at(0), "uids": ["a"]});
    assert_eq!(serde_json::from_value::<Round>(written).unwrap(), round(&["a"]));
}
