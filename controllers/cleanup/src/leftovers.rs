//! What is left on purpose, and the commands that remove it: in vCenter nobody can tell whether others use it, and in the cluster it
//! may still be wanted. Every command can be pasted into a shell as it stands.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_intent::cloud_config::{REGION_CATEGORY, ZONE_CATEGORY};
use vmi_intent::places::off_the_source;
use vmi_intent::source_domain;
use vmi_intent::volumes::left_behind;
use vmi_kit::kind::PERSISTENT_VOLUME;
use vmi_steps::Migration;
use vmi_steps::saved::OWNER;

use crate::earlier::{CLAIM, IN_CLUSTER, IN_VCENTER};
use crate::shell::{joined, quoted};
use crate::{detach, earlier, metadata, topology};

/// The key in the ConfigMap.
pub const FILE: &str = "leftovers.txt";
/// A ConfigMap takes no more than 1 MiB.
const MOST_VOLUMES: usize = 500;

/// The ConfigMap's name.
pub fn map_name(vmi: &str) -> String {
    format!("vmi-{vmi}-leftovers")
}

/// The ConfigMap; `former` is what an earlier migration of the same name listed.
pub fn map(m: &Migration, former: Option<&DynamicObject>) -> Value {
    let saved = m.saved(detach::SAVED).unwrap_or_default();
    let list = |field: &str| saved[field].as_array().cloned().unwrap_or_default();
    let text = text(&About {
        vmi: (&m.cx.namespace, &m.name()),
        infra_id: &m.infrastructure_id().unwrap_or_default(),
        vcenters: &list("vcenters"),
        domains: &list("failureDomains"),
        categories_named: saved["categoriesNamed"] == true,
        volumes: &volumes(m),
    });
    // What an earlier migration left in a vCenter that the cluster is back on is in use again.
    let earlier = former.and_then(|map| map.data["data"][FILE].as_str());
    let text = earlier::followed_by(&text, earlier, &m.targets());
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": m.cx.namespace, "name": map_name(&m.name()), "annotations": {OWNER: m.uid()}},
        "data": {FILE: text},
    })
}

/// PersistentVolumes of vSphere that no failure domain of the target has, nor one of a vCenter that stays: the source's, which
/// `volumes: Ignore` left.
pub fn volumes(m: &Migration) -> Vec<Volume> {
    let to_come = m.spec().failure_domains.iter().map(|domain| (domain.region.as_str(), domain.zone.as_str()));
    let (infrastructure, sources) = (m.infrastructure(), m.sources());
    let spec = infrastructure.as_ref().map_or(&Value::Null, |infrastructure| &infrastructure.data["spec"]);
    let places = off_the_source(spec, &sources, to_come);
    let mut found: Vec<Volume> = m.list(PERSISTENT_VOLUME, "").iter().filter_map(|volume| Volume::left(volume, &places)).collect();
    found.sort_by(|one, other| (&one.called, &one.name).cmp(&(&other.called, &other.name)));
    found
}

/// A PersistentVolume that was left.
pub struct Volume {
    /// By its claim, where it has one.
    called: String,
    name: String,
    spec: Value,
}

impl Volume {
    fn left(volume: &DynamicObject, places: &[(&str, &str)]) -> Option<Self> {
        let (name, spec) = (volume.name_any(), &volume.data["spec"]);
        let called = left_behind(spec, &name, places)?;
        Some(Self { called, name, spec: spec.clone() })
    }

