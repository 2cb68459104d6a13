//! The calls to vCenters that a step made: measured, and kept for whoever asks later what it did.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use vmi_crds::graph::StepName;
use vmi_crds::status::StepState;
use vmi_kit::failure::Stop;
use vsphere::Call;

use crate::migration::Migration;
use crate::report::Report;
use crate::step::{Step, Wake};

/// The key in the ConfigMap: a JSON array, the oldest call first.
pub const KEY: &str = "calls.json";
const MOST: usize = 200;

/// The ConfigMap with the calls of a step.
pub fn config_map_name(vmi: &str, step: StepName) -> String {
    format!("vmi-{vmi}-calls-{}", step.step().number)
}

/// Takes a step that talks to vCenters; when it ends, well or not, that is reported and then its calls are kept. In this order: a
/// process killed in between loses a record, but never does the step's work again.
pub async fn take<S: Step>(step: &S, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
    let before = report.step(S::NAME).state;
    let outcome = crate::step::take(step, m, report).await;
    m.cx.metrics.record_calls(m.cx.vcenters.calls());
    let now = report.step(S::NAME).state;
    if now != before && matches!(now, StepState::Done | StepState::Undone | StepState::Failed) {
        let began = report.step(S::NAME).started_at.as_ref().map(|time| time.0);
        report.apply(&m.cx).await?;
        keep(m, S::NAME, began).await?;
    }
    outcome
}

async fn keep(m: &Migration, step: StepName, began: Option<Timestamp>) -> Result<(), Stop> {
    let calls = since(m.cx.vcenters.calls().recent(), began);
    if calls.is_empty() {
        return Ok(());
    }
    let name = config_map_name(&m.name(), step);
    let text = serde_json::to_string(&calls).map_err(Stop::again)?;
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": m.cx.namespace,
            // They are about this vmi and of no use without it.
            "ownerReferences": [{
                "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra", "name": m.name(), "uid": m.uid(),
            }],
        },
        "data": {KEY: text},
    });
    let api: Api<ConfigMap> = Api::namespaced(m.cx.client.clone(), &m.cx.namespace);
    let manager = step.step().controller.field_manager();
    let _writing = m.cx.vcenters.trials().write(Vec::new()).await;
    api.patch(&name, &PatchParams::apply(&manager).force(), &Patch::Apply(&body)).await?;
    crate::writes::counted();
    Ok(())
}

/// The last calls that began in the step's time.
fn since(calls: Vec<Call>, began: Option<Timestamp>) -> Vec<Call> {
    let mut calls: Vec<Call> = calls.into_iter().filter(|call| began.is_none_or(|began| call.at >= began)).collect();
    let surplus = calls.len().saturating_sub(MOST);
    calls.drain(..surplus);
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(sequence: u64) -> Call {
        Call {
            sequence,
            at: Timestamp::from_second(i64::try_from(sequence).unwrap_or_default()).unwrap_or_default(),
            operation: String::new(),
            server: "vc".to_owned(),
            api: "soap",
            method: "CurrentTime".to_owned(),
            object: None,
            duration_ms: 1.0,
            bytes_out: 0,
            bytes_in: 0,
            result: "ok".to_owned(),
            retries: 0,
        }
    }

    #[test]
    fn only_calls_of_the_steps_own_time_are_kept_and_of_these_the_last_two_hundred() {
        let began = Timestamp::from_second(300).ok();
        let numbers = |began, count| since((0..count).map(call).collect(), began).iter().map(|call| call.sequence).collect::<Vec<_>>();
        assert_eq!(numbers(began, 302), [300, 301]);
        let many = numbers(None, 1000);
        assert_eq!((many.len(), many[0], many[199]), (200, 800, 999));
    }
}
