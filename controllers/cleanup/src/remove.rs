//! Step 14d: the source's credentials out of every secret, once nobody needs them, and a look at every place that could still name it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_crds::graph::StepName;
use vmi_intent::secret::{self, Data, Outcome};
use vmi_kit::kind::{CLUSTER_VERSION, CONFIG_MAP, MACHINE_SET, SECRET};
use vmi_kit::{Kind, Stop};
use vmi_site::credentials::{self, Found, Place, Secrets};
use vmi_site::followers::{self, Follow};
use vmi_site::vcenter::secret_data;
use vmi_steps::saved::OWNER;
use vmi_steps::{Migration, Seen, Step, Writer};

use crate::metadata::{self, Cluster};
use crate::users::Users;
use crate::{detach, leftovers, planning, topology};

/// No watch tells of secrets that the operator was allowed to read for this migration only.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Step 14d.
pub struct SourceRemoved;

/// One write.
pub enum Act {
    /// Keeps what a later destruction of the cluster needs, in place of what an earlier migration kept. It holds passwords.
    Metadata(Option<Arc<DynamicObject>>, Value),
    /// Writes a secret without the source's pair.
    Secret(Box<DynamicObject>, Data),
    /// Deletes a MachineSet that makes no machines.
    Set(Arc<DynamicObject>),
    /// Lists what is left, in place of what an earlier migration listed.
    Leftovers(Option<Arc<DynamicObject>>, Value),
}

impl Step for SourceRemoved {
    const NAME: StepName = StepName::SourceRemoved;
    type Act = Act;

    async fn observe(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        let infrastructure = m.infrastructure().ok_or_else(|| Stop::again("there is no Infrastructure cluster to be seen"))?;
        let spec = &infrastructure.data["spec"];
        let secrets = credentials::secrets(m, false).await?;
        let decision = Decision::of(&secrets.found, &m.sources());
        let changes = words(m, &decision);
        let todo = |act| Ok(Seen::Todo { act, changes: changes.clone() });
        let name = metadata::secret_name(&m.name());
        let kept = m.get(SECRET, &m.cx.namespace, &name);
        if planning(m) || !is_ours(m, kept.as_ref()) {
            let body = metadata_secret(m, &secrets, &name, kept.as_deref());
            return todo(Act::Metadata(kept, body));
        }
        if let Some((place, data)) = decision.writes.first()
            && let Some(object) = secrets.objects.get(place)
        {
            return todo(Act::Secret(Box::new(object.as_ref().clone()), data.clone()));
        }
        if let Some(set) = Users::of(m, spec).empty_set() {
            return todo(Act::Set(set));
        }
        let named = still_named(m, &infrastructure, &decision);
        if !named.is_empty() {
            let until = Timestamp::now().checked_add(SignedDuration::try_from(LOOK_AGAIN).unwrap_or_default()).ok();
            let message = format!("waits until the source is named nowhere: {}", named.join("; "));
            return Ok(Seen::Waiting { message, until: until.filter(|_| secrets.unwatched) });
        }
        let map = leftovers::map_name(&m.name());
        let listed = m.get(CONFIG_MAP, &m.cx.namespace, &map);
        if !is_ours(m, listed.as_ref()) {
            let body = leftovers::map(m, listed.as_deref());
            return todo(Act::Leftovers(listed, body));
        }
        Ok(Seen::done("Removed", done(m, &map)))
    }

    async fn observe_undo(&self, _m: &Migration) -> Result<Seen<Act>, Stop> {
        Ok(Seen::done("Undone", "behind the one-way door there is no way back"))
    }

    async fn act(&self, m: &Migration, act: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
        match act {
            Act::Metadata(former, body) => put(writer, SECRET, former.as_deref(), body, "save metadata.json of both vCenters").await,
            Act::Secret(mut object, data) => {
                let place = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
                object.data["data"] = data.iter().map(|(key, value)| (key.clone(), json!(STANDARD.encode(value)))).collect();
                let what = format!("take the pair of {} out of Secret {place}", m.sources().join(", "));
                writer.replace(SECRET, *object, &what).await.map(drop)
            }
            Act::Set(set) => writer.delete(MACHINE_SET, &set, &format!("delete MachineSet {}, which is empty", set.name_any())).await,
            Act::Leftovers(former, body) => put(writer, CONFIG_MAP, former.as_deref(), body, "list what is left on purpose").await,
        }
    }

    fn stuck(&self, _m: &Migration) -> Vec<String> {
        let operator = credentials::OPERATOR;
        let mut commands = vec![
            format!("oc -n {operator} logs deploy/cloud-credential-operator -c cloud-credential-operator --tail=50"),
            "oc -n openshift-cluster-csi-drivers logs deploy/vmware-vsphere-csi-driver-operator --tail=50".to_owned(),
        ];
        commands.extend(followers::look_at_copies());
        commands
    }
}

