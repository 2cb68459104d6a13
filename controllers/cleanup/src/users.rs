//! Who still names the source: machines, their sets and the control plane's set; and nodes on it that no machine stands for.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_intent::nodes::is_made_by_hand;
use vmi_intent::places::off_the_source;
use vmi_kit::kind::{CONTROL_PLANE_MACHINE_SET, MACHINE, MACHINE_SET, NODE};
use vmi_steps::Migration;

use crate::MACHINES;

const SET_LABEL: &str = "machine.openshift.io/cluster-api-machineset";

/// All that can name a vCenter or a failure domain.
pub struct Users<'a> {
    machines: Vec<Arc<DynamicObject>>,
    sets: Vec<Arc<DynamicObject>>,
    control_plane: Option<Arc<DynamicObject>>,
    nodes: Vec<Arc<DynamicObject>>,
    /// Regions and zones of the failure domains to come.
    to_come: Vec<(String, String)>,
    /// Infrastructure's spec.
    infrastructure: &'a Value,
    /// The source's vCenters.
    servers: Vec<String>,
}

impl<'a> Users<'a> {
    /// As they are now.
    pub fn of(m: &Migration, infrastructure: &'a Value) -> Self {
        Self {
            machines: m.list(MACHINE, MACHINES),
            sets: m.list(MACHINE_SET, MACHINES),
            control_plane: m.get(CONTROL_PLANE_MACHINE_SET, MACHINES, "cluster"),
            nodes: m.list(NODE, ""),
            to_come: m.spec().failure_domains.iter().map(|domain| (domain.region.clone(), domain.zone.clone())).collect(),
            infrastructure,
            servers: m.sources(),
        }
    }

    fn is_source(&self, provider: &Value) -> bool {
        provider["workspace"]["server"].as_str().is_some_and(|server| self.servers.iter().any(|source| source == server))
    }

    fn source_sets(&self) -> impl Iterator<Item = &Arc<DynamicObject>> {
        self.sets.iter().filter(|set| self.is_source(&set.data["spec"]["template"]["spec"]["providerSpec"]["value"]))
    }

    fn has_machines(&self, set: &DynamicObject) -> bool {
        let name = set.name_any();
        let of_set = |machine: &Arc<DynamicObject>| machine.labels().get(SET_LABEL).is_some_and(|label| *label == name);
        // Without a number there is one.
        set.data["spec"]["replicas"].as_i64() != Some(0) || self.machines.iter().any(of_set)
    }

    fn empty_sets(&self) -> impl Iterator<Item = &Arc<DynamicObject>> {
        self.source_sets().filter(|set| !self.has_machines(set))
    }

    /// A set of the source that makes no machines and has none: nothing but a template is left of it. Nobody has deleted it yet.
    pub fn empty_set(&self) -> Option<Arc<DynamicObject>> {
        self.empty_sets().find(|set| set.metadata.deletion_timestamp.is_none()).cloned()
    }

    /// Sets like that which were deleted and are still there, and what keeps them.
    pub fn being_deleted(&self) -> impl Iterator<Item = String> {
        let deleted = self.empty_sets().filter(|set| set.metadata.deletion_timestamp.is_some());
        deleted.map(|set| {
            let kept = if set.finalizers().is_empty() { String::new() } else { format!(", kept by {}", set.finalizers().join(", ")) };
            format!("MachineSet {} is being deleted{kept}", set.name_any())
        })
    }

    /// Those that would lose the ground under their feet if the source went, by name.
    pub fn in_the_way(&self) -> Vec<String> {
        let machines = self.machines.iter().filter(|machine| self.is_source(&machine.data["spec"]["providerSpec"]["value"]));
        let mut found: Vec<String> = machines.map(|machine| format!("Machine {}", machine.name_any())).collect();
        let sets = self.source_sets().filter(|set| self.has_machines(set));
        found.extend(sets.map(|set| format!("MachineSet {}", set.name_any())));
        found.extend(self.control_plane_domains());
        found.extend(self.made_by_hand());
        found
    }

    /// Virtual machines on the source that nobody moves.
    fn made_by_hand(&self) -> impl Iterator<Item = String> {
        let of_machines: BTreeSet<&str> =
            self.machines.iter().filter_map(|machine| machine.data.pointer("/status/nodeRef/name").and_then(Value::as_str)).collect();
        let to_come = self.to_come.iter().map(|(region, zone)| (region.as_str(), zone.as_str()));
        let places = off_the_source(self.infrastructure, &self.servers, to_come);
        let strays = self.nodes.iter().filter(move |node| is_made_by_hand(&json!(node.as_ref()), &of_machines, &places));
        strays.map(|node| format!("Node {}, which no Machine stands for: drain and delete it", node.name_any()))
    }

