//! A growth or a move whose operator is killed after each of its writes, or paused at every step: it goes on from what is there.

use std::collections::BTreeSet;
use std::pin::pin;

use jiff::Timestamp;
use kube::Api;
use serde_json::json;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{self, StepName};
use vmi_crds::spec::{SourceRetirement, State};
use vmi_lab::migration::operator::{Operator, Options};
use vmi_lab::migration::verdict::{self, Check};
use vmi_lab::migration::view::View;
use vmi_lab::migration::watch::{self, End};
use vmi_lab::migration::{ACCOUNT, NAMESPACE, Site, account, audit, conditions, moved, request};

use crate::endurance::{LONG, asked, back_to, change, failed, is_taken, ready, seen_by_all, turn_back};
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

/// More writes than a growth there and back makes: past that it is going round in circles.
const MOST_WRITES: usize = 600;

fn dies_after_its_next_write() -> Options {
    Options { environment: vec![("VMI_EXIT_AFTER_WRITE", "1".to_owned())], ..Options::default() }
}

/// Has one operator after the other make a single write, until `enough` is content. Says how many were killed.
pub async fn killed_after_each_write<T>(
    site: &Site,
    what: &str,
    enough: impl FnMut(&VSphereMigrationInfra) -> Option<T>,
) -> TestResult<(T, usize)> {
    let mut view = View::stderr();
    let mut there = pin!(watch::follow(site, &mut view, what, LONG, enough));
    for killed in 0..MOST_WRITES {
        let mut operator = Operator::start(site, &dies_after_its_next_write()).await?;
        tokio::select! {
            found = &mut there => {
                operator.stop().await;
                return Ok((found?, killed));
            }
            ended = operator.ended() => { ended?; }
        }
    }
    Err(format!("{what}: not there after {MOST_WRITES} writes").into())
}

pub async fn killed_after_each_of_its_writes_a_growth_gets_there_and_back(lab: &Lab) -> TestResult {
    let (site, before) = ready(lab).await?;
    let (reached, there) = killed_after_each_write(&site, "PodsHealthy", is_taken(StepName::PodsHealthy)).await?;
    reached?;
    turn_back(&site).await?;
    let (end, back) = killed_after_each_write(&site, "the way back", watch::end).await?;
    assert_eq!(end, End::RolledBack);
    // Each process made one write: there are at least as many as things to be changed.
    assert!(there > 20 && back > 20, "{there} there, {back} back");
    back_to(&site, &before).await
}

/// A lab of its own: a growth that was completed is not taken back.
pub async fn killed_after_each_write_and_paused_at_every_step_a_growth_is_completed() -> TestResult {
    endures("native").await
}

pub async fn a_legacy_growth_killed_after_each_write_and_paused_at_every_step_is_completed() -> TestResult {
    endures("legacy-yaml").await
}

async fn endures(shape: &str) -> TestResult {
    let lab = Lab::start(shape, "endurance").await?;
    let result = killed_and_paused(&lab, SourceRetirement::Keep).await;
    lab.stop().await?;
    result
}

async fn killed_and_paused(lab: &Lab, source: SourceRetirement) -> TestResult {
    let (site, before) = asked(lab, source).await?;
    let mut paused_at = BTreeSet::new();
    loop {
        let at = |vmi: &VSphereMigrationInfra| {
            let step = vmi.request().steps().map(|step| step.name).find(|step| !vmi.is_true(step.as_str()));
            // What stands in the door goes through it.
            let in_the_door = vmi.seen().one_way_at.is_some() && !vmi.is_true(StepName::SourceDetached.as_str());
            step.filter(|step| vmi.seen().started_at.is_some() && !in_the_door && !paused_at.contains(step))
        };
        let next = |vmi: &VSphereMigrationInfra| watch::end(vmi).map(Err).or_else(|| at(vmi).map(Ok));
        match killed_after_each_write(&site, "the next step", next).await?.0 {
            Ok(step) => {
                paused_at.insert(step);
                writes_nothing_while_paused(&site, step).await.map_err(|error| format!("paused at {step}: {error}"))?;
            }
            Err(End::Completed) => break,
            Err(end) => return Err(format!("it ended as {end:?}").into()),
        }
    }
    // Steps that are taken side by side may be done before it is their turn to be paused at.
    let least = if source == SourceRetirement::Keep { 9 } else { 15 };
    assert!(paused_at.len() >= least, "paused at {paused_at:?} only");
    // What a migration that is over still has to let go of, and to say of the vmi as it is now.
    let mut operator = Operator::start(&site, &Options::default()).await?;
    let current = |vmi: &VSphereMigrationInfra| {
        vmi.seen().conditions.iter().all(|condition| condition.observed_generation == vmi.metadata.generation).then_some(())
    };
    operator.while_alive(watch::follow(&site, &mut View::stderr(), "every condition to be current", LONG, current)).await?;
    let checks = match source {
        SourceRetirement::Keep => verdict::growth(&site, &before).await?,
        SourceRetirement::Remove => moved::verdict(&site, &before).await?,
    };
    operator.stop().await;
    assert_eq!(failed(&checks), Vec::<&Check>::new());
    every_condition_was_explained(&site)?;
    every_condition_can_be_waited_for(lab, &site).await
}

