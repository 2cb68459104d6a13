//! A whole operator that was told to start, and does not: the preflight says why, and nothing is touched.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_crds::spec::{SourceRetirement, State, Volumes};
use vmi_lab::kubernetes::{self, SECRET, VMI};
use vmi_lab::migration::dump::Dump;
use vmi_lab::migration::operator::{Operator, Options};
use vmi_lab::migration::view::View;
use vmi_lab::migration::{ACCOUNT, NAMESPACE, Site, account, audit, deploy, request, watch};

use crate::killed::killed_after_each_write;
use crate::support::lab::Lab;
use crate::support::openshift::refused_logins;
use crate::support::suite::TestResult;

/// For every check of the preflight, on a loaded machine.
const TO_JUDGE: Duration = Duration::from_secs(120);

/// In a cluster that has a volume on the source.
pub async fn a_move_that_would_leave_a_volume_behind_is_not_started_and_its_claim_is_named(lab: &Lab) -> TestResult {
    let site = Site::of(&lab.record).await?;
    let before = Dump::take(&site).await?;
    deploy::install(&site).await?;
    let began = Timestamp::now();
    let mut operator = Operator::start(&site, &Options::default()).await?;
    let mut asked = request::asked(&site, SourceRetirement::Remove)?;
    asked.spec.volumes = Volumes::Refuse;
    asked.spec.state = State::Running;
    request::ask(&site, &asked).await?;
    let vmi = operator.while_alive(watch::follow(&site, &mut View::stderr(), "the refusal", TO_JUDGE, is_blocked)).await?;

    let preflight = vmi.condition(StepName::PreflightPassed.as_str()).ok_or("no word of the preflight")?;
    for words in ["VOL-001", "default/orders", "spec.volumes: Refuse", "nothing was changed"] {
        assert!(preflight.message.contains(words), "{words:?} is missing in: {}", preflight.message);
    }
    assert!(!preflight.message.contains("shared-files"), "another driver's volume is none of the source's: {}", preflight.message);
    let status = vmi.seen();
    assert_eq!(status.plan.as_ref().map(|plan| plan.blocking.clone()), Some(vec!["VOL-001".to_owned()]));
    assert!(status.started_at.is_none() && status.source.is_none(), "{status:#?}");

    operator.while_alive(request::remove(&site)).await?;
    operator.stop().await;
    nothing_was_touched(&site, began, &before).await
}

/// Neither the cluster, outside the operator's own namespace, nor a vCenter.
async fn nothing_was_touched(site: &Site, began: Timestamp, before: &Dump) -> TestResult {
    let user = account::user(NAMESPACE, ACCOUNT);
    let elsewhere = |event: &audit::Event| event.user.username == user && event.is_write() && event.object_ref.namespace != NAMESPACE;
    let written: Vec<String> = audit::read(&site.folder, began, elsewhere)?.iter().map(audit::Event::spoken).collect();
    assert_eq!(written, Vec::<String>::new());
    assert_eq!(before.difference(&Dump::take(site).await?), Vec::<String>::new());
    Ok(())
}

/// Only what stands in the vmi tells a new process that a password was refused.
pub async fn a_wrong_password_is_sent_once_in_all_by_operators_that_are_killed_and_started_again(lab: &Lab) -> TestResult {
    let site = Site::of(&lab.record).await?;
    let before = Dump::take(&site).await?;
    deploy::install(&site).await?;
    let began = Timestamp::now();
    for killed_after_each_of_its_writes in [false, true] {
        let refusals = refused_logins(lab, "b").await?;
        let mut asked = request::asked(&site, SourceRetirement::Keep)?;
        asked.spec.state = State::Running;
        request::ask(&site, &asked).await?;
        let wrong = format!("wrong-{killed_after_each_of_its_writes}");
        let password = json!({"stringData": {format!("{}.password", site.target.server): wrong}});
        kubernetes::merge(&site.client, SECRET, NAMESPACE, request::CREDENTIALS, &password).await?;
        if killed_after_each_of_its_writes {
            let (_, killed) = killed_after_each_write(&site, "the refusal", password_is_refused).await?;
            assert!(killed > 5, "each process made one write, and every controller has one to make: {killed}");
        } else {
            let mut operator = Operator::start(&site, &Options::default()).await?;
            refused_by(&site, &mut operator).await?;
            operator.kill().await?;
        }
        assert_eq!(refused_logins(lab, "b").await?, refusals + 1);

        // Each has to look again, for the spec has changed since.
        for quiet in ["6s", "7s"] {
            let edit = json!({"spec": {"health": {"quietPeriod": quiet}}});
            kubernetes::merge(&site.client, VMI, NAMESPACE, request::NAME, &edit).await?;
            let mut operator = Operator::start(&site, &Options::default()).await?;
            refused_by(&site, &mut operator).await?;
            operator.kill().await?;
        }
        let mut operator = Operator::start(&site, &Options::default()).await?;
        operator.while_alive(request::remove(&site)).await?;
        operator.stop().await;
        assert_eq!(refused_logins(lab, "b").await?, refusals + 1);
    }
    nothing_was_touched(&site, began, &before).await
}

async fn refused_by(site: &Site, operator: &mut Operator) -> TestResult {
    operator.while_alive(watch::follow(site, &mut View::stderr(), "the refusal", TO_JUDGE, password_is_refused)).await?;
    Ok(())
}

fn password_is_refused(vmi: &VSphereMigrationInfra) -> Option<()> {
    let preflight = is_blocked(vmi)?.condition(StepName::PreflightPassed.as_str())?.message.clone();
    ["CRD-001", "spec.credentialsSecret.name", "refuses the user"].iter().all(|words| preflight.contains(words)).then_some(())
}

/// The vmi, once the preflight has judged it as it is and every controller has planned.
fn is_blocked(vmi: &VSphereMigrationInfra) -> Option<VSphereMigrationInfra> {
    let planned =
        vmi.request().steps().all(|step| vmi.step(step.name).is_some_and(|seen| seen.observed_generation == vmi.metadata.generation));
    let blocked = vmi.condition(StepName::PreflightPassed.as_str())?;
    (planned && blocked.status == "False" && blocked.reason == "Blocked").then(|| vmi.clone())
}