    /// What removes its data from the vCenter with these failure domains; nothing where it does not say which they are.
    fn in_vcenter(&self, domains: &[&Value]) -> Vec<String> {
        if let Some(id) = self.spec["csi"]["volumeHandle"].as_str() {
            return vec![joined(&["govc", "volume.rm", id])];
        }
        let path = self.spec["vsphereVolume"]["volumePath"].as_str().unwrap_or_default();
        let Some((datastore, file)) = path.strip_prefix('[').and_then(|path| path.split_once("] ")) else { return Vec::new() };
        // govc knows no default datacenter where there are several, and several may have a datastore of that name.
        let having = domains.iter().filter(|domain| part(domain, "/topology/datastore").rsplit('/').next() == Some(datastore));
        let datacenters: BTreeSet<String> = having.map(|domain| datacenter(domain)).collect();
        if datacenters.is_empty() {
            return vec![joined(&["govc", "datastore.rm", "-ds", datastore, file])];
        }
        datacenters.iter().map(|datacenter| joined(&["govc", "datastore.rm", "-dc", datacenter, "-ds", datastore, file])).collect()
    }

    /// What removes it from the cluster. Its driver would look for the data on the target: it is not to delete them.
    fn in_cluster(&self) -> Vec<String> {
        let claim = [&self.spec["claimRef"]["namespace"], &self.spec["claimRef"]["name"]].map(Value::as_str);
        let retained = r#"{"spec": {"persistentVolumeReclaimPolicy": "Retain"}}"#;
        let kept =
            (self.spec["persistentVolumeReclaimPolicy"] == "Delete").then(|| joined(&["oc", "patch", "pv", &self.name, "-p", retained]));
        let mut lines: Vec<String> = kept.into_iter().collect();
        if let [Some(namespace), Some(name)] = claim {
            lines.push(joined(&["oc", "-n", namespace, "delete", "--ignore-not-found", "pvc", name]));
        }
        lines.push(joined(&["oc", "delete", "pv", &self.name]));
        lines
    }
}

/// What the list is about.
struct About<'a> {
    /// The vmi's namespace and name.
    vmi: (&'a str, &'a str),
    /// What the installer called the cluster in vSphere.
    infra_id: &'a str,
    /// The source's vCenters, as Infrastructure listed them.
    vcenters: &'a [Value],
    /// The source's failure domains, as Infrastructure listed them.
    domains: &'a [Value],
    /// Whether the CSI driver was told which categories name zones.
    categories_named: bool,
    /// Those of the source.
    volumes: &'a [Volume],
}

/// The list, for people.
fn text(about: &About<'_>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for vcenter in about.vcenters {
        let server = vcenter["server"].as_str().unwrap_or_default();
        lines.push(format!("{IN_VCENTER}{server}; with GOVC_URL, GOVC_USERNAME and GOVC_PASSWORD of it"));
        lines.extend(in_vcenter(about, server));
    }
    lines.push(IN_CLUSTER.to_owned());
    lines.extend(in_cluster(about));
    lines.join("\n") + "\n"
}

fn in_cluster(about: &About<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for volume in about.volumes.iter().take(MOST_VOLUMES) {
        lines.push(format!("{CLAIM}{}, whose data are on the source: once they are moved, or not wanted any more", volume.called));
        lines.extend(volume.in_cluster());
    }
    let rest = about.volumes.len().saturating_sub(MOST_VOLUMES);
    if rest > 0 {
        lines.push(format!("# and {rest} volumes more: oc get pv"));
    }
    let (namespace, name) = about.vmi;
    lines.push(
        "# metadata of both vCenters, for `openshift-install destroy cluster`: keep it until the whole cluster is destroyed".to_owned(),
    );
    lines.push(joined(&["oc", "-n", namespace, "delete", "secret", &metadata::secret_name(name)]));
    lines.push("# what the migration saved before it changed anything".to_owned());
    lines.push(joined(&["oc", "-n", namespace, "delete", "secret", &vmi_steps::saved::secret_name(name)]));
    if about.categories_named {
        lines.push(
            "# zones of volumes, which a single failure domain does not imply: once no PersistentVolume has a node affinity for them"
                .to_owned(),
        );
        let patch = r#"[{"op": "remove", "path": "/spec/driverConfig/vSphere/topologyCategories"}]"#;
        lines.push(joined(&["oc", "patch", "clustercsidriver", topology::DRIVER, "--type", "json", "-p", patch]));
    }
    lines.push(
        "# ConfigMap kube-system/cluster-config-v1 keeps what was asked for at installation; nothing reads a vCenter from it".to_owned(),
    );
    lines
}

