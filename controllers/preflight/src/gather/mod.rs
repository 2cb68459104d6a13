//! Gathers the facts: what the cache has at every look, what has to be asked for only when it may have changed.

mod path;
mod privileges;
mod rights;
mod vcenters;

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use vmi_crds::spec::{State, VSphereMigrationInfraSpec};
use vmi_crds::status::Path;
use vmi_intent::places::off_the_source;
use vmi_intent::volumes::left_behind;
use vmi_kit::Stop;
use vmi_kit::kind::{
    CLUSTER_CSI_DRIVER, CLUSTER_OPERATOR, CLUSTER_VERSION, CONFIG_MAP, CONTROL_PLANE_MACHINE_SET, CREDENTIALS_REQUEST, DAEMON_SET,
    DEPLOYMENT, MACHINE, MACHINE_CONFIG_POOL, MACHINE_SET, NODE, PERSISTENT_VOLUME, SECRET,
};
use vmi_site::vcenter::{MACHINE_API_SECRET, ROOT_SECRET, TRUST_BUNDLE, secret_data};
use vmi_steps::{Migration, Report, saved};

use crate::facts::{Asked, Cluster, Facts, Looked, Object, Unfinished};
use crate::requests;

pub const MACHINES: &str = "openshift-machine-api";
pub const VERSION_OPERATOR: (&str, &str) = ("openshift-cluster-version", "cluster-version-operator");
pub const CSI_DRIVER: &str = "csi.vsphere.vmware.com";
/// What runs the CSI driver on every node.
pub const CSI_NODES: (&str, &str) = ("openshift-cluster-csi-drivers", "vmware-vsphere-csi-driver-node");
const PAGE: u32 = 500;

/// All facts, with what was asked for before or just now.
pub fn facts(m: &Migration, looked: Arc<Looked>) -> Facts {
    Facts {
        spec: m.spec().clone(),
        annotations: m.vmi.annotations().clone(),
        now: Timestamp::now(),
        sources: m.sources(),
        cluster: cluster(m),
        looked,
    }
}

/// Asks for what no watch tells. What cannot be asked for stops nothing else: the check that is about it says so. Only a refusal that
/// cannot be written down is an error, for nobody may go on without that.
pub async fn look(m: &Migration, report: &mut Report) -> Result<Looked, Stop> {
    Ok(Looked { asked: ask(m).await, vcenters: Arc::new(vcenters::look(m, report).await?) })
}

/// Asks the apiserver for what no watch tells.
pub async fn ask(m: &Migration) -> Asked {
    let path = path::choose(m).await.map_err(|stop| stop.to_string());
    let legacy = path.as_ref().is_ok_and(|chosen| chosen.path == Some(Path::Legacy));
    Asked {
        denied: if legacy { rights::denied_on_the_legacy_path(m).await } else { Ok(Vec::new()) },
        denied_secrets: rights::denied_secrets(m).await,
        volumes: volumes(m).await.map_err(|stop| stop.to_string()),
        path,
    }
}

/// Changes whenever asking again may bring another answer.
pub fn key(m: &Migration) -> String {
    let version = |object: Option<Object>| object.and_then(|object| object.resource_version()).unwrap_or_default();
    let own = m.cx.namespace.as_str();
    let bundle = m.spec().trust.as_ref().and_then(|trust| trust.ca_bundle.as_deref());
    let foreign = requests::foreign(&m.list(CREDENTIALS_REQUEST, "")).unwrap_or_default();
    [
        asked(m.spec()).to_string(),
        version(m.infrastructure()),
        version(m.get(SECRET, own, &m.spec().credentials_secret.name)),
        version(m.get(SECRET, ROOT_SECRET.0, ROOT_SECRET.1)),
        version(m.get(SECRET, MACHINE_API_SECRET.0, MACHINE_API_SECRET.1)),
        version(m.get(CONFIG_MAP, TRUST_BUNDLE.0, TRUST_BUNDLE.1)),
        version(bundle.and_then(|name| m.get(CONFIG_MAP, own, name))),
        foreign.iter().map(|target| format!("{}/{}", target.namespace, target.name)).collect::<Vec<_>>().join(","),
    ]
    .join(" ")
}

