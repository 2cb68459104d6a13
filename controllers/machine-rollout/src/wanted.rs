//! Which sets the vmi asks for on the target. Pure.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_crds::spec::{SourceRetirement, VSphereMigrationInfraSpec};
use vmi_intent::machine_sets::carried_over;
use vmi_intent::provider::left_out;
use vmi_intent::set_names::{Asked, Called, planned};
use vmi_steps::saved::OWNER;

use crate::view::{Object, replicas, set_server};

/// On a set of ours: the source's set it stands for.
pub const SOURCE_SET: &str = "config.openshift.io/vmi-source-machineset";
/// On a set of ours: the failure domain it is in.
pub const DOMAIN: &str = "config.openshift.io/vmi-failure-domain";
const NODE_REGION: &str = "topology.kubernetes.io/region";
const NODE_ZONE: &str = "topology.kubernetes.io/zone";

/// A set to be made on the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub name: String,
    /// The source's set it stands for, or in Keep the one it is modelled on.
    pub source: String,
    pub domain: String,
    pub server: String,
    pub replicas: i64,
    /// The set, with no machine yet.
    pub object: Value,
    /// Labels its nodes have to have.
    pub labels: BTreeMap<String, String>,
    /// What of the source's set only the source knows.
    pub left_out: Vec<String>,
}

/// What is known when it is decided.
pub struct Known<'a> {
    pub spec: &'a VSphereMigrationInfraSpec,
    /// Every MachineSet there is.
    pub sets: &'a [Object],
    /// The vCenters to move from.
    pub sources: &'a [String],
    /// The vmi's UID, by which a set is known as ours.
    pub uid: &'a str,
    pub infrastructure_id: &'a str,
}

/// Whether the migration made the set.
pub fn is_ours(set: &DynamicObject, uid: &str) -> bool {
    set.annotations().get(OWNER).is_some_and(|owner| owner == uid)
}

/// Whether the set is marked as the one that is wanted: for the same set of the source, in the same failure domain.
pub fn stands_for(set: &DynamicObject, wanted: &Wanted) -> bool {
    let said = |key: &str| wanted.object["metadata"]["annotations"][key].as_str();
    [SOURCE_SET, DOMAIN].into_iter().all(|key| said(key) == set.annotations().get(key).map(String::as_str))
        && said(OWNER) == set.annotations().get(OWNER).map(String::as_str)
}

/// The sets whose machines are on a source, by name. What another platform or another vCenter has is none of them.
pub fn of_the_source(sets: &[Object], sources: &[String], uid: &str) -> Vec<Object> {
    let mut found: Vec<Object> =
        sets.iter().filter(|set| sources.iter().any(|source| source == set_server(set)) && !is_ours(set, uid)).cloned().collect();
    found.sort_by_key(|object| object.name_any());
    found
}

/// Every set that is asked for, or why that cannot be said.
pub fn wanted(known: &Known<'_>) -> Result<Vec<Wanted>, String> {
    let sources = of_the_source(known.sets, known.sources, known.uid);
    match known.spec.source_retirement {
        SourceRetirement::Remove => Ok(carried(known, &sources)),
        SourceRetirement::Keep => added(known, &sources),
    }
}

/// In Remove every set of the source, each in one failure domain, one after the other, unless the vmi says otherwise.
fn carried(known: &Known<'_>, sources: &[Object]) -> Vec<Wanted> {
    let ours: Vec<&Object> = known.sets.iter().filter(|set| is_ours(set, known.uid)).collect();
    let said = |source: &Object| known.spec.machine_sets.iter().find(|set| set.name == source.name_any());
    let names: Vec<String> = sources.iter().map(|set| set.name_any()).collect();
    let asked = |(source, own): (&Object, &'_ String)| {
        let domains = said(source).map(|set| set.failure_domains.as_slice()).unwrap_or_default();
        // What was made already stays where it is, also if another set has come or gone since.
        let made = ours.iter().find(|set| set.annotations().get(SOURCE_SET) == Some(own)).and_then(|set| set.annotations().get(DOMAIN));
        if domains.is_empty() { made.cloned().into_iter().collect() } else { domains.to_vec() }
    };
    let spread: Vec<Vec<String>> = sources.iter().zip(&names).map(asked).collect();
    let asked: Vec<Asked<'_>> = names.iter().zip(&spread).map(|(name, domains)| Asked { name, domains: strings(domains) }).collect();
    let others: Vec<String> = names.iter().cloned().chain(ours.iter().map(|set| set.name_any())).collect();
    let mut all = Vec::new();
    for set in planned(&asked, &domains(known), Called::ByPlace, &strings(&others)) {
        let (source, own) = (&sources[set.of], names[set.of].as_str());
        let total = said(source).and_then(|said| said.replicas).map_or_else(|| replicas(source), i64::from);
        let marks = [(OWNER, known.uid), (SOURCE_SET, own), (DOMAIN, set.domain)];
        let name = made(&ours, own, set.domain).unwrap_or(set.name);
        all.extend(one(known, source, &name, set.domain, share(total, set.part), &marks));
    }
    all
}

