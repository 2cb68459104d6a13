//! Step 14a: the source out of Infrastructure and the cloud configuration, through the one-way door. Before the door everything is
//! tried and nothing is written; behind it the writes are one unit, which a restarted process finishes.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_crds::graph::StepName;
use vmi_crds::spec::Approval;
use vmi_intent::cloud_config;
use vmi_intent::infrastructure::{self, Outcome};
use vmi_kit::failure::look;
use vmi_kit::kind::{CLUSTER_CSI_DRIVER, CONFIG_MAP, INFRASTRUCTURE};
use vmi_kit::{Stop, failure};
use vmi_site::followers;
use vmi_steps::{Migration, Seen, Step, Writer};

use crate::users::Users;
use crate::{CLOUD_CONFIG, planning, topology};

/// Where the source's description is saved before it goes.
pub const SAVED: &str = "source";
/// Under which step 7 saved Infrastructure, and what it wrote of the source.
const BEFORE: &str = "infrastructure";
/// How the policies say that a machine, a set or the control plane's set still names a failure domain.
const IN_USE: &str = "still in use";

/// Step 14a.
pub struct SourceDetached;

/// One write.
pub enum Act {
    /// Saves how Infrastructure described the source.
    Save(Value),
    /// Tells the CSI driver which categories name zones.
    Categories(Arc<DynamicObject>, Value),
    /// Takes the source out of Infrastructure.
    Infrastructure(Box<DynamicObject>, String),
    /// Takes the source out of the cloud configuration.
    CloudConfig(Box<DynamicObject>, String),
}

impl Step for SourceDetached {
    const NAME: StepName = StepName::SourceDetached;
    type Act = Act;

    async fn observe(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        let infrastructure = m.infrastructure().ok_or_else(|| Stop::again("there is no Infrastructure cluster to be seen"))?;
        let spec = &infrastructure.data["spec"];
        let sources = m.sources();
        let servers: Vec<&str> = sources.iter().map(String::as_str).collect();
        let description = described(m, spec, &servers);
        if planning(m) {
            let changes = words(&description, spec, &servers);
            return Ok(Seen::Todo { act: Act::Save(description), changes });
        }
        let next = retracted(spec, &servers)?;
        let config = without(m, spec, &servers)?;
        if m.vmi.seen().one_way_at.is_none() {
            return before_the_door(m, &infrastructure, next).await;
        }
        let changes = words(&description, spec, &servers);
        let todo = |act| Ok(Seen::Todo { act, changes: changes.clone() });
        if m.saved(SAVED).is_none() {
            return todo(Act::Save(description));
        }
        // Also where somebody else has taken the source out of Infrastructure already.
        if let Some((driver, patch)) = categories(m, spec, &servers) {
            return todo(Act::Categories(driver, patch));
        }
        if let Some(next) = next {
            let mut object = infrastructure.as_ref().clone();
            object.data["spec"] = next;
            let what = format!("take vCenters {} and their failure domains out of Infrastructure cluster", servers.join(", "));
            return todo(Act::Infrastructure(Box::new(object), what));
        }
        if let Some(map) = config {
            let what = format!("take {} out of ConfigMap {CLOUD_CONFIG}/{}", servers.join(", "), map.name_any());
            return todo(Act::CloudConfig(Box::new(map), what));
        }
        let mut all = vec![followers::controller_config(m, &infrastructure)];
        all.extend(followers::copies_forgot(m, &servers));
        Ok(match followers::together(all) {
            Err(behind) => Seen::waiting(format!("waits for {behind}")),
            Ok(missing) => {
                let text = format!("neither Infrastructure nor the cloud configuration names {}{missing}", servers.join(", "));
                Seen::done("Detached", text)
            }
        })
    }

    async fn observe_undo(&self, _m: &Migration) -> Result<Seen<Act>, Stop> {
        Ok(Seen::done("Undone", "nothing was written before the one-way door, and behind it there is no way back"))
    }

    async fn act(&self, _m: &Migration, act: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
        match act {
            Act::Save(description) => writer.save(SAVED, &description).await,
            Act::Categories(driver, patch) => {
                let what = "tell the CSI driver which categories name zones, since one failure domain is left";
                writer.patch(CLUSTER_CSI_DRIVER, &driver, patch, what).await
            }
            Act::Infrastructure(object, what) => writer.replace(INFRASTRUCTURE, *object, &what).await.map(drop),
            Act::CloudConfig(map, what) => writer.replace(CONFIG_MAP, *map, &what).await.map(drop),
        }
    }