/// What is asked of the vCenters and of Infrastructure: whether and how quickly to go on is none of their business.
fn asked(spec: &VSphereMigrationInfraSpec) -> Value {
    let mut asked = json!(spec);
    if let Some(fields) = asked.as_object_mut() {
        fields.retain(|field, _| !["state", "approval", "approvedPlan", "acknowledged", "health", "rollout"].contains(&field.as_str()));
    }
    asked
}

/// The name and the key of the ConfigMap with the cloud provider configuration.
fn cloud_config_place(infrastructure: &DynamicObject) -> (String, String) {
    let text = |key: &str| infrastructure.data["spec"]["cloudConfig"][key].as_str().unwrap_or_default().to_owned();
    (text("name"), text("key"))
}

fn cluster(m: &Migration) -> Cluster {
    let infrastructure = m.infrastructure();
    let own = m.cx.namespace.as_str();
    let config = infrastructure.as_deref().map(|object| cloud_config_place(object).0).filter(|name| !name.is_empty());
    let secret = |namespace: &str, name: &str| m.get(SECRET, namespace, name).map(|secret| secret_data(&secret));
    Cluster {
        version: m.get(CLUSTER_VERSION, "", "version"),
        version_operator: m.get(DEPLOYMENT, VERSION_OPERATOR.0, VERSION_OPERATOR.1),
        operators: m.list(CLUSTER_OPERATOR, ""),
        pools: m.cx.cache.serves(MACHINE_CONFIG_POOL).then(|| m.list(MACHINE_CONFIG_POOL, "")),
        csi_driver: m.get(CLUSTER_CSI_DRIVER, "", CSI_DRIVER),
        machines: m.list(MACHINE, MACHINES),
        machine_sets: m.list(MACHINE_SET, MACHINES),
        control_plane_set: m.get(CONTROL_PLANE_MACHINE_SET, MACHINES, "cluster"),
        nodes: m.list(NODE, ""),
        csi_nodes: m.get(DAEMON_SET, CSI_NODES.0, CSI_NODES.1),
        credentials_requests: m.list(CREDENTIALS_REQUEST, ""),
        cloud_config: config.and_then(|name| m.get(CONFIG_MAP, "openshift-config", &name)),
        root_secret: secret(ROOT_SECRET.0, ROOT_SECRET.1),
        credentials: secret(own, &m.spec().credentials_secret.name),
        unfinished: unfinished(m),
        abandoned: abandoned(m),
        infrastructure,
    }
}

fn unfinished(m: &Migration) -> Vec<Unfinished> {
    let secrets = m.list(SECRET, &m.cx.namespace);
    let others = secrets.iter().filter_map(|secret| {
        let owner = saved::unfinished_owner(secret).filter(|owner| *owner != m.uid())?;
        Some(Unfinished { secret: secret.name_any(), owner: owner.to_owned() })
    });
    others.collect()
}

fn abandoned(m: &Migration) -> Vec<(String, String)> {
    let vmis = m.cx.vmis();
    let others = vmis.iter().filter(|vmi| vmi.uid() != m.vmi.uid() && vmi.spec.state == State::Abandoned);
    // One that was abandoned before its start has left nothing.
    let left = others.filter(|vmi| vmi.seen().started_at.is_some());
    left.map(|vmi| {
        let told = vmi.condition("Abandoned").map_or("it does not say what it left", |condition| condition.message.as_str());
        (vmi.name_any(), told.to_owned())
    })
    .collect()
}

/// Volumes on the source.
async fn volumes(m: &Migration) -> Result<Vec<String>, Stop> {
    let (infrastructure, sources) = (m.infrastructure(), m.sources());
    let spec = infrastructure.as_ref().map_or(&Value::Null, |infrastructure| &infrastructure.data["spec"]);
    let to_come = m.spec().failure_domains.iter().map(|domain| (domain.region.as_str(), domain.zone.as_str()));
    let places = off_the_source(spec, &sources, to_come);
    let api = PERSISTENT_VOLUME.api(&m.cx.client, "");
    let mut found = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = api.list(&page).await?;
        found.extend(list.items.iter().filter_map(|volume| left_behind(&volume.data["spec"], &volume.name_any(), &places)));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    found.sort();
    Ok(found)
}