fn in_vcenter(about: &About<'_>, server: &str) -> Vec<String> {
    let id = about.infra_id;
    let domains: Vec<&Value> = about.domains.iter().filter(|domain| domain["server"] == server).collect();
    let mut lines = vec!["# volumes that were left there, if any: look before the rest goes".to_owned(), "govc volume.ls -l".to_owned()];
    if !about.volumes.is_empty() {
        lines.push(
            "# with these the data of claims go, which are listed below; one it does not know is in another of the sources".to_owned(),
        );
        lines.extend(about.volumes.iter().take(MOST_VOLUMES).flat_map(|volume| volume.in_vcenter(&domains)));
    }
    let once = |command: String, lines: &mut Vec<String>| {
        if !lines.contains(&command) {
            lines.push(command);
        }
    };
    lines.push("# the template, unless other clusters are made from it".to_owned());
    domains.iter().for_each(|domain| once(template(domain, id), &mut lines));
    lines.push("# the folder, with what is still in it".to_owned());
    domains.iter().for_each(|domain| once(joined(&["govc", "object.destroy", &folder(domain, id)]), &mut lines));
    lines.push(joined(&["govc", "storage.policy.rm", &format!("openshift-storage-policy-{id}")]));
    lines.push(joined(&["govc", "tags.category.rm", "-f", &format!("openshift-{id}")]));
    lines.push("# regions and zones, unless another cluster goes by them".to_owned());
    domains.iter().for_each(|domain| once(region(domain), &mut lines));
    domains.iter().for_each(|domain| once(zone(domain), &mut lines));
    lines
}

fn part<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn datacenter(domain: &Value) -> String {
    format!("/{}", part(domain, "/topology/datacenter").trim_matches('/'))
}

fn folder(domain: &Value, id: &str) -> String {
    let named = Some(part(domain, "/topology/folder")).filter(|path| !path.is_empty());
    named.map_or_else(|| format!("{}/vm/{id}", datacenter(domain)), str::to_owned)
}

/// Where the failure domain names none, it is called after the cluster; of a domain that a machine told only the name is sure.
fn template(domain: &Value, id: &str) -> String {
    let path = part(domain, "/topology/template");
    let name = match path.rsplit('/').next() {
        None | Some("") => format!("{id}-rhcos-*"),
        Some(name) if part(domain, "/name") == source_domain::NAME => name.to_owned(),
        Some(_) => return joined(&["govc", "vm.destroy", path]),
    };
    joined(&["govc", "find", &format!("{}/vm", datacenter(domain)), "-type", "m", "-name", &name])
}

fn region(domain: &Value) -> String {
    let of_cluster = part(domain, "/regionAffinity/type") == "ComputeCluster";
    let place = if of_cluster { part(domain, "/topology/computeCluster").to_owned() } else { datacenter(domain) };
    joined(&["govc", "tags.detach", "-c", REGION_CATEGORY, part(domain, "/region"), &place])
}

fn zone(domain: &Value) -> String {
    let (zone, cluster) = (part(domain, "/zone"), part(domain, "/topology/computeCluster"));
    let detach = joined(&["govc", "tags.detach", "-c", ZONE_CATEGORY, zone]);
    if part(domain, "/zoneAffinity/type") != "HostGroup" {
        return format!("{detach} {}", quoted(cluster));
    }
    // Each host of the group has it.
    let hosts = joined(&["govc", "cluster.group.ls", "-cluster", cluster, "-name", part(domain, "/zoneAffinity/hostGroup/hostGroup")]);
    format!("{hosts} | while read -r host; do {detach} {}/\"$host\"; done", quoted(cluster))
}

#[cfg(test)]
mod tests;
