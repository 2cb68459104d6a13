//! Programs that run in pods: one that dies whenever it is started ends a boot as one that the supervisor starts does.

use std::collections::HashSet;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, LogParams};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use super::{Error, SHOWN, last_lines};
use crate::agent::WRITTEN;
use crate::cache::Cache;
use crate::kubernetes::{POD, full_name};

/// Who has died that often without ever having been ready does not get better by waiting.
const RESTARTS: i64 = 2;

/// A container that is in no state to become ready.
#[derive(Debug, PartialEq, Eq)]
struct Death {
    container: String,
    times: i64,
    exit: String,
}

/// Returns when a container has died again and again and was never ready. `folder` is the lab's.
pub async fn any_dies_at_start(client: &Client, folder: &Path) -> Error {
    // What is only an object has no program.
    let selected = watcher::Config::default().labels(&format!("!{WRITTEN}"));
    let mut cache = Cache::start_selected(client, &[(POD, "")], &selected).await;
    let mut proven = Proven::default();
    loop {
        for pod in cache.list(POD) {
            if let Some(death) = proven.look(&pod) {
                return told(client, folder, &pod, death).await;
            }
        }
        cache.changed().await;
    }
}

async fn told(client: &Client, folder: &Path, pod: &DynamicObject, death: Death) -> Error {
    let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let wanted = LogParams { container: Some(death.container.clone()), tail_lines: i64::try_from(SHOWN).ok(), ..LogParams::default() };
    Error::Crashes {
        tail: last_lines(pods.logs(&pod.name_any(), &wanted).await, SHOWN),
        name: death.container,
        pod: full_name(pod),
        times: death.times,
        exit: death.exit,
        folder: folder.join("pods"),
    }
}

/// Containers, by their pod's UID and their name, whose readiness probe has succeeded. What ends them later is no bad start: a
/// leader that lost its lease on a busy machine ends on purpose.
#[derive(Default)]
struct Proven(HashSet<(String, String)>);

impl Proven {
    fn look(&mut self, pod: &DynamicObject) -> Option<Death> {
        let status = &pod.data["status"];
        let statuses = ["initContainerStatuses", "containerStatuses"].map(|key| status[key].as_array());
        let mut death = None;
        for status in statuses.into_iter().flatten().flatten() {
            let name = status["name"].as_str().unwrap_or_default();
            let key = (pod.uid().unwrap_or_default(), name.to_owned());
            // Without a probe a container is ready as soon as it runs, which proves nothing.
            if status["ready"] == true && is_probed(pod, name) {
                self.0.insert(key);
            } else if !self.0.contains(&key) {
                death = death.or_else(|| dies(name, status));
            }
        }
        death
    }
}

fn is_probed(pod: &DynamicObject, container: &str) -> bool {
    let containers = pod.data["spec"]["containers"].as_array();
    containers.into_iter().flatten().any(|spec| spec["name"] == container && !spec["readinessProbe"].is_null())
}

fn dies(name: &str, status: &Value) -> Option<Death> {
    let restarts = status["restartCount"].as_i64().unwrap_or(0);
    if restarts < RESTARTS || status["state"]["waiting"]["reason"] != "CrashLoopBackOff" {
        return None;
    }
    let last = &status["lastState"]["terminated"];
    let why = last["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
    Some(Death { container: name.to_owned(), times: restarts + 1, exit: format!("exit code {}{why}", last["exitCode"]) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(probed: bool, status: &Value) -> DynamicObject {
        let probe = if probed { json!({"httpGet": {"path": "/readyz"}}) } else { Value::Null };
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "controllers-1", "namespace": "machines", "uid": "u1"},
            "spec": {"containers": [{"name": "machineset", "readinessProbe": probe}]},
            "status": {"containerStatuses": [status]},
        }))
        .unwrap()
    }

    fn crashed(restarts: i64) -> Value {
        json!({
            "name": "machineset", "ready": false, "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 3}},
        })
    }

    fn ready() -> Value {
        json!({"name": "machineset", "ready": true, "restartCount": 0, "state": {"running": {}}})
    }

    #[test]
    fn a_third_death_without_ever_having_been_ready_is_one_at_start() {
        let mut proven = Proven::default();
        assert_eq!(proven.look(&pod(true, &crashed(1))), None);
        let death = Death { container: "machineset".to_owned(), times: 3, exit: "exit code 3".to_owned() };
        assert_eq!(proven.look(&pod(true, &crashed(2))), Some(death));
    }

    #[test]
    fn a_restart_that_runs_is_given_its_time() {
        let mut running = crashed(5);
        running["state"] = json!({"running": {}});
        assert_eq!(Proven::default().look(&pod(true, &running)), None);
    }

    #[test]
    fn what_was_ready_once_may_die_later() {
        let mut proven = Proven::default();
        assert_eq!(proven.look(&pod(true, &ready())), None);
        assert_eq!(proven.look(&pod(true, &crashed(4))), None);
    }

    #[test]
    fn to_be_ready_without_a_probe_proves_nothing() {
        let mut proven = Proven::default();
        assert_eq!(proven.look(&pod(false, &ready())), None);
        assert!(proven.look(&pod(false, &crashed(2))).is_some());
    }

    #[test]
    fn a_program_that_could_not_even_be_started_is_told_with_the_reason() {
        let mut status = crashed(2);
        status["lastState"] = json!({"terminated": {"exitCode": 128, "message": "cannot run /x: Exec format error"}});
        let exit = Proven::default().look(&pod(true, &status)).unwrap().exit;
        assert_eq!(exit, "exit code 128: cannot run /x: Exec format error");
    }
}
