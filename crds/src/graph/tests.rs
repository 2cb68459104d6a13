//! What the table promises, in every migration and every cluster there can be.

use std::collections::{BTreeMap, BTreeSet};

use super::StepName::*;
use super::{Cluster, ControlPlaneSet, Controller, HELD_BACK, Request, SIGNALS, STEPS, Step, StepName, UNDO_ORDER, UNITS, Undo};
use crate::spec::SourceRetirement::{Keep, Remove};
use crate::status::Path::{Legacy, Native};

fn requests() -> Vec<Request> {
    let mut all = Vec::new();
    for retirement in [Keep, Remove] {
        for (machine_sets, control_plane) in [(false, false), (true, false), (false, true), (true, true)] {
            all.push(Request { retirement, machine_sets, control_plane });
        }
    }
    all
}

fn clusters() -> Vec<Cluster> {
    use ControlPlaneSet::{Absent, LeftAlone, NoneRegenerated, Regenerated};
    let mut all = Vec::new();
    for path in [Native, Legacy] {
        for control_plane_set in [Regenerated, NoneRegenerated, Absent, LeftAlone] {
            all.extend([false, true].map(|target_there| Cluster { path, control_plane_set, target_there }));
        }
    }
    all
}

/// Everything a step waits for in a migration, directly or not.
fn ancestors(step: &Step, request: Request) -> BTreeSet<StepName> {
    let direct = step.still_waits_for(request, |_| false);
    direct.iter().flat_map(|name| ancestors(name.step(), request)).chain(direct.clone()).collect()
}

/// The conditions in the order in which they turn True when every controller does its work at once.
fn run(request: Request, cluster: Cluster) -> Vec<StepName> {
    let mut done: Vec<StepName> = Vec::new();
    loop {
        let open = |step: &&Step| {
            !done.contains(&step.name)
                && step.still_waits_for(request, |name| done.contains(&name)).is_empty()
                && step.reason(cluster).is_some()
        };
        let next: Vec<StepName> = request.steps().filter(open).map(|step| step.name).collect();
        if next.is_empty() {
            return done;
        }
        done.extend(next);
    }
}

#[test]
fn every_name_has_its_row_in_the_order_of_the_numbers() {
    for (index, step) in STEPS.iter().enumerate() {
        assert_eq!(step.name as usize, index, "{}", step.name);
        assert_eq!(step.name.as_str(), format!("{:?}", step.name));
        assert_eq!(StepName::of(step.name.as_str()), Some(step.name));
    }
    assert_eq!(STEPS.len(), ClusterThawed as usize + 1, "a name has no row");
    let numbers: Vec<&str> = STEPS.iter().map(|step| step.number).collect();
    let plain = (0..=13).map(|number| number.to_string());
    let expected: Vec<String> = plain.chain(["14a", "14b", "14c", "14d", "14e", "15"].map(str::to_owned)).collect();
    assert_eq!(numbers, expected);
    assert_eq!(StepName::of("Held"), None);
}

#[test]
fn every_condition_has_one_producer() {
    let mut producers = BTreeMap::new();
    let steps = STEPS.iter().map(|step| (step.name.as_str(), step.controller));
    for (condition, controller) in steps.chain(SIGNALS.iter().map(|signal| (signal.name, signal.controller))) {
        let other = producers.insert(condition, controller);
        assert!(other.is_none(), "{condition} has the producers {other:?} and {controller}");
    }
    let managers: BTreeSet<String> = producers.values().map(|controller| controller.field_manager()).collect();
    assert_eq!(managers.len(), 8, "{managers:?}");
    assert!(STEPS.iter().all(|step| step.controller != Controller::Summary), "the summary takes no step");
}

#[test]
fn no_step_waits_for_itself_or_for_a_later_one() {
    for step in STEPS {
        for name in step.waits_for {
            assert!(name < &step.name, "{} waits for {name}", step.name);
        }
    }
}

#[test]
fn every_gate_opens_in_every_migration_and_every_cluster() {
    for request in requests() {
        for cluster in clusters() {
            let done: BTreeSet<StepName> = run(request, cluster).into_iter().collect();
            let asked: BTreeSet<StepName> = request.steps().map(|step| step.name).collect();
            let stuck: Vec<_> = asked.difference(&done).collect();
            assert!(stuck.is_empty(), "{stuck:?} never turn True in {request:?}, {cluster:?}");
            assert_eq!(done, asked);
        }
    }
}

#[test]
fn nothing_begins_before_the_preflight_and_the_thaw_is_last_whatever_was_asked_for() {
    for request in requests() {
        for step in request.steps().skip(1) {
            assert!(ancestors(step, request).contains(&PreflightPassed), "{} does not wait for the preflight in {request:?}", step.name);
        }
        let before: Vec<StepName> = request.steps().map(|step| step.name).filter(|name| *name != ClusterThawed).collect();
        let awaited: Vec<StepName> = ancestors(ClusterThawed.step(), request).into_iter().collect();
        assert_eq!(awaited, before, "the thaw of {request:?}");
    }
}

