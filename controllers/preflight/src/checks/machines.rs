//! Machines and volumes that are there already: whether the migration meets one it would stumble over.

use serde_json::{Value, json};
use vmi_crds::spec::{SourceRetirement, Volumes};
use vmi_intent::nodes::{Class, class};
use vmi_intent::provider::differences;
use vmi_intent::source_domain::{BY_HAND, failure_domain};

use super::{Check, Finding, Weight, noted_or, unasked, wrong_or};
use crate::facts::{Facts, Object};
use crate::objects::{label, name};

const REGION: &str = "machine.openshift.io/region";
const ZONE: &str = "machine.openshift.io/zone";
pub(super) const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
/// Labels that only vSphere's nodes have.
const TELL_VSPHERE: [&str; 2] = ["node.kubernetes.io/instance-type", "node.openshift.io/platform-type"];
/// By this its operator says on a MachineSet which MachineAutoscaler looks after it.
const AUTOSCALER: &str = "autoscaling.openshift.io/machineautoscaler";
const NAMED: usize = 5;

pub const CHECKS: &[Check] = &[
    Check {
        id: "MCH-001",
        about: "region and zone of every Machine and MachineSet are those of a failure domain; newer clusters refuse changes of Infrastructure otherwise (then PTH-001 blocks)",
        weight: Weight::Warns,
        judge: labels,
    },
    Check { id: "MCH-002", about: "machines are managed by the Machine API, not by Cluster API", weight: Weight::Blocks, judge: authority },
    Check {
        id: "MCH-003",
        about: "every machine of the control plane is in a failure domain of the source, string by string: its operator cannot move it otherwise",
        weight: Weight::Blocks,
        judge: masters,
    },
    Check {
        id: "MCH-004",
        about: "no MachineSet that an autoscaler looks after is to be spread over several failure domains: its bounds would hold for one of the new sets alone",
        weight: Weight::Blocks,
        judge: split,
    },
    Check {
        id: "NOD-001",
        about: "where nodes stand beside vSphere's, such as bare metal, the vSphere CSI driver keeps away from them",
        weight: Weight::Warns,
        judge: strangers,
    },
    Check {
        id: "VOL-001",
        about: "no PersistentVolume lives on the source, unless `spec.volumes` says Ignore; where the source is kept they are only told",
        weight: Weight::Blocks,
        judge: volumes,
    },
];

fn labels(facts: &Facts) -> Finding {
    let domains: Vec<(&str, &str)> = facts
        .listed_domains()
        .iter()
        .map(|domain| (domain["region"].as_str().unwrap_or_default(), domain["zone"].as_str().unwrap_or_default()))
        .collect();
    let strange = |region: &str, zone: &str| !region.is_empty() && !zone.is_empty() && !domains.contains(&(region, zone));
    let mut lines = Vec::new();
    for machine in &facts.cluster.machines {
        let (region, zone) = (label(machine, REGION), label(machine, ZONE));
        if strange(region, zone) {
            lines.push(format!(
                "Machine {}: its labels say region {region}, zone {zone}, of which there is no failure domain",
                name(machine)
            ));
        }
    }
    for set in &facts.cluster.machine_sets {
        let labels = &set.data["spec"]["template"]["metadata"]["labels"];
        let (region, zone) = (labels[REGION].as_str().unwrap_or_default(), labels[ZONE].as_str().unwrap_or_default());
        if strange(region, zone) {
            lines.push(format!(
                "MachineSet {}: its template says region {region}, zone {zone}, of which there is no failure domain",
                name(set)
            ));
        }
    }
    wrong_or(few(lines), "all labels fit")
}

fn authority(facts: &Facts) -> Finding {
    let foreign = |kind: &str, object: &Object| {
        let by = [&object.data["spec"]["authoritativeAPI"], &object.data["status"]["authoritativeAPI"]];
        let by = by.into_iter().find_map(|value| value.as_str().filter(|by| !by.is_empty() && *by != "MachineAPI"))?;
        Some(format!("{kind} {}: authoritativeAPI is {by}, not MachineAPI; move it back first", name(object)))
    };
    let machines = facts.cluster.machines.iter().filter_map(|machine| foreign("Machine", machine));
    let sets = facts.cluster.machine_sets.iter().filter_map(|set| foreign("MachineSet", set));
    let plane = facts.cluster.control_plane_set.iter().filter_map(|set| foreign("ControlPlaneMachineSet", set));
    wrong_or(few(machines.chain(sets).chain(plane).collect()), "all are the Machine API's")
}

