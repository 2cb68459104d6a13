//! What nobody would move off the source: nodes that no Machine stands for, and a control plane that no machine set can be made for.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use vmi_crds::graph::{Request, StepName};
use vmi_crds::spec::SourceRetirement;
use vmi_intent::nodes::is_made_by_hand;

use super::machines::{ROLE, few};
use super::{Check, Finding, Weight, wrong_or};
use crate::facts::{Facts, Object};
use crate::objects::{label, name};

/// How many machines a ControlPlaneMachineSet can have, by its API.
const PLANES: [usize; 2] = [3, 5];
const PLANE_ROLES: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

pub const CHECKS: &[Check] = &[
    Check {
        id: "MCH-005",
        about: "where the control plane is to move, Machines stand for all of it, 3 or 5: a ControlPlaneMachineSet takes no other number",
        weight: Weight::Blocks,
        judge: control_plane,
    },
    Check {
        id: "NOD-002",
        about: "where the source leaves, a Machine stands for every vSphere node on it: nobody moves a virtual machine that was made by hand",
        weight: Weight::Blocks,
        judge: by_hand,
    },
];

fn control_plane(facts: &Facts) -> Finding {
    if !Request::of(&facts.spec).asks_for(StepName::ControlPlaneReady.step()) {
        return Finding::Passed("the control plane stays where it is".to_owned());
    }
    let count = facts.cluster.machines.iter().filter(|machine| label(machine, ROLE) == "master").count();
    let mut found = Vec::new();
    if !PLANES.contains(&count) {
        found.push(format!("there are {count} Machines with the role master, and a ControlPlaneMachineSet moves 3 or 5"));
    }
    let (_, masters) = made_by_hand(facts);
    found.extend((!masters.is_empty()).then(|| format!("no Machine stands for {}", few(masters).join(", "))));
    let line = || {
        let why = found.join("; ");
        format!(
            "the control plane: {why}; so it cannot be moved: have 3 or 5 such Machines first, or set spec.sourceRetirement to Keep and \
             leave spec.controlPlane out"
        )
    };
    wrong_or((!found.is_empty()).then(line).into_iter().collect(), format!("{count} Machines"))
}

fn by_hand(facts: &Facts) -> Finding {
    if facts.spec.source_retirement == SourceRetirement::Keep {
        return Finding::Passed("nodes that no Machine stands for stay, for the source is kept".to_owned());
    }
    let line = |node: String| {
        format!(
            "{node}: it is a virtual machine that no Machine stands for, so nobody moves it off the source; drain and delete it, or give \
             it up by hand, before the migration"
        )
    };
    let (workers, _) = made_by_hand(facts);
    wrong_or(few(workers.into_iter().map(line).collect()), "Machines stand for all nodes on the source")
}

/// vSphere's nodes on the source that no Machine stands for: workers, and those of the control plane.
fn made_by_hand(facts: &Facts) -> (Vec<String>, Vec<String>) {
    let machines = &facts.cluster.machines;
    let of_machines: BTreeSet<&str> =
        machines.iter().filter_map(|machine| machine.data.pointer("/status/nodeRef/name").and_then(Value::as_str)).collect();
    let places = facts.off_the_source();
    let strays = facts.cluster.nodes.iter().filter(|node| is_made_by_hand(&json!(node.as_ref()), &of_machines, &places));
    let (masters, workers): (Vec<&Object>, Vec<&Object>) = strays
        .partition(|node| node.metadata.labels.as_ref().is_some_and(|labels| PLANE_ROLES.iter().any(|role| labels.contains_key(*role))));
    let named = |nodes: Vec<&Object>| nodes.into_iter().map(|node| format!("Node {}", name(node))).collect();
    (named(workers), named(masters))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, says};

    fn node(name: &str, labels: &Value) -> Object {
        sample::object(&json!({"metadata": {"name": name, "labels": labels}, "spec": {"providerID": format!("vsphere://{name}")}}))
    }

    fn master(number: usize) -> Object {
        let (name, status) = (format!("m-{number}"), json!({"nodeRef": {"name": format!("m-{number}")}}));
        sample::object(&json!({"metadata": {"name": name, "labels": {ROLE: "master"}}, "spec": {}, "status": status}))
    }

    fn with(masters: usize, nodes: Vec<Object>) -> Facts {
        let mut facts = sample::changed(|cluster| {
            cluster.machines = (0..masters).map(master).collect();
            cluster.nodes = nodes;
        });
        facts.spec.source_retirement = SourceRetirement::Remove;
        facts
    }

    #[test]
    fn a_node_that_was_made_by_hand_keeps_the_source_from_being_removed() {
        let there = json!({"topology.kubernetes.io/region": "region-b", "topology.kubernetes.io/zone": "zone-b"});
        let mut facts = with(3, vec![node("m-0", &json!({})), node("by-hand", &json!({})), node("there", &there)]);
        let found = by_hand(&facts);
        says(&found, &["Node by-hand: it is a virtual machine that no Machine stands for", "drain and delete it"]);
        assert!(matches!(&found, Finding::Wrong(lines) if lines.len() == 1), "{found:?}");
        facts.spec.source_retirement = SourceRetirement::Keep;
        assert!(matches!(by_hand(&facts), Finding::Passed(_)));
    }

    #[test]
    fn a_control_plane_that_no_machine_set_can_move_is_refused_with_what_was_found() {
        for (count, refused) in [(0, true), (1, true), (2, true), (3, false), (4, true), (5, false)] {
            let found = control_plane(&with(count, Vec::new()));
            assert_eq!(matches!(found, Finding::Wrong(_)), refused, "{count}: {found:?}");
        }
        says(&control_plane(&with(0, Vec::new())), &["there are 0 Machines with the role master", "set spec.sourceRetirement to Keep"]);
        let of_plane = json!({"node-role.kubernetes.io/master": ""});
        says(&control_plane(&with(3, vec![node("m-0", &of_plane), node("other", &of_plane)])), &["no Machine stands for Node other;"]);
        let mut kept = with(1, Vec::new());
        kept.spec.source_retirement = SourceRetirement::Keep;
        assert!(matches!(control_plane(&kept), Finding::Passed(_)));
        kept.spec.control_plane = Some(serde_json::from_value(json!({"failureDomains": ["fd-b"]})).unwrap());
        assert!(matches!(control_plane(&kept), Finding::Wrong(_)));
    }
}
