//! Stands in for the etcd operator where machines and migrations meet it: every control plane Machine carries its hook, members
//! come and go with machines, and a machine that is to go waits until another member votes in its place.
//!
//! Members are entries of `openshift-etcd/etcd-endpoints`, as the real operator publishes them; there is no etcd behind them. A
//! new member votes as soon as its node is Ready, unless a fault of the lab keeps it from it.

use std::collections::BTreeMap;

use clap::Parser;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{Error, operator_status, release_version, woken};
use crate::cache::Cache;
use crate::cluster::machines::NAMESPACE as MACHINE_API;
use crate::faults::{Fault, board};
use crate::kubernetes::{self, CONFIG_MAP, MACHINE, NODE, condition};

const NAMESPACE: &str = "openshift-etcd";
const ENDPOINTS: &str = "etcd-endpoints";
/// How many vote in a cluster that is complete.
const MEMBERS: usize = 3;
const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";

#[derive(Parser)]
struct Arguments {}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    Arguments::try_parse_from(["etcd".to_owned()].iter().chain(arguments))?;
    keep(&client, &release_version()?).await
}

/// Keeps hooks and members, for ever.
pub async fn keep(client: &Client, version: &str) -> ! {
    tracing::info!("stand-in for the etcd operator (members are entries, there is no etcd behind them) of release {version}");
    let watched = [(MACHINE, MACHINE_API), (NODE, ""), (CONFIG_MAP, NAMESPACE), (CONFIG_MAP, board::NAMESPACE)];
    let mut cache = Cache::start(client, &watched).await;
    loop {
        let failed = match pass(client, &cache, version).await {
            Ok(()) => false,
            Err(error) if error.is_conflict() || error.is_not_found() => false,
            Err(error) => {
                tracing::error!("{error}");
                true
            }
        };
        woken(&mut cache, failed).await;
    }
}

async fn pass(client: &Client, cache: &Cache, version: &str) -> Result<(), kubernetes::Error> {
    let machines: Vec<Master> = cache.list(MACHINE).iter().filter_map(|machine| Master::of(machine, cache)).collect();
    let before = endpoints(cache);
    let stuck = board::seen(cache).contains(&Fault::EtcdMemberStuck);
    let decided = decide(&machines, before.as_ref().unwrap_or(&BTreeMap::new()), stuck);
    if before.as_ref() != Some(&decided.members) {
        tracing::info!("members: {}", decided.members.values().cloned().collect::<Vec<_>>().join(", "));
        write_members(client, before.as_ref(), &decided.members).await?;
    }
    for (name, hooked) in &decided.hooks {
        let hooks = if *hooked { json!([{"name": "EtcdQuorumOperator", "owner": "clusteroperator/etcd"}]) } else { Value::Null };
        tracing::info!("machine {name}: {} its hook", if *hooked { "gets" } else { "loses" });
        kubernetes::merge(client, MACHINE, MACHINE_API, name, &json!({"spec": {"lifecycleHooks": {"preDrain": hooks}}})).await?;
    }
    report(client, version, &decided).await
}

fn endpoints(cache: &Cache) -> Option<BTreeMap<String, String>> {
    let map = cache.get(CONFIG_MAP, NAMESPACE, ENDPOINTS)?;
    let entries = map.data["data"].as_object().into_iter().flatten();
    Some(entries.filter_map(|(id, address)| Some((id.clone(), address.as_str()?.to_owned()))).collect())
}

async fn write_members(
    client: &Client,
    before: Option<&BTreeMap<String, String>>,
    members: &BTreeMap<String, String>,
) -> Result<(), kubernetes::Error> {
    let mut data = json!(members);
    match before {
        None => {
            let map =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ENDPOINTS, "namespace": NAMESPACE}, "data": data});
            kubernetes::apply(client, "cluster-etcd-operator", &map).await?;
        }
        Some(before) => {
            for gone in before.keys().filter(|id| !members.contains_key(*id)) {
                data[gone] = Value::Null;
            }
            kubernetes::merge(client, CONFIG_MAP, NAMESPACE, ENDPOINTS, &json!({"data": data})).await?;
        }
    }
    Ok(())
}

async fn report(client: &Client, version: &str, decided: &Decided) -> Result<(), kubernetes::Error> {
    let voting = decided.members.len();
    let available = format!("EtcdMembersAvailable: {voting} members are available");
    let waiting = decided.waiting.join(", ");
    let unhealthy =
        format!("EtcdMembersDegraded: {voting} of {} members are available, {waiting} is unhealthy", voting + decided.waiting.len());
    let (degraded, reason, message) = match decided.waiting.is_empty() {
        true => ("False", "AsExpected", ""),
        false => ("True", "EtcdMembers_UnhealthyMembers", unhealthy.as_str()),
    };
    let conditions = [
        ("Available", "True", "AsExpected", available.as_str()),
        ("Progressing", "False", "AsExpected", ""),
        ("Degraded", degraded, reason, message),
        ("Upgradeable", "True", "AsExpected", ""),
    ];
    let related = [("", "namespaces", "", NAMESPACE), ("", "namespaces", "", "openshift-etcd-operator")];
    operator_status::report(client, "etcd", version, &conditions, &related).await
}

/// A control plane Machine.
#[derive(Clone, Debug)]
struct Master {
    name: String,
    address: String,
    ready: bool,
    going: bool,
    hooked: bool,
}

