//! The verdict on a growth: what the cluster and the vCenters themselves say, each check with what is wrong where it fails. What it
//! looks at is looked at after a move too, with other vCenters expected.

mod cloud_config;
pub mod control_plane;
mod csi_config;
mod infrastructure;

use std::time::Duration;

use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::{Value, json};
use vmi_crds::spec::SourceRetirement;

use super::dump::Dump;
use super::vcenters::{self, Contents};
use super::{Error, Site, request, trial};
use crate::cache::Cache;
use crate::cluster::config;
use crate::health;
use crate::kubernetes::{
    self, CLUSTER_OPERATOR, CONFIG_MAP, CONTROL_PLANE_MACHINE_SET, CONTROLLER_CONFIG, CREDENTIALS_REQUEST, DAEMON_SET, DEPLOYMENT,
    INFRASTRUCTURE, Kind, MACHINE, MACHINE_SET, NODE, SECRET,
};
use crate::vcenter::{INFRA_ID, Vcenter};
use crate::yaml;

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: String,
    pub passed: bool,
    /// What is wrong; empty where nothing is.
    pub detail: String,
}

impl Check {
    pub fn new(name: &str, result: Result<(), String>) -> Check {
        Check { name: name.to_owned(), passed: result.is_ok(), detail: result.err().unwrap_or_default() }
    }
}

/// Whether a list of things that should not be is empty.
pub fn none(found: &[String]) -> Result<(), String> {
    if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
}

/// Which vCenters the cluster should know, in their order, and which not any more.
pub struct Expected<'a> {
    pub there: Vec<&'a Vcenter>,
    pub gone: Vec<&'a Vcenter>,
}

/// Everything that a growth must have done, and nothing else; `before` is how the cluster was.
pub async fn growth(site: &Site, before: &Dump) -> Result<Vec<Check>, Error> {
    let expected = Expected { there: site.vcenters(), gone: Vec::new() };
    let mut checks = configured(site, &expected, "both vCenters").await?;
    let after = Dump::take(site).await?;
    let same = |kinds: &[&str]| none(&before.difference_of(&after, |kind| kinds.contains(&kind)));
    checks.push(Check::new("the CRDs' rules are as before", same(&["CustomResourceDefinition"])));
    checks.push(Check::new("the cluster version operator and its overrides are as before", same(&["Deployment", "ClusterVersion"])));
    let rest = [
        "Secret",
        "ConfigMap",
        "Infrastructure",
        "ControllerConfig",
        "CustomResourceDefinition",
        "Deployment",
        "ClusterVersion",
        "ControlPlaneMachineSet",
        "vCenter",
    ];
    let others = none(&before.difference_of(&after, |kind| !rest.contains(&kind)));
    checks.push(Check::new("machines, their sets and checks, and the pools are as before", others));
    checks.push(Check::new("the control plane stays where it is", control_plane::stays(site, before, &after)));
    checks.extend(otherwise_as_before(site, &expected, before, &after)?);
    // A machine cannot come up where the cluster does not know the place; that it does not would be waited for in vain.
    let tried = match checks.iter().all(|check| check.passed) {
        true => trial::machine_on_the_target(site).await.map_err(|error| error.to_string()),
        false => Err("not tried, for what is said above is wrong".to_owned()),
    };
    checks.push(Check::new("a MachineSet made by hand on the new vCenter comes up and goes again", tried));
    checks.extend(healthy(site).await);
    Ok(checks)
}

/// Whether the configuration knows exactly the expected vCenters, wherever one is named, and these have what the cluster needs.
pub async fn configured(site: &Site, expected: &Expected<'_>, whom: &str) -> Result<Vec<Check>, Error> {
    let mut contents = Vec::new();
    for vcenter in &expected.there {
        contents.push((*vcenter, vcenters::read(vcenter).await?));
    }
    let infrastructure = object(site, INFRASTRUCTURE, "", "cluster").await?;
    let check = |name: &str, result| Check::new(&name.replace("WHOM", whom), result);
    let mut checks = vec![
        check("Infrastructure lists WHOM and their failure domains, in this order", listed(expected, &infrastructure)),
        check("the root secret and every component secret hold the pairs of WHOM", secrets(site, expected).await?),
        check("cloud-provider-config and its copies name WHOM", cloud_configs(site, expected).await?),
        check("ControllerConfig follows Infrastructure", followed(site, &infrastructure).await?),
        check("region and zone tags are attached on WHOM", tags(&infrastructure, &contents)),
        check("the cluster's folder is on WHOM and carries its ownership tag", folders(&contents)),
    ];
    if site.shape.storage {
        let config = csi_config::judged(site, expected).await?;
        checks.push(check("the storage driver's configuration names WHOM and the categories of zones", config));
    }
    Ok(checks)
}

