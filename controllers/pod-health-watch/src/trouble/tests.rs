use std::sync::LazyLock;

use super::*;
use crate::ledger::Source;
use crate::workloads::WORKLOADS;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

fn run(rule: &str, first: i64, last: i64, weight: Weight) -> Run {
    let source = Source {
        uid: "1".to_owned(),
        container: "cloud-controller-manager",
        component: "cloud-controller-manager",
        namespace: "openshift-cloud-controller-manager",
        pod: "ccm-1".to_owned(),
    };
    Run { rule: rule.to_owned(), source, first: at(first), last: at(last), count: 9, line: "the line".to_owned(), weight }
}

fn with_pod(pod: PodView) -> View {
    View { workload: &WORKLOADS[0], wanted: Some(2), short_since: None, pods: vec![pod] }
}

fn waiting(reason: &str, restarts: u64) -> PodView {
    let waits = vec![("cloud-controller-manager".to_owned(), reason.to_owned(), "why".to_owned())];
    PodView { name: "ccm-1".into(), uid: "1".into(), since: Some(at(0)), waits, restarts, ..PodView::default() }
}

fn found(runs: &[Run], views: &[View], worse: &[Worse], accept: &[&str], now: i64) -> (Vec<Failure>, Wake) {
    let accept: Vec<String> = accept.iter().map(|id| (*id).to_owned()).collect();
    troubles(&facts(runs, views, worse, &accept, now))
}

fn facts<'a>(runs: &[Run], views: &'a [View], worse: &'a [Worse], accept: &'a [String], now: i64) -> Facts<'a> {
    static BARE_METAL: LazyLock<[String; 1]> = LazyLock::new(|| ["host-1".to_owned()]);
    static AILING: LazyLock<BTreeSet<String>> = LazyLock::new(|| ["ailing".to_owned()].into());
    Facts {
        runs: runs.to_vec(),
        catalogue: Catalogue::built_in(),
        views,
        not_vspheres: &*BARE_METAL,
        ailing: &AILING,
        worse,
        update: None,
        accept,
        restarted: at(0),
        now: at(now),
    }
}

fn judge(runs: &[Run], views: &[View], worse: &[Worse], accept: &[&str], now: i64) -> (Vec<String>, Wake) {
    let (found, wake) = found(runs, views, worse, accept, now);
    (found.into_iter().map(|failure| failure.rule).collect(), wake)
}

#[test]
fn a_fatal_run_holds_until_its_clear_time_after_the_last_line_unless_it_is_accepted() {
    let runs = [run("CCM-001", 0, 30, Weight::Holds), run("NET-002", 0, 30, Weight::Breaks)];
    assert_eq!(judge(&runs, &[], &[], &[], 31), (vec!["CCM-001".to_owned()], Some(at(630))));
    assert_eq!(judge(&runs, &[], &[], &[], 630), (vec![], None));
    assert!(judge(&runs, &[], &[], &["CCM-001"], 31).0.is_empty());
}

#[test]
fn the_oldest_trouble_comes_first() {
    let runs = [run("CCM-001", 20, 30, Weight::Holds), run("CCM-003", 10, 30, Weight::Holds)];
    assert_eq!(judge(&runs, &[], &[], &[], 31).0, ["CCM-003", "CCM-001"]);
}

#[test]
fn a_pod_that_does_not_run_holds_once_that_has_lasted() {
    for (pod, now, expected, wake) in [
        (waiting("CrashLoopBackOff", 3), 0, vec!["POD-002"], None),
        // The clock of its node is ahead of ours.
        (waiting("CrashLoopBackOff", 3), -1, vec!["POD-002"], None),
        // Once may be by design.
        (waiting("CrashLoopBackOff", 1), 0, vec![], Some(300)),
        (waiting("ImagePullBackOff", 0), 59, vec![], Some(60)),
        (waiting("ErrImagePull", 0), 60, vec!["POD-003"], None),
        (waiting("ContainerCreating", 0), 299, vec![], Some(300)),
        (waiting("ContainerCreating", 0), 300, vec!["POD-004"], None),
        (PodView { ready: true, waits: vec![], ..waiting("", 9) }, 900, vec![], None),
        (PodView { leaves: true, ..waiting("CrashLoopBackOff", 9) }, 900, vec![], None),
    ] {
        let told = format!("{pod:?} at {now}");
        let (found, when) = judge(&[], &[with_pod(pod)], &[], &[], now);
        assert_eq!((found, when), (expected.into_iter().map(str::to_owned).collect(), wake.map(at)), "{told}");
    }
}

