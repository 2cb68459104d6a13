use super::*;
use crate::ledger::Sign;
use crate::view::PodView;
use crate::workloads::WORKLOADS;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

fn source(component: &'static str, uid: &str) -> Source {
    Source { uid: uid.into(), container: "c", component, namespace: "n", pod: "p".into() }
}

/// A cluster in which all is well: pods Ready at 10, quiet wanted for 60.
struct Cluster {
    views: Vec<View>,
    leases: Vec<LeaseView>,
    ledger: Ledger,
    worse: Vec<Worse>,
    troubles: Vec<Failure>,
    crash: Option<(Timestamp, Failure)>,
    accept: Vec<String>,
}

fn well() -> Cluster {
    let replaced = WORKLOADS.iter().filter(|workload| workload.restart.is_some());
    let mut ledger = Ledger::default();
    let views: Vec<View> = replaced
        .map(|workload| {
            let uid = workload.component.to_owned();
            let pod = PodView {
                name: "p".into(),
                uid,
                ready: true,
                since: Some(at(10)),
                created: Some(at(8)),
                started: Some(at(9)),
                ..PodView::default()
            };
            ledger.read(&source(workload.component, workload.component), Read::ToTheEnd);
            View { workload, wanted: Some(1), short_since: None, pods: vec![pod] }
        })
        .collect();
    let names = views.iter().flat_map(|view| view.workload.leases);
    let leases = names.map(|name| LeaseView { name: (*name).to_owned(), acquired: Some(at(9)), expires: Some(at(900)) }).collect();
    for server in ["a", "b"] {
        ledger.good(&source(CLOUD_CONTROLLER_MANAGER, CLOUD_CONTROLLER_MANAGER), &Sign::Reached(server), at(9));
    }
    ledger.good(&source(PROBLEM_DETECTOR, PROBLEM_DETECTOR), &Sign::RoundEnded, at(9));
    Cluster { views, leases, ledger, worse: Vec::new(), troubles: Vec::new(), crash: None, accept: Vec::new() }
}

fn judge(cluster: &Cluster, now: i64) -> Health {
    let catalogue = Catalogue::built_in();
    health(&Facts {
        restarted: at(0),
        views: &cluster.views,
        leases: &cluster.leases,
        servers: &["a".to_owned(), "b".to_owned()],
        ledger: &cluster.ledger,
        catalogue,
        worse: &cluster.worse,
        troubles: &cluster.troubles,
        crash: cluster.crash.as_ref(),
        accept: &cluster.accept,
        quiet: SignedDuration::from_secs(60),
        now: at(now),
    })
}

/// The rule of what is missing.
fn lacks(cluster: &Cluster) -> String {
    match judge(cluster, 500) {
        Health::Well(_) => "nothing".to_owned(),
        Health::NotYet(message, _, failure) | Health::Unasked(message, _, failure) => {
            assert!(message.contains(&failure.rule), "{message}");
            assert!(failure.next.contains(&format!("name {} in spec.health.accept", failure.rule)), "{}", failure.next);
            failure.rule
        }
    }
}

