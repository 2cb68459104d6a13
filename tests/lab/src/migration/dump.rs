//! A dump of everything a migration may touch, without what differs from one moment to the next anyway: after a rollback it has
//! to be the one that was taken before.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Error, NAMESPACE, Site, identities, vcenters};
use crate::kubernetes::{
    self, CLUSTER_AUTOSCALER, CLUSTER_CSI_DRIVER, CLUSTER_VERSION, CONFIG_MAP, CONTROL_PLANE_MACHINE_SET, CONTROLLER_CONFIG, CRD,
    CREDENTIALS_REQUEST, DEPLOYMENT, INFRASTRUCTURE, Kind, MACHINE, MACHINE_AUTOSCALER, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION,
    MACHINE_HEALTH_CHECK, MACHINE_SET, NODE, SECRET, full_name,
};

/// All objects of these kinds, and all Machines.
const WHOLE: &[Kind] = &[
    INFRASTRUCTURE,
    CLUSTER_VERSION,
    CONTROL_PLANE_MACHINE_SET,
    MACHINE_SET,
    MACHINE_HEALTH_CHECK,
    MACHINE_AUTOSCALER,
    CLUSTER_AUTOSCALER,
    MACHINE_CONFIG_POOL,
    MACHINE_CONFIGURATION,
    CONTROLLER_CONFIG,
    CREDENTIALS_REQUEST,
    CLUSTER_CSI_DRIVER,
];

/// Of these kinds only these.
const SOME: &[(Kind, &str, &str)] = &[
    (CRD, "", "infrastructures.config.openshift.io"),
    (CRD, "", "controllerconfigs.machineconfiguration.openshift.io"),
    (DEPLOYMENT, "openshift-cluster-version", "cluster-version-operator"),
    (CONFIG_MAP, "openshift-config", "cloud-provider-config"),
    (CONFIG_MAP, "openshift-config-managed", "kube-cloud-config"),
    (CONFIG_MAP, "openshift-cloud-controller-manager", "cloud-conf"),
];

/// What objects are called that hold a vCenter's user, wherever they are.
const SECRETS: &[&str] =
    &["vsphere-creds", "vsphere-cloud-credentials", "vmware-vsphere-cloud-credentials", "capv-manager-bootstrap-credentials"];

