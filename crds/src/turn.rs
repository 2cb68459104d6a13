//! Whose turn it is: a pure look at the vmi. The same look decides whether a write may still be made, on the vmi as it is then.

use crate::VSphereMigrationInfra;
use crate::graph::{HELD_BACK, StepName, UNDO_ORDER, UNITS, Undo};
use crate::spec::State;
use crate::status::StepState;

/// What a step may do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The vmi does not ask for it.
    NotRequested,
    /// The migration has not started: it looks and says what it would change.
    Plan,
    /// Others come first: the last of them. Naming all would change the vmi with each of them that is done, and a write into
    /// the vmi is the dearest thing that a hand-over has to wait for.
    Waits(String),
    /// It acts.
    Forward,
    /// It takes back what it did.
    Back,
    /// It would act, but looks only: why.
    Stopped(Stopped),
    /// It has nothing more to do.
    Rests,
}

/// Why a step that could act does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The user paused the migration.
    Paused,
    /// The cluster is not well enough to go on.
    Held,
    /// It failed, and waits for the user to resume.
    Failed,
}

/// Whose turn it is.
pub fn turn(vmi: &VSphereMigrationInfra, name: StepName) -> Turn {
    let step = name.step();
    if !vmi.request().asks_for(step) {
        return Turn::NotRequested;
    }
    if vmi.over() || vmi.spec.state == State::Abandoned {
        return Turn::Rests;
    }
    if rolling_back(vmi) { back(vmi, name) } else { forward(vmi, name) }
}

/// Whether the migration goes back. Once it does it never turns round.
pub fn rolling_back(vmi: &VSphereMigrationInfra) -> bool {
    vmi.seen().started_at.is_some() && (vmi.spec.state == State::RollingBack || vmi.seen().rolling_back_at.is_some())
}

fn forward(vmi: &VSphereMigrationInfra, name: StepName) -> Turn {
    if vmi.seen().started_at.is_none() && name != StepName::PreflightPassed {
        return Turn::Plan;
    }
    let thawing = vmi.begun(StepName::ClusterThawed);
    let hold = matches!(name, StepName::ClusterVersionFrozen | StepName::InfrastructureUnlocked | StepName::ControlPlaneSetSaved);
    if vmi.is_true(name.as_str()) || (thawing && hold) {
        return Turn::Rests;
    }
    if let Some(other) = name.step().still_waits_for(vmi.request(), |other| vmi.is_true(other.as_str())).last() {
        return Turn::Waits(format!("{other} ({})", other.step().controller));
    }
    if vmi.spec.state == State::Pending {
        return Turn::Plan;
    }
    stopped(vmi, name).map_or(Turn::Forward, Turn::Stopped)
}

fn back(vmi: &VSphereMigrationInfra, name: StepName) -> Turn {
    let Some(rank) = name.undo_rank() else { return Turn::Rests };
    if undone(vmi, name) {
        return Turn::Rests;
    }
    if let Some(turn) = hold_on_the_way_back(vmi, name) {
        return turn;
    }
    let before = UNDO_ORDER[..rank].iter().flat_map(|stage| stage.steps);
    // Within a stage the steps follow one another too.
    let siblings = UNDO_ORDER[rank].steps.iter().take_while(|other| **other != name);
    if let Some(other) = before.chain(siblings).filter(|other| !undone(vmi, **other)).last() {
        return Turn::Waits(format!("{other} to be undone ({})", other.step().controller));
    }
    if let Some(hold) = UNDO_ORDER[rank].needs.iter().rfind(|hold| !vmi.is_true(hold.as_str())) {
        return Turn::Waits(format!("{hold} ({})", hold.step().controller));
    }
    stopped(vmi, name).map_or(Turn::Back, Turn::Stopped)
}

