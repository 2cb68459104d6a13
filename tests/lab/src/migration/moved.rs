//! The verdict on a move: nothing of the source is in service, the target carries what the source carried, and the rest is as before.

mod control_plane;
mod sets;

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::dump::Dump;
use super::verdict::{self, Check, Expected, none, object};
use super::{Error, NAMESPACE, Site, request};
use crate::kubernetes::{self, CONFIG_MAP, MACHINE, MACHINE_AUTOSCALER, MACHINE_SET, NODE, PERSISTENT_VOLUME, SECRET};
use crate::vcenter::Vcenter;

/// The storage driver, of whose volumes those of the source are left.
const DRIVER: &str = "csi.vsphere.vmware.com";
/// Whose MachineAutoscaler scales a set.
const OWNER: &str = "autoscaling.openshift.io/machineautoscaler";

/// What was only held, or has nothing to do with where machines are.
const AS_BEFORE: &[(&str, &[&str])] = &[
    ("the CRDs' rules are as before", &["CustomResourceDefinition"]),
    ("the cluster version operator and its overrides are as before", &["Deployment", "ClusterVersion"]),
    (
        "health checks, the cluster autoscaler, pools, boot images and reboots are as before",
        &["MachineHealthCheck", "ClusterAutoscaler", "MachineConfigPool", "MachineConfiguration", "CredentialsRequest"],
    ),
    ("nodes that are no virtual machines are as before", &["Node"]),
];

/// Everything that a move must have done, and nothing else; `before` is how the cluster was.
pub async fn verdict(site: &Site, before: &Dump) -> Result<Vec<Check>, Error> {
    let after = Dump::take(site).await?;
    let machines = kubernetes::list(&site.client, MACHINE, "").await?;
    let nodes = kubernetes::list(&site.client, NODE, "").await?;
    let vms = site.control.get("/vms").await?;
    let count = before.of(MACHINE).count();
    let mut checks = vec![
        Check::new("no Machine and no MachineSet is on the source", none(&on_the_source(&after, &site.source))),
        Check::new("as many Machines are on the target as were on the source", counted("Machines", machines.len(), count)),
        Check::new("every Node is a Machine's of today, or was nobody's before", nodes_of(&nodes, &machines, before)),
        Check::new("no virtual machine is left in the source", counted("virtual machines", virtual_machines(&vms, &site.source), 0)),
        Check::new(
            "every Machine has its virtual machine in the target",
            counted("virtual machines", site.targets().iter().map(|target| virtual_machines(&vms, target)).sum(), count),
        ),
        Check::new(
            "each MachineSet's labels, annotations, policies, taints, sizes and replicas are as before",
            sets::carried_over(before, &after),
        ),
        Check::new("autoscalers scale the new MachineSets within the bounds of the old", autoscalers(before, &after)),
        Check::new("each failure domain of the target has its share of the MachineSets", sets::spread(&after, &places(site))),
        Check::new(
            "the control plane machine set names the target alone, and is as before otherwise",
            control_plane::moved(before, &after, &site.source, &site.target_domains()),
        ),
        Check::new("machines of the control plane are made as before", control_plane::machines(before, &after)),
        Check::new("metadata.json of both vCenters is kept, and what is left is listed", kept(site).await?),
    ];
    let expected = Expected { there: site.targets(), gone: vec![&site.source] };
    checks.extend(verdict::configured(site, &expected, "the target alone").await?);
    checks.extend(verdict::otherwise_as_before(site, &expected, before, &after)?);
    for (name, kinds) in AS_BEFORE {
        checks.push(Check::new(name, none(&before.difference_of(&after, |kind| kinds.contains(&kind)))));
    }
    checks.extend(verdict::healthy(site).await);
    Ok(checks)
}

/// Where machines of the target can be, by server and resource pool.
fn places(site: &Site) -> Vec<(String, String)> {
    let zones = site.targets().into_iter().flat_map(|target| target.zones.iter().map(move |zone| (target, zone)));
    zones.map(|(target, zone)| (target.server.clone(), target.resource_pool(zone))).collect()
}

fn counted(what: &str, found: usize, wanted: usize) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{found} {what}, wanted are {wanted}")) }
}

/// The part of a Machine or a MachineSet that says how a machine is made.
fn provider(object: &Value) -> &Value {
    let of_set = &object["spec"]["template"]["spec"]["providerSpec"]["value"];
    if of_set.is_null() { &object["spec"]["providerSpec"]["value"] } else { of_set }
}

fn on_the_source(after: &Dump, source: &Vcenter) -> Vec<String> {
    let all = after.of(MACHINE).map(|(name, object)| ("Machine", name, object));
    let all = all.chain(after.of(MACHINE_SET).map(|(name, object)| ("MachineSet", name, object)));
    all.filter(|(_, _, object)| provider(object)["workspace"]["server"] == source.server.as_str())
        .map(|(kind, name, _)| format!("{kind} {name}"))
        .collect()
}

fn nodes_of(nodes: &[DynamicObject], machines: &[DynamicObject], before: &Dump) -> Result<(), String> {
    let known: Vec<&str> = machines.iter().filter_map(|machine| machine.data["status"]["nodeRef"]["name"].as_str()).collect();
    let others: Vec<&str> = before.of(NODE).map(|(name, _)| name).collect();
    let known_or_other = |name: &String| known.contains(&name.as_str()) || others.contains(&name.as_str());
    let strangers: Vec<String> = nodes.iter().map(kube::ResourceExt::name_any).filter(|name| !known_or_other(name)).collect();
    none(&strangers)?;
    counted("Nodes", nodes.len(), machines.len() + others.len())
}

