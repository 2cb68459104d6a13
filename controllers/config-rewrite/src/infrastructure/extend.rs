//! The spec of Infrastructure with the target in it: pure.

use serde_json::Value;
use vmi_intent::infrastructure::{self, Outcome, Refused};
use vmi_site::source::Source;

/// What Infrastructure should say besides what it says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    pub vcenters: Vec<Value>,
    pub failure_domains: Vec<Value>,
    pub node_networking: Option<Value>,
    /// The source, as far as it is not described yet.
    pub source: Source,
}

/// Why it cannot be extended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("nodeNetworking.{which} is there already, but differs: it is {found}, wanted {wanted}")]
    NodeNetworking { which: &'static str, found: String, wanted: String },
}

/// The spec as it should be.
#[derive(Debug, PartialEq)]
pub struct Extended {
    pub spec: Value,
    /// The spec with the source only, where the source has to come first.
    pub source_only: Option<Value>,
    pub changes: Vec<String>,
}

/// Adds what is missing; none if nothing is.
pub fn extend(spec: &Value, wanted: &Wanted) -> Result<Option<Extended>, Unfit> {
    let source_only = match infrastructure::extend(spec, &wanted.source.vcenters, &wanted.source.failure_domains)? {
        Outcome::Changed(changed) => Some(changed),
        Outcome::AlreadyThere => None,
    };
    let start = source_only.as_ref().unwrap_or(spec);
    let mut next = match infrastructure::extend(start, &wanted.vcenters, &wanted.failure_domains)? {
        Outcome::Changed(changed) => changed,
        Outcome::AlreadyThere => start.clone(),
    };
    let networking = set_node_networking(&mut next, wanted.node_networking.as_ref())?;
    if next == *spec {
        return Ok(None);
    }
    let all = |list: &str, from_source: &[Value], given: &[Value]| -> Vec<Value> {
        let there = items(spec, list);
        from_source.iter().chain(given).filter(|item| !there.iter().any(|found| key(found) == key(item))).cloned().collect()
    };
    let vcenters = all("vcenters", &wanted.source.vcenters, &wanted.vcenters);
    let domains = all("failureDomains", &wanted.source.failure_domains, &wanted.failure_domains);
    let mut changes: Vec<String> =
        vcenters.iter().map(|vcenter| format!("Infrastructure cluster: vCenter {} is added", key(vcenter))).collect();
    changes.extend(domains.iter().map(|domain| {
        let part = |field: &str| domain[field].as_str().unwrap_or_default();
        format!(
            "Infrastructure cluster: failure domain {} ({}/{}) of {} is added",
            part("name"),
            part("region"),
            part("zone"),
            part("server")
        )
    }));
    changes.extend(networking.iter().map(|which| format!("Infrastructure cluster: nodeNetworking.{which} is set")));
    Ok(Some(Extended { spec: next, source_only, changes }))
}

/// What the spec no longer says of what it was made to say, if anything.
pub fn lost(spec: &Value, wanted: &Wanted) -> Option<String> {
    let absent = |list: &str, what: &str, wanted: &[Value]| -> Vec<String> {
        let there = items(spec, list);
        let absent = wanted.iter().filter(|item| there.iter().all(|found| key(found) != key(item)));
        absent.map(|item| format!("{what} {}", key(item))).collect()
    };
    let mut gone = absent("vcenters", "vCenter", &wanted.vcenters);
    gone.extend(absent("failureDomains", "failure domain", &wanted.failure_domains));
    if !gone.is_empty() {
        return Some(format!("Infrastructure cluster does not list {} any more", gone.join(", ")));
    }
    match extend(spec, wanted) {
        Ok(None) => None,
        Ok(Some(_)) => Some("Infrastructure cluster does not have the vmi's nodeNetworking any more".to_owned()),
        Err(unfit) => Some(format!("Infrastructure cluster is not as the vmi made it any more: {unfit}")),
    }
}

/// Sets what is absent, leaves what is equal, refuses what differs.
fn set_node_networking(spec: &mut Value, wanted: Option<&Value>) -> Result<Vec<&'static str>, Unfit> {
    let mut set = Vec::new();
    for which in ["external", "internal"] {
        let Some(wanted) = wanted.and_then(|wanted| wanted.get(which)).filter(|wanted| !is_empty(wanted)) else { continue };
        let found = spec["platformSpec"]["vsphere"]["nodeNetworking"][which].clone();
        if is_empty(&found) {
            spec["platformSpec"]["vsphere"]["nodeNetworking"][which] = wanted.clone();
            set.push(which);
        } else if found != *wanted {
            return Err(Unfit::NodeNetworking { which, found: found.to_string(), wanted: wanted.to_string() });
        }
    }
    Ok(set)
}

pub fn items(spec: &Value, list: &str) -> Vec<Value> {
    spec["platformSpec"]["vsphere"][list].as_array().cloned().unwrap_or_default()
}

/// A failure domain's name, a vCenter's server.
pub fn key(item: &Value) -> &str {
    item["name"].as_str().or(item["server"].as_str()).unwrap_or_default()
}

pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
