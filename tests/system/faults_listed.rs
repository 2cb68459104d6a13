//! Every fault by name: `status` shows it until it is lifted.

use vmi_lab::faults::{Calls, Fault, Faults};

use crate::support::command;
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

/// Adds these side by side, looks for each in `status`, and lifts them all.
async fn shown(lab: &Lab, all: &[Fault]) -> TestResult {
    let faults = Faults::of(&lab.record).await?;
    let mut ids = Vec::new();
    for fault in all {
        ids.push((faults.add(fault).await?, serde_json::json!(fault)["kind"].as_str().unwrap_or_default().to_owned()));
    }
    let status = async || -> TestResult<String> {
        Ok(command::vmi_lab(&vmi_lab::home::folder(), &["status", "--name", &lab.record.name]).await?.success()?.stdout)
    };
    let text = status().await?;
    for (id, kind) in &ids {
        let line = |line: &str| line.split_whitespace().take(3).eq(["fault", id.as_str(), kind.as_str()]);
        assert!(text.lines().any(line), "{id} {kind} is missing in: {text}");
    }
    for (id, _) in &ids {
        faults.lift(id).await?;
    }
    let text = status().await?;
    assert!(!text.contains("  fault "), "{text}");
    Ok(())
}

pub async fn status_names_every_fault_of_a_vcenter_until_it_is_lifted(lab: &Lab) -> TestResult {
    // Nobody but tests speaks to the target, and to them these mean nothing.
    let name = || "b".to_owned();
    let nobody = || Calls { client: Some("nobody".to_owned()), ..Calls::default() };
    shown(
        lab,
        &[
            Fault::Latency { vcenter: name(), milliseconds: 1, calls: nobody() },
            Fault::Status { vcenter: name(), code: 503, calls: nobody() },
            Fault::Drop { vcenter: name(), calls: nobody() },
            Fault::Password { vcenter: name() },
            Fault::Privileges { vcenter: name(), missing: vec!["Folder.Create".to_owned()], object: "nothing".to_owned() },
            Fault::Certificate { vcenter: name() },
            Fault::Gone { vcenter: name(), object: "/dc-b/network/ocp-b".to_owned() },
        ],
    )
    .await
}

pub async fn status_names_every_fault_of_a_cluster_until_it_is_lifted(lab: &Lab) -> TestResult {
    let crash = Fault::CrashLoop { namespace: "default".to_owned(), workload: "nobody".to_owned(), container: String::new() };
    shown(
        lab,
        &[
            Fault::SlowWatch { milliseconds: 1 },
            Fault::NeverJoins { prefix: String::new() },
            crash,
            Fault::MachineControllerCrashLoop,
            Fault::CcmKilled,
            Fault::DrainBlocked,
            Fault::CpmsDegraded,
            Fault::EtcdMemberStuck,
        ],
    )
    .await
}
