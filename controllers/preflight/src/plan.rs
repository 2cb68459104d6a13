//! The plan: what every step says it would change, the hash that stands for all of it, and its text for people.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{Controller, Step, StepName};
use vmi_crds::status::{CheckResult, Path};
use vmi_steps::migration::WAITS_FOR_PATH;

use crate::checks::Judged;

const DIGITS: usize = 16;

fn planned(vmi: &VSphereMigrationInfra) -> impl Iterator<Item = &'static Step> {
    vmi.request().steps().filter(|step| step.controller != Controller::Preflight)
}

/// Steps whose controllers have not yet said what they would change for this spec and path. Empty: the plan is complete.
pub fn unplanned(vmi: &VSphereMigrationInfra) -> Vec<String> {
    let current = |step: &&Step| {
        vmi.step(step.name)
            .is_some_and(|entry| entry.observed_generation == vmi.metadata.generation && !entry.message.contains(WAITS_FOR_PATH))
    };
    planned(vmi).filter(|step| !current(step)).map(|step| format!("{} ({})", step.name, step.controller)).collect()
}

/// Every change, in the order of the steps.
pub fn changes(vmi: &VSphereMigrationInfra) -> Vec<String> {
    changes_of(vmi, planned(vmi))
}

/// The changes from the one-way door on: what takes the source away.
pub fn removal(vmi: &VSphereMigrationInfra) -> Vec<String> {
    changes_of(vmi, planned(vmi).filter(|step| step.name >= StepName::SourceDetached))
}

fn changes_of(vmi: &VSphereMigrationInfra, steps: impl Iterator<Item = &'static Step>) -> Vec<String> {
    let mut lines = Vec::new();
    for step in steps {
        let Some(entry) = vmi.step(step.name) else { continue };
        let more = entry.more_changes.map(|count| format!("and {count} more"));
        lines.extend(entry.changes.iter().chain(more.as_ref()).map(|change| format!("{} {}: {change}", step.number, step.name)));
    }
    lines
}

/// What stands for all changes.
pub fn hash(changes: &[String]) -> String {
    let mut sum = Sha256::new();
    changes.iter().for_each(|line| sum.update(format!("{line}\n")));
    let mut digits: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    digits.truncate(DIGITS);
    digits
}

/// What a plan has lost and gained since another one.
pub fn difference(before: &[&str], after: &[String]) -> Vec<String> {
    let lost = before.iter().filter(|line| !after.iter().any(|other| other == *line)).map(|line| format!("- {line}"));
    let gained = after.iter().filter(|line| !before.contains(&line.as_str())).map(|line| format!("+ {line}"));
    lost.chain(gained).collect()
}

/// The whole plan for people.
pub fn text(checks: &[Judged], path: Option<Path>, reason: &str, hash: Option<&str>, changes: &[String]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "plan {}", hash.unwrap_or("not complete yet"));
    let path = path.map_or_else(|| "none".to_owned(), |path| format!("{path:?}").to_lowercase());
    let _ = writeln!(text, "path {path}: {reason}\n\nchecks");
    for check in checks {
        for line in &check.lines {
            let _ = writeln!(text, "  {:12} {} {line}", format!("{:?}", check.result), check.id);
        }
    }
    let _ = writeln!(text, "\nchanges");
    for line in changes {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// The ids of the checks that keep the migration from starting.
pub fn blocking(checks: &[Judged]) -> Vec<String> {
    checks.iter().filter(|check| check.result == CheckResult::Blocking).map(|check| check.id.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use vmi_crds::graph::STEPS;

    fn vmi(edit: impl Fn(&mut Value)) -> VSphereMigrationInfra {
        let spec = json!({"vcenters": [], "failureDomains": [], "credentialsSecret": {"name": "x"}, "sourceRetirement": "Keep"});
        let step = |step: &Step| {
            let name = step.name.as_str();
            let changes = if step.name == StepName::FolderCreated { json!(["make /dc/vm/x"]) } else { json!([]) };
            json!({"name": name, "number": step.number, "controller": step.controller.as_str(), "state": "Waiting", "observedGeneration": 3, "changes": changes})
        };
        let mut value = json!({"metadata": {"name": "m", "generation": 3}, "spec": spec,
            "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra",
            "status": {"steps": STEPS.iter().map(step).collect::<Vec<_>>()}});
        value["status"]["steps"].as_array_mut().unwrap().iter_mut().for_each(edit);
        serde_json::from_value(value).unwrap()
    }

    fn is(entry: &Value, name: StepName) -> bool {
        entry["name"] == name.as_str()
    }

    #[test]
    fn a_plan_is_complete_once_every_asked_step_is_planned_for_this_spec_and_path() {
        assert!(unplanned(&vmi(|_| {})).is_empty());
        let late = vmi(|entry| entry["observedGeneration"] = json!(if is(entry, StepName::TagsAttached) { 2 } else { 3 }));
        assert_eq!(unplanned(&late), ["TagsAttached (vcenter-prep)"]);
        let waits = vmi(|entry| {
            if is(entry, StepName::ClusterVersionFrozen) {
                entry["message"] = json!("waits for the preflight to choose the path");
            }
        });
        assert_eq!(unplanned(&waits), ["ClusterVersionFrozen (cluster-freeze)"]);
        // What is not asked for is not waited for.
        let absent = vmi(|entry| {
            if is(entry, StepName::WorkersReady) || is(entry, StepName::SourceDetached) || is(entry, StepName::PreflightPassed) {
                entry["observedGeneration"] = json!(0);
            }
        });
        assert!(unplanned(&absent).is_empty());
    }

    #[test]
    fn the_hash_changes_with_a_change_and_with_the_step_that_makes_it_and_with_nothing_else() {
        let base = hash(&changes(&vmi(|_| {})));
        assert_eq!(base.len(), 16);
        assert_eq!(base, hash(&changes(&vmi(|entry| entry["message"] = json!("other words")))));
        let other = vmi(|entry| {
            if is(entry, StepName::FolderCreated) {
                entry["changes"] = json!(["make /dc/vm/y"]);
            }
        });
        let elsewhere = vmi(|entry| {
            entry["changes"] = if is(entry, StepName::TagsAttached) { json!(["make /dc/vm/x"]) } else { json!([]) };
        });
        let uncounted = vmi(|entry| {
            if is(entry, StepName::FolderCreated) {
                entry["moreChanges"] = json!(4);
            }
        });
        for changed in [other, elsewhere, uncounted] {
            assert_ne!(hash(&changes(&changed)), base);
        }
    }

    #[test]
    fn the_removal_is_what_comes_from_the_one_way_door_on() {
        let mut vmi = vmi(|entry| entry["changes"] = json!([entry["number"]]));
        vmi.spec.source_retirement = vmi_crds::spec::SourceRetirement::Remove;
        let numbers: Vec<String> = removal(&vmi).iter().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
        assert_eq!(numbers, ["14a", "14b", "14c", "14d", "14e", "15"]);
        assert_ne!(hash(&removal(&vmi)), hash(&changes(&vmi)));
    }

    #[test]
    fn a_difference_names_what_went_and_what_came() {
        let after = ["a".to_owned(), "c".to_owned()];
        assert_eq!(difference(&["a", "b"], &after), ["- b", "+ c"]);
        assert!(difference(&["a", "c"], &after).is_empty());
    }
}
