//! What keeps new workers from serving while a cluster moves.

use kube::ResourceExt as _;
use serde_json::json;
use vmi_crds::graph::StepName::WorkersReady;
use vmi_crds::spec::SourceRetirement;
use vmi_lab::cache::Cache;
use vmi_lab::faults::Fault;
use vmi_lab::kubernetes::{self, MACHINE};
use vmi_lab::migration::{moved, vcenters};
use vmi_lab::vcenter::INFRA_ID;

use super::underway::Underway;
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, passed};
use crate::support::suite::TestResult;

/// A lab of its own: a cluster that was moved stays where it is.
pub async fn a_move_stops_for_a_missing_tag_category_a_lost_template_and_a_node_that_never_joins_and_is_completed() -> TestResult {
    let lab = Lab::start("native", "no-workers").await?;
    let result = no_workers(&lab).await;
    lab.stop().await?;
    result
}

async fn no_workers(lab: &Lab) -> TestResult {
    let (mut migration, no_folder) = Underway::standing(lab, SourceRetirement::Remove).await?;

    // The tags are attached by now, and nobody looks at them again before a machine needs them.
    delete_category(&migration, "openshift-zone").await?;
    migration.faults.lift(&no_folder).await?;
    migration.resume().await?;
    let untagged = migration.stops("CCM-010", Some("cloud-controller-manager")).await?;
    assert!(untagged.line.as_deref().is_some_and(|line| line.contains("openshift-zone")), "{untagged:?}");

    let template = migration.site.target.template();
    let lost = migration.faults.add(&Fault::Gone { vcenter: "b".to_owned(), object: template }).await?;
    let zone = json!({"category": "openshift-zone", "tag": "zone-b", "type": "ClusterComputeResource", "object": "cluster-b"});
    lab.control.post("/vcenters/b/tags", &zone).await?;
    migration.replace_pod(&untagged).await?;
    let no_template = migration.stops("MAO-010", Some("machine-api")).await?;
    assert_eq!(no_template.container.as_deref(), Some("machine-controller"));

    migration.faults.lift(&lost).await?;
    migration.replace_pod(&no_template).await?;
    let failed = migration.stops("ROL-002", None).await?;
    assert!(failed.message.contains("template not found"), "{failed:?}");

    let lonely = migration.faults.add(&Fault::NeverJoins { prefix: format!("{INFRA_ID}-worker") }).await?;
    let failures = all_failures(lab).await?;
    let named = |vmi: &vmi_crds::VSphereMigrationInfra| {
        let failure = vmi.step(WorkersReady)?.failure.clone()?;
        failures.iter().all(|name| failure.message.contains(name)).then_some(())
    };
    migration.until("every machine that failed to be named", named).await?;
    for name in &failures {
        kubernetes::delete(&lab.client, MACHINE, MACHINE_API, name).await?;
    }
    migration.resume().await?;
    let waits = |vmi: &vmi_crds::VSphereMigrationInfra| {
        let message = &vmi.step(WorkersReady)?.message;
        message.contains("Provisioned").then(|| message.clone())
    };
    migration.until("a machine without a Node", waits).await?;
    migration.hours_pass(WorkersReady).await?;
    let stuck = migration.stops("STL-001", None).await?;
    assert!(stuck.message.contains("has not joined as a Node"), "{stuck:?}");
    assert!(stuck.look.iter().any(|command| command.starts_with("oc get csr")), "{stuck:?}");

    migration.faults.lift(&lonely).await?;
    migration.resume().await?;
    let (site, before, operator) = migration.completed().await?;
    let checks = moved::verdict(&site, &before).await?;
    operator.stop().await;
    passed(&checks)
}

/// The machines that have failed, once no other may follow: more than one was asked for while there was no template.
async fn all_failures(lab: &Lab) -> TestResult<Vec<String>> {
    let mut cache = lab.watch(&[MACHINE]).await;
    let decided = |cache: &Cache| {
        let machines = cache.list(MACHINE);
        let phase = |machine: &kube::api::DynamicObject| machine.data["status"]["phase"].as_str().unwrap_or_default().to_owned();
        let open = machines.iter().find(|machine| !["Failed", "Provisioned", "Running"].contains(&phase(machine).as_str()));
        match open {
            Some(open) => Err(format!("{} is {:?}", open.name_any(), phase(open))),
            None => Ok(machines.iter().filter(|machine| phase(machine) == "Failed").map(|machine| machine.name_any()).collect()),
        }
    };
    Ok(cache.until("every machine to be made or to have failed", PATIENCE, decided).await?)
}

/// Takes a category away on the target, and with it its tags.
async fn delete_category(migration: &Underway<'_>, name: &str) -> TestResult {
    let client = vcenters::client(&migration.site.target)?;
    let category = client.tags().category(name).await?.ok_or("no such category")?;
    client.tags().delete_category(&category).await?;
    Ok(client.logout().await?)
}
