//! Whole migrations on paper: whenever it is a step's turn, it is done at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::graph::{STEPS, StepName};

const FORWARD: [StepName; 11] = [
    StepName::PreflightPassed,
    StepName::ClusterVersionFrozen,
    StepName::InfrastructureUnlocked,
    StepName::ControlPlaneSetSaved,
    StepName::CredentialsAdded,
    StepName::TagsAttached,
    StepName::FolderCreated,
    StepName::InfrastructureExtended,
    StepName::CloudConfigExtended,
    StepName::PodsRestarted,
    StepName::PodsHealthy,
];

fn growth() -> VSphereMigrationInfra {
    let domain = json!({"name": "fd-b", "region": "region-b", "zone": "zone-b", "server": "b", "topology": {
        "datacenter": "dc", "computeCluster": "/dc/host/c", "networks": ["n"], "datastore": "/dc/datastore/d"}});
    let spec = json!({"state": "Running", "sourceRetirement": "Keep", "credentialsSecret": {"name": "s"},
        "vcenters": [{"server": "b", "datacenters": ["dc"]}], "failureDomains": [domain]});
    let vmi = json!({"apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra",
        "metadata": {"name": "growth"}, "spec": spec, "status": {"startedAt": "2026-01-02T03:04:05Z"}});
    serde_json::from_value(vmi).unwrap()
}

/// The vmi after a step has reported.
fn with(vmi: &VSphereMigrationInfra, name: StepName, state: &str, status: &str, reason: &str) -> VSphereMigrationInfra {
    let mut value = serde_json::to_value(vmi).unwrap();
    let without = |list: &Value, key: &str| -> Vec<Value> {
        list.as_array().into_iter().flatten().filter(|entry| entry[key] != name.as_str()).cloned().collect()
    };
    let mut steps = without(&value["status"]["steps"], "name");
    steps.push(json!({"name": name.as_str(), "number": name.step().number, "controller": name.step().controller.as_str(), "state": state}));
    let mut conditions = without(&value["status"]["conditions"], "type");
    let when = "2026-01-02T03:04:05Z";
    conditions.push(json!({"type": name.as_str(), "status": status, "reason": reason, "message": "m", "lastTransitionTime": when}));
    value["status"]["steps"] = json!(steps);
    value["status"]["conditions"] = json!(conditions);
    serde_json::from_value(value).unwrap()
}

fn done(vmi: &VSphereMigrationInfra, name: StepName) -> VSphereMigrationInfra {
    with(vmi, name, "Done", "True", "Done")
}

fn in_state(vmi: &VSphereMigrationInfra, state: State) -> VSphereMigrationInfra {
    let mut vmi = vmi.clone();
    vmi.spec.state = state;
    vmi
}

fn whose(vmi: &VSphereMigrationInfra, wanted: &Turn) -> Vec<StepName> {
    STEPS.iter().map(|step| step.name).filter(|name| turn(vmi, *name) == *wanted).collect()
}

#[test]
fn a_growth_goes_forward_step_by_step_and_ends_with_the_thaw() {
    let mut vmi = growth();
    let mut taken = Vec::new();
    loop {
        let next = whose(&vmi, &Turn::Forward);
        if next.is_empty() {
            break;
        }
        for name in next {
            vmi = done(&vmi, name);
            taken.push(name);
        }
    }
    let expected: Vec<StepName> = FORWARD.into_iter().chain([StepName::ClusterThawed]).collect();
    assert_eq!(taken.iter().collect::<BTreeSet<_>>(), expected.iter().collect::<BTreeSet<_>>());
    assert_eq!(taken.last(), Some(&StepName::ClusterThawed));
    assert_eq!(turn(&vmi, StepName::SourceDetached), Turn::NotRequested);
}

#[test]
fn before_the_start_every_step_plans_and_none_acts() {
    let mut vmi = growth();
    vmi.status = None;
    for state in [State::Pending, State::Running] {
        let vmi = in_state(&vmi, state);
        for name in FORWARD.into_iter().skip(1) {
            assert_eq!(turn(&vmi, name), Turn::Plan, "{name} in {state:?}");
        }
    }
    assert_eq!(turn(&in_state(&vmi, State::Pending), StepName::PreflightPassed), Turn::Plan);
}