#[test]
fn a_container_that_ends_again_and_again_holds_also_while_it_runs_and_is_let_go_once_it_has_run_for_two_minutes() {
    let runs = |ready| PodView { ready, waits: vec![], looped: Some(("cloud-controller-manager".into(), at(0))), ..waiting("", 3) };
    for ready in [true, false] {
        assert_eq!(judge(&[], &[with_pod(runs(ready))], &[], &[], 30), (vec!["POD-002".to_owned()], Some(at(120))));
    }
    assert_eq!(judge(&[], &[with_pod(runs(true))], &[], &[], 120), (vec![], None));
    assert!(judge(&[], &[with_pod(runs(true))], &[], &["POD-002"], 30).0.is_empty());
    assert_eq!(judge(&[], &[with_pod(PodView { leaves: true, ..runs(true) })], &[], &[], 30), (vec![], None), "it was deleted");
    let waits = PodView { looped: runs(true).looped, ..waiting("CrashLoopBackOff", 3) };
    let told = |pod: &PodView| found(&[], &[with_pod(pod.clone())], &[], &[], 30).0;
    assert_eq!(told(&waits), told(&runs(true)), "whether it waits or runs, it is told in the same words");
}

#[test]
fn the_last_crash_is_that_of_a_pod_whose_state_tells_of_the_migration() {
    let crashed =
        |uid: &str, when| PodView { uid: uid.into(), looped: Some(("cloud-controller-manager".into(), at(when))), ..waiting("", 3) };
    let views = [with_pod(crashed("1", 10)), with_pod(crashed("2", 20)), with_pod(crashed("ailing", 30)), with_pod(waiting("", 0))];
    let (when, failure) = last_crash(&facts(&[], &views, &[], &[], 900)).unwrap();
    assert_eq!((when, failure.rule.as_str()), (at(20), "POD-002"));
    assert!(last_crash(&facts(&[], &views[2..], &[], &[], 900)).is_none());
}

#[test]
fn an_update_that_is_under_way_holds() {
    let update = Some("an update to 4.21.3 has begun".to_owned());
    let judged = |accept: &[String]| troubles(&Facts { update: update.clone(), ..facts(&[], &[], &[], accept, 0) });
    let (found, wake) = judged(&[]);
    assert_eq!((found[0].rule.as_str(), found.len(), wake), ("UPG-001", 1, None));
    assert!(found[0].message.starts_with("an update to 4.21.3 has begun while the migration runs"), "{}", found[0].message);
    assert_eq!(found[0].look, ["oc get clusterversion version -o yaml", "oc adm upgrade"]);
    assert!(judged(&["UPG-001".to_owned()]).0.is_empty());
}

#[test]
fn where_a_container_waits_for_its_first_start_events_are_shown_and_not_a_log_that_is_refused() {
    let shown = |pod: PodView| found(&[], &[with_pod(pod)], &[], &[], 300).0.remove(0).look;
    let namespace = "openshift-cloud-controller-manager";
    let events = format!("oc -n {namespace} get events --field-selector involvedObject.name=ccm-1");
    for pod in [waiting("ErrImagePull", 0), waiting("ContainerCreating", 0), PodView { waits: vec![], ..waiting("", 0) }] {
        assert_eq!(shown(pod), [format!("oc -n {namespace} describe pod ccm-1"), events.clone()]);
    }
    let log = format!("oc -n {namespace} logs ccm-1 -c cloud-controller-manager");
    assert_eq!(shown(PodView { has_run: true, waits: vec![], ..waiting("", 0) })[1], log);
}

