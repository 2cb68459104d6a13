//! The steps. Read a row as: step NUMBER is done when its condition is True; CONTROLLER sees to it once what it waits for is True.

use super::Asked::{Always, ControlPlane, Removal, Workers};
use super::ControlPlaneSet as Set;
use super::Controller::{Cleanup, ClusterFreeze, ConfigRewrite, MachineRollout, PodHealthWatch, Preflight, VcenterPrep};
use super::StepName::*;
use super::{Step, TurnsTrue, Undo, When};
use crate::spec::SourceRetirement::{Keep, Remove};
use crate::status::Path::{Legacy, Native};

const fn always(reason: &'static str) -> TurnsTrue {
    TurnsTrue { when: When::Always, reason }
}

const fn native(reason: &'static str) -> TurnsTrue {
    TurnsTrue { when: When::Path(Native), reason }
}

const fn legacy(reason: &'static str) -> TurnsTrue {
    TurnsTrue { when: When::Path(Legacy), reason }
}

const fn set(set: Set, reason: &'static str) -> TurnsTrue {
    TurnsTrue { when: When::ControlPlaneSet(set), reason }
}

const ALREADY_THERE: TurnsTrue = TurnsTrue { when: When::TargetThere, reason: "AlreadyThere" };

const PAST_THE_DOOR: Undo = Undo::Never("the source has left Infrastructure: there is no way back from here");

