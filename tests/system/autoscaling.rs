//! The autoscaler of a whole lab.

use kube::ResourceExt as _;
use vmi_lab::kubernetes::{self, MACHINE_AUTOSCALER, MACHINE_SET};

use crate::support::lab::Lab;
use crate::support::openshift::MACHINE_API;
use crate::support::suite::TestResult;

pub async fn the_autoscaler_has_marked_the_set_that_it_scales(lab: &Lab) -> TestResult {
    let scaler = kubernetes::get(&lab.client, MACHINE_AUTOSCALER, MACHINE_API, "workers").await?.ok_or("no autoscaler")?;
    assert_eq!(scaler.data["status"]["lastTargetRef"], scaler.data["spec"]["scaleTargetRef"]);
    let target = scaler.data["spec"]["scaleTargetRef"]["name"].as_str().ok_or("no target")?;
    for set in kubernetes::list(&lab.client, MACHINE_SET, MACHINE_API).await? {
        let owner = set.annotations().get("autoscaling.openshift.io/machineautoscaler").map(String::as_str);
        let wanted = (set.name_any() == target).then_some("openshift-machine-api/workers");
        assert_eq!(owner, wanted, "{}", set.name_any());
    }
    Ok(())
}