#[test]
fn what_is_asked_for_follows_the_spec() {
    let names = |request: Request| request.steps().map(|step| step.number).skip(11).collect::<Vec<_>>().join(" ");
    let keep = |machine_sets, control_plane| Request { retirement: Keep, machine_sets, control_plane };
    assert_eq!(names(keep(false, false)), "15");
    assert_eq!(names(keep(true, false)), "11 15");
    assert_eq!(names(keep(false, true)), "12 15");
    assert_eq!(names(keep(true, true)), "11 12 15");
    for request in requests().into_iter().filter(|request| request.retirement == Remove) {
        assert_eq!(names(request), "11 12 13 14a 14b 14c 14d 14e 15");
    }
}

#[test]
fn a_gate_names_what_it_still_waits_for() {
    let keep = Request { retirement: Keep, machine_sets: false, control_plane: true };
    assert_eq!(ControlPlaneReady.step().still_waits_for(keep, |_| false), [PodsHealthy]);
    assert_eq!(ControlPlaneReady.step().still_waits_for(keep, |name| name == PodsHealthy), []);
    let remove = Request { retirement: Remove, ..keep };
    assert_eq!(ControlPlaneReady.step().still_waits_for(remove, |name| name == PodsHealthy), [WorkersReady]);
}

#[test]
fn the_holds_are_asked_for_again_by_every_write_they_protect() {
    let holds = [ClusterVersionFrozen, InfrastructureUnlocked];
    for name in [InfrastructureExtended, SourceDetached] {
        assert!(holds.iter().all(|hold| name.step().waits_for.contains(hold)), "{name}");
    }
    let back = &UNDO_ORDER[InfrastructureExtended.undo_rank().unwrap()];
    assert_eq!(back.needs, holds);
}

#[test]
fn native_clusters_are_not_frozen_and_a_missing_control_plane_set_stops_nothing() {
    let cluster = Cluster { path: Native, control_plane_set: ControlPlaneSet::NoneRegenerated, target_there: false };
    let reasons = [ClusterVersionFrozen, InfrastructureUnlocked, ControlPlaneSetSaved].map(|name| name.step().reason(cluster));
    assert_eq!(reasons, [Some("NotNeeded"), Some("NotNeeded"), Some("NoneRegenerated")]);
    let there = Cluster { path: Legacy, control_plane_set: ControlPlaneSet::Absent, target_there: true };
    let reasons = STEPS.iter().filter(|step| step.reason(there) == Some("AlreadyThere")).map(|step| step.number);
    assert_eq!(reasons.collect::<Vec<_>>(), ["4", "5", "6", "7", "8"]);
}

#[test]
fn every_step_is_taken_back_in_its_place_or_says_why_not() {
    let order: Vec<StepName> = UNDO_ORDER.iter().flat_map(|stage| stage.steps).copied().collect();
    for step in STEPS {
        let places = order.iter().filter(|name| **name == step.name).count();
        match step.undo {
            Undo::By(text) => assert!(places == 1 && !text.is_empty(), "{} is {places} times in the undo order", step.name),
            Undo::RunsAgain => assert_eq!(places, 1, "{}", step.name),
            Undo::Never(why) => assert!(places == 0 && !why.is_empty(), "{} is not to be undone, but is in the undo order", step.name),
        }
    }
    let numbers: Vec<&str> = order.iter().map(|name| name.step().number).collect();
    assert_eq!(numbers.join(" "), "13 12 11 8 7 9 10 6 5 4 3 2 1");
}

#[test]
fn nothing_is_taken_back_while_something_still_stands_on_it() {
    for step in STEPS.iter().filter(|step| matches!(step.undo, Undo::By(_))) {
        for name in step.waits_for.iter().filter(|name| matches!(name.step().undo, Undo::By(_))) {
            assert!(step.name.undo_rank() <= name.undo_rank(), "{name} is undone before {}, which stands on it", step.name);
        }
    }
    for (rank, stage) in UNDO_ORDER.iter().enumerate() {
        assert!(stage.needs.iter().all(|hold| hold.undo_rank() > Some(rank)), "{stage:?} needs what is gone by then");
        assert!(stage.only_after.iter().all(|name| name.undo_rank() < Some(rank)), "{stage:?} follows what comes later");
    }
}

#[test]
fn every_migration_has_one_door_without_return_and_what_lies_behind_is_never_undone() {
    for request in requests() {
        let door = request.one_way_door().unwrap();
        assert_eq!(door.name, if request.retirement == Remove { SourceDetached } else { ClusterThawed });
        assert_eq!(request.steps().filter(|step| step.one_way == Some(request.retirement)).count(), 1);
        for step in request.steps() {
            let behind = step.name >= door.name;
            assert!(!behind || matches!(step.undo, Undo::Never(_)), "{} lies behind the door", step.name);
        }
    }
}

#[test]
fn units_are_undone_as_units_and_a_hold_never_stops_what_follows_the_door() {
    for unit in UNITS {
        let ranks: BTreeSet<_> = unit.iter().map(|name| name.undo_rank()).collect();
        assert_eq!(ranks.len(), 1, "{unit:?}");
    }
    assert!(HELD_BACK.iter().all(|name| (WorkersReady..=SourceDetached).contains(name)));
    assert_eq!(HELD_BACK.len(), 4);
}