/// By whichever of the many processes wrote it.
fn every_condition_was_explained(site: &Site) -> TestResult {
    let events = audit::read(&site.folder, Timestamp::MIN, |_| true)?;
    assert_eq!(conditions::unexplained(&events), Vec::<String>::new());
    Ok(())
}

/// As scripts and the console's users do, who know nothing of this operator but its conditions.
async fn every_condition_can_be_waited_for(lab: &Lab, site: &Site) -> TestResult {
    let vmi: VSphereMigrationInfra = Api::namespaced(site.client.clone(), NAMESPACE).get(request::NAME).await?;
    let resource = format!("vspheremigrationinfra/{}", request::NAME);
    let conditions = &vmi.seen().conditions;
    let steps = graph::STEPS.iter().map(|step| step.name.as_str());
    let all = steps.chain(graph::SIGNALS.iter().map(|signal| signal.name));
    let missing: Vec<&str> = all.filter(|name| vmi.condition(name).is_none()).collect();
    assert_eq!(missing, Vec::<&str>::new(), "conditions that are not there");
    for condition in conditions {
        let wanted = format!("--for=condition={}={}", condition.type_, condition.status);
        lab.kubectl(&["-n", NAMESPACE, "wait", &resource, &wanted, "--timeout=30s"]).await?.success()?;
        let other = if condition.status == "True" { "False" } else { "True" };
        let other = format!("--for=condition={}={other}", condition.type_);
        let waited = lab.kubectl(&["-n", NAMESPACE, "wait", &resource, &other, "--timeout=0"]).await?;
        assert_ne!(waited.code(), 0, "{other} was not waited for");
    }
    Ok(())
}

/// A lab of its own: a cluster that was moved stays where it is.
pub async fn killed_after_each_of_its_writes_a_move_is_completed() -> TestResult {
    moved_by_many_in("native").await
}

pub async fn killed_after_each_of_its_writes_a_legacy_move_is_completed() -> TestResult {
    moved_by_many_in("legacy-yaml").await
}

pub async fn killed_after_each_of_its_writes_a_rich_move_is_completed() -> TestResult {
    moved_by_many_in("rich").await
}

pub async fn killed_after_each_of_its_writes_a_move_to_two_vcenters_is_completed() -> TestResult {
    moved_by_many_in("two-targets").await
}

async fn moved_by_many_in(shape: &str) -> TestResult {
    let lab = Lab::start(shape, "moved-by-many").await?;
    let result = moved_by_many(&lab).await;
    lab.stop().await?;
    result
}

/// A lab of its own, for the same reason.
pub async fn paused_at_every_step_a_move_is_completed() -> TestResult {
    let lab = Lab::start("native", "moved-with-pauses").await?;
    let result = killed_and_paused(&lab, SourceRetirement::Remove).await;
    lab.stop().await?;
    result
}

async fn moved_by_many(lab: &Lab) -> TestResult {
    let (site, before) = asked(lab, SourceRetirement::Remove).await?;
    let (end, killed) = killed_after_each_write(&site, "the end of the move", watch::end).await?;
    assert_eq!(end, End::Completed);
    assert!(killed > 60, "killed {killed} times only");
    let operator = Operator::start(&site, &Options::default()).await?;
    let checks = moved::verdict(&site, &before).await?;
    operator.stop().await;
    assert_eq!(failed(&checks), Vec::<&Check>::new());
    every_condition_was_explained(&site)
}

/// Pauses, edits what may be edited, and resumes, under an operator that nobody kills.
async fn writes_nothing_while_paused(site: &Site, step: StepName) -> TestResult {
    request::set_state(site, State::Paused).await?;
    let mut operator = Operator::start(site, &Options::default()).await?;
    operator.while_alive(seen_by_all(site)).await?;
    let paused = Timestamp::now();
    let others = request::get(site).await?.spec.health.accept.len();
    let accept: Vec<String> = (0..=others).map(|number| format!("ZZZ-{number:03}")).collect();
    change(site, &json!({"health": {"accept": accept}})).await?;
    operator.while_alive(seen_by_all(site)).await?;
    operator.stop().await;
    let user = account::user(NAMESPACE, ACCOUNT);
    let own = |event: &audit::Event| {
        let resource = event.object_ref.resource.as_str();
        // A control plane that rolls is braked, which is a write.
        let brake = step == StepName::ControlPlaneReady && resource == "controlplanemachinesets";
        brake || ["vspheremigrationinfra", "leases", "events"].contains(&resource)
    };
    let written: Vec<String> = audit::read(&site.folder, paused, |event| event.user.username == user && event.is_write() && !own(event))?
        .iter()
        .map(audit::Event::spoken)
        .collect();
    assert_eq!(written, Vec::<String>::new());
    request::set_state(site, State::Running).await?;
    Ok(())
}
