//! A pod's status as a kubelet writes it, from the states of its containers.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What only the agent knows of a pod.
pub(super) struct Facts<'a> {
    pub init: Vec<ContainerStatus>,
    pub containers: Vec<ContainerStatus>,
    pub pod_address: &'a str,
    pub host_address: Option<&'a str>,
    pub started: &'a Time,
    /// The pod was deleted and nothing of it runs any more.
    pub ended: bool,
    /// The conditions written last, whose transition times are kept where nothing changed.
    pub before: &'a [PodCondition],
}

/// Now, in the whole seconds that the API keeps; what is over of one is cut off, as a kubelet does it, for nothing happens in the future.
pub(super) fn now() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// The conditions the agent owns; the scheduler and others own theirs.
pub(super) const OWNED: [&str; 3] = ["Initialized", "ContainersReady", "Ready"];

pub(super) fn status(pod: &Pod, spec: &PodSpec, facts: &Facts<'_>) -> PodStatus {
    let phase = if facts.ended { last_phase(facts) } else { phase(spec, &facts.init, &facts.containers) };
    let host_address = facts.host_address.map(str::to_owned);
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions(pod, spec, facts, phase)),
        container_statuses: Some(facts.containers.clone()),
        init_container_statuses: (!facts.init.is_empty()).then(|| facts.init.clone()),
        pod_ip: Some(facts.pod_address.to_owned()),
        pod_ips: Some(vec![PodIP { ip: facts.pod_address.to_owned() }]),
        host_ips: host_address.clone().map(|ip| vec![HostIP { ip }]),
        host_ip: host_address,
        start_time: Some(facts.started.clone()),
        ..PodStatus::default()
    }
}

fn exit_code(status: &ContainerStatus) -> Option<i32> {
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Waiting to be started again, as opposed to waiting for its first start.
fn is_between_lives(status: &ContainerStatus) -> bool {
    let waiting = status.state.as_ref().is_some_and(|state| state.waiting.is_some());
    waiting && status.last_state.as_ref().is_some_and(|last| last.terminated.is_some())
}

pub(super) fn phase(spec: &PodSpec, init: &[ContainerStatus], containers: &[ContainerStatus]) -> &'static str {
    let policy = spec.restart_policy.as_deref().unwrap_or("Always");
    if policy == "Never" && init.iter().any(|status| exit_code(status).is_some_and(|code| code != 0)) {
        return "Failed";
    }
    if init.iter().any(|status| exit_code(status) != Some(0)) {
        return "Pending";
    }
    if containers.iter().any(|status| !is_running(status) && exit_code(status).is_none() && !is_between_lives(status)) {
        return "Pending";
    }
    if containers.iter().any(is_running) || policy == "Always" || containers.iter().any(is_between_lives) {
        return "Running";
    }
    if containers.iter().all(|status| exit_code(status) == Some(0)) {
        return "Succeeded";
    }
    if policy == "Never" { "Failed" } else { "Running" }
}