/// Whether this migration wrote it. One of the same name that is over may have left its own.
fn is_ours(m: &Migration, object: Option<&Arc<DynamicObject>>) -> bool {
    object.is_some_and(|object| object.annotations().get(OWNER) == Some(&m.uid()))
}

/// Makes it, or puts it in the place of what is there.
async fn put(writer: &mut Writer<'_>, kind: Kind, former: Option<&DynamicObject>, body: Value, what: &str) -> Result<(), Stop> {
    let Some(former) = former else { return writer.create(kind, body, what).await };
    let operations = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": former.metadata.resource_version},
        {"op": "add", "path": "/metadata/annotations", "value": body["metadata"]["annotations"]},
        {"op": "add", "path": "/data", "value": body["data"]},
    ]);
    writer.patch(kind, former, operations, what).await
}

/// Which secrets lose the source's pair, and by whom.
#[derive(Default)]
struct Decision {
    writes: Vec<(Place, Data)>,
    /// The cloud credential operator has to write these.
    awaited: Vec<Place>,
}

impl Decision {
    fn of(found: &Found, servers: &[String]) -> Self {
        let without = |data: &Data| {
            let mut rest = data.clone();
            for server in servers {
                if let Outcome::Changed(next) = secret::remove(&rest, server) {
                    rest = next;
                }
            }
            (rest != *data).then_some(rest)
        };
        let mut decision = Self::default();
        if let Some((place, data)) = &found.root {
            decision.writes.extend(without(data).map(|rest| (place.clone(), rest)));
        }
        let root_changes = !decision.writes.is_empty();
        for component in &found.components {
            let Some(rest) = component.data.as_ref().and_then(without) else { continue };
            if found.copies(component, root_changes) {
                decision.awaited.push(component.place.clone());
            } else {
                decision.writes.push((component.place.clone(), rest));
            }
        }
        decision
    }
}

fn full((namespace, name): &Place) -> String {
    format!("{namespace}/{name}")
}

fn words(m: &Migration, decision: &Decision) -> Vec<String> {
    let pair = format!("the pair of {} goes", m.sources().join(", "));
    let mut words = vec![format!("Secret {}/{}: metadata.json of both vCenters", m.cx.namespace, metadata::secret_name(&m.name()))];
    words.extend(decision.writes.iter().map(|(place, _)| format!("Secret {}: {pair}", full(place))));
    let copied = |place: &Place| format!("Secret {}: {pair}, by the cloud credential operator", full(place));
    words.extend(decision.awaited.iter().map(copied));
    words.push(format!("ConfigMap {}/{}: what is left on purpose", m.cx.namespace, leftovers::map_name(&m.name())));
    words
}