/// Whether where vCenters are listed nothing else has changed.
pub fn otherwise_as_before(site: &Site, expected: &Expected<'_>, before: &Dump, after: &Dump) -> Result<Vec<Check>, Error> {
    let asked = request::asked(site, SourceRetirement::Remove)?.spec.failure_domains;
    let servers: Vec<&str> = expected.there.iter().map(|vcenter| vcenter.server.as_str()).collect();
    Ok(vec![
        Check::new("what cloud-provider-config says besides vCenters is as before", cloud_config::rest(before, after)),
        Check::new("what Infrastructure says besides vCenters and failure domains is as before", infrastructure::rest(before, after)),
        Check::new(
            "each failure domain in Infrastructure is as it was or as the vmi asks for it",
            infrastructure::domains(before, after, &servers, &asked),
        ),
    ])
}

/// Whether the cluster is as well as after its boot. What the operator changed last is still followed by others, who are given
/// their time: a cloud controller manager that lost a credential restarts.
pub async fn healthy(site: &Site) -> Vec<Check> {
    let kinds = [MACHINE, MACHINE_SET, NODE, CLUSTER_OPERATOR, DEPLOYMENT, DAEMON_SET, CONTROL_PLANE_MACHINE_SET].map(|kind| (kind, ""));
    let mut cache = Cache::start(&site.client, &kinds).await;
    // Where the time is not enough, the checks tell what was missing.
    let _ = cache.until("the cluster to be healthy", PATIENCE, |cache| health::whole(cache, &site.shape)).await;
    let machines = health::machines(&cache);
    let count = machines.as_ref().copied().unwrap_or_default();
    vec![
        Check::new("every machine is Running", machines.map(drop)),
        Check::new("every node is Ready and initialised", health::nodes(&cache, count + usize::from(site.shape.bare_metal_nodes))),
        Check::new("every deployment and daemon set is available", health::all_available(&cache)),
        Check::new("every operator is available and not degraded", health::all_operators(&cache, &site.shape)),
        Check::new("the control plane machine set is complete", health::control_plane_complete(&cache, &site.shape)),
    ]
}

/// The object; one that is not there is as good as an empty one, and fails whatever is asked of it.
pub async fn object(site: &Site, kind: Kind, namespace: &str, name: &str) -> Result<DynamicObject, Error> {
    let found = kubernetes::get(&site.client, kind, namespace, name).await?;
    Ok(found.unwrap_or_else(|| {
        let mut empty = DynamicObject::new(name, &kind.resource());
        empty.data = json!({});
        empty
    }))
}

fn listed(expected: &Expected<'_>, infrastructure: &DynamicObject) -> Result<(), String> {
    let vsphere = &infrastructure.data["spec"]["platformSpec"]["vsphere"];
    let servers =
        |list: &str| -> Vec<&str> { vsphere[list].as_array().into_iter().flatten().filter_map(|entry| entry["server"].as_str()).collect() };
    let wanted: Vec<&str> = expected.there.iter().map(|vcenter| vcenter.server.as_str()).collect();
    let mut of_domains = servers("failureDomains");
    of_domains.dedup();
    for (list, found) in [("vcenters", servers("vcenters")), ("failureDomains", of_domains)] {
        if found != wanted {
            return Err(format!("{list} are on {}, wanted is {}", found.join(", "), wanted.join(", ")));
        }
    }
    Ok(())
}

async fn secrets(site: &Site, expected: &Expected<'_>) -> Result<Result<(), String>, Error> {
    let mut places = vec![("kube-system".to_owned(), "vsphere-creds".to_owned())];
    for request in kubernetes::list(&site.client, CREDENTIALS_REQUEST, "").await? {
        let place = &request.data["spec"]["secretRef"];
        let text = |field: &str| place[field].as_str().unwrap_or_default().to_owned();
        places.push((text("namespace"), text("name")));
    }
    let mut wrong = Vec::new();
    for (namespace, name) in places {
        let secret = object(site, SECRET, &namespace, &name).await?;
        for vcenter in &expected.there {
            wrong.extend(missing_keys(&secret, vcenter).into_iter().map(|what| format!("{namespace}/{name} {what}")));
        }
        for vcenter in &expected.gone {
            let keys = secret.data["data"].as_object().into_iter().flatten().map(|(key, _)| key);
            let left = keys.filter(|key| key.starts_with(&format!("{}.", vcenter.server)));
            wrong.extend(left.map(|key| format!("{namespace}/{name} still has {key}")));
        }
    }
    Ok(none(&wrong))
}

/// What a Secret lacks of a vCenter's pair, or has otherwise; by keys alone, never by what they hold.
fn missing_keys(secret: &DynamicObject, vcenter: &Vcenter) -> Vec<String> {
    use base64::Engine as _;
    let pair = config::credentials(vcenter);
    let wanted = pair.as_object().into_iter().flatten();
    wanted
        .filter_map(|(key, value)| {
            let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
            match secret.data["data"][key].as_str() {
                None => Some(format!("lacks {key}")),
                Some(held) if held != encoded => Some(format!("has another {key}")),
                Some(_) => None,
            }
        })
        .collect()
}