/// Who an object is and how it came about, rather than what it says.
const IDENTITY: &[&str] = &["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "selfLink", "ownerReferences"];

/// The cluster and its vCenters at one moment, by `Kind namespace/name`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump(BTreeMap<String, Value>);

impl Dump {
    pub async fn take(site: &Site) -> Result<Dump, Error> {
        let mut dump = Dump::default();
        let machines = kubernetes::list(&site.client, MACHINE, "").await?;
        let called = identities::of(&machines);
        for mut machine in machines {
            machine.metadata.name = machine.metadata.name.and_then(|name| called.get(&name).cloned());
            dump.add(MACHINE, &machine);
        }
        for kind in WHOLE {
            match kubernetes::list(&site.client, *kind, "").await {
                Ok(objects) => objects.iter().for_each(|object| dump.add(*kind, object)),
                // Not every cluster serves every kind.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        for (kind, namespace, name) in SOME {
            if let Some(object) = kubernetes::get(&site.client, *kind, namespace, name).await? {
                dump.add(*kind, &object);
            }
        }
        for secret in kubernetes::list(&site.client, SECRET, "").await? {
            if SECRETS.iter().any(|name| secret.metadata.name.as_deref() == Some(name)) {
                dump.add(SECRET, &secret);
            }
        }
        // Others come and go with their machines.
        for node in kubernetes::list(&site.client, NODE, "").await?.iter().filter(|node| node.data["spec"]["providerID"].is_null()) {
            dump.add(NODE, node);
        }
        for vcenter in site.vcenters() {
            let mut contents = vcenters::read(vcenter).await?;
            identities::rename(&mut contents, &called);
            dump.0.insert(format!("vCenter {}", vcenter.name), json!(contents));
        }
        Ok(dump)
    }

    /// Whether a dump has this object; no name means all of the kind there, and no namespace everywhere.
    pub fn has(group: &str, plural: &str, namespace: &str, name: &str) -> bool {
        let same = |kind: &Kind| (kind.group, kind.plural) == (group, plural);
        let is_it = |(kind, here, called): &(Kind, &str, &str)| same(kind) && *here == namespace && *called == name;
        WHOLE.iter().any(same) || same(&MACHINE) || SOME.iter().any(is_it) || (same(&SECRET) && SECRETS.contains(&name))
    }

    /// A cluster of these objects alone, in the namespace `ns`.
    #[cfg(test)]
    pub fn with(kind: Kind, objects: &[Value]) -> Dump {
        let name = |object: &Value| format!("{} ns/{}", kind.kind, object["metadata"]["name"].as_str().unwrap_or_default());
        Dump(objects.iter().map(|object| (name(object), object.clone())).collect())
    }

    /// One object more, by namespace and name.
    #[cfg(test)]
    pub fn insert(&mut self, kind: Kind, name: &str, object: Value) {
        self.0.insert(format!("{} {name}", kind.kind), object);
    }

    fn add(&mut self, kind: Kind, object: &DynamicObject) {
        if object.metadata.namespace.as_deref() != Some(NAMESPACE) {
            self.0.insert(format!("{} {}", kind.kind, full_name(object)), normalised(kind, json!(object)));
        }
    }

    /// The objects of a kind, by namespace and name.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().filter_map(move |(name, object)| Some((name.strip_prefix(kind.kind)?.strip_prefix(' ')?, object)))
    }

    /// What is another in `after`, a line each, in the order of the objects' names.
    pub fn difference(&self, after: &Dump) -> Vec<String> {
        self.difference_of(after, |_| true)
    }

    /// The same for objects of some kinds only.
    pub fn difference_of(&self, after: &Dump, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(after.0.keys()).collect();
        for name in names.into_iter().filter(|name| wanted(name.split(' ').next().unwrap_or_default())) {
            match (self.0.get(name), after.0.get(name)) {
                (Some(_), None) => lines.push(format!("{name}: gone")),
                (None, Some(_)) => lines.push(format!("{name}: new")),
                (Some(before), Some(after)) => compare(&format!("{name}: "), "", before, after, &mut lines),
                (None, None) => {}
            }
        }
        lines
    }
}

/// The object without what is left out of a comparison.
fn normalised(kind: Kind, mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    strip(&mut object);
    if kind == MACHINE
        && let Some(labels) = object["metadata"]["labels"].as_object_mut()
    {
        // The machine controller writes them in its own time from the tags it sees.
        labels.remove("machine.openshift.io/region");
        labels.remove("machine.openshift.io/zone");
    }
    if kind == MACHINE
        && let Some(spec) = object["spec"].as_object_mut()
    {
        // Which virtual machine it is.
        spec.remove("providerID");
    }
    if kind == MACHINE_CONFIG_POOL
        && let Some(spec) = object["spec"].as_object_mut()
    {
        // The machine config operator's own word; it follows from the cloud configuration.
        spec.remove("configuration");
    }
    if kind == NODE
        && let Some(annotations) = object["metadata"]["annotations"].as_object_mut()
    {
        // So is this.
        annotations.retain(|key, _| !key.starts_with("machineconfiguration.openshift.io/"));
    }
    if kind == SECRET {
        for field in ["data", "stringData"] {
            for value in object[field].as_object_mut().into_iter().flat_map(Map::values_mut) {
                *value = json!(fingerprint(value));
            }
        }
    }
    object
}

/// Takes identities and times out of this object and of every object it carries inside it.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|key, _| !IDENTITY.contains(&key.as_str()));
                if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                    annotations.retain(|_, value| value.as_str().is_none_or(|text| text.parse::<Timestamp>().is_err()));
                }
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(entries) => entries.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Enough to tell two values apart, and nothing of what they are.
fn fingerprint(value: &Value) -> String {
    let digest = Sha256::digest(value.as_str().unwrap_or_default());
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// What differs between two objects, a line each that begins with `name`.
pub fn differences(name: &str, before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare(name, "", before, after, &mut lines);
    lines
}

/// Walks into what both have and tells of what only one has or each has otherwise. Something empty is as good as nothing.
fn compare(name: &str, path: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    if before == after || (is_empty(before) && is_empty(after)) {
        return;
    }
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(name, &path, one.get(key).unwrap_or(&Value::Null), other.get(key).unwrap_or(&Value::Null), lines);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(name, &format!("{path}[{index}]"), one, other, lines);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            let lost = one.iter().filter(|entry| !other.contains(entry));
            let won = other.iter().filter(|entry| !one.contains(entry));
            let count = lines.len();
            lines.extend(lost.map(|entry| format!("{name}{path}: no longer {}", spoken(entry))));
            lines.extend(won.map(|entry| format!("{name}{path}: now also {}", spoken(entry))));
            if lines.len() == count {
                lines.push(format!("{name}{path}: {} entries -> {}, some of them more than once", one.len(), other.len()));
            }
        }
        _ => lines.push(format!("{name}{path}: {} -> {}", spoken(before), spoken(after))),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        _ => false,
    }
}

/// A value in a line that can be read.
fn spoken(value: &Value) -> String {
    const LONGEST: usize = 160;
    let text = if value.is_null() { "nothing".to_owned() } else { value.to_string() };
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST).chain("...".chars()).collect() }
}

#[cfg(test)]
#[path = "dump_tests.rs"]
mod tests;
