//! The proof that a cluster has grown: a MachineSet made by hand on the new vCenter comes up through the real controllers, its
//! node is labelled from the tags there, and all of it goes away again.

use std::time::Duration;

use kube::ResourceExt as _;

use super::{Error, Site};
use crate::cache::Cache;
use crate::cluster::MANAGER;
use crate::cluster::config::named_domain;
use crate::cluster::machines::{self, SET_LABEL};
use crate::health;
use crate::kubernetes::{self, MACHINE, MACHINE_SET, NODE};
use crate::vcenter::{INFRA_ID, Vcenter};

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Makes one machine in the first zone of every target and takes it away again. What did not come up is taken away too.
pub async fn machine_on_the_target(site: &Site) -> Result<(), Error> {
    for target in site.targets() {
        machine_on(site, target).await?;
    }
    Ok(())
}

async fn machine_on(site: &Site, target: &Vcenter) -> Result<(), Error> {
    let zone = target.zones.first().map(String::as_str).unwrap_or_default();
    let name = format!("{INFRA_ID}-by-hand-{zone}");
    let mut cache = Cache::start(&site.client, &[(MACHINE_SET, ""), (MACHINE, ""), (NODE, "")]).await;
    kubernetes::apply(&site.client, MANAGER, &machines::machine_set(&name, target, zone, 1)).await?;
    let came_up = cache.until("a machine made by hand on the new vCenter", PATIENCE, |cache| up(cache, target, &name, zone)).await;
    kubernetes::delete(&site.client, MACHINE_SET, machines::NAMESPACE, &name).await?;
    let node = came_up?;
    cache.until("the machine made by hand to be gone", PATIENCE, |cache| gone(cache, &name, &node)).await?;
    Ok(())
}

/// The machine's node, once it is Ready and says where it is.
fn up(cache: &Cache, target: &Vcenter, set: &str, zone: &str) -> Result<String, String> {
    let name = health::machine_set(cache, set, 1)?.remove(0);
    let node = cache.get(NODE, "", &name).ok_or_else(|| format!("there is no Node {name}"))?;
    let domain = named_domain(target, zone);
    for (label, wanted) in [("topology.kubernetes.io/region", domain.region), ("topology.kubernetes.io/zone", domain.zone)] {
        let is = node.labels().get(label);
        if is != Some(&wanted) {
            return Err(format!("Node {name} has {label} {}, not {wanted}", is.map_or("not at all", String::as_str)));
        }
    }
    Ok(name)
}

fn gone(cache: &Cache, set: &str, node: &str) -> Result<(), String> {
    let of_the_set = |machine: &kube::api::DynamicObject| machine.labels().get(SET_LABEL).is_some_and(|name| name == set);
    if let Some(machine) = cache.list(MACHINE).iter().find(|machine| of_the_set(machine)) {
        return Err(format!("Machine {} is still there", machine.name_any()));
    }
    if cache.get(MACHINE_SET, machines::NAMESPACE, set).is_some() {
        return Err(format!("MachineSet {set} is still there"));
    }
    if cache.get(NODE, "", node).is_some() { Err(format!("Node {node} is still there")) } else { Ok(()) }
}
