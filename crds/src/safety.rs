//! In which state the cluster is, and whether it can stay so.

use crate::VSphereMigrationInfra;
use crate::graph::{STEPS, StepName};
use crate::status::StepState;

/// The cluster in words, and whether the migration can be left as it is for hours.
pub fn cluster_state(vmi: &VSphereMigrationInfra) -> (String, bool) {
    let changed = |step: &&crate::graph::Step| matches!(vmi.step_state(step.name), StepState::Active | StepState::Done | StepState::Failed);
    let begun: Vec<&str> = STEPS.iter().skip(1).filter(changed).map(|step| step.number).collect();
    if begun.is_empty() {
        return ("nothing in the cluster or in a vCenter was changed".to_owned(), true);
    }
    let half = half_configured(vmi);
    let frozen = vmi.condition(StepName::ClusterVersionFrozen.as_str()).is_some_and(|c| c.status == "True" && c.reason == "Frozen");
    let moving = [StepName::WorkersReady, StepName::ControlPlaneReady, StepName::SourceWorkersRemoved];
    let serves = if vmi.seen().one_way_at.is_some() && vmi.begun(StepName::SourceDetached) {
        "the target serves the whole cluster, and there is no way back to the source"
    } else if moving.iter().any(|name| changed(&name.step())) {
        "machines serve on the source and on the target"
    } else {
        "the source still serves the whole cluster"
    };
    let mut text = format!("steps {} have begun; {serves}", begun.join(", "));
    if half {
        text.push_str("; Infrastructure and the cloud configuration do not agree yet");
    }
    if frozen {
        text.push_str("; the cluster version operator is held back, so updates wait");
    }
    (text, !half)
}

/// Between the first write of 7 and the end of 8, on the way back and while the source is taken out, readers do not see the same.
fn half_configured(vmi: &VSphereMigrationInfra) -> bool {
    let detaching = vmi.seen().one_way_at.is_some() && vmi.begun(StepName::SourceDetached);
    if detaching && !vmi.is_true(StepName::SourceDetached.as_str()) {
        return true;
    }
    let [seven, eight] = [StepName::InfrastructureExtended, StepName::CloudConfigExtended].map(|name| vmi.step_state(name));
    let settled = |state: StepState| matches!(state, StepState::Done | StepState::Undone | StepState::Waiting | StepState::NotRequested);
    !(settled(seven) && settled(eight)) || (seven == StepState::Done) != (eight == StepState::Done)
}