#[test]
fn pods_are_healthy_only_after_the_quiet_period_and_it_is_said_why() {
    let cluster = well();
    match judge(&cluster, 69) {
        Health::NotYet(message, until, failure) => {
            assert_eq!(until, Some(at(70)));
            assert!(message.contains("well if that lasts until"), "{message}");
            assert_eq!(failure.rule, "EVD-006");
        }
        other => panic!("{other:?}"),
    }
    match judge(&cluster, 70) {
        Health::Well(message) => {
            for sign in ["5 leases held by new pods", "reached a, b", "finished a round", "no worse than at the start"] {
                assert!(message.contains(sign), "{message}");
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bad_line_begins_the_quiet_period_anew_unless_its_rule_is_accepted() {
    let mut cluster = well();
    let catalogue = Catalogue::built_in();
    let rule = catalogue.rule("CSI-014").unwrap();
    cluster.ledger.bad(&source("csi-driver", "csi"), rule, at(40), || "line".to_owned());
    match judge(&cluster, 70) {
        Health::NotYet(_, until, failure) => assert_eq!((until, failure.rule.as_str()), (Some(at(100)), "CSI-014")),
        other => panic!("{other:?}"),
    }
    assert!(matches!(judge(&cluster, 100), Health::Well(_)));
    cluster.accept = vec!["CSI-014".to_owned()];
    assert!(matches!(judge(&cluster, 70), Health::Well(_)));
}

#[test]
fn a_container_that_ends_again_and_again_begins_the_quiet_period_anew_unless_that_is_accepted() {
    let mut cluster = well();
    let crash = Failure { component: Some("csi-driver".to_owned()), ..failure("POD-002", "ends again and again", "mend that") };
    cluster.crash = Some((at(40), crash));
    match judge(&cluster, 70) {
        Health::NotYet(message, until, failure) => {
            assert_eq!((until, failure.rule.as_str()), (Some(at(100)), "POD-002"));
            assert!(message.contains("when POD-002 was seen last in csi-driver; well if"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(judge(&cluster, 100), Health::Well(_)));
    cluster.accept = vec!["POD-002".to_owned()];
    assert!(matches!(judge(&cluster, 70), Health::Well(_)));
}

#[test]
fn each_sign_that_is_missing_has_an_id_that_can_be_accepted() {
    type Spoil = fn(&mut Cluster);
    let cases: [(&str, Spoil); 11] = [
        ("EVD-001", |c| assert!(c.ledger.read(&source("machine-api", "machine-api"), Read::Begun))),
        ("EVD-001", |c| assert!(c.ledger.read(&source("machine-api", "machine-api"), Read::Not("no answer".into())))),
        ("EVD-002", |c| c.leases[0].acquired = None),
        // Held since before the new pods began: by one that is gone.
        ("EVD-002", |c| c.leases[1].acquired = Some(at(7))),
        ("EVD-002", |c| c.leases[2].expires = Some(at(499))),
        ("EVD-003", |c| c.views[0].pods[0].uid = "another".into()),
        // Told by a process that has ended since, whether it was begun again or not.
        ("EVD-003", |c| c.views[0].pods[0].started = Some(at(20))),
        ("EVD-003", |c| c.views[0].pods[0].started = None),
        ("EVD-004", |c| c.views[3].pods[0].started = Some(at(20))),
        ("EVD-004", |c| c.views[3].pods[0].uid = "another".into()),
        ("EVD-005", |c| {
            c.worse = vec![Worse {
                rule: "OPR-001",
                object: "clusteroperator/storage".into(),
                says: "Degraded".into(),
                since: None,
                gone: false,
            }];
        }),
    ];
    for (expected, spoil) in cases {
        let mut cluster = well();
        spoil(&mut cluster);
        assert_eq!(lacks(&cluster), expected);
        cluster.accept = vec![expected.to_owned()];
        assert_eq!(lacks(&cluster), "nothing", "{expected} accepted");
    }
}

#[test]
fn what_is_not_installed_or_scaled_to_0_is_not_waited_for() {
    for wanted in [None, Some(0)] {
        let mut cluster = well();
        for view in &mut cluster.views {
            view.wanted = wanted;
            view.pods.clear();
        }
        cluster.leases.clear();
        assert_eq!(lacks(&cluster), "nothing");
    }
}

#[test]
fn what_holds_the_migration_comes_before_what_is_missing() {
    let mut cluster = well();
    cluster.leases.clear();
    cluster.troubles = vec![failure("CCM-001", "no credentials", "add them; or name CCM-001 in spec.health.accept to go on")];
    assert_eq!(lacks(&cluster), "CCM-001");
}

#[test]
fn errors_that_no_rule_knows_are_shown_and_keep_nothing_back() {
    let mut cluster = well();
    for _ in 0..3 {
        cluster.ledger.unknown(&source("machine-api", "machine-api"), || "out of tune".to_owned());
    }
    cluster.ledger.unknown(&source("csi-driver", "csi-driver"), || "something else".to_owned());
    match judge(&cluster, 70) {
        Health::Well(message) => {
            assert!(message.contains("4 errors that no rule knows, most in pod n/p, the first of them: out of tune"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    // Before that in words that stay the same while few more come.
    for (more, expected) in [(0, "; 1 or more errors"), (5, "; 1 or more errors"), (1, "; 10 or more errors"), (80, "; 10 or more errors")]
    {
        for _ in 0..more {
            cluster.ledger.unknown(&source("machine-api", "machine-api"), || "out of tune".to_owned());
        }
        let Health::NotYet(message, _, failure) = judge(&cluster, 69) else { panic!("it is too early") };
        let expected = format!("{expected} that no rule knows, most in pod n/p, the first of them: out of tune");
        assert!(message.ends_with(&expected) && !failure.message.contains("no rule"), "{message}");
    }
    cluster.ledger.forget(&source("machine-api", "machine-api"));
    cluster.ledger.forget(&source("csi-driver", "csi-driver"));
    assert_eq!(cluster.ledger.unknowns().count(), 0);
}

#[test]
fn where_a_lease_is_not_even_there_the_commands_to_look_with_work_all_the_same() {
    let mut cluster = well();
    cluster.leases.remove(0);
    let Health::NotYet(_, _, missing) = judge(&cluster, 500) else { panic!("a lease is missing") };
    let namespace = "openshift-cloud-controller-manager";
    assert_eq!(missing.look, [format!("oc -n {namespace} get pods"), format!("oc -n {namespace} get leases")]);
}

#[test]
fn the_logs_of_a_manager_that_has_not_reached_a_vcenter_are_shown_by_its_label_as_every_client_can() {
    let mut cluster = well();
    cluster.views[0].pods[0].uid = "another".into();
    let Health::Unasked(_, _, missing) = judge(&cluster, 500) else { panic!("its word is missing") };
    let namespace = "openshift-cloud-controller-manager";
    assert_eq!(missing.look, [format!("oc -n {namespace} logs -l k8s-app=vsphere-cloud-controller-manager --prefix --tail=-1")]);
}

#[test]
fn a_manager_whose_word_alone_is_missing_may_be_started_once_more_when_it_was_calm_for_two_minutes() {
    let unreached = || {
        let mut cluster = well();
        cluster.views[0].pods[0].uid = "another".into();
        cluster
    };
    let calm = |cluster: &Cluster| match judge(cluster, 20) {
        Health::Unasked(_, calm, failure) => {
            assert_eq!(failure.rule, "EVD-003");
            Some(calm)
        }
        _ => None,
    };
    assert_eq!(calm(&unreached()), Some(at(130)), "two minutes after it was Ready");
    let mut away = unreached();
    let rule = Catalogue::built_in().rule("NET-002").unwrap();
    away.ledger.bad(&source(CLOUD_CONTROLLER_MANAGER, "another"), rule, at(15), || "503".to_owned());
    assert_eq!(calm(&away), Some(at(135)), "two minutes after it was last refused, were it only once");
    for (component, rule, second, expected, why) in [
        (CLOUD_CONTROLLER_MANAGER, "UNK-001", 16, 135, "what nobody knows is not of the way to a vCenter"),
        ("machine-api", "MAO-001", 17, 135, "what others cannot do is theirs"),
        ("machine-api", "NET-002", 18, 138, "a server that is away for others is away"),
    ] {
        let uid = if component == CLOUD_CONTROLLER_MANAGER { "another" } else { component };
        let rule = Catalogue::built_in().rule(rule).unwrap();
        away.ledger.bad(&source(component, uid), rule, at(second), || "line".to_owned());
        assert_eq!(calm(&away), Some(at(expected)), "{why}");
    }
    type Spoil = fn(&mut Cluster);
    let cases: [(&str, Spoil); 4] = [
        ("another sign is missing", |c| c.leases[0].acquired = None),
        ("one of its pods is not Ready", |c| c.views[0].pods[0].ready = false),
        ("one of its pods leaves", |c| c.views[0].pods[0].leaves = true),
        ("it has no pod", |c| c.views[0].pods.clear()),
    ];
    for (why, spoil) in cases {
        let mut cluster = unreached();
        spoil(&mut cluster);
        assert_eq!(calm(&cluster), None, "{why}");
    }
}