/// Every step, by number.
pub const STEPS: &[Step] = &[
    Step {
        number: "0",
        name: PreflightPassed,
        controller: Preflight,
        waits_for: &[],
        asked: Always,
        turns_true: &[always("Passed")],
        one_way: None,
        undo: Undo::Never("it changes nothing"),
    },
    Step {
        number: "1",
        name: ClusterVersionFrozen,
        controller: ClusterFreeze,
        waits_for: &[PreflightPassed],
        asked: Always,
        turns_true: &[native("NotNeeded"), legacy("Frozen")],
        one_way: None,
        undo: Undo::By("the cluster version operator is given back its replicas, or its overrides are taken away"),
    },
    Step {
        number: "2",
        name: InfrastructureUnlocked,
        controller: ClusterFreeze,
        waits_for: &[ClusterVersionFrozen],
        asked: Always,
        turns_true: &[native("NotNeeded"), legacy("Unlocked")],
        one_way: None,
        undo: Undo::By("the rules taken out of the two CRDs are put back"),
    },
    Step {
        number: "3",
        name: ControlPlaneSetSaved,
        controller: ClusterFreeze,
        waits_for: &[InfrastructureUnlocked],
        asked: Always,
        turns_true: &[
            set(Set::Regenerated, "Saved"),
            set(Set::NoneRegenerated, "NoneRegenerated"),
            set(Set::Absent, "NoneThere"),
            set(Set::LeftAlone, "LeftAlone"),
        ],
        one_way: None,
        undo: Undo::By("the saved control plane machine set is put back, health checks, autoscalers, boot images and reboots are released"),
    },
    Step {
        number: "4",
        name: CredentialsAdded,
        controller: ConfigRewrite,
        waits_for: &[ControlPlaneSetSaved],
        asked: Always,
        turns_true: &[ALREADY_THERE, always("Added")],
        one_way: None,
        undo: Undo::By("the target's pair is taken out of every secret"),
    },
    Step {
        number: "5",
        name: TagsAttached,
        controller: VcenterPrep,
        waits_for: &[ControlPlaneSetSaved],
        asked: Always,
        turns_true: &[ALREADY_THERE, always("Attached")],
        one_way: None,
        undo: Undo::By("tags and categories that were made are detached and deleted"),
    },
    Step {
        number: "6",
        name: FolderCreated,
        controller: VcenterPrep,
        // It carries the ownership tag.
        waits_for: &[TagsAttached],
        asked: Always,
        turns_true: &[ALREADY_THERE, always("Created")],
        one_way: None,
        undo: Undo::By("folders that were made are deleted where they are empty"),
    },
    Step {
        number: "7",
        name: InfrastructureExtended,
        controller: ConfigRewrite,
        // The first two may be taken away by others: what counts is what they read now.
        waits_for: &[ClusterVersionFrozen, InfrastructureUnlocked, CredentialsAdded, TagsAttached, FolderCreated],
        asked: Always,
        turns_true: &[ALREADY_THERE, always("Extended")],
        one_way: None,
        undo: Undo::By("the target's vCenters and failure domains leave Infrastructure, in one unit with 8"),
    },
    Step {
        number: "8",
        name: CloudConfigExtended,
        controller: ConfigRewrite,
        waits_for: &[InfrastructureExtended],
        asked: Always,
        turns_true: &[ALREADY_THERE, always("Extended")],
        one_way: None,
        undo: Undo::By("the target leaves the cloud config, in one unit with 7"),
    },
    Step {
        number: "9",
        name: PodsRestarted,
        controller: PodHealthWatch,
        waits_for: &[CloudConfigExtended],
        asked: Always,
        turns_true: &[always("Restarted")],
        one_way: None,
        undo: Undo::RunsAgain,
    },
    Step {
        number: "10",
        name: PodsHealthy,
        controller: PodHealthWatch,
        waits_for: &[PodsRestarted],
        asked: Always,
        turns_true: &[always("Healthy")],
        one_way: None,
        undo: Undo::RunsAgain,
    },
    Step {
        number: "11",
        name: WorkersReady,
        controller: MachineRollout,
        waits_for: &[PodsHealthy],
        asked: Workers,
        turns_true: &[always("Ready")],
        one_way: None,
        undo: Undo::By("autoscalers go back, the new machine sets are deleted with their machines"),
    },
    Step {
        number: "12",
        name: ControlPlaneReady,
        controller: MachineRollout,
        waits_for: &[PodsHealthy, WorkersReady],
        asked: ControlPlane,
        turns_true: &[always("Ready")],
        one_way: None,
        undo: Undo::By("the control plane machine set goes back to the source's failure domains and rolls"),
    },
    Step {
        number: "13",
        name: SourceWorkersRemoved,
        controller: MachineRollout,
        waits_for: &[WorkersReady, ControlPlaneReady],
        asked: Removal,
        turns_true: &[always("Removed")],
        one_way: None,
        undo: Undo::By("the source's machine sets are made again from what was saved"),
    },
    Step {
        number: "14a",
        name: SourceDetached,
        controller: Cleanup,
        // As for 7.
        waits_for: &[ClusterVersionFrozen, InfrastructureUnlocked, SourceWorkersRemoved],
        asked: Removal,
        turns_true: &[always("Detached")],
        one_way: Some(Remove),
        undo: PAST_THE_DOOR,
    },
    Step {
        number: "14b",
        name: PodsRestartedAfterDetach,
        controller: PodHealthWatch,
        waits_for: &[SourceDetached],
        asked: Removal,
        turns_true: &[always("Restarted")],
        one_way: None,
        undo: PAST_THE_DOOR,
    },
    Step {
        number: "14c",
        name: PodsHealthyAfterDetach,
        controller: PodHealthWatch,
        waits_for: &[PodsRestartedAfterDetach],
        asked: Removal,
        turns_true: &[always("Healthy")],
        one_way: None,
        undo: PAST_THE_DOOR,
    },
    Step {
        number: "14d",
        name: SourceRemoved,
        controller: Cleanup,
        waits_for: &[PodsHealthyAfterDetach],
        asked: Removal,
        turns_true: &[always("Removed")],
        one_way: None,
        undo: PAST_THE_DOOR,
    },
    Step {
        number: "14e",
        name: PodsHealthyAfterRemoval,
        controller: PodHealthWatch,
        waits_for: &[SourceRemoved],
        asked: Removal,
        turns_true: &[always("Healthy")],
        one_way: None,
        undo: PAST_THE_DOOR,
    },
    Step {
        number: "15",
        name: ClusterThawed,
        controller: ClusterFreeze,
        // The last one asked for, whichever that is.
        waits_for: &[PodsHealthy, WorkersReady, ControlPlaneReady, PodsHealthyAfterRemoval],
        asked: Always,
        turns_true: &[always("Thawed")],
        one_way: Some(Keep),
        undo: Undo::Never("the holds are released and what was saved is used up: there is no way back from here"),
    },
];
