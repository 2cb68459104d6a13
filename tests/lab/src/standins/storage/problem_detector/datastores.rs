//! Checks of datastores: that there are those which failure domains and StorageClasses name, and what the account may do there.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;
use vsphere::Datastore;

use super::super::{DRIVER, View};
use super::metrics::Metrics;
use super::permissions::{DATASTORE, lacking};
use super::results::joined;
use super::say;
use super::vcenter::Vcenter;

const IN_TREE: &str = "kubernetes.io/vsphere-volume";

/// The type of each datastore that was looked at, by what it was called.
type Types = BTreeMap<String, String>;

/// A failure domain's name, server, datacenter and datastore.
fn place(domain: &Value) -> [&str; 4] {
    let topology = &domain["topology"];
    [&domain["name"], &domain["server"], &topology["datacenter"], &topology["datastore"]].map(|value| value.as_str().unwrap_or_default())
}

/// CheckFolderPermissions, without the list of files in the datastores.
pub fn folders(view: &View, vcenters: &[Vcenter]) -> Result<(), String> {
    for [name, server, datacenter, datastore] in view.vsphere("failureDomains").map(place) {
        let vcenter = Vcenter::of(vcenters, server)
            .ok_or_else(|| format!("unable to check folder permissions for failure domain {name}: vCenter {server} no found"))?;
        let found = vcenter.datastore(datacenter, datastore);
        let found = found.map_err(|why| format!("unable to check folder permissions for datacenter {datacenter}: {why}"))?;
        found.ok_or_else(|| {
            format!("failed to access datastore {datastore}: cannot find datastore {datastore} in datacenter {datacenter}")
        })?;
    }
    Ok(())
}

/// CheckDefaultDatastore.
pub async fn defaults(view: &View, vcenters: &[Vcenter]) -> Result<(), String> {
    collected(view, vcenters, &mut Types::new()).await
}

async fn collected(view: &View, vcenters: &[Vcenter], types: &mut Types) -> Result<(), String> {
    for [name, server, datacenter, datastore] in view.vsphere("failureDomains").map(place) {
        let vcenter = Vcenter::of(vcenters, server).ok_or_else(|| {
            format!("defaultDatastore check failed due to missing vCenter configuration for infrastructure failure domain: {name}")
        })?;
        let outcome = match vcenter.datastore(datacenter, datastore) {
            Ok(Some(found)) => checked(vcenter, found, datastore, types).await,
            Ok(None) => Err(format!("couldn't find Datastore named {datastore:?} in datacenter {datacenter}")),
            Err(why) => Err(why),
        };
        outcome.map_err(|why| format!("defaultDatastore {datacenter}/{datastore:?} in vSphere configuration: {why}"))?;
    }
    Ok(())
}

async fn checked(vcenter: &Vcenter, datastore: &Datastore, called: &str, types: &mut Types) -> Result<(), String> {
    types.insert(called.to_owned(), datastore.kind.to_lowercase());
    let wrong = lacking(vcenter, &datastore.node.reference, DATASTORE, &format!("datastore {called}")).await;
    wrong.map_or(Ok(()), Err)
}

/// What a parameter of a StorageClass has looked at.
#[derive(Debug, PartialEq)]
enum Wish<'a> {
    /// A datastore by its URL.
    Url(&'a str),
    /// A datastore by its name, which the real one looks up only where the configuration is INI with a workspace.
    Datastore,
    /// The datastores that fit a policy, which the simulator does not tell.
    Policy,
    /// Those of the failure domains, for a parameter of whatever other name.
    Defaults,
}

/// What the parameters of a class of this driver, or of the one it took the place of, ask for.
fn wishes(class: &Value) -> Vec<Wish<'_>> {
    if class["provisioner"] != DRIVER && class["provisioner"] != IN_TREE {
        return Vec::new();
    }
    let parameters = class["parameters"].as_object().into_iter().flatten();
    parameters
        .map(|(key, value)| match key.to_lowercase().as_str() {
            "datastoreurl" => Wish::Url(value.as_str().unwrap_or_default()),
            "datastore" => Wish::Datastore,
            "storagepolicyname" => Wish::Policy,
            _ => Wish::Defaults,
        })
        .collect()
}

