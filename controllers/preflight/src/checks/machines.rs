//! Machines and volumes that are there already: whether the migration meets one it would stumble over.

use serde_json::{Value, json};
use vmi_crds::spec::{SourceRetirement, Volumes};
use vmi_intent::nodes::{Class, class};
use vmi_intent::provider::differences;
use vmi_intent::source_domain::failure_domain;

use super::{Check, Finding, Weight, noted_or, unasked, wrong_or};
use crate::facts::{Facts, Object};
use crate::objects::{label, name};

const REGION: &str = "machine.openshift.io/region";
const ZONE: &str = "machine.openshift.io/zone";
const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
/// Labels that only vSphere's nodes have.
const TELL_VSPHERE: [&str; 2] = ["node.kubernetes.io/instance-type", "node.openshift.io/platform-type"];
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

/// By the failure domains of Infrastructure, or where it has none by the one that will be told from the first master.
fn masters(facts: &Facts) -> Finding {
    let place = |machine: &Object| machine.data["spec"]["providerSpec"]["value"].clone();
    let mut masters: Vec<&Object> = facts.cluster.machines.iter().filter(|machine| label(machine, ROLE) == "master").collect();
    masters.sort_by(|one, other| name(one).cmp(name(other)));
    let mut domains = facts.listed_domains().to_vec();
    if let (true, Some(first)) = (domains.is_empty(), masters.first()) {
        match failure_domain(&place(first)) {
            Ok(domain) => domains.push(domain),
            Err(why) => return Finding::Wrong(vec![format!("Machine {}: no failure domain can be told from it: {why}", name(first))]),
        }
    }
    let astray = |machine: &&Object| {
        let provider = place(machine);
        let workspace = &provider["workspace"];
        let mut open: Vec<(&str, Vec<String>)> =
            domains.iter().map(|domain| (domain["name"].as_str().unwrap_or_default(), differences(workspace, domain))).collect();
        open.sort_by_key(|(_, differences)| differences.len());
        let (nearest, differences) = open.first().filter(|(_, differences)| !differences.is_empty())?;
        let (called, list) = (name(machine), differences.join(", "));
        Some(format!("Machine {called}: it is in no failure domain; nearest is {nearest}: {list}; make the two the same, letter by letter"))
    };
    wrong_or(few(masters.iter().filter_map(astray).collect()), format!("{} machines", masters.len()))
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
    let chooses = |term: &Value| {
        let mut expressions = term["matchExpressions"].as_array().into_iter().flatten();
        expressions.any(|expression| expression["key"].as_str().is_some_and(tells) && expression["operator"] != "DoesNotExist")
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
fn few(mut lines: Vec<String>) -> Vec<String> {
    let rest = lines.len().saturating_sub(NAMED);
    if rest > 0 {
        lines.truncate(NAMED);
        lines.push(format!("and {rest} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, says};

    fn machine(name: &str, region: &str, zone: &str) -> Object {
        sample::object(&json!({"metadata": {"name": name, "labels": {REGION: region, ZONE: zone}}, "spec": {}}))
    }

    #[test]
    fn labels_that_fit_no_failure_domain_are_told_and_empty_ones_pass() {
        let facts = sample::changed(|cluster| cluster.machines = vec![machine("m-1", "", ""), machine("m-2", "region-a", "zone-a")]);
        assert!(matches!(labels(&facts), Finding::Passed(_)));
        let facts = sample::changed(|cluster| cluster.machines = (0..7).map(|n| machine(&format!("m-{n}"), "x", "y")).collect());
        says(&labels(&facts), &["Machine m-0: its labels say region x, zone y", "and 2 more"]);
        let template = json!({"metadata": {"labels": {REGION: "x", ZONE: "y"}}});
        let set = sample::object(&json!({"metadata": {"name": "w"}, "spec": {"template": template}}));
        says(&labels(&sample::changed(|cluster| cluster.machine_sets = vec![set])), &["MachineSet w: its template says region x"]);
    }

    #[test]
    fn machines_of_the_cluster_api_are_refused() {
        for (field, value, refused) in [("spec", "ClusterAPI", true), ("status", "Migrating", true), ("spec", "MachineAPI", false)] {
            let set = sample::object(&json!({"metadata": {"name": "w"}, field: {"authoritativeAPI": value}}));
            let found = authority(&sample::changed(|cluster| cluster.machine_sets = vec![set]));
            assert_eq!(matches!(found, Finding::Wrong(_)), refused, "{field} {value}: {found:?}");
        }
    }

    #[test]
    fn a_master_that_is_in_no_failure_domain_is_refused_with_what_differs() {
        let master = |pool: &str, datastore: &str| {
            let workspace = json!({"server": sample::SOURCE, "datacenter": "dc-a", "datastore": datastore, "resourcePool": pool, "folder": "/dc-a/vm/x"});
            let value = json!({"workspace": workspace, "template": "t", "network": {"devices": [{"networkName": "n"}]}});
            sample::object(&json!({"metadata": {"name": "m-0", "labels": {ROLE: "master"}}, "spec": {"providerSpec": {"value": value}}}))
        };
        let (pool, datastore) = ("/dc-a/host/cluster-a/Resources", "/dc-a/datastore/datastore-a");
        let judged = |domains: bool, pool: &str, datastore: &str| {
            masters(&sample::changed(|cluster| {
                cluster.machines = vec![master(pool, datastore)];
                if !domains {
                    let bare = json!({"metadata": {"name": "cluster"}, "spec": {"platformSpec": {"type": "VSphere"}}});
                    cluster.infrastructure = Some(sample::object(&bare));
                }
            }))
        };
        assert!(matches!(judged(true, pool, datastore), Finding::Passed(_)));
        assert!(matches!(judged(false, pool, datastore), Finding::Passed(_)), "one can be told from it");
        says(
            &judged(true, "", datastore),
            &["Machine m-0: it is in no failure domain; nearest is fd-a: resourcePool is \"\", the domain says"],
        );
        says(&judged(true, pool, "datastore-a"), &["datastore is \"datastore-a\", the domain says \"/dc-a/datastore/datastore-a\""]);
        says(&judged(false, pool, "datastore-a"), &["nearest is migration-source: datastore is \"datastore-a\""]);
        says(&judged(false, "", datastore), &["no failure domain can be told from it", "resourcePool is empty"]);
    }

    #[test]
    fn a_csi_driver_that_runs_beside_vsphere_is_told_with_the_nodes() {
        let node = |name: &str, spec: Value| sample::object(&json!({"metadata": {"name": name}, "spec": spec}));
        let nodes = || vec![node("vm-1", json!({"providerID": "vsphere://1"})), node("host-1", json!({}))];
        let driver = |pods: Value| sample::object(&json!({"metadata": {"name": "driver"}, "spec": {"template": {"spec": pods}}}));
        let judged = |nodes: Vec<Object>, pods: Option<Value>| {
            strangers(&sample::changed(|cluster| {
                cluster.nodes = nodes;
                cluster.csi_nodes = pods.map(driver);
            }))
        };
        let terms = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
        let by = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
        says(&judged(nodes(), Some(json!({}))), &["DaemonSet driver: it also runs on host-1"]);
        says(&judged(nodes(), Some(terms(json!([by(TELL_VSPHERE[0]), by("other")])))), &["it also runs on host-1"]);
        for good in [
            judged(nodes(), Some(terms(json!([by(TELL_VSPHERE[0])])))),
            judged(nodes(), Some(json!({"nodeSelector": {TELL_VSPHERE[1]: "vsphere"}}))),
            judged(nodes(), None),
            judged(vec![node("vm-1", json!({"providerID": "vsphere://1"}))], Some(json!({}))),
        ] {
            assert!(matches!(good, Finding::Passed(_)), "{good:?}");
        }
    }

    #[test]
    fn volumes_block_only_where_the_source_leaves_and_nobody_said_ignore() {
        let mut facts = sample::with_volumes(&["shop/data"]);
        assert!(matches!(volumes(&facts), Finding::Passed(text) if text.contains("shop/data")));
        facts.spec.source_retirement = SourceRetirement::Remove;
        says(&volumes(&facts), &["spec.volumes: Refuse, and 1 volumes live on the source: shop/data"]);
        facts.spec.volumes = Volumes::Ignore;
        assert!(matches!(volumes(&facts), Finding::Noted(_)));
    }
}