#[test]
fn from_every_step_the_way_back_undoes_what_began_in_the_order_of_the_data() {
    let order: Vec<StepName> = UNDO_ORDER.iter().flat_map(|stage| stage.steps).copied().collect();
    for begun in 1..=FORWARD.len() {
        let mut vmi = growth();
        for name in &FORWARD[..begun - 1] {
            vmi = done(&vmi, *name);
        }
        vmi = in_state(&with(&vmi, FORWARD[begun - 1], "Active", "False", "InProgress"), State::RollingBack);
        let mut taken: Vec<StepName> = Vec::new();
        while let Some(name) = whose(&vmi, &Turn::Back).first().copied() {
            assert_eq!(whose(&vmi, &Turn::Back), [name], "one at a time");
            vmi = with(&vmi, name, "Undone", "False", "Undone");
            taken.push(name);
        }
        assert!(whose(&vmi, &Turn::Forward).is_empty());
        let again = FORWARD[..begun].contains(&StepName::InfrastructureExtended);
        let runs = |name: &StepName| FORWARD[1..begun].contains(name) || (again && name.step().undo == Undo::RunsAgain);
        let expected: Vec<StepName> = order.iter().copied().filter(runs).collect();
        assert_eq!(taken, expected, "from {}", FORWARD[begun - 1]);
    }
}

#[test]
fn a_pause_stops_every_step_but_not_a_unit_that_has_begun() {
    let mut vmi = growth();
    for name in FORWARD {
        let paused = in_state(&vmi, State::Paused);
        let eight = name == StepName::CloudConfigExtended;
        let expected = if eight { Turn::Forward } else { Turn::Stopped(Stopped::Paused) };
        assert_eq!(turn(&paused, name), expected, "{name}");
        vmi = done(&vmi, name);
    }
    // On the way back the unit is 8' and 7'.
    let mut back = in_state(&vmi, State::Paused);
    back.status.as_mut().unwrap().rolling_back_at = back.seen().started_at.clone();
    assert_eq!(turn(&back, StepName::CloudConfigExtended), Turn::Stopped(Stopped::Paused));
    let begun = with(&back, StepName::CloudConfigExtended, "Undone", "False", "Undone");
    assert_eq!(turn(&begun, StepName::InfrastructureExtended), Turn::Back);
}

#[test]
fn a_step_that_failed_waits_for_the_user_and_one_whose_hold_was_taken_away_stops_what_needs_it() {
    let mut vmi = growth();
    for name in &FORWARD[..7] {
        vmi = done(&vmi, *name);
    }
    let failed = with(&vmi, StepName::InfrastructureExtended, "Failed", "False", "API-422");
    assert_eq!(turn(&failed, StepName::InfrastructureExtended), Turn::Stopped(Stopped::Failed));
    // On the way back it is undone like everything else, and stops only if it fails at that.
    let back = in_state(&failed, State::RollingBack);
    assert_eq!(turn(&back, StepName::InfrastructureExtended), Turn::Back);
    let mut again = back.clone();
    let status = again.status.as_mut().unwrap();
    status.rolling_back_at = status.started_at.clone();
    let failed_step = status.steps.iter_mut().find(|step| step.name == "InfrastructureExtended").unwrap();
    failed_step.started_at = serde_json::from_value(json!("2026-01-02T04:04:05.000000Z")).unwrap();
    assert_eq!(turn(&again, StepName::InfrastructureExtended), Turn::Stopped(Stopped::Failed));
    let lost = with(&vmi, StepName::ClusterVersionFrozen, "Failed", "False", "TakenAway");
    assert_eq!(turn(&lost, StepName::InfrastructureExtended), Turn::Waits("ClusterVersionFrozen (cluster-freeze)".to_owned()));
}