impl Master {
    fn of(machine: &DynamicObject, cache: &Cache) -> Option<Master> {
        machine.labels().get(ROLE).filter(|role| *role == "master")?;
        let addresses = machine.data["status"]["addresses"].as_array().into_iter().flatten();
        let address = addresses.filter(|entry| entry["type"] == "InternalIP").find_map(|entry| entry["address"].as_str());
        let node = machine.data["status"]["nodeRef"]["name"].as_str().and_then(|name| cache.get(NODE, "", name));
        let hooks = machine.data["spec"]["lifecycleHooks"]["preDrain"].as_array().into_iter().flatten();
        Some(Master {
            name: machine.name_any(),
            address: address.unwrap_or_default().to_owned(),
            ready: node.is_some_and(|node| condition(&node, "Ready") == "True"),
            going: machine.metadata.deletion_timestamp.is_some(),
            hooked: hooks.into_iter().any(|hook| hook["name"] == "EtcdQuorumOperator"),
        })
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Decided {
    /// Addresses of those who vote, by the member's id.
    members: BTreeMap<String, String>,
    /// Machines whose hook comes (true) or goes.
    hooks: Vec<(String, bool)>,
    /// Machines whose members ought to vote and do not.
    waiting: Vec<String>,
}

fn decide(machines: &[Master], before: &BTreeMap<String, String>, stuck: bool) -> Decided {
    let votes = |members: &BTreeMap<String, String>, machine: &Master| members.values().any(|address| *address == machine.address);
    // A member whose machine is gone altogether went with it.
    let mut members: BTreeMap<String, String> =
        before.iter().filter(|(_, address)| machines.iter().any(|machine| machine.address == **address)).map(own).collect();
    let mut waiting = Vec::new();
    for machine in machines.iter().filter(|machine| machine.ready && !machine.going && !machine.address.is_empty()) {
        if votes(&members, machine) {
            continue;
        }
        // The first three are there from the beginning, whatever is stuck later.
        if stuck && before.len() >= MEMBERS {
            waiting.push(machine.name.clone());
        } else {
            members.insert(member_id(&machine.address), machine.address.clone());
        }
    }
    for machine in machines.iter().filter(|machine| machine.going) {
        if members.len() > MEMBERS {
            members.retain(|_, address| *address != machine.address);
        }
    }
    let wanted = |machine: &Master| !machine.going || votes(&members, machine);
    // Only what has to change: a hook comes when the machine is there, and goes when its member does not vote any more.
    let hooks = machines.iter().filter(|machine| (machine.hooked || !machine.going) && wanted(machine) != machine.hooked);
    let hooks = hooks.map(|machine| (machine.name.clone(), wanted(machine))).collect();
    Decided { members, hooks, waiting }
}

fn own((id, address): (&String, &String)) -> (String, String) {
    (id.clone(), address.clone())
}

/// Sixteen hexadecimal digits, as etcd names its members.
fn member_id(address: &str) -> String {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(address).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(index: u8, going: bool, hooked: bool) -> Master {
        Master { name: format!("master-{index}"), address: format!("10.0.0.{index}"), ready: true, going, hooked }
    }

    fn addresses(decided: &Decided) -> Vec<&str> {
        let mut all: Vec<&str> = decided.members.values().map(String::as_str).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn every_control_plane_machine_gets_the_hook_and_a_member() {
        let decided = decide(&[0, 1, 2].map(|index| master(index, false, false)), &BTreeMap::new(), false);
        assert_eq!(addresses(&decided), ["10.0.0.0", "10.0.0.1", "10.0.0.2"]);
        assert_eq!(decided.hooks.len(), 3);
        assert!(decided.hooks.iter().all(|(_, hooked)| *hooked));
        assert!(decided.members.keys().all(|id| id.len() == 16));
    }

    #[test]
    fn a_machine_that_is_to_go_keeps_its_hook_until_another_votes_in_its_place() {
        let three = [0, 1, 2].map(|index| master(index, index == 0, true));
        let before = decide(&[0, 1, 2].map(|index| master(index, false, true)), &BTreeMap::new(), false).members;
        assert_eq!(decide(&three, &before, false).hooks, [], "there is none to vote in its place");

        let four: Vec<Master> = three.iter().cloned().chain([master(3, false, true)]).collect();
        let decided = decide(&four, &before, false);
        assert_eq!(addresses(&decided), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
        assert_eq!(decided.hooks, [("master-0".to_owned(), false)]);
    }

    #[test]
    fn a_stuck_member_does_not_vote_and_holds_the_machine_it_replaces() {
        let before = decide(&[0, 1, 2].map(|index| master(index, false, true)), &BTreeMap::new(), true).members;
        let four = [master(0, true, true), master(1, false, true), master(2, false, true), master(3, false, true)];
        let decided = decide(&four, &before, true);
        assert_eq!((decided.hooks.as_slice(), decided.waiting.as_slice()), ([].as_slice(), ["master-3".to_owned()].as_slice()));
        assert_eq!(decided.members, before);
    }

    #[test]
    fn a_member_goes_with_a_machine_that_is_gone_altogether() {
        let before = decide(&[0, 1, 2].map(|index| master(index, false, true)), &BTreeMap::new(), false).members;
        let decided = decide(&[1, 2].map(|index| master(index, false, true)), &before, false);
        assert_eq!(addresses(&decided), ["10.0.0.1", "10.0.0.2"]);
    }
}
