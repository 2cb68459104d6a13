//! Moves the machines: workers appear on the target, the control plane goes over, the source's workers leave.
//!
//! Consumes: PodsHealthy, the sets and masters of the sources pinned in the vmi, and what step 3 saved of the control plane machine set.
//! Produces: WorkersReady, ControlPlaneReady, SourceWorkersRemoved; status.machines.
//! Touches: [`MachineRollout::TOUCHES`]. Machines are made and deleted by the cluster's own controllers alone; sets of other
//! platforms and vCenters, and nodes that no Machine of the source became, are never touched.
//! Undo: the source's sets and control plane come back as they were, then what was made on the target leaves.
//! Gives up when: a name is taken (ROL-001), a Machine has failed for good (ROL-002), there is no set to make others like (ROL-003),
//! what was saved cannot be read (ROL-004), no failure domain is the masters' (ROL-005). A machine that only takes long, or that a budget, a volume or a hook keeps, is waited for.

mod joining;
mod leaving;
mod plane;
mod ramp;
mod steps;
mod successors;
mod view;
mod wanted;

use serde_json::Value;
use vmi_kit::kind::{
    ADMISSION_POLICY, CLUSTER_OPERATOR, CONTROL_PLANE_MACHINE_SET, INFRASTRUCTURE, MACHINE, MACHINE_AUTOSCALER, MACHINE_SET, NODE,
    PERSISTENT_VOLUME, POD_DISRUPTION_BUDGET, SECRET, VOLUME_ATTACHMENT,
};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_steps::step::sooner;
use vmi_steps::{Controller, Migration, Report, Wake, take};

use steps::brake;
use steps::control_plane::ControlPlaneReady;
use steps::source_workers::SourceWorkersRemoved;
use steps::workers::WorkersReady;
use view::{EVENT, NAMESPACE, SIGNING_REQUEST};

/// The controller of steps 11, 12 and 13.
pub struct MachineRollout;

impl Controller for MachineRollout {
    const NAME: vmi_crds::graph::Controller = vmi_crds::graph::Controller::MachineRollout;
    const FIELDS: &'static [&'static str] = &["machines"];
    const TOUCHES: &'static [Touch] = &[
        reads(SECRET).within(OWN).writes(&["create", "patch"]),
        reads(INFRASTRUCTURE).named("cluster"),
        reads(CLUSTER_OPERATOR),
        reads(MACHINE).within(NAMESPACE),
        reads(MACHINE_SET).within(NAMESPACE).writes(&["create", "patch", "delete"]),
        reads(MACHINE_AUTOSCALER).within(NAMESPACE).writes(&["patch"]),
        reads(CONTROL_PLANE_MACHINE_SET).within(NAMESPACE).writes(&["create", "patch", "delete"]),
        reads(NODE),
        reads(PERSISTENT_VOLUME),
        reads(VOLUME_ATTACHMENT),
        reads(POD_DISRUPTION_BUDGET),
        reads(ADMISSION_POLICY),
        // They only tell who keeps a machine from leaving or joining.
        reads(EVENT).within(NAMESPACE).optional(),
        reads(SIGNING_REQUEST).optional(),
    ];

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        if !m.vmi.over() {
            count(m, report);
        }
        brake::brake(m, report).await?;
        let mut wake = take(&WorkersReady, m, report).await?;
        wake = sooner(wake, take(&ControlPlaneReady, m, report).await?);
        wake = sooner(wake, take(&SourceWorkersRemoved, m, report).await?);
        Ok(wake)
    }
}

fn count(m: &Migration, report: &mut Report) {
    let counts = view::counts(&m.list(MACHINE, NAMESPACE));
    match &counts {
        Value::Array(list) if list.is_empty() => report.unset("machines"),
        _ => report.set("machines", counts),
    }
}
