//! The lists of vCenters and failure domains in the spec of Infrastructure `cluster`. Both change together or not at all: a failure
//! domain whose server is not listed makes the operators crash.

use std::fmt;

use serde_json::{Map, Value, json};

/// The API takes no more.
const MOST_VCENTERS: usize = 3;
const DEFAULT_PORT: u64 = 443;

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The spec says so already, field by field.
    AlreadyThere,
    /// The whole spec as it should be.
    Changed(Value),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("spec.platformSpec.type is {0:?}, not \"VSphere\"")]
    NotVsphere(String),
    #[error("{path} is not what the API makes of it: {reason}")]
    Malformed { path: String, reason: &'static str },
    #[error("{what} is there already, but differs: {}", differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Differs { what: String, differences: Vec<Difference> },
    #[error("failure domain {name} belongs to {server}, which is not among the vCenters")]
    UnknownServer { name: String, server: String },
    #[error("failure domains {one} and {other} have the same region {region} and zone {zone}")]
    SameZone { one: String, other: String, region: String, zone: String },
    #[error("{0} vCenters would be listed; the API takes {MOST_VCENTERS} at most")]
    TooMany(usize),
    #[error("no vCenter would be left in the list")]
    NoneLeft,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub field: String,
    pub found: String,
    pub wanted: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} is {}, wanted {}", self.field, self.found, self.wanted)
    }
}

/// Appends what is missing, so that the source stays first: the problem detector takes unlabelled nodes for the first domain's.
pub fn extend(spec: &Value, vcenters: &[Value], failure_domains: &[Value]) -> Result<Outcome, Refused> {
    let mut listed = list(spec, "vcenters")?;
    let mut domains = list(spec, "failureDomains")?;
    let before = (listed.len(), domains.len());
    for vcenter in vcenters {
        let server = text(vcenter, "server", "vcenters[]")?;
        append(&mut listed, vcenter, "server", &format!("vCenter {server}"))?;
    }
    for domain in failure_domains {
        let name = text(domain, "name", "failureDomains[]")?;
        append(&mut domains, domain, "name", &format!("failure domain {name}"))?;
    }
    if (listed.len(), domains.len()) == before {
        return Ok(Outcome::AlreadyThere);
    }
    if listed.len() > MOST_VCENTERS {
        return Err(Refused::TooMany(listed.len()));
    }
    check_domains(&listed, &domains[before.1..], &domains)?;
    with_lists(spec, listed, domains).map(Outcome::Changed)
}

/// Takes the servers and their failure domains away, in one change.
pub fn retract(spec: &Value, servers: &[&str]) -> Result<Outcome, Refused> {
    let (mut listed, mut domains) = (list(spec, "vcenters")?, list(spec, "failureDomains")?);
    let before = (listed.len(), domains.len());
    let stays = |item: &Value| item.get("server").and_then(Value::as_str).is_none_or(|server| !servers.contains(&server));
    listed.retain(stays);
    domains.retain(stays);
    if (listed.len(), domains.len()) == before {
        return Ok(Outcome::AlreadyThere);
    }
    if listed.is_empty() {
        return Err(Refused::NoneLeft);
    }
    with_lists(spec, listed, domains).map(Outcome::Changed)
}