/// By the source's failure domains in Infrastructure, or where that has none at all by the one that will be told from the first master.
fn masters(facts: &Facts) -> Finding {
    let place = |machine: &Object| machine.data["spec"]["providerSpec"]["value"].clone();
    let mut masters: Vec<&Object> = facts.cluster.machines.iter().filter(|machine| label(machine, ROLE) == "master").collect();
    masters.sort_by(|one, other| name(one).cmp(name(other)));
    let Some(first) = masters.first() else { return Finding::Passed("there are none".to_owned()) };
    let mut domains = facts.listed_domains().to_vec();
    if domains.is_empty() {
        match failure_domain(&place(first)) {
            Ok(domain) => domains.push(domain),
            Err(why) => {
                let line = format!("Machine {}: no failure domain can be told from it: {why}; {BY_HAND}", name(first));
                return Finding::Wrong(vec![line]);
            }
        }
    }
    domains.retain(|domain| facts.sources.iter().any(|source| domain["server"] == source.as_str()));
    if domains.is_empty() {
        let (sources, server) = (facts.sources.join(", "), place(first)["workspace"]["server"].clone());
        let of = if sources.is_empty() { "no source is known".to_owned() } else { format!("no failure domain is on {sources}") };
        let next = "name the vCenter of the control plane in spec.source.servers, and have Infrastructure list its failure domains";
        return Finding::Wrong(vec![format!("Machine {}: it is on {server}, and {of}; {next}", name(first))]);
    }
    let astray = |machine: &&Object| {
        let provider = place(machine);
        let workspace = &provider["workspace"];
        let mut open: Vec<(&str, Vec<String>)> =
            domains.iter().map(|domain| (domain["name"].as_str().unwrap_or_default(), differences(workspace, domain))).collect();
        open.sort_by_key(|(_, differences)| differences.len());
        let (nearest, differences) = open.first().filter(|(_, differences)| !differences.is_empty())?;
        let (called, list) = (name(machine), differences.join(", "));
        Some(format!(
            "Machine {called}: it is in no failure domain of the source; nearest is {nearest}: {list}; make the two the same, letter by letter"
        ))
    };
    wrong_or(few(masters.iter().filter_map(astray).collect()), format!("{} machines", masters.len()))
}

/// A MachineAutoscaler looks after one set. Where the source is kept it stays with that.
fn split(facts: &Facts) -> Finding {
    if facts.spec.source_retirement == SourceRetirement::Keep {
        return Finding::Passed("autoscalers stay as they are, for the source is kept".to_owned());
    }
    let autoscaler = |set: &str| {
        let found = facts.cluster.machine_sets.iter().find(|object| name(object) == set)?;
        found.metadata.annotations.as_ref()?.get(AUTOSCALER).filter(|owner| !owner.is_empty())
    };
    let wrong = facts.spec.machine_sets.iter().filter(|said| said.failure_domains.len() > 1).filter_map(|said| {
        let (set, domains) = (&said.name, said.failure_domains.join(", "));
        let scaler = autoscaler(set)?;
        Some(format!(
            "spec.machineSets[{set}].failureDomains: it is to be spread over {domains}, and MachineAutoscaler {scaler} can look after one \
             set only; name one failure domain, or delete the MachineAutoscaler and make one for each new set after the move"
        ))
    });
    wrong_or(few(wrong.collect()), "every autoscaler keeps one set")
}

/// On a node that is not vSphere's the driver's pod fails for ever, and ClusterOperator storage never settles.
fn strangers(facts: &Facts) -> Finding {
    let metal = |node: &&Object| class(&json!(node.as_ref())) == Class::BareMetal;
    let names: Vec<String> = facts.cluster.nodes.iter().filter(metal).map(|node| name(node).to_owned()).collect();
    if names.is_empty() {
        return Finding::Passed("every node is vSphere's".to_owned());
    }
    let Some(driver) = &facts.cluster.csi_nodes else { return Finding::Passed("there is no CSI driver".to_owned()) };
    let pods = &driver.data["spec"]["template"]["spec"];
    let terms = pods["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].as_array();
    let tells = |key: &str| TELL_VSPHERE.contains(&key);
    // NotIn and DoesNotExist choose a node without the label too.
    let asks = |operator: &str| ["Exists", "In"].contains(&operator);
    let chooses = |term: &Value| {
        let mut expressions = term["matchExpressions"].as_array().into_iter().flatten();
        expressions.any(|one| one["key"].as_str().is_some_and(tells) && one["operator"].as_str().is_some_and(asks))
    };
    let selects = pods["nodeSelector"].as_object().is_some_and(|labels| labels.keys().any(|key| tells(key)));
    let away = selects || terms.is_some_and(|terms| !terms.is_empty() && terms.iter().all(chooses));
    let line = || {
        let (called, list) = (name(driver), few(names.clone()).join(", "));
        format!(
            "DaemonSet {called}: it also runs on {list}, where it fails; take a release whose driver asks for {}, or keep it away by hand",
            TELL_VSPHERE[0]
        )
    };
    wrong_or((!away).then(line).into_iter().collect(), format!("the CSI driver keeps away from {}", few(names.clone()).join(", ")))
}

fn volumes(facts: &Facts) -> Finding {
    let volumes = match &facts.looked.asked.volumes {
        Ok(volumes) => volumes,
        Err(why) => return Finding::Wrong(vec![unasked("PersistentVolumes", why)]),
    };
    if volumes.is_empty() {
        return Finding::Passed("there are none".to_owned());
    }
    let list = few(volumes.clone()).join(", ");
    if facts.spec.source_retirement == SourceRetirement::Keep {
        return Finding::Passed(format!("{} volumes stay where they are, for the source is kept: {list}", volumes.len()));
    }
    match facts.spec.volumes {
        Volumes::Ignore => noted_or(vec![format!("{} volumes are left behind: {list}", volumes.len())], ""),
        Volumes::Refuse => {
            let line = format!(
                "spec.volumes: Refuse, and {} volumes live on the source: {list}; move their data, or set Ignore to leave them",
                volumes.len()
            );
            Finding::Wrong(vec![line])
        }
    }
}

/// The first ones, and how many more there are.
pub(super) fn few(mut lines: Vec<String>) -> Vec<String> {
    let rest = lines.len().saturating_sub(NAMED);
    if rest > 0 {
        lines.truncate(NAMED);
        lines.push(format!("and {rest} more"));
    }
    lines
}

#[cfg(test)]
mod tests;
