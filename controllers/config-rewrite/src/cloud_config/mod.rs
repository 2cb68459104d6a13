//! Step 8: the target in the cloud configuration, and the copies that operators make of it.

mod bundle;
mod decide;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::api::DynamicObject;
use vmi_crds::graph::StepName;
use vmi_crds::spec::VSphereMigrationInfraSpec;
use vmi_intent::cloud_config::{self, NewVcenter, Refused};
use vmi_intent::infrastructure;
use vmi_kit::failure::look;
use vmi_kit::kind::CONFIG_MAP;
use vmi_kit::{Stop, failure};
use vmi_site::followers;
use vmi_site::vcenter::BUNDLE_KEY;
use vmi_steps::{Migration, Seen, Step, Writer};

use self::decide::{Config, Saved, Wanted};

/// Where the cloud configuration is.
pub const NAMESPACE: &str = "openshift-config";
const AUTHORITIES: &str = "ca-bundle.pem";
const SAVED: &str = "cloud-config";

/// Step 8.
pub struct CloudConfigExtended;

/// Writes the configuration.
pub struct Write {
    map: Arc<DynamicObject>,
    key: String,
    next: Config,
    /// What to remember first.
    save: Option<Saved>,
    what: String,
}

/// The ConfigMap and the key that Infrastructure names.
struct Place {
    name: String,
    key: String,
}

impl CloudConfigExtended {
    /// The vCenters that the cloud configuration names; none where it cannot be read.
    pub fn servers(m: &Migration) -> Vec<String> {
        let Some((_, found)) = place(m).ok().and_then(|place| read(m, &place)) else { return Vec::new() };
        cloud_config::vcenters(&found.text).unwrap_or_default().into_iter().map(|vcenter| vcenter.server).collect()
    }

    /// The port that the cloud configuration names for this vCenter, where it is not the one that everybody assumes.
    pub fn unusual_port(m: &Migration, server: &str) -> Option<u64> {
        let (_, found) = place(m).ok().and_then(|place| read(m, &place))?;
        let known = cloud_config::vcenters(&found.text).ok()?;
        known.into_iter().find(|vcenter| vcenter.server == server).map(|vcenter| vcenter.port).filter(|port| ![0, 443].contains(port))
    }
}

impl Step for CloudConfigExtended {
    const NAME: StepName = StepName::CloudConfigExtended;
    type Act = Write;

    async fn observe(&self, m: &Migration) -> Result<Seen<Write>, Stop> {
        let place = place(m)?;
        let Some((map, found)) = read(m, &place) else {
            let text = format!("Infrastructure names key {} of ConfigMap {NAMESPACE}/{}, which is not there", place.key, place.name);
            let command = format!("oc -n {NAMESPACE} get configmap {} -o yaml", place.name);
            return Err(
                look(failure("CCF-001", text, "put the cloud configuration where Infrastructure says, then resume"), [command]).into()
            );
        };
        let wanted = wanted(m, authorities(m)?);
        let targets = m.targets();
        if let Some((next, changes)) = decide::extend(&found, &wanted).map_err(|refused| unfit(&place, &refused))? {
            let what = format!("add {} to ConfigMap {NAMESPACE}/{}", targets.join(", "), place.name);
            let changes = changes.iter().map(|change| format!("ConfigMap {NAMESPACE}/{}: {change}", place.name)).collect();
            let save = Some(Saved::of(found, &next, &m.uid()));
            return Ok(Seen::Todo { act: Write { map, key: place.key, next, save, what }, changes });
        }
        Ok(match followers::together(followers::copies_name(m, &targets)) {
            Err(behind) => Seen::waiting(format!("waits for {behind}")),
            Ok(missing) => {
                Seen::done(self.ended(m), format!("the cloud configuration and its copies name {}{missing}", targets.join(", ")))
            }
        })
    }

    /// The copies are made of Infrastructure too, which follows: step 7's way back waits for them.
    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Write>, Stop> {
        let Some(saved) = m.saved(SAVED) else { return Ok(Seen::done("Undone", "the cloud configuration was not changed")) };
        let saved: Saved = serde_json::from_value(saved).map_err(|error| {
            let text = format!("what was saved of the cloud configuration cannot be read: {error}");
            failure("CCF-004", text, "take the target out of the cloud configuration by hand, then set spec.state to Abandoned")
        })?;
        let place = place(m)?;
        let Some((map, found)) = read(m, &place) else {
            let text = format!("somebody else took key {} of ConfigMap {NAMESPACE}/{} away", place.key, place.name);
            return Ok(Seen::done("UndoneWithConflict", text));
        };
        // The vmi's own ConfigMap may be gone by now.
        let wanted = wanted(m, authorities(m).unwrap_or_default());
        let restored = decide::restore(&found, &saved, &wanted, &m.uid()).map_err(|refused| unfit(&place, &refused))?;
        if let Some(next) = restored.config {
            let what = format!("take {} out of ConfigMap {NAMESPACE}/{}", m.targets().join(", "), place.name);
            let changes = vec![what.clone()];
            return Ok(Seen::Todo { act: Write { map, key: place.key, next, save: None, what }, changes });
        }
        Ok(if restored.changed_by_others {
            let text =
                "the targets are gone from the cloud configuration; somebody else changed it since, so all the rest stays as it is now";
            Seen::done("UndoneWithConflict", text)
        } else {
            Seen::done("Undone", "the cloud configuration is as it was")
        })
    }