/// Name and key of the ConfigMap with the cloud configuration, as far as the spec says so.
pub fn cloud_config(spec: &Value) -> Option<(String, String)> {
    let part = |field: &str| spec["cloudConfig"][field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    part("name").zip(part("key"))
}

fn append(items: &mut Vec<Value>, item: &Value, key: &str, what: &str) -> Result<(), Refused> {
    let Some(found) = items.iter().find(|found| found.get(key) == item.get(key)) else {
        items.push(item.clone());
        return Ok(());
    };
    let mut differences = Vec::new();
    compare("", &normal(found), &normal(item), &mut differences);
    if differences.is_empty() { Ok(()) } else { Err(Refused::Differs { what: what.to_owned(), differences }) }
}

/// The port the API leaves out means 443, and datacenters are a set.
fn normal(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut().filter(|fields| fields.contains_key("datacenters")) {
        fields.entry("port").or_insert(json!(DEFAULT_PORT));
        if let Some(names) = fields.get_mut("datacenters").and_then(Value::as_array_mut) {
            names.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
        }
    }
    item
}

fn compare(path: &str, found: &Value, wanted: &Value, differences: &mut Vec<Difference>) {
    if let (Some(found), Some(wanted)) = (found.as_object(), wanted.as_object()) {
        let added = wanted.keys().filter(|key| !found.contains_key(*key));
        for key in found.keys().chain(added) {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            compare(&path, &found.get(key).cloned().unwrap_or_default(), &wanted.get(key).cloned().unwrap_or_default(), differences);
        }
    } else if found != wanted {
        let show = |value: &Value| if value.is_null() { "not set".to_owned() } else { value.to_string() };
        differences.push(Difference { field: path.to_owned(), found: show(found), wanted: show(wanted) });
    }
}

fn check_domains(vcenters: &[Value], added: &[Value], all: &[Value]) -> Result<(), Refused> {
    for domain in added {
        let field = |key| text(domain, key, "failureDomains[]");
        let (name, server, region, zone) = (field("name")?, field("server")?, field("region")?, field("zone")?);
        if vcenters.iter().all(|vcenter| vcenter.get("server").and_then(Value::as_str) != Some(server)) {
            return Err(Refused::UnknownServer { name: name.to_owned(), server: server.to_owned() });
        }
        let is = |other: &Value, key: &str, value| other.get(key).and_then(Value::as_str) == Some(value);
        let twin = all.iter().find(|other| !is(other, "name", name) && is(other, "region", region) && is(other, "zone", zone));
        if let Some(twin) = twin {
            let one = text(twin, "name", "failureDomains[]")?.to_owned();
            return Err(Refused::SameZone { one, other: name.to_owned(), region: region.to_owned(), zone: zone.to_owned() });
        }
    }
    Ok(())
}

fn text<'a>(item: &'a Value, key: &str, path: &str) -> Result<&'a str, Refused> {
    let found = item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    found.ok_or_else(|| Refused::Malformed { path: format!("{path}.{key}"), reason: "it must be a text" })
}

/// Clusters born before 4.13 have no list, and not even the object around it.
fn list(spec: &Value, name: &str) -> Result<Vec<Value>, Refused> {
    let kind = spec.pointer("/platformSpec/type").and_then(Value::as_str).unwrap_or_default();
    if kind != "VSphere" {
        return Err(Refused::NotVsphere(kind.to_owned()));
    }
    match spec.pointer("/platformSpec/vsphere").and_then(|vsphere| vsphere.get(name)) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items.clone()),
        Some(_) => Err(Refused::Malformed { path: format!("spec.platformSpec.vsphere.{name}"), reason: "it must be a list" }),
    }
}

fn with_lists(spec: &Value, vcenters: Vec<Value>, domains: Vec<Value>) -> Result<Value, Refused> {
    let mut spec = spec.clone();
    let platform = spec.get_mut("platformSpec").and_then(Value::as_object_mut);
    let vsphere = platform.map(|platform| platform.entry("vsphere").or_insert_with(|| Map::new().into()));
    let malformed = || Refused::Malformed { path: "spec.platformSpec.vsphere".to_owned(), reason: "it must be an object" };
    let vsphere = vsphere.ok_or_else(malformed)?;
    if vsphere.is_null() {
        *vsphere = Map::new().into();
    }
    let fields = vsphere.as_object_mut().ok_or_else(malformed)?;
    fields.insert("vcenters".to_owned(), vcenters.into());
    fields.insert("failureDomains".to_owned(), domains.into());
    Ok(spec)
}
