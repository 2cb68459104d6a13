//! A rehearsal: the operator is installed and started as on a real cluster, moves it to the second vCenter or grows it by that one,
//! or is turned back on the way, and then the lab looks for itself.

use std::time::Duration;

use jiff::Timestamp;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{Request, StepName, UNDO_ORDER};
use vmi_crds::spec::{SourceRetirement, State};
use vmi_crds::status::StepState;

use super::dump::Dump;
use super::figures::{self, Figures, Measured};
use super::operator::{Operator, Options};
use super::timeline::Timeline;
use super::verdict::{self, Check, none};
use super::view::View;
use super::watch::{self, End};
use super::witness::Witness;
use super::{ACCOUNT, Error, NAMESPACE, Site, account, audit, back, conditions, deploy, moved, request};
use crate::component;

/// For the plan: every check of the preflight, on a loaded machine.
const TO_PLAN: Duration = Duration::from_secs(120);
/// For a whole way, there or back. Health has its own deadline within it.
const TO_END: Duration = Duration::from_secs(900);

/// What a rehearsal found.
pub struct Outcome {
    pub figures: Figures,
    pub checks: Vec<Check>,
}

/// The steps from which a migration that does so with the source can be turned back, in their order.
pub fn ways_back(source: SourceRetirement) -> Vec<StepName> {
    let request = Request { retirement: source, machine_sets: false, control_plane: false };
    let mut steps: Vec<StepName> = UNDO_ORDER.iter().flat_map(|stage| stage.steps).copied().collect();
    steps.retain(|step| request.asks_for(step.step()));
    steps.sort();
    steps
}

/// Migrates the site's cluster; with a step, turns back as soon as that is reached.
pub async fn rehearse(site: &Site, source: SourceRetirement, rollback_at: Option<StepName>, view: &mut View) -> Result<Outcome, Error> {
    let asked = request::asked(site, source)?;
    let before = Dump::take(site).await?;
    deploy::install(site).await?;
    let began = Timestamp::now();
    let calls = figures::calls(site).await?;
    let witness = Witness::start(&site.client).await;
    let mut operator = Operator::start(site, &Options::default()).await?;
    let ended = operator.while_alive(migrate(site, &asked, rollback_at, view)).await;
    // Before it is ended: a process that is gone has used nothing.
    let usage = operator.usage();
    let seen = witness.seen();
    let vcenter_requests = figures::called(site, &calls, &figures::calls(site).await?);

    let way = judged(ended, rollback_at);
    if !way.passed {
        // Said now, for the log goes with the lab.
        view.say(&format!("the end of the operator's log:\n{}", component::tail(&operator.log, 30)));
    }
    let mut checks = vec![way];
    // The operator is still there, as it would be: that it leaves alone what it has done is part of the verdict.
    checks.extend(match rollback_at {
        Some(_) => back::verdict(site, &before).await?,
        None if source == SourceRetirement::Remove => moved::verdict(site, &before).await?,
        None => verdict::growth(site, &before).await?,
    });
    let user = account::user(NAMESPACE, ACCOUNT);
    let events = audit::read(&site.folder, began, |_| true)?;
    checks.push(Check::new("nothing was denied to the operator", none(&audit::denied(&events, &user))));
    if rollback_at.is_none() {
        checks.push(Check::new("each step was taken once", none(&watch::taken_again(&request::get(site).await?))));
        let asked = Timeline::of(&events, &user).asked_while_waiting();
        checks.push(Check::new("while others had to move nothing was asked of the apiserver", none(&asked)));
    }
    let unexplained = conditions::unexplained(&events);
    checks.push(Check::new("every condition always said why, since when and of which generation", none(&unexplained)));
    operator.stop().await;
    let quiet = asked.spec.health.quiet_period.duration().as_secs_f64();
    let figures = Figures::of(&Measured { events: &events, user: &user, seen: &seen, quiet, usage, vcenter_requests });
    Ok(Outcome { figures, checks })
}

/// The whole way: planned, started, and followed to its end, or turned back on the way.
async fn migrate(site: &Site, asked: &VSphereMigrationInfra, rollback_at: Option<StepName>, view: &mut View) -> Result<End, Error> {
    request::ask(site, asked).await?;
    watch::planned(site, view, TO_PLAN).await?;
    request::set_state(site, State::Running).await?;
    if let Some(step) = rollback_at {
        let what = format!("step {step}");
        if let Some(end) = watch::follow(site, view, &what, TO_END, |vmi| turn(vmi, step)).await? {
            return Ok(end);
        }
        view.say(&format!("turning back at {step}"));
        request::set_state(site, State::RollingBack).await?;
    }
    watch::follow(site, view, "the end of the migration", TO_END, watch::end).await
}

/// Whether it is time to turn back (`Some(None)`), or the migration has ended before (`Some(end)`).
fn turn(vmi: &VSphereMigrationInfra, step: StepName) -> Option<Option<End>> {
    if let Some(end) = watch::end(vmi) {
        return Some(Some(end));
    }
    [StepState::Active, StepState::Done].contains(&watch::state(vmi, step)).then_some(None)
}

fn judged(ended: Result<End, Error>, rollback_at: Option<StepName>) -> Check {
    let (name, wanted) = match rollback_at {
        None => ("the migration was completed".to_owned(), End::Completed),
        Some(step) => (format!("the migration was rolled back from {step}"), End::RolledBack),
    };
    let result = match ended {
        Ok(end) if end == wanted => Ok(()),
        Ok(End::Failed(why)) => Err(why),
        Ok(other) => Err(format!("it ended as {other:?}")),
        Err(error) => Err(error.to_string()),
    };
    Check::new(&name, result)
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{step, vmi};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_growth_can_be_turned_back_from_steps_one_to_ten_and_a_move_up_to_thirteen() {
        let numbers = |source| ways_back(source).iter().map(|step| step.step().number).collect::<Vec<_>>().join(" ");
        assert_eq!(numbers(SourceRetirement::Keep), "1 2 3 4 5 6 7 8 9 10");
        assert_eq!(numbers(SourceRetirement::Remove), "1 2 3 4 5 6 7 8 9 10 11 12 13");
    }

    #[test]
    fn it_is_turned_back_as_soon_as_the_step_is_reached() {
        let at = |state: &str| turn(&vmi(&json!({"steps": [step("TagsAttached", state, "")]})), StepName::TagsAttached);
        assert_eq!(at("Waiting"), None);
        assert_eq!(at("Active"), Some(None));
        assert_eq!(at("Done"), Some(None));
    }

    #[test]
    fn another_end_than_the_wanted_one_fails_with_what_it_was() {
        assert!(judged(Ok(End::Completed), None).passed);
        assert!(judged(Ok(End::RolledBack), Some(StepName::TagsAttached)).passed);
        let check = judged(Ok(End::Completed), Some(StepName::TagsAttached));
        assert_eq!((check.passed, check.detail.as_str()), (false, "it ended as Completed"));
        assert_eq!(judged(Ok(End::Failed("TagsAttached failed: no".to_owned())), None).detail, "TagsAttached failed: no");
    }
}