/// How many of the cluster's are there; those by which a vCenter is crowded are somebody else's.
fn virtual_machines(vms: &Value, vcenter: &Vcenter) -> usize {
    let others = |vm: &Value| vm["name"].as_str().is_some_and(|name| name.starts_with("synthetic-"));
    let here = |vm: &&Value| vm["vcenter"] == vcenter.name.as_str() && vm["template"] != true && !others(vm);
    vms.as_array().into_iter().flatten().filter(here).count()
}

fn autoscalers(before: &Dump, after: &Dump) -> Result<(), String> {
    let sets: Vec<&str> = after.of(MACHINE_SET).filter_map(|(_, set)| set["metadata"]["name"].as_str()).collect();
    let bounds = |dump: &Dump| {
        let sum = |field: &str| dump.of(MACHINE_AUTOSCALER).filter_map(|(_, scaler)| scaler["spec"][field].as_i64()).sum::<i64>();
        (sum("minReplicas"), sum("maxReplicas"))
    };
    let lost = after
        .of(MACHINE_AUTOSCALER)
        .filter(|(_, scaler)| scaler["spec"]["scaleTargetRef"]["name"].as_str().is_none_or(|target| !sets.contains(&target)));
    none(&lost.map(|(name, _)| format!("MachineAutoscaler {name} scales a set that is gone")).collect::<Vec<_>>())?;
    let owned: Vec<&str> = after.of(MACHINE_SET).filter_map(|(_, set)| set["metadata"]["annotations"][OWNER].as_str()).collect();
    let idle = after.of(MACHINE_AUTOSCALER).filter(|(_, scaler)| {
        let metadata = &scaler["metadata"];
        let own = format!("{}/{}", metadata["namespace"].as_str().unwrap_or_default(), metadata["name"].as_str().unwrap_or_default());
        !owned.contains(&own.as_str())
    });
    none(&idle.map(|(name, _)| format!("no MachineSet is marked as scaled by MachineAutoscaler {name}")).collect::<Vec<_>>())?;
    let (old, new) = (bounds(before), bounds(after));
    if old == new { Ok(()) } else { Err(format!("the bounds were {old:?} and are {new:?}")) }
}

async fn kept(site: &Site) -> Result<Result<(), String>, Error> {
    use base64::Engine as _;
    let (metadata, leftovers) = (format!("vmi-{}-metadata", request::NAME), format!("vmi-{}-leftovers", request::NAME));
    let secret = object(site, SECRET, NAMESPACE, &metadata).await?;
    let encoded = secret.data["data"]["metadata.json"].as_str().unwrap_or_default();
    let file: Value = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or(Value::Null);
    let wanted: Vec<Value> = site
        .vcenters()
        .iter()
        .map(|vcenter| json!({"vCenter": vcenter.server, "username": vcenter.username, "password": vcenter.password}))
        .collect();
    if file["vsphere"]["VCenters"] != json!(wanted) {
        return Ok(Err(format!("Secret {metadata} does not have both vCenters with their pairs")));
    }
    let map = object(site, CONFIG_MAP, NAMESPACE, &leftovers).await?;
    let text = map.data["data"]["leftovers.txt"].as_str().unwrap_or_default();
    let template = site.source.template();
    // Told by its path where the source was described, and else by its name, as its machines tell it.
    let found = template.rsplit_once('/').map(|(folder, name)| format!("govc find {folder} -type m -name {name}"));
    let template = found.filter(|found| text.contains(found)).unwrap_or(template);
    let mut left = vec![site.source.server.clone(), site.source.folder(), template];
    // What is made in the shape before the move has no zone; whatever else there is was made on the target.
    let volumes = kubernetes::list(&site.client, PERSISTENT_VOLUME, "").await?;
    let of_the_source =
        volumes.iter().filter(|volume| volume.data["spec"]["csi"]["driver"] == DRIVER && volume.data["spec"]["nodeAffinity"].is_null());
    left.extend(of_the_source.filter_map(|volume| {
        let claim = &volume.data["spec"]["claimRef"];
        Some(format!("# claim {}/{},", claim["namespace"].as_str()?, claim["name"].as_str()?))
    }));
    let untold: Vec<String> = left.into_iter().filter(|what| !text.contains(what)).collect();
    Ok(none(&untold).map_err(|what| format!("ConfigMap {leftovers} does not tell of {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_a_machine_is_named_unless_it_had_none_before() {
        let object = |name: &str, node: &str| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {"name": name}, "status": {"nodeRef": {"name": node}}})).unwrap()
        };
        let machines = [object("m-1", "n-1"), object("m-2", "n-2")];
        let nodes = [object("n-1", ""), object("n-2", ""), object("ns/n-3", "")];
        let (alone, beside) = (Dump::default(), Dump::with(NODE, &[json!({"metadata": {"name": "n-3"}})]));
        assert_eq!(nodes_of(&nodes[..2], &machines, &alone), Ok(()));
        assert_eq!(nodes_of(&nodes, &machines, &alone), Err("ns/n-3".to_owned()));
        assert_eq!(nodes_of(&nodes[..1], &machines, &alone), Err("1 Nodes, wanted are 2".to_owned()));
        assert_eq!(nodes_of(&nodes, &machines, &beside), Ok(()));
        assert_eq!(nodes_of(&nodes[..2], &machines, &beside), Err("2 Nodes, wanted are 3".to_owned()));
    }
}
