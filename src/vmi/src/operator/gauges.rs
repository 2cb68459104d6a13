//! The gauges that follow from a vmi, as they are when somebody asks.

use std::sync::{Mutex, PoisonError};

use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::status::StepState;
use vmi_kit::metrics::Metrics;

/// The page Prometheus reads: of several vmis it tells of the one that is under way, or else of the newest.
pub fn page<'a>(metrics: &Metrics, vmis: impl Iterator<Item = &'a VSphereMigrationInfra>) -> prometheus::Result<String> {
    // One page at a time, since it is made of what the one before left.
    static WRITING: Mutex<()> = Mutex::new(());
    let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    metrics.forget_vmi();
    let place = |vmi: &&VSphereMigrationInfra| {
        (!vmi.over(), vmi.seen().started_at.is_some(), vmi.metadata.creation_timestamp.as_ref().map(|time| time.0))
    };
    if let Some(vmi) = vmis.max_by_key(place) {
        set(metrics, vmi);
    }
    metrics.page()
}

fn set(metrics: &Metrics, vmi: &VSphereMigrationInfra) {
    let status = vmi.seen();
    for step in &status.steps {
        let value = match step.state {
            StepState::Waiting | StepState::NotRequested => 0.0,
            StepState::Active => 1.0,
            StepState::Done => 2.0,
            StepState::Failed => 3.0,
            StepState::Undone => 4.0,
        };
        metrics.step_state.with_label_values(&[&step.name, &step.controller]).set(value);
        if let Some(began) = &step.started_at {
            let until = step.finished_at.as_ref().map_or_else(jiff::Timestamp::now, |ended| ended.0);
            metrics.step_duration.with_label_values(&[&step.name]).set(until.duration_since(began.0).as_secs_f64());
        }
    }
    for condition in &status.conditions {
        for possible in ["True", "False", "Unknown"] {
            let value = if condition.status == possible { 1.0 } else { 0.0 };
            metrics.condition.with_label_values(&[condition.type_.as_str(), possible]).set(value);
        }
    }
    for machines in &status.machines {
        metrics.machines.with_label_values(&[&machines.role, &machines.vcenter, &machines.phase]).set(f64::from(machines.count));
    }
    let frozen = vmi.condition(StepName::ClusterVersionFrozen.as_str()).is_some_and(|it| it.status == "True" && it.reason == "Frozen");
    metrics.frozen.set(i64::from(frozen));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn vmi(name: &str, created: &str, status: &Value) -> VSphereMigrationInfra {
        let text = include_str!("../../golden/status/new.yaml");
        let mut vmi: Value = serde_saphyr::from_str(text).unwrap();
        vmi["metadata"]["name"] = json!(name);
        vmi["metadata"]["creationTimestamp"] = json!(created);
        vmi["status"] = status.clone();
        serde_json::from_value(vmi).unwrap()
    }

    fn condition(name: &str, status: &str, reason: &str) -> Value {
        json!({"type": name, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2026-11-16T19:49:46Z"})
    }

    fn running() -> VSphereMigrationInfra {
        let step = |name: &str, controller: &str, state: &str, ended: Value| {
            json!({"name": name, "number": "1", "controller": controller, "state": state, "attempts": 1,
                "startedAt": "2026-11-16T19:49:46.000000Z", "finishedAt": ended, "observedGeneration": 1, "message": ""})
        };
        let status = json!({
            "startedAt": "2026-11-16T19:49:46Z",
            "steps": [
                step("ClusterVersionFrozen", "cluster-freeze", "Done", json!("2026-11-16T19:49:48.500000Z")),
                step("TagsAttached", "vcenter-prep", "Failed", Value::Null),
            ],
            "conditions": [condition("ClusterVersionFrozen", "True", "Frozen"), condition("Degraded", "False", "AsExpected")],
            "machines": [{"role": "worker", "vcenter": "vc-b", "phase": "Running", "count": 3}],
        });
        vmi("running", "2026-11-16T19:00:00Z", &status)
    }

    #[test]
    fn the_page_tells_of_steps_conditions_machines_and_the_build() {
        let page = page(&Metrics::new().unwrap(), [running()].iter()).unwrap();
        for line in [
            r#"vmi_step_state{controller="cluster-freeze",step="ClusterVersionFrozen"} 2"#,
            r#"vmi_step_state{controller="vcenter-prep",step="TagsAttached"} 3"#,
            r#"vmi_step_duration_seconds{step="ClusterVersionFrozen"} 2.5"#,
            r#"vmi_condition{status="True",type="ClusterVersionFrozen"} 1"#,
            r#"vmi_condition{status="True",type="Degraded"} 0"#,
            r#"vmi_condition{status="False",type="Degraded"} 1"#,
            r#"vmi_machines{phase="Running",role="worker",vcenter="vc-b"} 3"#,
            "vmi_cluster_version_frozen 1",
            "vmi_handover_seconds_count 0",
        ] {
            assert!(page.lines().any(|told| told == line), "{line} is not in\n{page}");
        }
        assert!(page.contains("vmi_build_info{") && page.contains(r#"vmi_step_duration_seconds{step="TagsAttached"}"#), "{page}");
    }

    #[test]
    fn of_several_vmis_the_one_under_way_is_told_and_none_that_is_gone() {
        let metrics = Metrics::new().unwrap();
        let status = json!({"conditions": [condition("Completed", "True", "Completed"), condition("Degraded", "True", "Old")]});
        let over = vmi("over", "2026-11-16T20:00:00Z", &status);
        for vmis in [[running(), over.clone()], [over.clone(), running()]] {
            let page = page(&metrics, vmis.iter()).unwrap();
            assert!(page.contains(r#"vmi_condition{status="True",type="Degraded"} 0"#), "{page}");
        }
        let page = page(&metrics, std::iter::empty()).unwrap();
        assert!(!page.contains("vmi_condition{") && page.contains("vmi_cluster_version_frozen 0"), "{page}");
    }
}