async fn cloud_configs(site: &Site, expected: &Expected<'_>) -> Result<Result<(), String>, Error> {
    let places = [
        ("openshift-config", "cloud-provider-config", "config"),
        ("openshift-config-managed", "kube-cloud-config", "cloud.conf"),
        ("openshift-cloud-controller-manager", "cloud-conf", "cloud.conf"),
    ];
    let mut missing = Vec::new();
    for (namespace, name, key) in places {
        let map = object(site, CONFIG_MAP, namespace, name).await?;
        let text = map.data["data"][key].as_str().unwrap_or_default();
        for vcenter in &expected.there {
            if let Err(why) = names(text, &vcenter.server) {
                missing.push(format!("{namespace}/{name} {why}"));
            }
        }
        let left = expected.gone.iter().filter(|vcenter| text.contains(&vcenter.server));
        missing.extend(left.map(|vcenter| format!("{namespace}/{name} still names {}", vcenter.server)));
    }
    Ok(none(&missing))
}

/// Whether a cloud configuration in YAML has an entry for the server.
fn names(text: &str, server: &str) -> Result<(), String> {
    let parsed = yaml::parse(text).map_err(|error| format!("cannot be read: {error}"))?;
    let entries = parsed["vcenter"].as_object().into_iter().flatten();
    let servers: Vec<&str> = entries.filter_map(|(_, entry)| entry["server"].as_str()).collect();
    if servers.contains(&server) { Ok(()) } else { Err(format!("does not name {server}, only {}", servers.join(", "))) }
}

async fn followed(site: &Site, infrastructure: &DynamicObject) -> Result<Result<(), String>, Error> {
    let config = object(site, CONTROLLER_CONFIG, "", "machine-config-controller").await?;
    let same = config.data["spec"]["infra"]["spec"] == infrastructure.data["spec"];
    Ok(if same { Ok(()) } else { Err("its spec.infra.spec is not the spec of Infrastructure".to_owned()) })
}

/// Each failure domain's region on its datacenter and zone on its cluster.
fn tags(infrastructure: &DynamicObject, contents: &[(&Vcenter, Contents)]) -> Result<(), String> {
    let domains = infrastructure.data["spec"]["platformSpec"]["vsphere"]["failureDomains"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut missing = Vec::new();
    for (vcenter, contents) in contents {
        let own: Vec<&Value> = domains.iter().filter(|domain| domain["server"] == vcenter.server.as_str()).collect();
        if own.is_empty() {
            missing.push(format!("vCenter {} has no failure domain", vcenter.name));
        }
        for domain in own {
            let datacenter = format!("/{}", text(&domain["topology"]["datacenter"]));
            let cluster = text(&domain["topology"]["computeCluster"]);
            for (category, tag, path) in [("openshift-region", "region", datacenter), ("openshift-zone", "zone", cluster)] {
                let found = contents.tagged(category, &text(&domain[tag]), &path);
                missing.extend(found.err().map(|why| format!("vCenter {}: {why}", vcenter.name)));
            }
        }
    }
    none(&missing)
}

fn folders(contents: &[(&Vcenter, Contents)]) -> Result<(), String> {
    let mut missing = Vec::new();
    for (vcenter, contents) in contents {
        let folder = vcenter.folder();
        if !contents.folders.contains(&folder) {
            missing.push(format!("vCenter {}: there is no folder {folder}", vcenter.name));
            continue;
        }
        let owned = contents.tagged(&format!("openshift-{INFRA_ID}"), INFRA_ID, &folder);
        missing.extend(owned.err().map(|why| format!("vCenter {}: {why}", vcenter.name)));
    }
    none(&missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_names_a_server_by_its_entry_and_not_by_any_mention() {
        let text = "global:\n  server: b\nvcenter:\n  one:\n    server: a\n";
        assert_eq!(names(text, "a"), Ok(()));
        assert_eq!(names(text, "b"), Err("does not name b, only a".to_owned()));
        assert!(names("", "b").is_err());
    }

    #[test]
    fn a_secret_that_lacks_a_pair_is_told_by_its_keys_alone() {
        let vcenter = Vcenter {
            name: "b".to_owned(),
            server: "b".to_owned(),
            port: 443,
            username: "me".to_owned(),
            password: "hunter2".to_owned(),
            ca: String::new(),
            zones: Vec::new(),
        };
        let mut secret = DynamicObject::new("x", &SECRET.resource());
        secret.data = json!({"data": {"b.username": "bWU=", "b.password": "b3RoZXI="}});
        assert_eq!(missing_keys(&secret, &vcenter), ["has another b.password"]);
        secret.data = json!({"data": {"b.username": "bWU="}});
        assert_eq!(missing_keys(&secret, &vcenter), ["lacks b.password"]);
    }
}
