//! A move that somebody has to approve: before its first change, and once more before the source goes for good.

use std::time::Duration;

use serde_json::json;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName::{SourceDetached, SourceWorkersRemoved};
use vmi_crds::spec::{Approval, SourceRetirement, State};
use vmi_crds::status::{Plan, StepState};
use vmi_lab::kubernetes::{self, VMI};
use vmi_lab::migration::dump::Dump;
use vmi_lab::migration::operator::{Operator, Options};
use vmi_lab::migration::view::View;
use vmi_lab::migration::watch::{self, End};
use vmi_lab::migration::{NAMESPACE, Site, back, deploy, moved, request};

use crate::support::lab::Lab;
use crate::support::openshift::passed;
use crate::support::suite::TestResult;

/// For a whole move on a loaded machine.
const LONG: Duration = Duration::from_secs(900);

/// A lab of its own: a cluster that was moved stays where it is.
pub async fn a_move_that_waits_for_approval_can_be_turned_back_when_the_sources_workers_have_left_and_is_completed_once_approved()
-> TestResult {
    let lab = Lab::start("native", "approved").await?;
    let result = approved(&lab).await;
    lab.stop().await?;
    result
}

async fn approved(lab: &Lab) -> TestResult {
    let site = Site::of(&lab.record).await?;
    let before = Dump::take(&site).await?;
    deploy::install(&site).await?;
    let mut operator = Operator::start(&site, &Options::default()).await?;

    operator.while_alive(until_the_door(&site)).await?;
    request::set_state(&site, State::RollingBack).await?;
    assert_eq!(operator.while_alive(end(&site)).await?, End::RolledBack);
    passed(&back::verdict(&site, &before).await?)?;
    operator.while_alive(request::remove(&site)).await?;

    let removal = operator.while_alive(until_the_door(&site)).await?;
    approve(&site, &removal).await?;
    assert_eq!(operator.while_alive(end(&site)).await?, End::Completed);
    passed(&moved::verdict(&site, &before).await?)?;
    operator.stop().await;
    Ok(())
}

/// Asks for a move, has its plan approved, and returns the hash of the removal when only that is waited for.
async fn until_the_door(site: &Site) -> Result<String, vmi_lab::migration::Error> {
    let mut asked = request::asked(site, SourceRetirement::Remove)?;
    asked.spec.approval = Approval::Manual;
    request::ask(site, &asked).await?;
    let plan = follow(site, "the plan", |vmi| plan(vmi)?.hash.clone()).await?;
    request::set_state(site, State::Running).await?;
    let begun = |vmi: &VSphereMigrationInfra| vmi.seen().started_at.is_some();
    assert!(!begun(&request::get(site).await?), "nobody has approved it");
    approve(site, &plan).await?;
    follow(site, "the approval of the removal", |vmi| {
        let left = watch::state(vmi, SourceWorkersRemoved) == StepState::Done;
        let waits = watch::state(vmi, SourceDetached) == StepState::Active && vmi.seen().one_way_at.is_none();
        plan_of_the_removal(vmi).filter(|_| left && waits)
    })
    .await
}

fn plan(vmi: &VSphereMigrationInfra) -> Option<&Plan> {
    vmi.status.as_ref()?.plan.as_ref()
}

fn plan_of_the_removal(vmi: &VSphereMigrationInfra) -> Option<String> {
    plan(vmi)?.removal_hash.clone()
}

async fn follow<T>(
    site: &Site,
    what: &str,
    enough: impl FnMut(&VSphereMigrationInfra) -> Option<T>,
) -> Result<T, vmi_lab::migration::Error> {
    watch::follow(site, &mut View::stderr(), what, LONG, enough).await
}

async fn end(site: &Site) -> Result<End, vmi_lab::migration::Error> {
    follow(site, "the end", watch::end).await
}

async fn approve(site: &Site, hash: &str) -> Result<(), vmi_lab::migration::Error> {
    Ok(kubernetes::merge(&site.client, VMI, NAMESPACE, request::NAME, &json!({"spec": {"approvedPlan": hash}})).await.map(drop)?)
}