/// What a hold does while something that is still to be undone needs it: it stays, and if others took it away it is taken again.
fn hold_on_the_way_back(vmi: &VSphereMigrationInfra, name: StepName) -> Option<Turn> {
    let open = |stage: &&crate::graph::Stage| stage.steps.iter().any(|step| !undone(vmi, *step));
    if !UNDO_ORDER.iter().filter(open).any(|stage| stage.needs.contains(&name)) {
        return None;
    }
    if vmi.is_true(name.as_str()) {
        return Some(Turn::Rests);
    }
    let waits = name.step().still_waits_for(vmi.request(), |other| vmi.is_true(other.as_str()));
    if let Some(other) = waits.first() {
        return Some(Turn::Waits(format!("{other} ({})", other.step().controller)));
    }
    // Only what was taken away since the way back began waits for the user once more.
    let lost = vmi.condition(name.as_str()).map(|condition| condition.last_transition_time.0);
    let turned = vmi.seen().rolling_back_at.as_ref().map(|time| time.0);
    let since = matches!((lost, turned), (Some(lost), Some(turned)) if lost >= turned);
    Some(if vmi.step_state(name) == StepState::Failed && since {
        Turn::Stopped(Stopped::Failed)
    } else if vmi.spec.state == State::Paused {
        Turn::Stopped(Stopped::Paused)
    } else {
        Turn::Forward
    })
}

fn stopped(vmi: &VSphereMigrationInfra, name: StepName) -> Option<Stopped> {
    if vmi.step_state(name) == StepState::Failed && !failed_before_the_way_back(vmi, name) {
        return Some(Stopped::Failed);
    }
    let begun = unit_begun(vmi, name);
    if vmi.spec.state == State::Paused && !begun {
        return Some(Stopped::Paused);
    }
    let held = vmi.is_true("Held") && HELD_BACK.contains(&name) && !begun && !rolling_back(vmi);
    held.then_some(Stopped::Held)
}

/// Whether the step failed on the way forward and the migration goes back: what it did is undone like everything else.
fn failed_before_the_way_back(vmi: &VSphereMigrationInfra, name: StepName) -> bool {
    let began = vmi.step(name).and_then(|step| step.started_at.as_ref()).map(|time| time.0);
    let turned = vmi.seen().rolling_back_at.as_ref().map(|time| time.0);
    rolling_back(vmi) && turned.is_none_or(|turned| began.is_none_or(|began| began < turned))
}

/// Whether the step belongs to a unit that has begun and has not finished: such a unit is finished, come what may.
pub fn unit_begun(vmi: &VSphereMigrationInfra, name: StepName) -> bool {
    let Some(unit) = UNITS.iter().find(|unit| unit.contains(&name)) else { return false };
    // Until the vmi says that there is no way back, it only stands before the door.
    if name.step().one_way == Some(vmi.spec.source_retirement) {
        return vmi.seen().one_way_at.is_some();
    }
    if rolling_back(vmi) {
        // On the way back it has begun once a part of it is being undone or is undone.
        return unit.iter().any(|part| {
            vmi.step_state(*part) == StepState::Undone
                || vmi.condition(part.as_str()).is_some_and(|condition| condition.reason == "Undoing")
        });
    }
    unit.iter().any(|part| vmi.begun(*part)) && !unit.iter().all(|part| vmi.is_true(part.as_str()))
}

/// Whether nothing is left of a step.
pub fn undone(vmi: &VSphereMigrationInfra, name: StepName) -> bool {
    match vmi.step_state(name) {
        StepState::Undone | StepState::NotRequested => true,
        StepState::Active | StepState::Done | StepState::Failed => false,
        StepState::Waiting => !runs_again(vmi, name) || !vmi.request().asks_for(name.step()),
    }
}

/// Whether a step that never ran has to run on the way back, because what it looks after was changed.
fn runs_again(vmi: &VSphereMigrationInfra, name: StepName) -> bool {
    let after = name.undo_rank().map(|rank| UNDO_ORDER[rank].only_after).unwrap_or_default();
    name.step().undo == Undo::RunsAgain && after.iter().any(|other| vmi.begun(*other))
}

#[cfg(test)]
mod tests;