#[test]
fn a_hold_that_others_took_away_is_taken_again_for_what_is_still_to_be_undone() {
    let mut vmi = growth();
    for name in &FORWARD[..8] {
        vmi = done(&vmi, *name);
    }
    let (frozen, extended) = (StepName::ClusterVersionFrozen, StepName::InfrastructureExtended);
    let back = |vmi: &VSphereMigrationInfra, turned: &str| {
        let mut vmi = in_state(vmi, State::RollingBack);
        vmi.status.as_mut().unwrap().rolling_back_at = serde_json::from_value(json!(turned)).unwrap();
        vmi
    };
    let (before, after) = ("2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z");
    assert_eq!(turn(&back(&vmi, after), frozen), Turn::Rests, "what is held stays held");
    let lost = with(&vmi, frozen, "Failed", "False", "TakenAway");
    assert_eq!(turn(&back(&lost, after), frozen), Turn::Forward, "going back is the user's word");
    assert_eq!(turn(&back(&lost, after), extended), Turn::Waits("ClusterVersionFrozen (cluster-freeze)".to_owned()));
    let lost_since = back(&lost, before);
    assert_eq!(turn(&lost_since, frozen), Turn::Stopped(Stopped::Failed));
    let resumed = back(&with(&vmi, frozen, "Active", "False", "Paused"), before);
    assert_eq!(turn(&in_state(&resumed, State::Paused), frozen), Turn::Stopped(Stopped::Paused));
    assert_eq!(turn(&resumed, frozen), Turn::Forward);
    let undone = with(&lost_since, extended, "Undone", "False", "Undone");
    assert!(!matches!(turn(&undone, frozen), Turn::Forward), "nothing needs it any more");
}

#[test]
fn before_the_one_way_door_a_pause_and_a_hold_stop_it_and_behind_it_neither_does() {
    let mut vmi = growth();
    vmi.spec.source_retirement = crate::spec::SourceRetirement::Remove;
    for step in STEPS.iter().take_while(|step| step.name != StepName::SourceDetached) {
        vmi = done(&vmi, step.name);
    }
    let at_the_door = with(&vmi, StepName::SourceDetached, "Active", "False", "Ready");
    let held = |vmi: &VSphereMigrationInfra| {
        let mut vmi = vmi.clone();
        let status = vmi.status.as_mut().unwrap();
        let condition =
            json!({"type": "Held", "status": "True", "reason": "OPR-001", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"});
        status.conditions.push(serde_json::from_value(condition).unwrap());
        vmi
    };
    let turn = |vmi: &VSphereMigrationInfra| super::turn(vmi, StepName::SourceDetached);
    assert_eq!(turn(&at_the_door), Turn::Forward);
    assert_eq!(turn(&in_state(&at_the_door, State::Paused)), Turn::Stopped(Stopped::Paused));
    assert_eq!(turn(&held(&at_the_door)), Turn::Stopped(Stopped::Held));
    let mut behind = at_the_door;
    behind.status.as_mut().unwrap().one_way_at = behind.seen().started_at.clone();
    assert_eq!(turn(&behind), Turn::Forward);
    assert_eq!(turn(&in_state(&behind, State::Paused)), Turn::Forward);
    assert_eq!(turn(&held(&behind)), Turn::Forward);
    let lost = with(&behind, StepName::InfrastructureUnlocked, "Failed", "False", "TakenAway");
    assert_eq!(turn(&lost), Turn::Waits("InfrastructureUnlocked (cluster-freeze)".to_owned()));
}

#[test]
fn nothing_moves_once_it_is_over() {
    let vmi = growth();
    let mut value = serde_json::to_value(&vmi).unwrap();
    value["status"]["conditions"] =
        json!([{"type": "RolledBack", "status": "True", "reason": "Done", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}]);
    let over: VSphereMigrationInfra = serde_json::from_value(value).unwrap();
    for vmi in [over, in_state(&vmi, State::Abandoned)] {
        assert!(whose(&vmi, &Turn::Forward).is_empty() && whose(&vmi, &Turn::Back).is_empty());
    }
}
