use serde_json::json;

use super::super::audit::tests::event;
use super::*;

const OPERATOR: &str = "operator";

fn vmi(subresource: &str) -> Value {
    json!({"resource": "vspheremigrationinfra", "subresource": subresource, "namespace": NAMESPACE, "name": request::NAME})
}

fn running(at: i64) -> Event {
    let mut event = event("admin", "patch", "/vmi", &vmi(""), 200, at);
    event.request_object = json!({"spec": {"state": "Running"}});
    event
}

/// A report of a controller: these conditions are True, these steps in these states.
fn report(controller: &str, holds: &[&str], steps: &[(&str, &str)], at: i64) -> Event {
    let mut event = event(OPERATOR, "patch", &format!("/vmi/status?fieldManager=vmi-{controller}&force=true"), &vmi("status"), 200, at);
    let conditions: Vec<Value> = holds.iter().map(|name| json!({"type": name, "status": "True"})).collect();
    let steps: Vec<Value> = steps.iter().map(|(name, state)| json!({"name": name, "state": state})).collect();
    event.request_object = json!({"status": {"conditions": conditions, "steps": steps}});
    event
}

fn write(user: &str, verb: &str, resource: &str, uri: &str, at: i64) -> Event {
    event(user, verb, uri, &json!({"resource": resource, "namespace": "ns", "name": "x"}), 200, at)
}

#[test]
fn a_step_takes_from_the_first_word_of_it_to_the_word_that_it_is_done() {
    let events = [
        report("preflight", &[], &[("PreflightPassed", "Done")], 500),
        running(1_000),
        report("preflight", &[], &[("PreflightPassed", "Active")], 1_010),
        report("preflight", &["PreflightPassed"], &[("PreflightPassed", "Done")], 2_010),
        // Another's word of it does not count.
        report("summary", &[], &[("ClusterVersionFrozen", "Done")], 2_020),
    ];
    let timeline = Timeline::of(&events, OPERATOR);
    assert_eq!(timeline.running, Timestamp::from_millisecond(1_000).ok());
    assert_eq!(timeline.steps(5.0, &Seen::default()), [("PreflightPassed", 1.0, 1.0)]);
    assert_eq!(timeline.turned_true("PreflightPassed"), Timestamp::from_millisecond(2_010).ok());
}

#[test]
fn a_hand_over_lasts_until_the_next_controller_says_that_it_is_its_turn() {
    let events = [
        running(0),
        report("preflight", &["PreflightPassed"], &[("PreflightPassed", "Done")], 1_000),
        report("cluster-freeze", &[], &[("ClusterVersionFrozen", "Active")], 1_030),
        report("cluster-freeze", &["ClusterVersionFrozen", "InfrastructureUnlocked", "ControlPlaneSetSaved"], &[], 2_000),
        report("config-rewrite", &[], &[("CredentialsAdded", "Active")], 2_012),
    ];
    let handovers = Timeline::of(&events, OPERATOR).handovers();
    let told: Vec<String> = handovers.iter().map(|(name, seconds)| format!("{name} {seconds:.3}")).collect();
    assert_eq!(told, ["ClusterVersionFrozen 0.030", "CredentialsAdded 0.012"]);
}

#[test]
fn asleep_is_the_time_after_the_last_follower_and_no_more() {
    let events = [
        running(0),
        report("config-rewrite", &[], &[("CredentialsAdded", "Active")], 1_000),
        write(OPERATOR, "patch", "secrets", "/s", 1_010),
        write("follower", "update", "secrets", "/s", 3_000),
        report("config-rewrite", &["CredentialsAdded"], &[("CredentialsAdded", "Done")], 3_200),
    ];
    let asleep = Timeline::of(&events, OPERATOR).asleep(5.0, &Seen::default());
    assert!((asleep - 0.2).abs() < 0.000_1, "{asleep}");
}