    /// People take their time to approve.
    fn deadline(&self, m: &Migration) -> Duration {
        if m.vmi.seen().one_way_at.is_none() && not_approved(m).is_some() { Duration::MAX } else { Self::DEADLINE }
    }

    fn stuck(&self, _m: &Migration) -> Vec<String> {
        followers::look_at_controller_config().into_iter().chain(followers::look_at_copies()).collect()
    }
}

/// Everything but the writes: they are approved, nobody is in the way, and the apiserver would take them.
async fn before_the_door(m: &Migration, infrastructure: &DynamicObject, next: Option<Value>) -> Result<Seen<Act>, Stop> {
    if let Some(waits) = not_approved(m) {
        return Ok(Seen::waiting(waits));
    }
    let in_the_way = Users::of(m, &infrastructure.data["spec"]).in_the_way();
    if !in_the_way.is_empty() {
        return Ok(Seen::waiting(format!("waits for these to leave the source: {}", in_the_way.join(", "))));
    }
    if let Some(next) = next
        && let Err(refused) = m.would_take(INFRASTRUCTURE, infrastructure, next).await?
    {
        if refused.message.contains(IN_USE) {
            return Ok(Seen::waiting(format!("waits for whoever uses the source's failure domains to leave: {}", refused.message)));
        }
        let text = format!("the apiserver would not let the source go from Infrastructure cluster: {}", refused.message);
        return Err(shown("CLN-001", text, "correct what it names, then resume"));
    }
    let servers = m.sources().join(", ");
    Ok(Seen::Ready {
        message: format!("ready to take {servers} out of Infrastructure and the cloud configuration; from then on there is no way back"),
    })
}

/// What an approval is waited for, if one is.
fn not_approved(m: &Migration) -> Option<String> {
    if m.spec().approval != Approval::Manual {
        return None;
    }
    let hash = m.vmi.seen().plan.as_ref().and_then(|plan| plan.removal_hash.as_deref());
    let Some(hash) = hash else { return Some("waits for the preflight to plan the removal: status.plan.removalHash".to_owned()) };
    (m.spec().approved_plan.as_deref() != Some(hash)).then(|| {
        let place = format!("{}/vmi-{}-plan", m.cx.namespace, m.name());
        format!("waits for approval: set spec.approvedPlan to {hash}; removal.txt of ConfigMap {place} says what it stands for")
    })
}

/// Infrastructure's spec without the source; none if it has left.
fn retracted(spec: &Value, servers: &[&str]) -> Result<Option<Value>, Stop> {
    match infrastructure::retract(spec, servers) {
        Ok(Outcome::Changed(next)) => Ok(Some(next)),
        Ok(Outcome::AlreadyThere) => Ok(None),
        Err(refused) => {
            let text = format!("the source cannot be taken out of Infrastructure cluster: {refused}");
            Err(shown("CLN-001", text, "see who took the target away, put it back, then resume"))
        }
    }
}

fn shown(rule: &str, text: String, next: &str) -> Stop {
    look(failure(rule, text, next), ["oc get infrastructure cluster -o yaml".to_owned()]).into()
}

/// The ConfigMap without the source; none if it has left.
pub fn without(m: &Migration, spec: &Value, servers: &[&str]) -> Result<Option<DynamicObject>, Stop> {
    let unusable = |why: String| {
        let command = format!("oc -n {CLOUD_CONFIG} get configmaps -o yaml");
        Stop::from(look(failure("CLN-002", format!("the cloud configuration: {why}"), "mend it, then resume"), [command]))
    };
    let (name, key) = infrastructure::cloud_config(spec).ok_or_else(|| unusable("Infrastructure does not say where it is".to_owned()))?;
    let map = m.get(CONFIG_MAP, CLOUD_CONFIG, &name).ok_or_else(|| unusable(format!("there is no ConfigMap {CLOUD_CONFIG}/{name}")))?;
    let text = map.data["data"][&key].as_str().ok_or_else(|| unusable(format!("ConfigMap {CLOUD_CONFIG}/{name} has no key {key}")))?;
    let mut next = text.to_owned();
    for server in servers {
        next = cloud_config::remove(&next, server).map_err(|refused| unusable(format!("ConfigMap {CLOUD_CONFIG}/{name}: {refused}")))?;
    }
    Ok((next != text).then(|| {
        let mut map = map.as_ref().clone();
        map.data["data"][&key] = next.into();
        map
    }))
}