#[test]
fn a_pod_that_one_host_of_bare_metal_or_the_time_before_the_start_explains_holds_nothing() {
    let of = |kind, pod: PodView| {
        let workload = WORKLOADS.iter().find(|workload| workload.kind == kind && workload.restart.is_none()).unwrap();
        View { workload, wanted: Some(2), short_since: None, pods: vec![pod] }
    };
    let starved = PodView { ready: true, waits: vec![], starved: Some(("csi-driver".into(), at(5))), ..waiting("", 1) };
    for (kind, pod, rule) in [
        (DAEMON_SET, waiting("CrashLoopBackOff", 3), "POD-002"),
        (DAEMON_SET, waiting("ErrImagePull", 0), "POD-003"),
        (DAEMON_SET, starved.clone(), "POD-005"),
        (DEPLOYMENT, waiting("CrashLoopBackOff", 3), "POD-002"),
        (DEPLOYMENT, waiting("ContainerCreating", 0), "POD-004"),
        (DEPLOYMENT, starved, "POD-005"),
    ] {
        let holds = |node: &str, uid: &str| {
            let pod = PodView { node: node.into(), uid: uid.into(), ..pod.clone() };
            judge(&[], &[of(kind, pod)], &[], &[], 300).0
        };
        assert_eq!(holds("worker-1", "1"), [rule]);
        assert!(holds("worker-1", "ailing").is_empty(), "{rule}: it was so before the start");
        // A workload that runs on every node is missing something there; any other only happens to be there.
        assert_eq!(holds("host-1", "1").is_empty(), kind == DAEMON_SET, "{rule} on a host of bare metal");
        assert_eq!(holds("host-10", "1"), [rule]);
    }
}

#[test]
fn a_container_that_ends_again_and_again_is_told_with_its_last_fatal_line() {
    let told = |runs: &[Run]| found(runs, &[with_pod(waiting("CrashLoopBackOff", 3))], &[], &["RUN-001", "CCM-001"], 40).0.remove(0);
    let crash = |last, line: &str| Run { line: line.to_owned(), ..run("RUN-001", 0, last, Weight::Holds) };
    let other = |change: fn(&mut Run)| {
        let mut run = crash(39, "panic: of another");
        change(&mut run);
        run
    };
    let before = run("CCM-001", 0, 20, Weight::Breaks);
    let elsewhere = [
        other(|run| run.source.uid = "2".to_owned()),
        other(|run| run.source.container = "kube-rbac-proxy"),
        other(|run| (run.rule, run.weight) = ("CSI-014".to_owned(), Weight::Breaks)),
    ];
    let runs: Vec<Run> = [before, crash(30, "panic: nil")].into_iter().chain(elsewhere.clone()).collect();
    let failure = told(&runs);
    assert_eq!((failure.rule.as_str(), failure.line.as_deref()), ("POD-002", Some("panic: nil")));
    assert!(failure.message.contains("ends again and again; its log says RUN-001: the process crashed; cause: "), "{}", failure.message);
    assert!(failure.next.starts_with("see that the server of every failure domain"), "{}", failure.next);
    let failure = told(&elsewhere);
    assert_eq!((failure.line, failure.next.starts_with("its log before the last end says why")), (None, true));
    assert!(failure.look[1].ends_with("-c cloud-controller-manager --previous"), "{:?}", failure.look);
}

#[test]
fn an_operator_holds_after_two_minutes() {
    let worse = [Worse {
        rule: "OPR-001",
        object: "clusteroperator/storage".into(),
        says: "Degraded: because".into(),
        since: Some(at(0)),
        gone: false,
    }];
    assert_eq!(judge(&[], &[], &worse, &[], 119), (vec![], Some(at(120))));
    assert_eq!(judge(&[], &[], &worse, &[], 120), (vec!["OPR-001".to_owned()], None));
    let gone = Worse { rule: "OPR-002", since: None, gone: true, ..worse[0].clone() };
    let (found, wake) = found(&[], &[], &[gone], &[], 0);
    assert_eq!((found[0].rule.as_str(), wake), ("OPR-002", None), "one that is gone does not come back by itself");
    assert_eq!(found[0].look, ["oc get clusteroperators"]);
}