/// CheckStorageClasses.
pub async fn storage_classes(view: &View, vcenters: &[Vcenter], classes: &[Arc<DynamicObject>], metrics: &Metrics) -> Result<(), String> {
    let (mut wrong, mut types) = (Vec::new(), Types::new());
    for class in classes {
        let name = class.name_any();
        for wish in wishes(&class.data) {
            match wish {
                Wish::Url(url) => {
                    if let Err(why) = by_url(view, vcenters, url, &mut types).await {
                        say('I', "datastore.go:128", &format!("Checking storageclass {name}: {why}"));
                        wrong.push(format!("StorageClass {name}: {why}"));
                    }
                }
                Wish::Datastore => {
                    say('W', "datastore.go:124", "CheckStorageClasses: unable to check datastore due to legacy config not in use.");
                }
                Wish::Policy => {}
                Wish::Defaults => {
                    if let Err(why) = collected(view, vcenters, &mut types).await {
                        say('I', "datastore.go:140", &format!("CheckStorageClasses: {name}: {why}"));
                    }
                }
            }
        }
    }
    count(&types, metrics);
    let (all, bad) = (classes.len(), wrong.len());
    say('I', "datastore.go:150", &format!("CheckStorageClasses checked {all} storage classes, {bad} problems found"));
    if wrong.is_empty() { Ok(()) } else { Err(joined(&wrong)) }
}

async fn by_url(view: &View, vcenters: &[Vcenter], url: &str, types: &mut Types) -> Result<(), String> {
    for [_, server, datacenter, _] in view.vsphere("failureDomains").map(place) {
        let vcenter = Vcenter::of(vcenters, server).ok_or_else(|| format!("vCenter {server} not found"))?;
        if let Some(found) = vcenter.datastores(datacenter)?.find(|datastore| datastore.url == url) {
            return checked(vcenter, found, url, types).await;
        }
    }
    Err(format!("unable to find datastore with URL {url}"))
}

fn count(types: &Types, metrics: &Metrics) {
    let mut counts = BTreeMap::<&str, u32>::new();
    types.values().for_each(|kind| *counts.entry(kind).or_default() += 1);
    metrics.counted("vsphere_datastore_total", "type", &counts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vsphere::Inventory;

    #[tokio::test]
    async fn a_failure_domain_needs_its_vcenter_and_its_datacenter_for_its_datastore_to_be_looked_at() {
        let domain = json!({"name": "fd", "server": "vc-a", "topology": {"datacenter": "dc-a", "datastore": "ds-a"}});
        let view = View::made(&json!({"failureDomains": [domain]}), &json!({"vc-a": {"server": "vc-a"}}), &["vc-a"]);
        let unknown = "unable to check folder permissions for failure domain fd: vCenter vc-a no found";
        assert_eq!(folders(&view, &[]), Err(unknown.to_owned()));
        let unknown = "defaultDatastore check failed due to missing vCenter configuration for infrastructure failure domain: fd";
        assert_eq!(defaults(&view, &[]).await, Err(unknown.to_owned()));

        // Nobody is asked: what it has is read already.
        let session = view.session("vc-a", 443, "test").unwrap();
        let empty = [Vcenter { server: "vc-a".to_owned(), session, inventory: Inventory::default() }];
        let why = "failed to access datacenter dc-a: datacenter 'dc-a' not found.  Known datacenters: []";
        assert_eq!(folders(&view, &empty), Err(format!("unable to check folder permissions for datacenter dc-a: {why}")));
        assert_eq!(defaults(&view, &empty).await, Err(format!("defaultDatastore dc-a/\"ds-a\" in vSphere configuration: {why}")));
    }

    #[test]
    fn parameters_of_a_class_of_vsphere_are_looked_at_whatever_their_case() {
        let parameters =
            json!({"DatastoreURL": "ds:///a/", "StoragePolicyName": "gold", "csi.storage.k8s.io/fstype": "xfs", "datastore": "a"});
        for provisioner in [DRIVER, IN_TREE] {
            let class = json!({"provisioner": provisioner, "parameters": parameters});
            assert_eq!(wishes(&class), [Wish::Url("ds:///a/"), Wish::Policy, Wish::Defaults, Wish::Datastore]);
        }
        assert_eq!(wishes(&json!({"provisioner": "nfs.example.com", "parameters": parameters})), []);
        assert_eq!(wishes(&json!({"provisioner": DRIVER})), [], "a class without parameters asks for nothing");
    }

    #[test]
    fn datastores_are_counted_by_their_type_once_each_and_those_of_the_last_round_are_forgotten() {
        let metrics = Metrics::default();
        count(&Types::from([("old".to_owned(), "nfs".to_owned())]), &metrics);
        let types = [("a", "vsan"), ("b", "vmfs"), ("c", "vmfs")].map(|(name, kind)| (name.to_owned(), kind.to_owned()));
        count(&Types::from(types), &metrics);
        assert_eq!(metrics.text(), "vsphere_datastore_total{type=\"vmfs\"} 2\nvsphere_datastore_total{type=\"vsan\"} 1\n");
    }
}