/// A pod that ended because it was deleted stays ended, whatever its restart policy: Jobs count on that.
fn last_phase(facts: &Facts<'_>) -> &'static str {
    let succeeded = facts.init.iter().chain(&facts.containers).all(|status| exit_code(status) == Some(0));
    if succeeded { "Succeeded" } else { "Failed" }
}

fn conditions(pod: &Pod, spec: &PodSpec, facts: &Facts<'_>, phase: &str) -> Vec<PodCondition> {
    let names = |statuses: &[ContainerStatus], wrong: &dyn Fn(&ContainerStatus) -> bool| {
        statuses.iter().filter(|status| wrong(status)).map(|status| status.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let incomplete = names(&facts.init, &|status| exit_code(status) != Some(0));
    let initialized = if incomplete.is_empty() {
        Verdict::yes((phase == "Succeeded").then_some("PodCompleted"))
    } else {
        Verdict::no("ContainersNotInitialized", format!("containers with incomplete status: [{incomplete}]"))
    };
    let unready = names(&facts.containers, &|status| !status.ready);
    let containers_ready = match phase {
        "Succeeded" => Verdict::no("PodCompleted", String::new()),
        "Failed" => Verdict::no("PodFailed", String::new()),
        _ if unready.is_empty() => Verdict::yes(None),
        _ => Verdict::no("ContainersNotReady", format!("containers with unready status: [{unready}]")),
    };
    let gates: Vec<_> = spec.readiness_gates.iter().flatten().map(|gate| gate.condition_type.as_str()).collect();
    let closed: Vec<_> = gates.into_iter().filter(|gate| !holds(pod, gate)).collect();
    let ready = if containers_ready.status == "True" && !closed.is_empty() {
        Verdict::no("ReadinessGatesNotReady", format!("corresponding conditions of pod readiness gates do not hold: {closed:?}"))
    } else {
        containers_ready.clone()
    };
    OWNED.into_iter().zip([initialized, containers_ready, ready]).map(|(name, verdict)| verdict.condition(name, facts.before)).collect()
}

fn holds(pod: &Pod, condition: &str) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|entry| entry.type_ == condition && entry.status == "True")
}

#[derive(Clone)]
struct Verdict {
    status: &'static str,
    reason: Option<&'static str>,
    message: String,
}

impl Verdict {
    fn yes(reason: Option<&'static str>) -> Verdict {
        Verdict { status: "True", reason, message: String::new() }
    }

    fn no(reason: &'static str, message: String) -> Verdict {
        Verdict { status: "False", reason: Some(reason), message }
    }

    fn condition(self, name: &str, before: &[PodCondition]) -> PodCondition {
        let unchanged = before.iter().find(|condition| condition.type_ == name && condition.status == self.status);
        PodCondition {
            type_: name.to_owned(),
            status: self.status.to_owned(),
            reason: self.reason.map(str::to_owned),
            message: (!self.message.is_empty()).then_some(self.message),
            last_transition_time: unchanged.and_then(|condition| condition.last_transition_time.clone()).or_else(|| Some(now())),
            ..PodCondition::default()
        }
    }
}

/// Whether the object shows what the agent would write: others may have changed it, as the node controller does to the pods of
/// a node it lost sight of.
pub(super) fn shows(pod: &Pod, wanted: &PodStatus) -> bool {
    let Some(shown) = &pod.status else { return false };
    let owned = |status: &PodStatus| {
        let conditions = status.conditions.iter().flatten().filter(|condition| OWNED.contains(&condition.type_.as_str()));
        conditions.map(|condition| (condition.type_.clone(), condition.status.clone())).collect::<std::collections::BTreeSet<_>>()
    };
    shown.phase == wanted.phase && owned(shown) == owned(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn container(name: &str, state: &Value, last: &Value, ready: bool) -> ContainerStatus {
        let value =
            json!({"name": name, "image": "i", "imageID": "", "ready": ready, "restartCount": 0, "state": state, "lastState": last});
        serde_json::from_value(value).unwrap()
    }

    fn running(name: &str, ready: bool) -> ContainerStatus {
        container(name, &json!({"running": {}}), &json!({}), ready)
    }

    fn ended(name: &str, code: i32) -> ContainerStatus {
        container(name, &json!({"terminated": {"exitCode": code}}), &json!({}), false)
    }

    fn creating(name: &str) -> ContainerStatus {
        container(name, &json!({"waiting": {"reason": "ContainerCreating"}}), &json!({}), false)
    }

    fn looping(name: &str) -> ContainerStatus {
        container(name, &json!({"waiting": {"reason": "CrashLoopBackOff"}}), &json!({"terminated": {"exitCode": 1}}), false)
    }

    fn spec(policy: &str) -> PodSpec {
        PodSpec { restart_policy: Some(policy.to_owned()), ..PodSpec::default() }
    }

    #[test]
    fn the_phase_is_the_kubelets() {
        for (policy, init, containers, expected) in [
            ("Always", vec![], vec![creating("a")], "Pending"),
            ("Always", vec![], vec![running("a", true), creating("b")], "Pending"),
            ("Always", vec![running("i", false)], vec![creating("a")], "Pending"),
            ("Always", vec![ended("i", 0)], vec![running("a", false)], "Running"),
            ("Always", vec![], vec![looping("a")], "Running"),
            ("Always", vec![], vec![ended("a", 0)], "Running"),
            ("Never", vec![ended("i", 3)], vec![creating("a")], "Failed"),
            ("OnFailure", vec![looping("i")], vec![creating("a")], "Pending"),
            ("Never", vec![], vec![ended("a", 0), ended("b", 0)], "Succeeded"),
            ("Never", vec![], vec![ended("a", 0), ended("b", 1)], "Failed"),
            ("Never", vec![], vec![running("a", true), ended("b", 1)], "Running"),
            ("OnFailure", vec![], vec![ended("a", 0), looping("b")], "Running"),
        ] {
            assert_eq!(phase(&spec(policy), &init, &containers), expected, "{policy} {init:?} {containers:?}");
        }
    }

    fn written(pod: &Pod, init: Vec<ContainerStatus>, containers: Vec<ContainerStatus>, before: &[PodCondition]) -> Vec<PodCondition> {
        let started = now();
        let facts = Facts { init, containers, pod_address: "10.128.0.2", host_address: None, started: &started, ended: false, before };
        let gates = json!({"containers": [], "readinessGates": [{"conditionType": "x/gate"}]});
        let spec = if pod.status.is_some() { serde_json::from_value(gates).unwrap() } else { spec("Always") };
        status(pod, &spec, &facts).conditions.unwrap()
    }

    fn find<'a>(conditions: &'a [PodCondition], name: &str) -> &'a PodCondition {
        conditions.iter().find(|condition| condition.type_ == name).unwrap()
    }

    #[test]
    fn unready_containers_are_named_in_the_condition() {
        let conditions = written(&Pod::default(), vec![], vec![running("a", true), running("b", false)], &[]);
        let ready = find(&conditions, "Ready");
        assert_eq!((ready.status.as_str(), ready.reason.as_deref()), ("False", Some("ContainersNotReady")));
        assert_eq!(ready.message.as_deref(), Some("containers with unready status: [b]"));
        assert_eq!(find(&conditions, "Initialized").status, "True");
    }

    #[test]
    fn a_transition_time_changes_only_with_the_status() {
        let long_ago = Time(Timestamp::UNIX_EPOCH);
        let mut before = written(&Pod::default(), vec![], vec![running("a", false)], &[]);
        before.iter_mut().for_each(|condition| condition.last_transition_time = Some(long_ago.clone()));
        let after = written(&Pod::default(), vec![], vec![running("a", true)], &before);
        assert_eq!(find(&after, "Initialized").last_transition_time, Some(long_ago.clone()));
        assert_ne!(find(&after, "Ready").last_transition_time, Some(long_ago));
    }

    #[test]
    fn a_deleted_pod_ends_in_a_phase_that_is_final() {
        let started = now();
        for (code, expected) in [(0, "Succeeded"), (143, "Failed")] {
            let containers = vec![ended("a", code)];
            let facts = Facts {
                init: vec![],
                containers,
                pod_address: "10.128.0.2",
                host_address: None,
                started: &started,
                ended: true,
                before: &[],
            };
            assert_eq!(status(&Pod::default(), &spec("Always"), &facts).phase.as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_closed_readiness_gate_keeps_the_pod_unready() {
        let of = |value: &str| -> Pod {
            serde_json::from_value(json!({"status": {"conditions": [{"type": "x/gate", "status": value}]}})).unwrap()
        };
        let closed = written(&of("False"), vec![], vec![running("a", true)], &[]);
        assert_eq!((find(&closed, "ContainersReady").status.as_str(), find(&closed, "Ready").status.as_str()), ("True", "False"));
        let open = written(&of("True"), vec![], vec![running("a", true)], &[]);
        assert_eq!(find(&open, "Ready").status, "True");
    }
}