#[test]
fn a_container_that_took_too_much_memory_since_the_restart_holds_for_ten_minutes() {
    let starved =
        |when| PodView { ready: true, waits: vec![], starved: Some(("cloud-controller-manager".into(), at(when))), ..waiting("", 1) };
    assert_eq!(judge(&[], &[with_pod(starved(5))], &[], &[], 6), (vec!["POD-005".to_owned()], Some(at(605))));
    assert_eq!(judge(&[], &[with_pod(starved(5))], &[], &[], 605), (vec![], None));
    assert_eq!(judge(&[], &[with_pod(starved(-5))], &[], &[], 6), (vec![], None), "before the restart");
    let failure = of_starved(&with_pod(starved(5)), &starved(5), "cloud-controller-manager");
    assert!(failure.look[1].ends_with("-c cloud-controller-manager --previous"), "{:?}", failure.look);
}

#[test]
fn what_an_operator_says_of_itself_is_explained_like_a_line_in_a_log() {
    let says =
        "Degraded: VSphereCSIDriverOperatorCRDegraded: VMwareVSphereOperatorCheckDegraded: unable to find VM worker-1 by UUID 4217f5a8";
    let worse = Worse { rule: "OPR-001", object: "clusteroperator/storage".into(), says: says.into(), since: None, gone: false };
    let failure = of_operator(Catalogue::built_in(), &worse);
    assert_eq!(failure.rule, "OPR-001");
    assert!(failure.message.contains("; that is VIM-005: a node's virtual machine is in none of the vCenters"), "{}", failure.message);
    assert!(failure.next.starts_with("find the node's virtual machine"), "{}", failure.next);
    let worse = Worse { says: "Degraded: Found 1 unmanaged node(s)".into(), ..worse };
    let failure = of_operator(Catalogue::built_in(), &worse);
    assert!(failure.message.contains("that is CPMS-003: ") && failure.next.starts_with("delete a failed replacement"), "{failure:?}");
    let worse = Worse { says: "Degraded: the flux is out of tune".into(), ..worse };
    assert!(of_operator(Catalogue::built_in(), &worse).next.starts_with("mend what it says"));
}

#[test]
fn an_explanation_says_what_why_where_to_look_and_what_to_do() {
    let catalogue = Catalogue::built_in();
    let failure = of_run(catalogue, &run("CCM-001", 0, 30, Weight::Holds));
    assert_eq!(failure.component.as_deref(), Some("cloud-controller-manager"));
    assert_eq!(failure.pod.as_deref(), Some("openshift-cloud-controller-manager/ccm-1"));
    assert_eq!(failure.line.as_deref(), Some("the line"));
    assert_eq!(failure.look[0], "oc -n openshift-cloud-controller-manager logs ccm-1 -c cloud-controller-manager");
    assert!(failure.message.contains("has no user name and password") && failure.message.contains("; cause: "), "{}", failure.message);
    let over = "then `oc -n openshift-cloud-controller-manager delete pod ccm-1` ends the hold, else it ends 10m after the last such line";
    assert!(failure.next.contains(over) && failure.next.contains("spec.health.accept"), "{}", failure.next);
    let restless = of_run(catalogue, &run("CCM-001", 0, 30, Weight::Breaks));
    assert!(!restless.next.contains("the hold"), "{}", restless.next);
    for rule in catalogue.rules() {
        let failure = of_run(catalogue, &run(&rule.id, 0, 30, Weight::Holds));
        assert!(failure.message.len() < 1024 && failure.next.len() < 512, "{}: nothing is cut off", rule.id);
    }
}