#[test]
fn asleep_is_also_what_passes_between_others_and_the_next_act_and_before_a_step_begins() {
    let events = [
        running(0),
        report("pod-health-watch", &["PodsHealthy"], &[], 1_000),
        report("machine-rollout", &[], &[("WorkersReady", "Active")], 1_000),
        write(OPERATOR, "create", "machinesets", "/s", 1_100),
        write("controller", "patch", "nodes", "/n", 6_100),
        // It looks every half a minute.
        write(OPERATOR, "patch", "machinesets", "/s", 31_100),
        // One act after the other is work.
        write(OPERATOR, "patch", "machinesets", "/s", 31_400),
        write("controller", "patch", "nodes", "/n", 36_400),
        report("machine-rollout", &["WorkersReady"], &[("WorkersReady", "Done")], 61_100),
        report("machine-rollout", &["WorkersReady"], &[("WorkersReady", "Done"), ("ControlPlaneReady", "Active")], 91_100),
    ];
    let timeline = Timeline::of(&events, OPERATOR);
    let asleep = timeline.asleep(5.0, &Seen::default());
    assert!((asleep - (25.0 + 24.7 + 30.0)).abs() < 0.000_1, "{asleep}");
    // Of all that time machines needed ten seconds.
    assert!((timeline.machine_work() - 10.0).abs() < 0.000_1, "{}", timeline.machine_work());
}

#[test]
fn an_answer_that_is_owed_is_not_sleep() {
    let mut asked = [
        write(OPERATOR, "get", "infrastructures", "/i", 2_000),
        write(OPERATOR, "update", "infrastructures", "/i?dryRun=All", 2_100),
        write(OPERATOR, "get", "vspheremigrationinfra", "/vmi", 2_700),
        write("someone", "get", "infrastructures", "/i", 2_700),
        write(OPERATOR, "watch", "machines", "/m", 2_700),
    ];
    let answered = [2_300, 2_400, 2_900, 2_900, 2_900];
    for (event, at) in asked.iter_mut().zip(answered) {
        event.answered = Timestamp::from_millisecond(at).unwrap();
    }
    let mut events = vec![
        running(0),
        report("cluster-freeze", &[], &[("InfrastructureUnlocked", "Active")], 1_000),
        write(OPERATOR, "patch", "customresourcedefinitions", "/c", 1_900),
    ];
    events.extend(asked);
    // Words of its own are an answer to wait for too; those of others are not.
    for (controller, at) in [("cluster-freeze", 2_450), ("preflight", 2_550)] {
        let mut words = report(controller, &[], &[], at);
        words.answered = Timestamp::from_millisecond(at + 50).unwrap();
        events.push(words);
    }
    events.push(report("cluster-freeze", &[], &[("InfrastructureUnlocked", "Done")], 3_000));
    let asleep = Timeline::of(&events, OPERATOR).asleep(5.0, &Seen::default());
    assert!((asleep - 0.65).abs() < 0.000_1, "{asleep}");
}

#[test]
fn of_a_step_the_operators_own_is_what_it_ended_itself() {
    let events = [
        running(0),
        report("config-rewrite", &[], &[("CredentialsAdded", "Active")], 1_000),
        write(OPERATOR, "patch", "secrets", "/s", 1_250),
        write("follower", "update", "secrets", "/s", 3_000),
        write(OPERATOR, "patch", "secrets", "/s", 3_125),
        write("follower", "update", "secrets", "/s", 4_000),
        report("config-rewrite", &["CredentialsAdded"], &[("CredentialsAdded", "Done")], 4_500),
    ];
    assert_eq!(Timeline::of(&events, OPERATOR).steps(5.0, &Seen::default()), [("CredentialsAdded", 3.5, 0.875)]);
}

#[test]
fn a_quiet_period_is_not_sleep_but_what_follows_it_is() {
    let events = [
        running(0),
        report("pod-health-watch", &[], &[("PodsRestarted", "Done")], 1_000),
        report("pod-health-watch", &[], &[("PodsRestarted", "Done"), ("PodsHealthy", "Active")], 1_001),
        report("pod-health-watch", &[], &[("PodsRestarted", "Done"), ("PodsHealthy", "Done")], 6_500),
    ];
    // One that became Ready too late to have been waited for says nothing.
    let mut seen = Seen::default();
    seen.since.extend([1_000, 4_000].map(|at| Timestamp::from_millisecond(at).unwrap()));
    let asleep = Timeline::of(&events, OPERATOR).asleep(5.0, &seen);
    assert!((asleep - 0.5).abs() < 0.000_1, "{asleep}");
}

