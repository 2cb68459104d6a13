//! Why a vCenter cannot be prepared, for whoever reads it at three in the morning.

use vmi_crds::status::Failure;
use vmi_kit::failure;

const RESUME: &str = "then set spec.state to Paused and to Running again";

/// A place that a failure domain names is not in the vCenter.
pub fn no_place(server: &str, domain: &str, what: &str, there: &[&str]) -> Failure {
    let there = if there.is_empty() { "none at all".to_owned() } else { there.join(", ") };
    failure(
        "TAG-001",
        format!("failure domain {domain}: vCenter {server} has no {what}; there is {there}"),
        format!("correct the failure domain or make it, {RESUME}"),
    )
}

/// An object has another tag of a category of which it may have one.
pub fn second_tag(server: &str, path: &str, category: &str, there: &str, wanted: &str, domain: &str) -> Failure {
    failure(
        "TAG-002",
        format!(
            "{path} in vCenter {server} has tag {there} of category {category}; failure domain {domain} needs {wanted}, and only one is possible. Nothing was attached"
        ),
        format!("take {there} for the failure domain's name, or detach it if nobody uses it, {RESUME}"),
    )
}

/// Two failure domains want different tags of a category on one object.
pub fn disagreement(server: &str, path: &str, category: &str, one: (&str, &str), other: (&str, &str)) -> Failure {
    failure(
        "TAG-003",
        format!(
            "failure domain {} wants tag {} and {} wants {} on {path} in vCenter {server}; of category {category} only one is possible",
            one.0, one.1, other.0, other.1
        ),
        "give failure domains in the same place the same name for it, in a new vmi",
    )
}

/// A category of that name is there and does not fit.
pub fn unfit_category(server: &str, category: &str, kind: &str) -> Failure {
    failure(
        "TAG-004",
        format!(
            "tag category {category} in vCenter {server} cannot be used on objects of type {kind}; it is not changed, since others use it too"
        ),
        format!("add {kind} to its associable types in vCenter, {RESUME}"),
    )
}

/// A vCenter that belongs to the migration and to no failure domain.
pub fn no_domain(server: &str) -> Failure {
    failure(
        "TAG-005",
        format!(
            "no failure domain is in vCenter {server}: its region and zone have no names, and nodes there could not be told from the target's"
        ),
        "add a failure domain for it to Infrastructure cluster (spec.platformSpec.vsphere.failureDomains), then resume",
    )
}

/// Infrastructure does not say where the source's machines are, and they do not either.
pub fn no_source_domain(why: &str) -> Failure {
    failure(
        "TAG-005",
        format!("Infrastructure cluster has no failure domain for the source, and none can be told from a machine: {why}"),
        "add one to Infrastructure cluster (spec.platformSpec.vsphere.failureDomains), then resume",
    )
}

/// Infrastructure's failure domains cannot be read.
pub fn unreadable_domain(error: &str) -> Failure {
    failure("TAG-006", format!("Infrastructure cluster has a failure domain that cannot be read: {error}"), "correct it, then resume")
}

/// The folder for machines cannot be made.
pub fn no_root(server: &str, path: &str) -> Failure {
    failure(
        "FLD-001",
        format!("vCenter {server} has nothing that {path} could be made in"),
        format!("correct topology.folder: it begins with a datacenter and /vm, {RESUME}"),
    )
}

/// The tag that goes on the folder was there a moment ago.
pub fn no_owner(server: &str, tag: &str) -> Failure {
    failure(
        "FLD-002",
        format!("vCenter {server} has no tag {tag} any more, which TagsAttached saw or made"),
        format!("make it again in category openshift-{tag}, {RESUME}"),
    )
}
