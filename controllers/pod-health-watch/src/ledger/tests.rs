use super::*;
use crate::rules::Catalogue;

pub fn source(uid: &str) -> Source {
    Source {
        uid: uid.to_owned(),
        container: "cloud-controller-manager",
        component: CLOUD_CONTROLLER_MANAGER,
        namespace: "openshift-cloud-controller-manager",
        pod: format!("ccm-{uid}"),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

fn weights(rule: &str, seconds: &[i64]) -> Vec<Weight> {
    let catalogue = Catalogue::built_in();
    let rule = catalogue.rule(rule).unwrap();
    let mut ledger = Ledger::default();
    let weigh = |second: &i64| {
        ledger.bad(&source("1"), rule, at(*second), || "line".to_owned());
        ledger.runs.values().next().unwrap().weight
    };
    seconds.iter().map(weigh).collect()
}

#[test]
fn a_fatal_line_has_to_come_as_often_and_last_as_long_as_its_rule_says() {
    use Weight::{Breaks, Holds, Nothing};
    for (rule, seconds, expected) in [
        // Five times, each within two minutes.
        ("CCM-006", vec![0, 1, 2, 3, 4], vec![Nothing, Nothing, Nothing, Nothing, Holds]),
        ("CCM-006", vec![0, 1, 2, 3, 124], vec![Nothing; 5]),
        ("CCM-009", vec![0], vec![Holds]),
        // Callers that meet while the Secret is read for the first time hold nothing; a Secret without the pair does.
        ("CCM-001", vec![0, 0, 0, 1], vec![Nothing, Nothing, Breaks, Breaks]),
        ("CCM-001", vec![0, 5, 10], vec![Nothing, Nothing, Holds]),
        // Three times, and for three minutes.
        ("NET-002", vec![0, 10, 60, 120, 179, 180], vec![Nothing, Nothing, Breaks, Breaks, Breaks, Holds]),
        // An operator that judges by an old Infrastructure says so for as long as its watch takes to begin again.
        ("CPMS-002", vec![0], vec![Nothing]),
        ("CPMS-002", vec![0, 1, 2, 5, 10, 20, 40, 60], vec![Nothing, Nothing, Breaks, Breaks, Breaks, Breaks, Breaks, Breaks]),
        ("CPMS-002", vec![0, 41, 82, 164], vec![Nothing, Nothing, Breaks, Holds]),
        ("CSI-014", vec![0, 10], vec![Breaks, Breaks]),
        // A drain is tried again after a while that grows.
        ("KUBE-006", vec![0, 600, 1500], vec![Nothing, Nothing, Holds]),
        ("NOISE-010", vec![0, 1, 2, 3, 4, 5], vec![Nothing; 6]),
    ] {
        assert_eq!(weights(rule, &seconds), expected, "{rule} at {seconds:?}");
    }
}

#[test]
fn errors_that_no_rule_knows_hold_only_when_many_come_every_second() {
    let rule = Catalogue::built_in().unknown();
    for (pause, lines, expected) in [
        // Every five seconds, and every one and a half, for half an hour.
        (5_000, 360, Weight::Nothing),
        (1_500, 1_200, Weight::Nothing),
        // Many at once, soon over.
        (10, 1_000, Weight::Breaks),
        // Five every second, for forty of them.
        (200, 200, Weight::Holds),
    ] {
        let mut ledger = Ledger::default();
        let weigh = |line: i64| {
            let at = Timestamp::from_millisecond(1_790_000_000_000 + line * pause).unwrap();
            ledger.bad(&source("1"), rule, at, || "line".to_owned());
            ledger.runs.values().next().unwrap().weight
        };
        assert_eq!((0..lines).map(weigh).max(), Some(expected), "{lines} lines, one every {pause} ms");
    }
}

#[test]
fn a_vcenter_that_is_away_for_a_minute_holds_nothing() {
    let lines: Vec<i64> = (0..60).collect();
    assert_eq!(weights("NET-002", &lines).last(), Some(&Weight::Breaks));
    assert_eq!(weights("CCM-013", &lines).last(), Some(&Weight::Breaks));
}

#[test]
fn the_one_refused_login_per_start_and_vcenter_means_nothing_with_three_vcenters() {
    assert_eq!(weights("CCM-006", &[0, 1, 2]), [Weight::Nothing; 3]);
}

#[test]
fn what_wakes_is_a_change_of_judgement_not_every_line() {
    let catalogue = Catalogue::built_in();
    let rule = catalogue.rule("VIM-003").unwrap();
    let mut ledger = Ledger::default();
    let woken: Vec<bool> = (0..5).map(|second| ledger.bad(&source("1"), rule, at(second), || "line".to_owned())).collect();
    assert_eq!(woken, [false, true, false, false, false]);
}

#[test]
fn a_flood_of_rules_and_pods_takes_bounded_room() {
    let catalogue = Catalogue::built_in();
    let rule = catalogue.rule("CCM-001").unwrap();
    let mut ledger = Ledger::default();
    for pod in 0..2000 {
        for second in 0..3 {
            ledger.bad(&source(&pod.to_string()), rule, at(pod + second), || "x".repeat(300));
        }
    }
    assert_eq!(ledger.runs.len(), MOST_RUNS);
    assert!(ledger.runs.values().all(|run| run.source.uid.parse::<i64>().unwrap() >= 2000 - 256), "the newest are kept");
    for server in 0..100 {
        ledger.good(&source("1"), &Sign::Reached(&server.to_string()), at(server));
    }
    assert_eq!(ledger.news("1").servers.len(), MOST_SERVERS);
}

#[test]
fn good_news_that_is_told_again_much_later_is_news() {
    let mut ledger = Ledger::default();
    let mut told = |sign: Sign<'_>, second| ledger.good(&source("1"), &sign, at(second));
    assert_eq!([told(Sign::Reached("vc"), 0), told(Sign::Reached("vc"), 4), told(Sign::Reached("vc"), 9)], [true, false, true]);
    assert_eq!([told(Sign::RoundEnded, 0), told(Sign::RoundEnded, 4), told(Sign::RoundEnded, 9)], [true, false, true]);
    assert_eq!((ledger.news("1").servers["vc"], ledger.news("1").round), (at(9), Some(at(9))));
}

#[test]
fn a_pod_that_is_gone_is_forgotten_with_all_it_told() {
    let catalogue = Catalogue::built_in();
    let rule = catalogue.rule("CCM-009").unwrap();
    let mut ledger = Ledger::default();
    for uid in ["1", "2"] {
        ledger.read(&source(uid), Read::ToTheEnd);
        ledger.bad(&source(uid), rule, at(0), || "line".to_owned());
        ledger.good(&source(uid), &Sign::Reached("vc"), at(0));
    }
    ledger.forget(&source("1"));
    assert_eq!(ledger.runs().map(|run| run.source.uid.as_str()).collect::<Vec<_>>(), ["2"]);
    assert!(ledger.news("1").servers.is_empty() && !ledger.news("2").servers.is_empty());
}

#[test]
fn a_vcenter_counts_as_reached_by_what_the_real_manager_says_of_it() {
    let signs = Signs::new().unwrap();
    let of = |line: &'static str| signs.of(CLOUD_CONTROLLER_MANAGER, line.as_bytes());
    for line in [
        "I1116 19:49:46.391861   27517 connectionmanager.go:186] vCenter connect vc.example.com succeeded.",
        "I1116 19:49:46.401968   27517 search.go:208] Found node 1a3586eb as vm=VirtualMachine:vm-43 in vc=vc.example.com and datacenter=dc-a",
        "I1116 19:49:46.401968   27517 search.go:184] Did not find node 1a3586eb in vc=vc.example.com and datacenter=dc-b",
        "E1116 19:49:46.401968   27517 search.go:178] Error while looking for vm=1a3586eb(byUUID) in vc=vc.example.com and datacenter=dc-b: No VM found",
    ] {
        assert_eq!(of(line), Some(Sign::Reached("vc.example.com")), "{line}");
    }
    for line in [
        "E1116 19:49:46.401968   27517 connectionmanager.go:188] vCenter vc.example.com failed. Err: \"no such host\"",
        "E1116 19:49:46.401968   27517 search.go:178] Error while looking for vm=1a(byUUID) in vc=vc.example.com and datacenter=dc-b: ServerFaultCode: NoPermission",
        "I1116 19:49:46.391891   27517 connectionmanager.go:151] Invalid credentials. Fetching credentials from secrets. vcServer=vc.example.com credentialHolder=Global",
    ] {
        assert_eq!(of(line), None, "{line}");
    }
    let round = b"I1116 19:49:46.391861       1 vsphere_check.go:109] Finished running all vSphere specific checks in the cluster";
    assert_eq!(signs.of(PROBLEM_DETECTOR, round), Some(Sign::RoundEnded));
    assert_eq!(signs.of("machine-api", round), None);
}
