//! A migration is turned back from the steps it can be turned back from, one after the other in one lab.

use vmi_crds::graph::StepName;
use vmi_crds::spec::SourceRetirement;
use vmi_lab::migration::operator::{Operator, Options};
use vmi_lab::migration::view::View;
use vmi_lab::migration::{Site, rehearsal, request};

use crate::support::lab::Lab;
use crate::support::openshift::passed;
use crate::support::suite::TestResult;

/// Until machines are replaced, a growth and a move take the same steps; a growth is quicker.
pub async fn a_migration_can_be_turned_back_from_every_step() -> TestResult {
    let lab = Lab::start("native", "turned-back").await?;
    let result = async {
        in_lab(&lab, SourceRetirement::Keep, |_| true).await?;
        in_lab(&lab, SourceRetirement::Remove, |step| step >= StepName::WorkersReady).await
    }
    .await;
    lab.stop().await?;
    result
}

pub async fn a_legacy_growth_can_be_turned_back_from_every_step() -> TestResult {
    every("legacy-yaml", SourceRetirement::Keep, |_| true).await
}

pub async fn a_move_can_be_turned_back_before_machines_are_replaced() -> TestResult {
    every("native", SourceRetirement::Remove, |step| step < StepName::WorkersReady).await
}

pub async fn a_legacy_move_can_be_turned_back_while_machines_are_replaced() -> TestResult {
    every("legacy-yaml", SourceRetirement::Remove, |step| step >= StepName::WorkersReady).await
}

pub async fn a_legacy_move_can_be_turned_back_before_machines_are_replaced() -> TestResult {
    every("legacy-yaml", SourceRetirement::Remove, |step| step < StepName::WorkersReady).await
}

pub async fn a_rich_move_can_be_turned_back_while_machines_are_replaced() -> TestResult {
    every("rich", SourceRetirement::Remove, |step| step >= StepName::WorkersReady).await
}

pub async fn a_rich_move_can_be_turned_back_before_machines_are_replaced() -> TestResult {
    every("rich", SourceRetirement::Remove, |step| step < StepName::WorkersReady).await
}

/// Whose Infrastructure said nothing of vCenters, and which had no control plane machine set.
pub async fn an_ancient_move_can_be_turned_back() -> TestResult {
    use StepName::{ControlPlaneReady, InfrastructureExtended, SourceWorkersRemoved, WorkersReady};
    let telling = [InfrastructureExtended, WorkersReady, ControlPlaneReady, SourceWorkersRemoved];
    every("ancient", SourceRetirement::Remove, |step| telling.contains(&step)).await
}

/// The first time the source's description stays behind, for the API does not let it go; from then on all is as before.
pub async fn a_move_of_a_cluster_that_may_begin_with_one_vcenter_only_can_be_turned_back() -> TestResult {
    use StepName::{ControlPlaneReady, InfrastructureExtended, SourceWorkersRemoved};
    let telling = [InfrastructureExtended, ControlPlaneReady, SourceWorkersRemoved];
    every("unlisted", SourceRetirement::Remove, |step| telling.contains(&step)).await
}

/// A lab of its own: the operator's namespace and rights stay.
async fn every(shape: &str, source: SourceRetirement, wanted: impl Fn(StepName) -> bool) -> TestResult {
    let lab = Lab::start(shape, "turned-back").await?;
    let result = in_lab(&lab, source, wanted).await;
    lab.stop().await?;
    result
}

async fn in_lab(lab: &Lab, source: SourceRetirement, wanted: impl Fn(StepName) -> bool) -> TestResult {
    let site = Site::of(&lab.record).await?;
    let steps: Vec<StepName> = rehearsal::ways_back(source).into_iter().filter(|step| wanted(*step)).collect();
    assert!(steps.len() >= 3, "{steps:?}");
    for step in steps {
        from(&site, source, step).await.map_err(|error| format!("{step}: {error}"))?;
    }
    Ok(())
}

async fn from(site: &Site, source: SourceRetirement, step: StepName) -> TestResult {
    let outcome = rehearsal::rehearse(site, source, Some(step), &mut View::stderr()).await?;
    passed(&outcome.checks)?;
    // Whether the vmi has something left to finish is for an operator to say.
    let mut operator = Operator::start(site, &Options::default()).await?;
    operator.while_alive(request::remove(site)).await?;
    operator.stop().await;
    Ok(())
}