/// metadata.json: the sources' pairs from wherever one is found, the targets' from the vmi's own Secret.
fn metadata_secret(m: &Migration, secrets: &Secrets, name: &str, former: Option<&DynamicObject>) -> Value {
    let empty = Data::new();
    let own = m.get(SECRET, &m.cx.namespace, &m.spec().credentials_secret.name).map(|secret| secret_data(&secret)).unwrap_or_default();
    let found = &secrets.found;
    let all = || found.root.iter().map(|(_, data)| data).chain(found.components.iter().filter_map(|component| component.data.as_ref()));
    let holding = |server: &str| all().find(|data| secret::pair(data, server).is_ok_and(|pair| pair.is_some())).unwrap_or(&empty);
    let sources = m.sources();
    let servers: Vec<(String, &Data)> = sources
        .iter()
        .map(|server| (server.clone(), holding(server)))
        .chain(m.targets().into_iter().map(|server| (server.to_owned(), &own)))
        .collect();
    let (infrastructure, version) = (m.infrastructure(), m.get(CLUSTER_VERSION, "", "version"));
    let infra_id = m.infrastructure_id().unwrap_or_default();
    let text = |object: &Option<Arc<DynamicObject>>, pointer: &str| -> String {
        let found = object.as_ref().and_then(|object| object.data.pointer(pointer)).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let (id, api_url) = (text(&version, "/spec/clusterID"), text(&infrastructure, "/status/apiServerURL"));
    let cluster = Cluster { id: &id, infra_id: &infra_id, api_url: &api_url };
    let known = former.map(metadata::vcenters).unwrap_or_default();
    metadata::secret((&m.cx.namespace, name), (OWNER, &m.uid()), &cluster, &servers, &known)
}

/// Every place that names the source, or that somebody has yet to bring up to date.
fn still_named(m: &Migration, infrastructure: &DynamicObject, decision: &Decision) -> Vec<String> {
    let sources = m.sources();
    let servers: Vec<&str> = sources.iter().map(String::as_str).collect();
    let spec = &infrastructure.data["spec"];
    let mut found: Vec<String> =
        decision.awaited.iter().map(|place| format!("the cloud credential operator has yet to write Secret {}", full(place))).collect();
    for list in ["vcenters", "failureDomains"] {
        let items = spec["platformSpec"]["vsphere"][list].as_array().into_iter().flatten();
        let back = items.filter_map(|item| item["server"].as_str()).filter(|server| servers.contains(server));
        found.extend(back.map(|server| format!("{list} of Infrastructure cluster name {server} again")));
    }
    match detach::without(m, spec, &servers) {
        Ok(None) => {}
        Ok(Some(map)) => found.push(format!("ConfigMap {} names it again", map.name_any())),
        Err(stop) => found.push(stop.to_string()),
    }
    let mut all = vec![followers::controller_config(m, infrastructure)];
    all.extend(followers::copies_forgot(m, &servers));
    found.extend(all.into_iter().filter_map(|follow| if let Follow::Behind(what) = follow { Some(what) } else { None }));
    let (namespace, name) = topology::CSI_CONFIG;
    if let Some(secret) = m.get(SECRET, namespace, name) {
        let config = secret_data(&secret).remove("cloud.conf").unwrap_or_default();
        let config = String::from_utf8_lossy(&config);
        let named = servers.iter().filter(|server| topology::names(&config, server));
        found.extend(named.map(|server| format!("the CSI driver operator has yet to take {server} out of Secret {namespace}/{name}")));
    }
    let users = Users::of(m, spec);
    found.extend(users.in_the_way());
    found.extend(users.being_deleted());
    found
}

fn done(m: &Migration, map: &str) -> String {
    let namespace = &m.cx.namespace;
    let volumes = match leftovers::volumes(m).len() {
        0 => String::new(),
        count => format!(", and {count} volumes, listed by claim"),
    };
    format!(
        "{} is named nowhere in the cluster; left on purpose in it: template, folder, tags and storage policy{volumes}; ConfigMap \
         {namespace}/{map} has the commands that remove them: oc -n {namespace} get configmap {map} -o \
         jsonpath='{{.data.leftovers\\.txt}}'; metadata.json for openshift-install destroy is in Secret {namespace}/{}",
        m.sources().join(", "),
        metadata::secret_name(&m.name())
    )
}

#[cfg(test)]
mod tests {
    use vmi_site::credentials::Component;

    use super::*;

    fn data(servers: &[&str]) -> Data {
        let pair = |server: &&str| [(format!("{server}.username"), b"u@d".to_vec()), (format!("{server}.password"), b"p".to_vec())];
        servers.iter().flat_map(pair).collect()
    }

    fn component(name: &str, servers: &[&str], synced: bool) -> Component {
        Component { place: ("ns".to_owned(), name.to_owned()), data: Some(data(servers)), synced }
    }

    fn decided(copied: bool, root: &[&str], components: Vec<Component>) -> (Vec<String>, Vec<String>) {
        let root = (!root.is_empty()).then(|| (("ns".to_owned(), "root".to_owned()), data(root)));
        let decision = Decision::of(&Found { root, copied, components }, &["a".to_owned()]);
        assert!(decision.writes.iter().all(|(_, rest)| *rest == data(&["b"])), "only the source's pair goes");
        (decision.writes.iter().map(|(place, _)| full(place)).collect(), decision.awaited.iter().map(full).collect())
    }

    #[test]
    fn in_every_mode_each_secret_loses_the_sources_pair_and_no_other() {
        let both = || vec![component("one", &["a", "b"], true), component("two", &["b"], true)];
        assert_eq!(decided(true, &["a", "b"], both()), (vec!["ns/root".to_owned()], vec!["ns/one".to_owned()]));
        let behind = vec![component("one", &["a", "b"], false)];
        assert_eq!(decided(true, &["b"], behind), (vec![], vec!["ns/one".to_owned()]), "the copy is on its way");
        assert_eq!(decided(true, &["b"], both()), (vec!["ns/one".to_owned()], vec![]), "a copy that somebody edited is not repaired");
        assert_eq!(decided(false, &["a", "b"], both()), (vec!["ns/root".to_owned(), "ns/one".to_owned()], vec![]));
        assert_eq!(decided(false, &[], both()), (vec!["ns/one".to_owned()], vec![]));
        assert_eq!(decided(true, &["b"], vec![component("two", &["b"], true)]), (vec![], vec![]));
    }
}
