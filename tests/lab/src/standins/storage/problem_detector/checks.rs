//! Checks of the whole cluster, in the real one's words where others read them.

use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;
use vsphere::{Node, Ref};

use super::super::{CONFIG, DRIVER, View};
use super::metrics::Metrics;
use super::results::Results;
use super::vcenter::Vcenter;
use super::{datastores, host_groups, permissions, say};

/// The cluster's own objects that a round looks at.
pub struct Objects {
    pub volumes: Vec<Arc<DynamicObject>>,
    pub classes: Vec<Arc<DynamicObject>>,
}

pub async fn cluster(view: &View, vcenters: &[Vcenter], objects: &Objects, metrics: &Metrics, results: &mut Results) {
    let mut check = |name: &'static str, outcome: Result<(), String>| results.cluster(name, outcome.err().as_slice());
    check("CheckTaskPermissions", tasks(vcenters).await);
    check("CheckFolderPermissions", datastores::folders(view, vcenters));
    check("CheckDefaultDatastore", datastores::defaults(view, vcenters).await);
    check("CheckStorageClasses", datastores::storage_classes(view, vcenters, &objects.classes, metrics).await);
    check("CheckHostGroups", host_groups::check(view, vcenters).await);
    results.cluster("ClusterInfo", &information(vcenters, metrics).await);
    results.cluster("CheckInfraConfig", &infra_config(view));
    results.cluster("CheckDatacenterConsistency", &datacenters(view));
    results.cluster("CheckAccountPermissions", &permissions::account(view, vcenters).await);
    results.cluster("CheckZoneTags", &zone_tags(view, vcenters).await);
    count_volumes(&objects.volumes, metrics);
    results.cluster("CountVolumeTypes", &[]);
}

