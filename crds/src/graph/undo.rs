//! How a migration is taken back.

use super::StepName::{self, *};

/// How a step is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Its controller undoes what it did: what that means.
    By(&'static str),
    /// It is taken once more for what is then configured, and ends False.
    RunsAgain,
    /// Nothing is undone: why.
    Never(&'static str),
}

/// The reason of InfrastructureExtended after a way back on which the API did not let the source's description go that the migration wrote.
pub const SOURCE_KEPT: &str = "UndoneSourceKept";

/// A part of the way back, which begins when the one before has ended. A step that never began counts as undone.
#[derive(Debug)]
pub struct Stage {
    /// The steps, in order; several are one unit, which finishes once begun.
    pub steps: &'static [StepName],
    /// Holds that have to be True, as they read now, while it acts.
    pub needs: &'static [StepName],
    /// Only where one of these had begun.
    pub only_after: &'static [StepName],
}

const fn stage(steps: &'static [StepName]) -> Stage {
    Stage { steps, needs: &[], only_after: &[] }
}

/// The way back, whichever step it begins at.
pub const UNDO_ORDER: &[Stage] = &[
    stage(&[SourceWorkersRemoved]),
    stage(&[ControlPlaneReady]),
    stage(&[WorkersReady]),
    Stage {
        steps: &[CloudConfigExtended, InfrastructureExtended],
        needs: &[ClusterVersionFrozen, InfrastructureUnlocked],
        only_after: &[],
    },
    Stage { steps: &[PodsRestarted, PodsHealthy], needs: &[], only_after: &[CloudConfigExtended, InfrastructureExtended] },
    stage(&[FolderCreated]),
    stage(&[TagsAttached]),
    stage(&[CredentialsAdded]),
    stage(&[ControlPlaneSetSaved]),
    stage(&[InfrastructureUnlocked]),
    stage(&[ClusterVersionFrozen]),
];

impl StepName {
    /// Its place on the way back, the smallest first; none where it is not taken back.
    pub fn undo_rank(self) -> Option<usize> {
        UNDO_ORDER.iter().position(|stage| stage.steps.contains(&self))
    }
}