    async fn act(&self, _m: &Migration, act: Write, writer: &mut Writer<'_>) -> Result<(), Stop> {
        if let Some(saved) = &act.save {
            writer.save(SAVED, &serde_json::to_value(saved).map_err(Stop::again)?).await?;
        }
        let mut map = act.map.as_ref().clone();
        map.data["data"][&act.key] = act.next.text.into();
        if let Some(authorities) = act.next.authorities {
            map.data["data"][AUTHORITIES] = authorities.into();
        }
        writer.replace(CONFIG_MAP, map, &act.what).await?;
        Ok(())
    }

    fn drifted(&self, m: &Migration) -> Option<String> {
        // Where Infrastructure names none, that is told by whoever has to read it.
        let place = place(m).ok()?;
        let object = format!("ConfigMap {NAMESPACE}/{}", place.name);
        let what = match read(m, &place) {
            None => format!("key {} of {object} is gone", place.key),
            Some((_, found)) => format!("{object} {}", decide::lost(&found, &m.targets())?),
        };
        Some(format!("{what} (oc -n {NAMESPACE} get configmap {} -o yaml)", place.name))
    }

    fn ended(&self, m: &Migration) -> &'static str {
        if m.saved(SAVED).is_some() { "Extended" } else { "AlreadyThere" }
    }

    fn stuck(&self, _m: &Migration) -> Vec<String> {
        followers::look_at_copies().to_vec()
    }
}

fn place(m: &Migration) -> Result<Place, Stop> {
    let infrastructure = m.infrastructure().ok_or_else(|| Stop::again("there is no Infrastructure cluster to be seen"))?;
    match infrastructure::cloud_config(&infrastructure.data["spec"]) {
        Some((name, key)) => Ok(Place { name, key }),
        None => {
            let text = "Infrastructure cluster does not say in spec.cloudConfig which key of which ConfigMap holds the cloud configuration";
            let command = "oc get infrastructure cluster -o jsonpath='{.spec.cloudConfig}'".to_owned();
            Err(look(failure("CCF-003", text, "fill in name and key, then resume"), [command]).into())
        }
    }
}

fn read(m: &Migration, place: &Place) -> Option<(Arc<DynamicObject>, Config)> {
    let map = m.get(CONFIG_MAP, NAMESPACE, &place.name)?;
    let part = |key: &str| map.data["data"][key].as_str().map(str::to_owned);
    let found = Config { text: part(&place.key)?, authorities: part(AUTHORITIES) };
    Some((map, found))
}

fn unfit(place: &Place, refused: &Refused) -> Stop {
    let text = format!("key {} of ConfigMap {NAMESPACE}/{} cannot be edited: {refused}", place.key, place.name);
    let command = format!("oc -n {NAMESPACE} get configmap {} -o jsonpath='{{.data.{}}}'", place.name, place.key.replace('.', "\\."));
    look(failure("CCF-002", text, "mend the text, then resume"), [command]).into()
}

/// The certificates that the vmi names.
fn authorities(m: &Migration) -> Result<String, Stop> {
    let Some(name) = m.spec().trust.as_ref().and_then(|trust| trust.ca_bundle.as_ref()) else { return Ok(String::new()) };
    let map = m.get(CONFIG_MAP, &m.cx.namespace, name);
    let text = map.and_then(|map| map.data["data"][BUNDLE_KEY].as_str().map(str::to_owned));
    text.ok_or_else(|| {
        let text = format!("spec.trust.caBundle: ConfigMap {}/{name} has no key {BUNDLE_KEY}, or is not there", m.cx.namespace);
        failure("TLS-002", text, format!("create it with the certificates under {BUNDLE_KEY}, then resume")).into()
    })
}

fn wanted(m: &Migration, authorities: String) -> Wanted {
    let infrastructure = m.infrastructure();
    let listed = infrastructure.as_deref().and_then(|object| object.data["spec"]["platformSpec"]["vsphere"]["failureDomains"].as_array());
    let listed: Vec<&str> = listed.into_iter().flatten().filter_map(|domain| domain["name"].as_str()).collect();
    Wanted { vcenters: vcenters(m.spec()), zones: several_domains(&listed, m.spec()), authorities }
}

/// Whether there is more than one failure domain, once step 7 is done: a source without one is given one.
fn several_domains(listed: &[&str], spec: &VSphereMigrationInfraSpec) -> bool {
    let added = spec.failure_domains.iter().filter(|domain| !listed.contains(&domain.name.as_str())).count();
    listed.len().max(1) + added > 1
}

/// The targets, with every datacenter that one of their failure domains is in.
fn vcenters(spec: &VSphereMigrationInfraSpec) -> Vec<NewVcenter> {
    let one = |vcenter: &vmi_crds::spec::VCenter| {
        let mut datacenters = vcenter.datacenters.clone();
        for domain in spec.failure_domains.iter().filter(|domain| domain.server == vcenter.server) {
            if !datacenters.contains(&domain.topology.datacenter) {
                datacenters.push(domain.topology.datacenter.clone());
            }
        }
        NewVcenter {
            server: vcenter.server.clone(),
            port: vcenter.port.and_then(|port| u16::try_from(port).ok()),
            datacenters,
            insecure: spec.trust.as_ref().is_some_and(|trust| trust.insecure),
            ..NewVcenter::default()
        }
    };
    spec.vcenters.iter().map(one).collect()
}
