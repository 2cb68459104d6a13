//! What whoever reads the status can do next, as a command that works as it stands.

use kube::ResourceExt as _;
use serde_json::{Value, json};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::spec::Approval;
use vmi_crds::status::Plan;

use super::view::Assessment;

pub(super) fn of(vmi: &VSphereMigrationInfra, assessment: Assessment, plan: &Plan) -> Option<String> {
    match assessment {
        Assessment::Blocked => {
            let ids = plan.blocking.join(", ");
            Some(format!("put right what the checks above found, or take it on by naming {ids} in spec.acknowledged"))
        }
        Assessment::Planned => {
            let mut spec = json!({"state": "Running"});
            if vmi.spec.approval == Approval::Manual {
                spec["approvedPlan"] = json!(plan.hash);
            }
            Some(format!("to start: {}", patch(vmi, &spec)))
        }
        Assessment::Paused if vmi.status.as_ref().is_some_and(|status| status.rolling_back_at.is_some()) => {
            Some(format!("to go on going back: {}", patch(vmi, &json!({"state": "RollingBack"}))))
        }
        Assessment::Paused => Some(format!("to go on: {}", patch(vmi, &json!({"state": "Running"})))),
        _ => None,
    }
}

/// The short name `vmi` is KubeVirt's too, so the full one is printed.
fn patch(vmi: &VSphereMigrationInfra, spec: &Value) -> String {
    let (name, namespace) = (vmi.name_any(), vmi.namespace().unwrap_or_default());
    let body = json!({"spec": spec});
    format!("oc -n {namespace} patch vspheremigrationinfra.config.openshift.io {name} --type merge -p '{body}'")
}
