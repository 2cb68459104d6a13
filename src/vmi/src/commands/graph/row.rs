//! A step of the graph in the words that every output uses.

use serde::Serialize;
use vmi_crds::graph::{Asked, ControlPlaneSet, Step, StepName, Undo, When};
use vmi_crds::spec::SourceRetirement;
use vmi_crds::status::Path;

/// A step, in words.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub number: &'static str,
    pub condition: &'static str,
    pub controller: &'static str,
    #[serde(serialize_with = "names")]
    pub waits_for: &'static [StepName],
    pub asked: &'static str,
    pub turns_true: Vec<Ending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way: Option<SourceRetirement>,
    pub undo: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_rank: Option<usize>,
}

/// The reason with which a condition turns True, and in which clusters.
#[derive(Serialize)]
pub(super) struct Ending {
    pub reason: &'static str,
    pub when: &'static str,
}

fn names<S: serde::Serializer>(steps: &[StepName], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.iter().map(|step| step.as_str()))
}

impl Row {
    pub fn of(step: &'static Step) -> Self {
        Self {
            number: step.number,
            condition: step.name.as_str(),
            controller: step.controller.as_str(),
            waits_for: step.waits_for,
            asked: asked(step.asked),
            turns_true: step
                .turns_true
                .iter()
                .enumerate()
                .map(|(place, way)| Ending { reason: way.reason, when: when(way.when, place) })
                .collect(),
            one_way: step.one_way,
            undo: match step.undo {
                Undo::By(what) => what.to_owned(),
                Undo::RunsAgain => "taken once more for what is then configured".to_owned(),
                Undo::Never(why) => format!("none: {why}"),
            },
            undo_rank: step.name.undo_rank(),
        }
    }

    pub fn waits_for_numbers(&self) -> String {
        let numbers: Vec<&str> = self.waits_for.iter().map(|name| name.step().number).collect();
        numbers.join(", ")
    }
}

fn asked(asked: Asked) -> &'static str {
    match asked {
        Asked::Always => "always",
        Asked::Workers => "in Remove, or with machineSets",
        Asked::ControlPlane => "in Remove, or with controlPlane",
        Asked::Removal => "in Remove",
    }
}

/// The first way that fits holds, so that what always fits comes to mean the rest.
fn when(when: When, place: usize) -> &'static str {
    match when {
        When::Always if place > 0 => "otherwise",
        When::Always => "always",
        When::Path(Path::Native) => "on the native path",
        When::Path(Path::Legacy) => "on the legacy path",
        When::ControlPlaneSet(ControlPlaneSet::Regenerated) => "its operator makes the control plane machine set anew",
        When::ControlPlaneSet(ControlPlaneSet::NoneRegenerated) => "its operator makes no control plane machine set",
        When::ControlPlaneSet(ControlPlaneSet::Absent) => "there was no control plane machine set",
        When::ControlPlaneSet(ControlPlaneSet::LeftAlone) => "the control plane is not named",
        When::TargetThere => "Infrastructure has the target already",
    }
}
