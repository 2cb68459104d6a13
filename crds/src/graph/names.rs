//! The names of conditions and of those who write them.

use std::fmt;

use super::{STEPS, Step};

/// A step, named as its condition. The order is that of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the table says what each means")]
pub enum StepName {
    PreflightPassed,
    ClusterVersionFrozen,
    InfrastructureUnlocked,
    ControlPlaneSetSaved,
    CredentialsAdded,
    TagsAttached,
    FolderCreated,
    InfrastructureExtended,
    CloudConfigExtended,
    PodsRestarted,
    PodsHealthy,
    WorkersReady,
    ControlPlaneReady,
    SourceWorkersRemoved,
    SourceDetached,
    PodsRestartedAfterDetach,
    PodsHealthyAfterDetach,
    SourceRemoved,
    PodsHealthyAfterRemoval,
    ClusterThawed,
}

impl StepName {
    /// Its row in the table, which has one for each name in the same order.
    pub fn step(self) -> &'static Step {
        &STEPS[self as usize]
    }

    /// The step whose condition has this type.
    pub fn of(condition: &str) -> Option<Self> {
        STEPS.iter().map(|step| step.name).find(|name| name.as_str() == condition)
    }

    /// The condition's type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreflightPassed => "PreflightPassed",
            Self::ClusterVersionFrozen => "ClusterVersionFrozen",
            Self::InfrastructureUnlocked => "InfrastructureUnlocked",
            Self::ControlPlaneSetSaved => "ControlPlaneSetSaved",
            Self::CredentialsAdded => "CredentialsAdded",
            Self::TagsAttached => "TagsAttached",
            Self::FolderCreated => "FolderCreated",
            Self::InfrastructureExtended => "InfrastructureExtended",
            Self::CloudConfigExtended => "CloudConfigExtended",
            Self::PodsRestarted => "PodsRestarted",
            Self::PodsHealthy => "PodsHealthy",
            Self::WorkersReady => "WorkersReady",
            Self::ControlPlaneReady => "ControlPlaneReady",
            Self::SourceWorkersRemoved => "SourceWorkersRemoved",
            Self::SourceDetached => "SourceDetached",
            Self::PodsRestartedAfterDetach => "PodsRestartedAfterDetach",
            Self::PodsHealthyAfterDetach => "PodsHealthyAfterDetach",
            Self::SourceRemoved => "SourceRemoved",
            Self::PodsHealthyAfterRemoval => "PodsHealthyAfterRemoval",
            Self::ClusterThawed => "ClusterThawed",
        }
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who writes a part of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is named as its package")]
pub enum Controller {
    Preflight,
    ClusterFreeze,
    VcenterPrep,
    ConfigRewrite,
    PodHealthWatch,
    MachineRollout,
    Cleanup,
    /// Sums up what the others report.
    Summary,
}

impl Controller {
    /// Its name, and its package's.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preflight => "preflight",
            Self::ClusterFreeze => "cluster-freeze",
            Self::VcenterPrep => "vcenter-prep",
            Self::ConfigRewrite => "config-rewrite",
            Self::PodHealthWatch => "pod-health-watch",
            Self::MachineRollout => "machine-rollout",
            Self::Cleanup => "cleanup",
            Self::Summary => "summary",
        }
    }

    /// The field manager under which it applies its part of the status.
    pub fn field_manager(self) -> String {
        format!("vmi-{self}")
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A condition that belongs to no step.
#[derive(Debug)]
pub struct Signal {
    /// The condition's type.
    pub name: &'static str,
    /// The only one that writes it.
    pub controller: Controller,
}

const fn summary(name: &'static str) -> Signal {
    Signal { name, controller: Controller::Summary }
}

/// The conditions that belong to no step.
pub const SIGNALS: &[Signal] = &[
    Signal { name: "Held", controller: Controller::PodHealthWatch },
    summary("Progressing"),
    summary("Degraded"),
    summary("Paused"),
    summary("Completed"),
    summary("RolledBack"),
    summary("Abandoned"),
];
