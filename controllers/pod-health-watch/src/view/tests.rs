use serde_json::json;

use super::*;

fn pod(state: &Value, last: &Value, restarts: u64) -> PodView {
    let status = json!({"name": "main", "state": state, "lastState": last, "restartCount": restarts});
    let value = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "1"},
        "spec": {"nodeName": "host-1", "containers": [{"name": "main"}, {"name": "kube-rbac-proxy"}]},
        "status": {"containerStatuses": [status]},
    });
    PodView::of(&serde_json::from_value(value).unwrap())
}

#[test]
fn a_container_that_waits_to_begin_again_has_a_log_and_one_that_never_began_has_none() {
    let (nothing, waits) = (json!({}), json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    let ended = json!({"terminated": {"exitCode": 2, "finishedAt": "2026-11-16T19:49:46Z"}});
    for (state, last, restarts, expected) in [
        (json!({"waiting": {"reason": "ContainerCreating"}}), &nothing, 0, false),
        (json!({"running": {"startedAt": "2026-11-16T19:49:46Z"}}), &nothing, 0, true),
        (ended.clone(), &nothing, 0, true),
        (waits, &ended, 1, true),
    ] {
        let pod = pod(&state, last, restarts);
        assert_eq!(pod.has_run, expected, "{state}, before that {last}");
        assert_eq!((pod.node.as_str(), pod.containers.len()), ("host-1", 2));
    }
}

#[test]
fn a_pod_ails_while_it_ends_again_and_again_and_for_ten_minutes_more() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let ended = |code: i32| json!({"terminated": {"exitCode": code, "finishedAt": "2026-11-16T12:00:00Z"}});
    let (runs, waits) = (json!({"running": {}}), json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    for (state, last, restarts, now, expected) in [
        (&waits, ended(1), 3, "2026-11-16T12:04:00Z", true),
        (&waits, ended(1), 2, "2026-11-16T12:04:00Z", false),
        (&runs, ended(1), 3, "2026-11-16T12:09:59Z", true),
        (&runs, ended(1), 3, "2026-11-16T12:10:00Z", false),
        (&runs, ended(0), 3, "2026-11-16T12:01:00Z", false),
    ] {
        assert_eq!(pod(state, &last, restarts).ails(at(now)), expected, "{state}, before that {last}, {restarts} restarts, at {now}");
    }
}

#[test]
fn a_container_that_ends_again_and_again_crashes_until_it_has_run_for_two_minutes() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let runs = |since: &str| json!({"running": {"startedAt": since}});
    let ended =
        |code: i32, begun: &str| json!({"terminated": {"exitCode": code, "startedAt": begun, "finishedAt": "2026-11-16T12:00:00Z"}});
    let (failed, now) = (ended(1, "2026-11-16T11:59:30Z"), "2026-11-16T12:00:30Z");
    let begun = runs("2026-11-16T12:00:01Z");
    for (state, last, restarts, now, expected) in [
        (&begun, &failed, 3, now, Some("2026-11-16T12:02:01Z")),
        (&begun, &failed, 3, "2026-11-16T12:05:00Z", None),
        (&begun, &failed, 1, now, None),
        (&begun, &ended(0, "2026-11-16T11:59:30Z"), 3, now, None),
        // It lost its lease, say, after it had run for an hour.
        (&begun, &ended(1, "2026-11-16T11:00:00Z"), 3, now, None),
        // Begun again only after a back-off of five minutes.
        (&runs("2026-11-16T12:05:00Z"), &failed, 6, "2026-11-16T12:05:10Z", Some("2026-11-16T12:07:00Z")),
        // The end itself, before anybody says that it waits.
        (&failed, &json!({}), 3, now, Some("2026-11-16T12:02:00Z")),
        (&ended(0, "2026-11-16T11:59:30Z"), &failed, 3, now, None),
    ] {
        let pod = pod(state, last, restarts);
        let expected = expected.map(|mended| ("main", Some(at(mended))));
        assert_eq!(pod.crashes(at(now)), expected, "{state}, before that {last}, {restarts} restarts, at {now}");
    }
}

#[test]
fn only_a_container_that_has_run_has_a_log_that_is_shown() {
    let (nothing, ended) = (json!({}), json!({"terminated": {"exitCode": 2, "finishedAt": "2026-11-16T19:49:46Z"}}));
    let waits = |reason: &str| json!({"waiting": {"reason": reason}});
    for (state, last, expected) in [
        (json!({"running": {}}), &nothing, true),
        (waits("CrashLoopBackOff"), &ended, true),
        (waits("ContainerCreating"), &nothing, false),
        (waits("ImagePullBackOff"), &ended, false),
    ] {
        assert_eq!(pod(&state, last, 0).has_log("main"), expected, "{state}, before that {last}");
    }
}
