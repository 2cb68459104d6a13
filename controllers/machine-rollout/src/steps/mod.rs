//! The steps, one file each, and what they have in common.

pub mod brake;
pub mod control_plane;
pub mod source_workers;
pub mod workers;
pub mod workers_undo;

use vmi_kit::failure;
use vmi_kit::failure::look;
use vmi_kit::kind::{MACHINE, MACHINE_SET, NODE};
use vmi_steps::Migration;

use crate::joining;
use crate::ramp::Growing;
use crate::view::{NAMESPACE, Object, SIGNING_REQUEST, Standing, belongs_to, node_name, standing};

/// How many are told in a sentence.
const TOLD: usize = 4;

/// Whether the migration has not started: then a step says what it would change, as if all before it were done.
fn planning(m: &Migration) -> bool {
    m.vmi.seen().started_at.is_none()
}

/// Every MachineSet.
fn sets(m: &Migration) -> Vec<Object> {
    m.list(MACHINE_SET, NAMESPACE)
}

/// The machines that the set made, by name.
fn machines_of(m: &Migration, set: &Object) -> Vec<Object> {
    let mut machines: Vec<Object> = m.list(MACHINE, NAMESPACE).into_iter().filter(|machine| belongs_to(machine, set)).collect();
    machines.sort_by_key(|machine| machine.metadata.name.clone());
    machines
}

/// The first ones, and how many more there are.
fn few(lines: &[String]) -> String {
    let told = lines.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; ");
    let rest = lines.len().saturating_sub(TOLD);
    if rest > 0 { format!("{told}; and {rest} more") } else { told }
}

/// How many machines of a growing set serve, what the others wait for, and which will never serve.
struct Progress {
    up: i64,
    coming: Vec<String>,
    failed: Vec<String>,
}

fn progress(m: &Migration, set: &Object, labels: &std::collections::BTreeMap<String, String>) -> Progress {
    let mut progress = Progress { up: 0, coming: Vec::new(), failed: Vec::new() };
    let requests = m.list(SIGNING_REQUEST, "");
    for machine in machines_of(m, set) {
        let node = node_name(&machine).and_then(|name| m.get(NODE, "", name));
        match standing(&machine, node.as_deref(), labels) {
            Standing::Up => progress.up += 1,
            Standing::Coming(why) => progress.coming.push(why + &joining::pending(&machine, &requests)),
            Standing::Failed(why) => progress.failed.push(why),
        }
    }
    progress
}

/// What a plan says of fields that only the source knows; a set that has none of them is not spoken of.
fn left_out(object: &str, fields: &[String]) -> Option<String> {
    let linked = fields.iter().any(|field| field.starts_with("cloneMode") || field.starts_with("snapshot"));
    let so = if linked { ": full clones are made" } else { "" };
    (!fields.is_empty()).then(|| format!("{object}: without {}, which only the source knows{so}", fields.join(", ")))
}

/// What is waited for while sets grow.
fn waiting(sets: &[Growing<'_>], coming: &[String], place: &str) -> String {
    let (up, wanted): (i64, i64) = (sets.iter().map(|set| set.up).sum(), sets.iter().map(|set| set.wanted).sum());
    let told = if coming.is_empty() { "waits for the machine API to make machines".to_owned() } else { few(coming) };
    format!("{up} of {wanted} machines serve on {place}; {told}")
}

/// A machine that will never serve.
fn failed(lines: &[String]) -> vmi_crds::status::Failure {
    let next = "correct what it names, delete the Machine so that another is made, then set spec.state to Paused and to Running again";
    look(failure("ROL-002", few(lines), next), stuck())
}

/// What shows why machines do not come or go.
fn stuck() -> Vec<String> {
    [
        "oc -n openshift-machine-api get machines -o wide",
        "oc -n openshift-machine-api get events --sort-by=.lastTimestamp",
        "oc -n openshift-machine-api logs deploy/machine-api-controllers -c machine-controller --tail=50",
        "oc get nodes -o wide",
        "oc get csr --sort-by=.metadata.creationTimestamp",
    ]
    .map(str::to_owned)
    .into()
}