/// The CSI driver and what it has to be told before the source's failure domains go.
fn categories(m: &Migration, spec: &Value, servers: &[&str]) -> Option<(Arc<DynamicObject>, Value)> {
    let driver = m.get(CLUSTER_CSI_DRIVER, "", topology::DRIVER)?;
    let names = items(spec, "failureDomains").filter(|domain| !of_source(domain, servers)).filter_map(|domain| domain["name"].as_str());
    // Before the start the target's are not listed yet.
    let mut left: Vec<&str> = names.chain(m.spec().failure_domains.iter().map(|domain| domain.name.as_str())).collect();
    left.sort_unstable();
    left.dedup();
    let patch = topology::kept(&driver, left.len())?;
    Some((driver, patch))
}

fn items<'a>(spec: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    spec["platformSpec"]["vsphere"][list].as_array().into_iter().flatten()
}

fn of_source(item: &Value, servers: &[&str]) -> bool {
    item["server"].as_str().is_some_and(|server| servers.contains(&server))
}

/// The source as Infrastructure describes it, for those who clean up in it later.
fn described(m: &Migration, spec: &Value, servers: &[&str]) -> Value {
    let mut description = lists(spec, m.saved(BEFORE).as_ref(), servers);
    description["categoriesNamed"] = categories(m, spec, servers).is_some().into();
    description
}

/// The source's vCenters and failure domains; those that Infrastructure does not list, for somebody else took them out, as it did or
/// was made to before the migration changed it.
fn lists(spec: &Value, before: Option<&Value>, servers: &[&str]) -> Value {
    let before = before.unwrap_or(&Value::Null);
    let own = |list: &str, key: &str| {
        let saved = [&before["before"][list], &before["source"][list]].into_iter().filter_map(Value::as_array).flatten();
        let mut found: Vec<&Value> = Vec::new();
        for item in items(spec, list).chain(saved).filter(|item| of_source(item, servers)) {
            if found.iter().all(|known| known[key] != item[key]) {
                found.push(item);
            }
        }
        json!(found)
    };
    json!({"vcenters": own("vcenters", "server"), "failureDomains": own("failureDomains", "name")})
}

fn words(description: &Value, spec: &Value, servers: &[&str]) -> Vec<String> {
    let list = |name| items(spec, name).filter(|item| of_source(item, servers));
    let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let mut words = Vec::new();
    if description["categoriesNamed"] == true {
        words.push(format!("ClusterCSIDriver {}: topologyCategories are named, since one failure domain is left", topology::DRIVER));
    }
    words.extend(list("vcenters").map(|item| format!("Infrastructure cluster: vCenter {} goes", text(item, "server"))));
    words.extend(list("failureDomains").map(|item| format!("Infrastructure cluster: failure domain {} goes", text(item, "name"))));
    if let Some((name, _)) = infrastructure::cloud_config(spec) {
        words.push(format!("ConfigMap {CLOUD_CONFIG}/{name}: {} goes", servers.join(", ")));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vsphere(servers: &[&str]) -> Value {
        let vcenters: Vec<Value> = servers.iter().map(|server| json!({"server": server})).collect();
        let domains: Vec<Value> = servers.iter().map(|server| json!({"name": format!("fd-{server}"), "server": server})).collect();
        json!({"vcenters": vcenters, "failureDomains": domains})
    }

    #[test]
    fn a_source_that_somebody_else_took_out_of_infrastructure_is_described_as_it_was_before() {
        let listed = |servers: &[&str]| json!({"platformSpec": {"vsphere": vsphere(servers)}});
        let saved = |before: Value, source: Value| json!({"before": before, "source": source});
        let nothing = || json!({"vcenters": [], "failureDomains": []});
        for (spec, before, known) in [
            (listed(&["a", "b"]), Some(saved(vsphere(&["a"]), nothing())), vsphere(&["a"])),
            (listed(&["b"]), Some(saved(vsphere(&["a"]), nothing())), vsphere(&["a"])),
            (listed(&["b"]), Some(saved(Value::Null, vsphere(&["a"]))), vsphere(&["a"])),
            (listed(&["b"]), None, nothing()),
        ] {
            assert_eq!(lists(&spec, before.as_ref(), &["a"]), known, "{spec} {before:?}");
        }
    }
}