#[test]
fn each_judgement_of_pods_ends_the_restart_before_it() {
    let events = [
        running(0),
        write(OPERATOR, "delete", "pods", "/p", 1_000),
        write(OPERATOR, "delete", "pods", "/p", 1_200),
        write("someone", "delete", "pods", "/p", 900),
        report("pod-health-watch", &[], &[("PodsHealthy", "Done")], 5_000),
        write(OPERATOR, "delete", "pods", "/p", 7_000),
        report("pod-health-watch", &[], &[("PodsHealthy", "Undone")], 9_000),
    ];
    assert_eq!(restarts(&events), [(1_000, 5_000), (7_000, 9_000)]);
}

fn restarts(events: &[Event]) -> Vec<(i64, i64)> {
    let restarts = Timeline::of(events, OPERATOR).restarts();
    restarts.iter().map(|restart| (restart.deleted.as_millisecond(), restart.judged.as_millisecond())).collect()
}

#[test]
fn what_was_judged_before_does_not_end_a_later_restart() {
    let before = ("PodsHealthy", "Done");
    let events = [
        running(0),
        write(OPERATOR, "delete", "pods", "/p", 1_000),
        report("pod-health-watch", &[], &[before], 5_000),
        write(OPERATOR, "delete", "pods", "/p", 7_000),
        report("pod-health-watch", &[], &[before, ("PodsHealthyAfterDetach", "Active")], 8_000),
        report("pod-health-watch", &[], &[before, ("PodsHealthyAfterDetach", "Done")], 9_000),
    ];
    assert_eq!(restarts(&events), [(1_000, 5_000), (7_000, 9_000)]);
}

#[test]
fn machines_work_from_the_first_act_to_the_last_word_about_one_of_them() {
    let mut alive = write("node", "patch", "nodes", "/n", 8_000);
    alive.object_ref.subresource = "status".to_owned();
    let events = [
        running(0),
        report("machine-rollout", &[], &[("WorkersReady", "Active")], 1_000),
        write(OPERATOR, "create", "machinesets", "/s", 1_500),
        write("controller", "update", "machines", "/m", 6_500),
        write("controller", "patch", "nodes", "/n", 7_000),
        alive,
        report("machine-rollout", &[], &[("WorkersReady", "Done")], 9_000),
    ];
    let work = Timeline::of(&events, OPERATOR).machine_work();
    assert!((work - 5.5).abs() < 0.000_1, "{work}");
}

#[test]
fn what_is_asked_in_a_step_that_waits_is_told_unless_an_act_follows() {
    let mut unserved = write(OPERATOR, "list", "machineautoscalers", "/a", 3_050);
    unserved.response_status.code = 404;
    let events = [
        running(0),
        report("machine-rollout", &[], &[("WorkersReady", "Active")], 1_000),
        write(OPERATOR, "get", "secrets", "/s", 1_200),
        write(OPERATOR, "get", "machinesets", "/m", 2_300),
        write(OPERATOR, "patch", "machinesets", "/m", 2_400),
        // A watch that ended begins anew.
        write(OPERATOR, "list", "machines", "/m", 2_480),
        write(OPERATOR, "watch", "machines", "/m", 2_500),
        write(OPERATOR, "get", "nodes", "/n", 3_000),
        unserved,
        write("somebody", "get", "nodes", "/n", 3_100),
        report("machine-rollout", &["WorkersReady"], &[("WorkersReady", "Done")], 4_000),
        write(OPERATOR, "get", "secrets", "/s", 4_500),
    ];
    assert_eq!(Timeline::of(&events, OPERATOR).asked_while_waiting(), ["WorkersReady: get secrets ns/x", "WorkersReady: get nodes ns/x"]);
}