    /// Failure domains of the control plane machine set that are the source's or are not known at all.
    fn control_plane_domains(&self) -> Vec<String> {
        let Some(set) = &self.control_plane else { return Vec::new() };
        let template = &set.data["spec"]["template"]["machines_v1beta1_machine_openshift_io"];
        let known = list(&self.infrastructure["platformSpec"]["vsphere"]["failureDomains"]);
        let stays = |name: &str| {
            let domain = known.clone().find(|domain| domain["name"] == name);
            domain.is_some_and(|domain| domain["server"].as_str().is_some_and(|server| self.servers.iter().all(|source| source != server)))
        };
        let named = list(&template["failureDomains"]["vsphere"]).filter_map(|domain| domain["name"].as_str());
        let mut found: Vec<String> = named
            .filter(|name| !stays(name))
            .map(|name| format!("ControlPlaneMachineSet {} with failure domain {name}", set.name_any()))
            .collect();
        if self.is_source(&template["spec"]["providerSpec"]["value"]) {
            found.push(format!("ControlPlaneMachineSet {} with its template", set.name_any()));
        }
        found
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Arc<DynamicObject> {
        Arc::new(serde_json::from_value(value.clone()).unwrap())
    }

    fn machine(name: &str, server: &str, set: &str) -> Arc<DynamicObject> {
        let provider = json!({"value": {"workspace": {"server": server}}});
        object(&json!({"metadata": {"name": name, "labels": {SET_LABEL: set}}, "spec": {"providerSpec": provider}}))
    }

    fn set(name: &str, server: &str, replicas: &Value) -> Arc<DynamicObject> {
        let provider = json!({"value": {"workspace": {"server": server}}});
        object(&json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "template": {"spec": {"providerSpec": provider}}}}))
    }

    fn control_plane(domains: &[&str], server: &str) -> Arc<DynamicObject> {
        let domains: Vec<Value> = domains.iter().map(|name| json!({"name": name})).collect();
        let template = json!({"failureDomains": {"platform": "VSphere", "vsphere": domains},
            "spec": {"providerSpec": {"value": {"workspace": {"server": server}}}}});
        object(&json!({"metadata": {"name": "cluster"}, "spec": {"template": {"machines_v1beta1_machine_openshift_io": template}}}))
    }

    fn users(infrastructure: &Value) -> Users<'_> {
        let to_come = vec![("region-b".to_owned(), "zone-b".to_owned())];
        let (machines, sets, nodes, servers) = (Vec::new(), Vec::new(), Vec::new(), vec!["a".to_owned()]);
        Users { machines, sets, control_plane: None, nodes, to_come, infrastructure, servers }
    }

    fn infrastructure() -> Value {
        json!({"platformSpec": {"vsphere": {"failureDomains": [{"name": "fd-a", "server": "a"}, {"name": "fd-b", "server": "b"}]}}})
    }

    #[test]
    fn whoever_is_on_the_source_is_in_the_way_and_nobody_else() {
        let machines = vec![machine("new", "b", "new"), machine("metal", "", "metal"), machine("old", "a", "old")];
        let sets =
            vec![set("one", "a", &json!(1)), set("unsaid", "a", &Value::Null), set("new", "b", &json!(3)), set("old", "a", &json!(0))];
        let infrastructure = infrastructure();
        let mut users = Users { machines, sets, ..users(&infrastructure) };
        assert_eq!(users.in_the_way(), ["Machine old", "MachineSet one", "MachineSet unsaid", "MachineSet old"]);
        assert!(users.empty_set().is_none());
        users.machines.pop();
        assert_eq!(users.in_the_way(), ["MachineSet one", "MachineSet unsaid"]);
        assert_eq!(users.empty_set().map(|set| set.name_any()).as_deref(), Some("old"));
    }

    #[test]
    fn a_control_plane_set_is_in_the_way_by_its_domains_and_by_its_template() {
        let infrastructure = infrastructure();
        for (domains, server, expected) in [
            (&["fd-b"][..], "", vec![]),
            (&["fd-b"], "b", vec![]),
            (&["fd-a", "fd-b"], "", vec!["ControlPlaneMachineSet cluster with failure domain fd-a"]),
            (&["gone"], "", vec!["ControlPlaneMachineSet cluster with failure domain gone"]),
            (&[], "a", vec!["ControlPlaneMachineSet cluster with its template"]),
        ] {
            let users = Users { control_plane: Some(control_plane(domains, server)), ..users(&infrastructure) };
            assert_eq!(users.in_the_way(), expected, "{domains:?} {server}");
        }
    }

    #[test]
    fn a_node_that_no_machine_stands_for_is_in_the_way_unless_it_is_on_a_vcenter_that_stays() {
        let mut infrastructure = infrastructure();
        let staying = json!({"name": "fd-c", "server": "c", "region": "region-c", "zone": "zone-c"});
        infrastructure["platformSpec"]["vsphere"]["failureDomains"].as_array_mut().unwrap().push(staying);
        let node = |name: &str, letter: &str| {
            let (region, zone) = (format!("region-{letter}"), format!("zone-{letter}"));
            let labels = json!({"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone});
            object(&json!({"metadata": {"name": name, "labels": labels}, "spec": {"providerID": "vsphere://1"}}))
        };
        let metal = object(&json!({"metadata": {"name": "metal"}, "spec": {}}));
        let nodes = vec![node("by-hand", "a"), node("moved", "a"), node("new", "b"), node("stays", "c"), metal];
        let machine = object(&json!({"metadata": {"name": "m"}, "spec": {}, "status": {"nodeRef": {"name": "moved"}}}));
        let users = Users { machines: vec![machine], nodes, ..users(&infrastructure) };
        assert_eq!(users.in_the_way(), ["Node by-hand, which no Machine stands for: drain and delete it"]);
    }

    #[test]
    fn an_empty_set_that_a_finalizer_keeps_is_deleted_once_and_then_named_with_what_keeps_it() {
        let mut kept = set("kept", "a", &json!(0)).as_ref().clone();
        kept.metadata.finalizers = Some(vec!["example.com/backup".to_owned()]);
        let infrastructure = infrastructure();
        let mut users = Users { sets: vec![Arc::new(kept.clone())], ..users(&infrastructure) };
        assert_eq!(users.empty_set().map(|set| set.name_any()).as_deref(), Some("kept"));
        assert_eq!(users.being_deleted().count(), 0);
        kept.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-31T12:00:00Z")).unwrap();
        users.sets = vec![Arc::new(kept)];
        assert!(users.empty_set().is_none(), "deleting it again brings nothing");
        assert_eq!(users.being_deleted().collect::<Vec<_>>(), ["MachineSet kept is being deleted, kept by example.com/backup"]);
        assert!(users.in_the_way().is_empty(), "it makes no machines");
    }
}
