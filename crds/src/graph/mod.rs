//! The order of a migration as data: which condition waits for which, who turns it True, and how it is taken back.

mod names;
mod table;
#[cfg(test)]
mod tests;
mod undo;

pub use names::{Controller, SIGNALS, Signal, StepName};
pub use table::STEPS;
pub use undo::{SOURCE_KEPT, Stage, UNDO_ORDER, Undo};

use crate::spec::{SourceRetirement, VSphereMigrationInfraSpec};
use crate::status::Path;

/// Changes whenever a migration that began under the table before could not go on under the new one.
pub const VERSION: i32 = 1;

/// Steps whose acts are one unit to pause, hold and approval: once begun it finishes.
pub const UNITS: &[&[StepName]] = &[&[StepName::InfrastructureExtended, StepName::CloudConfigExtended], &[StepName::SourceDetached]];

/// Steps that begin nothing new while the condition Held is True.
pub const HELD_BACK: &[StepName] =
    &[StepName::WorkersReady, StepName::ControlPlaneReady, StepName::SourceWorkersRemoved, StepName::SourceDetached];

/// One step of a migration and the condition that says it is done.
#[derive(Debug)]
pub struct Step {
    /// Its number in the documentation.
    pub number: &'static str,
    /// The type of its condition.
    pub name: StepName,
    /// The only one that writes the condition.
    pub controller: Controller,
    /// Conditions that have to be True, as they read now, before it acts. Those that were not asked for are not waited for.
    pub waits_for: &'static [StepName],
    /// Which migrations ask for it.
    pub asked: Asked,
    /// How it turns True: the first way that fits the cluster.
    pub turns_true: &'static [TurnsTrue],
    /// The retirement for which there is no way back from this step on.
    pub one_way: Option<SourceRetirement>,
    /// How it is taken back.
    pub undo: Undo,
}

/// Which migrations ask for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// All.
    Always,
    /// Those that remove the source, and those that name machine sets.
    Workers,
    /// Those that remove the source, and those that name the control plane.
    ControlPlane,
    /// Those that remove the source.
    Removal,
}

/// A way for a step's condition to turn True.
#[derive(Debug)]
pub struct TurnsTrue {
    /// In which clusters.
    pub when: When,
    /// The condition's reason then.
    pub reason: &'static str,
}

/// In which clusters a step ends in some way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In all.
    Always,
    /// In those that go this path.
    Path(Path),
    /// Where this becomes of the control plane machine set.
    ControlPlaneSet(ControlPlaneSet),
    /// Where Infrastructure already has the target, equal field by field.
    TargetThere,
}

/// What decides how the steps end in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Whether it takes a vCenter more as it is.
    pub path: Path,
    /// What becomes of its control plane machine set.
    pub control_plane_set: ControlPlaneSet,
    /// Whether its Infrastructure already has the target.
    pub target_there: bool,
}

/// What becomes of the control plane machine set in step 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlPlaneSet {
    /// Deleted, and made anew by its own operator.
    Regenerated,
    /// Deleted, and not made anew: its operator cannot describe the masters by the failure domains.
    NoneRegenerated,
    /// There was none.
    Absent,
    /// Not touched, because the migration does not name the control plane.
    LeftAlone,
}

/// What a migration asks for, as far as it decides which steps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether the source leaves.
    pub retirement: SourceRetirement,
    /// Whether machine sets are named.
    pub machine_sets: bool,
    /// Whether the control plane is named.
    pub control_plane: bool,
}

impl Request {
    /// What this spec asks for.
    pub fn of(spec: &VSphereMigrationInfraSpec) -> Self {
        Self {
            retirement: spec.source_retirement,
            machine_sets: !spec.machine_sets.is_empty(),
            control_plane: spec.control_plane.is_some(),
        }
    }

    /// Whether it asks for the step.
    pub fn asks_for(&self, step: &Step) -> bool {
        let removal = self.retirement == SourceRetirement::Remove;
        match step.asked {
            Asked::Always => true,
            Asked::Workers => removal || self.machine_sets,
            Asked::ControlPlane => removal || self.control_plane,
            Asked::Removal => removal,
        }
    }

    /// The steps it asks for, in the order of their numbers.
    pub fn steps(self) -> impl Iterator<Item = &'static Step> {
        STEPS.iter().filter(move |step| self.asks_for(step))
    }

    /// From which step on there is no way back.
    pub fn one_way_door(self) -> Option<&'static Step> {
        self.steps().find(|step| step.one_way == Some(self.retirement))
    }
}

impl Step {
    /// The conditions it still waits for, given which are True now. Empty: its gate is open.
    pub fn still_waits_for(&self, request: Request, is_true: impl Fn(StepName) -> bool) -> Vec<StepName> {
        self.waits_for.iter().copied().filter(|name| request.asks_for(name.step()) && !is_true(*name)).collect()
    }

    /// The reason with which it turns True in such a cluster.
    pub fn reason(&self, cluster: Cluster) -> Option<&'static str> {
        let fits = |way: &&TurnsTrue| match way.when {
            When::Always => true,
            When::Path(path) => path == cluster.path,
            When::ControlPlaneSet(set) => set == cluster.control_plane_set,
            When::TargetThere => cluster.target_there,
        };
        self.turns_true.iter().find(fits).map(|way| way.reason)
    }
}