/// CheckTaskPermissions.
async fn tasks(vcenters: &[Vcenter]) -> Result<(), String> {
    for vcenter in vcenters {
        let found = vcenter.session.recent_tasks().await.map_err(|error| format!("error listing recent tasks: {error}"))?;
        let (count, server) = (found.len(), &vcenter.server);
        say('I', "tasks.go:37", &format!("CheckTaskPermissions: {count} tasks found for vCenter {server}"));
    }
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

async fn information(vcenters: &[Vcenter], metrics: &Metrics) -> Vec<String> {
    let mut wrong = Vec::new();
    metrics.forget("vsphere_vcenter_info");
    for vcenter in vcenters {
        match vcenter.session.about().await {
            Ok(about) => metrics.gauge(
                "vsphere_vcenter_info",
                &[
                    ("version", &about.version),
                    ("api_version", &about.api_version),
                    ("uuid", &about.instance_uuid),
                    ("build", &about.build),
                ],
                1.0,
            ),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    wrong
}

/// What the real one calls legacy, and does not look at.
fn is_legacy(view: &View) -> bool {
    view.vsphere("failureDomains").next().is_none()
}

fn infra_config(view: &View) -> Vec<String> {
    if is_legacy(view) {
        return Vec::new();
    }
    let listed: Vec<String> = view.vsphere("vcenters").map(|entry| text(&entry["server"])).collect();
    let configured: Vec<String> = view.configured().into_iter().map(|(server, _, _)| server).collect();
    let place = format!("cloud provider ConfigMap {CONFIG}/{}", text(&view.infrastructure["spec"]["cloudConfig"]["name"]));
    let apart = format!("Infra-Config: Infrastructure instance and {place} do not match.  Infrastructure has");
    let mut wrong = Vec::new();
    let go = |names: &[String]| format!("[{}]", names.join(" "));
    if listed.len() != configured.len() {
        let (here, there) = (listed.len(), configured.len());
        wrong.push(format!("{apart} {here} vCenters {} and the ConfigMap has {there} vCenters {}", go(&listed), go(&configured)));
    } else {
        let strange = listed.iter().filter(|server| !configured.contains(server));
        wrong.extend(strange.map(|_| format!("{apart} {} and the ConfigMap has {}", go(&listed), go(&configured))));
    }
    let used: Vec<String> = view.vsphere("failureDomains").map(|domain| text(&domain["server"])).collect();
    for domain in view.vsphere("failureDomains").filter(|domain| !listed.contains(&text(&domain["server"]))) {
        let (name, server) = (text(&domain["name"]), text(&domain["server"]));
        wrong.push(format!(
            "Infra-Config: Infrastructure failure domain {name} references the server {server} but is not found in the vCenter section {}",
            go(&listed)
        ));
    }
    let idle = listed.iter().filter(|server| !used.contains(server));
    wrong.extend(idle.map(|server| {
        format!("Infra-Config: vCenter {server} is configured in the infrastructure instance but not used by any failure domains")
    }));
    wrong
}

fn datacenters(view: &View) -> Vec<String> {
    let mut wrong = Vec::new();
    for domain in view.vsphere("failureDomains") {
        let (name, server, datacenter) = (&domain["name"], text(&domain["server"]), text(&domain["topology"]["datacenter"]));
        let configured = view.configured().into_iter().find(|(known, _, _)| *known == server);
        if configured.is_some_and(|(_, _, all)| !all.contains(&datacenter)) {
            wrong.push(format!(
                "Datacenter-Consistency: failure domain {name} (infrastructure.config.openshift.io/cluster) requires datacenter \"{datacenter}\" on vCenter \"{server}\", but it is not listed in the cloud provider config"
            ));
        }
        let listed = view.vsphere("vcenters").find(|entry| entry["server"] == server.as_str());
        let lists = |entry: &Value| entry["datacenters"].as_array().into_iter().flatten().any(|known| *known == datacenter.as_str());
        if listed.is_some_and(|entry| !lists(entry)) {
            wrong.push(format!(
                "Datacenter-Consistency: failure domain {name} references datacenter \"{datacenter}\" on vCenter \"{server}\", but it is not listed in the vcenters section of infrastructure.config.openshift.io/cluster"
            ));
        }
    }
    wrong
}

/// The failure domains that a vCenter has to have.
fn domains<'a>(view: &'a View, vcenter: &'a Vcenter) -> impl Iterator<Item = &'a Value> {
    view.vsphere("failureDomains").filter(|domain| domain["server"] == vcenter.server.as_str())
}

/// With several failure domains each of their clusters, or what it lies in, carries some tag of either category. Like the real
/// one this does not ask which.
async fn zone_tags(view: &View, vcenters: &[Vcenter]) -> Vec<String> {
    let mut wrong = Vec::new();
    if view.has_topology() {
        for vcenter in vcenters {
            match untagged(view, vcenter).await {
                Ok(found) => wrong.extend(found),
                Err(error) => wrong.push(format!("Multi-Zone support: {error}")),
            }
        }
    }
    wrong
}

async fn untagged(view: &View, vcenter: &Vcenter) -> vsphere::Result<Vec<String>> {
    let (tags, mut wrong) = (vcenter.session.tags(), Vec::new());
    let mut carried = Vec::new();
    for category in ["openshift-region", "openshift-zone"] {
        let Some(found) = tags.category(category).await? else {
            return Ok(vec!["Multi-Zone support: tag categories openshift-zone and openshift-region must be created".to_owned()]);
        };
        carried.push((category, tags.objects(&tags.of(&found).await?).await?.concat()));
    }
    for domain in domains(view, vcenter) {
        let cluster = vcenter.inventory.by_path(domain["topology"]["computeCluster"].as_str().unwrap_or_default());
        let upwards = std::iter::successors(cluster, |node| vcenter.inventory.by_reference(node.parent.as_ref()?));
        wrong.extend(untagged_domain(domain, &upwards.collect::<Vec<_>>(), &carried));
    }
    Ok(wrong)
}

/// What is wrong with a failure domain whose cluster, and what that lies in, are these, where tags of each category are carried
/// by those.
fn untagged_domain(domain: &Value, upwards: &[&Node], carried: &[(&str, Vec<Ref>)]) -> Option<String> {
    let name = text(&domain["name"]);
    let Some(cluster) = upwards.first() else {
        let path = text(&domain["topology"]["computeCluster"]);
        return Some(format!("unable to get ClusterComputeResource {path} for failure domain {name}"));
    };
    let bare: Vec<String> = carried
        .iter()
        .filter(|(_, objects)| !upwards.iter().any(|node| objects.contains(&node.reference)))
        .map(|(category, _)| format!("tag associated with tag category {category} not attached to this resource or ancestor"))
        .collect();
    let told = || format!("Multi-Zone support: ClusterComputeResource {} for failure domain {name}: {}", cluster.name, bare.join(","));
    (!bare.is_empty()).then(told)
}

fn count_volumes(volumes: &[Arc<DynamicObject>], metrics: &Metrics) {
    let own = || volumes.iter().map(|volume| &volume.data["spec"]).filter(|spec| spec["csi"]["driver"] == DRIVER);
    let shared = own().filter(|spec| spec["csi"]["volumeHandle"].as_str().is_some_and(|handle| handle.contains("file:"))).count();
    let terms = |spec: &&Value| spec["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array().is_some_and(|terms| !terms.is_empty());
    let zonal = own().filter(terms).count();
    for (name, count) in [("vsphere_rwx_volumes_total", shared), ("vsphere_zonal_volumes_total", zonal)] {
        metrics.gauge(name, &[], f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn infrastructure_and_the_cloud_configuration_have_to_name_the_same_vcenters_and_use_each() {
        let apart = "Infra-Config: Infrastructure instance and cloud provider ConfigMap openshift-config/cloud-provider-config do not match.  Infrastructure has";
        for (listed, used, configured, wrong) in [
            (&["a"][..], &["a"][..], &["a"][..], vec![]),
            // What the real one calls legacy is not looked at.
            (&["a"], &[], &["b", "c"], vec![]),
            (&["a"], &["a"], &["a", "b"], vec![format!("{apart} 1 vCenters [a] and the ConfigMap has 2 vCenters [a b]")]),
            (&["a"], &["a"], &["b"], vec![format!("{apart} [a] and the ConfigMap has [b]")]),
            (
                &["a"],
                &["a", "z"],
                &["a"],
                vec![
                    "Infra-Config: Infrastructure failure domain fd-z references the server z but is not found in the vCenter section [a]"
                        .to_owned(),
                ],
            ),
            (
                &["a", "b"],
                &["a"],
                &["a", "b"],
                vec!["Infra-Config: vCenter b is configured in the infrastructure instance but not used by any failure domains".to_owned()],
            ),
        ] {
            let vcenters: Vec<Value> = listed.iter().map(|server| json!({"server": server})).collect();
            let domains: Vec<Value> = used.iter().map(|server| json!({"name": format!("fd-{server}"), "server": server})).collect();
            let config: serde_json::Map<String, Value> =
                configured.iter().map(|server| ((*server).to_owned(), json!({"server": server}))).collect();
            let view = View::made(&json!({"vcenters": vcenters, "failureDomains": domains}), &Value::Object(config), &[]);
            assert_eq!(infra_config(&view), wrong, "{listed:?} {used:?} {configured:?}");
        }
    }

    #[test]
    fn a_failure_domain_needs_its_cluster_and_a_tag_of_each_category_there_or_above() {
        let node = |kind: &str, name: &str| Node {
            reference: Ref::new(kind, name),
            name: name.to_owned(),
            parent: None,
            path: format!("/{name}"),
        };
        let (cluster, datacenter) = (node("ClusterComputeResource", "cluster-a"), node("Datacenter", "dc-a"));
        let domain = json!({"name": "fd", "topology": {"computeCluster": "/dc-a/host/cluster-a"}});
        let carried = |region: &[&Node], zone: &[&Node]| {
            let refs = |nodes: &[&Node]| nodes.iter().map(|node| node.reference.clone()).collect();
            [("openshift-region", refs(region)), ("openshift-zone", refs(zone))]
        };
        let upwards = [&cluster, &datacenter];
        assert_eq!(untagged_domain(&domain, &upwards, &carried(&[&datacenter], &[&cluster])), None);
        let bare = |category: &str| format!("tag associated with tag category {category} not attached to this resource or ancestor");
        let told = |bare: &str| Some(format!("Multi-Zone support: ClusterComputeResource cluster-a for failure domain fd: {bare}"));
        assert_eq!(untagged_domain(&domain, &upwards, &carried(&[&datacenter], &[])), told(&bare("openshift-zone")));
        let both = format!("{},{}", bare("openshift-region"), bare("openshift-zone"));
        let elsewhere = node("Datacenter", "dc-b");
        assert_eq!(untagged_domain(&domain, &upwards, &carried(&[&elsewhere], &[])), told(&both));
        let nowhere = "unable to get ClusterComputeResource /dc-a/host/cluster-a for failure domain fd".to_owned();
        assert_eq!(untagged_domain(&domain, &[], &carried(&[&datacenter], &[&cluster])), Some(nowhere));
    }

    #[test]
    fn volumes_are_shared_by_their_handle_and_zonal_by_their_nodes() {
        let volume = |driver: &str, handle: &str, terms: &Value| {
            let spec =
                json!({"csi": {"driver": driver, "volumeHandle": handle}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}});
            Arc::new(serde_json::from_value(json!({"metadata": {"name": handle}, "spec": spec})).unwrap())
        };
        let metrics = Metrics::default();
        let here = json!([{"matchExpressions": []}]);
        count_volumes(&[volume(DRIVER, "file:1", &json!([])), volume(DRIVER, "2", &here), volume("nfs", "file:3", &here)], &metrics);
        assert_eq!(metrics.text(), "vsphere_rwx_volumes_total 1\nvsphere_zonal_volumes_total 1\n");
    }
}