/// What the set is called that was made already: it keeps its name, whatever is there besides now.
fn made(ours: &[&Object], source: &str, domain: &str) -> Option<String> {
    let is = |set: &Object, key: &str, wanted: &str| set.annotations().get(key).is_some_and(|said| said == wanted);
    ours.iter().filter(|set| is(set, SOURCE_SET, source) && is(set, DOMAIN, domain)).map(|set| set.name_any()).min()
}

/// In Keep the sets that are named, made like the source's plainest workers.
fn added(known: &Known<'_>, sources: &[Object]) -> Result<Vec<Wanted>, String> {
    let template = |set: &Object| set.data["spec"]["template"].clone();
    let plain = |set: &&Object| {
        let template = template(set);
        let taints = template["spec"]["taints"].as_array().is_some_and(|taints| !taints.is_empty());
        let role = template["metadata"]["labels"]["machine.openshift.io/cluster-api-machine-role"] != "worker";
        (taints, role, set.name_any())
    };
    let Some(model) = sources.iter().min_by_key(plain) else {
        return Err(format!("no MachineSet makes machines on {}, so there is none to make the new ones like", known.sources.join(", ")));
    };
    let said = &known.spec.machine_sets;
    let asked: Vec<Asked<'_>> = said.iter().map(|set| Asked { name: &set.name, domains: strings(&set.failure_domains) }).collect();
    let others: Vec<String> = sources.iter().map(|set| set.name_any()).collect();
    let mut all = Vec::new();
    for set in planned(&asked, &domains(known), Called::AsAsked, &strings(&others)) {
        let total = said[set.of].replicas.map_or_else(|| replicas(model), i64::from);
        let marks = [(OWNER, known.uid), (DOMAIN, set.domain)];
        all.extend(one(known, model, &set.name, set.domain, share(total, set.part), &marks));
    }
    Ok(all)
}

fn one(known: &Known<'_>, source: &Object, called: &str, domain: &str, replicas: i64, marks: &[(&str, &str)]) -> Option<Wanted> {
    let domain = known.spec.failure_domains.iter().find(|known| known.name == domain)?;
    let body = serde_json::to_value(source.as_ref()).ok()?;
    let object = carried_over(&body, called, &json!(domain), known.infrastructure_id, marks);
    let said = object["spec"]["template"]["spec"]["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let mut labels: BTreeMap<String, String> =
        said.into_iter().filter_map(|(label, value)| Some((label, value.as_str()?.to_owned()))).collect();
    labels.insert(NODE_REGION.to_owned(), domain.region.clone());
    labels.insert(NODE_ZONE.to_owned(), domain.zone.clone());
    let (domain, server) = (domain.name.clone(), domain.server.clone());
    let left_out = left_out(&body["spec"]["template"]["spec"]["providerSpec"]["value"]);
    Some(Wanted { name: called.to_owned(), source: source.name_any(), domain, server, replicas, object, labels, left_out })
}

fn domains<'a>(known: &Known<'a>) -> Vec<&'a str> {
    known.spec.failure_domains.iter().map(|domain| domain.name.as_str()).collect()
}

fn strings(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// An even share of the machines.
fn share(total: i64, (index, parts): (usize, usize)) -> i64 {
    let (parts, index) = (i64::try_from(parts).unwrap_or(1).max(1), i64::try_from(index).unwrap_or_default());
    total / parts + i64::from(index < total % parts)
}

#[cfg(test)]
mod tests;
