//! What the CSI driver must not lose with the source. Its operator derives zones from the failure domains only while there are several:
//! volumes made meanwhile are bound to zones that no node would have any more.

use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_intent::cloud_config::{REGION_CATEGORY, ZONE_CATEGORY};

/// The driver's name.
pub const DRIVER: &str = "csi.vsphere.vmware.com";
/// The configuration that its operator writes for it.
pub const CSI_CONFIG: (&str, &str) = ("openshift-cluster-csi-drivers", "vsphere-csi-config-secret");

/// The patch that names the categories of zones, where only one failure domain will be left and nobody has named any.
pub fn kept(driver: &DynamicObject, domains_left: usize) -> Option<Value> {
    let config = &driver.data["spec"]["driverConfig"];
    let named = config["vSphere"]["topologyCategories"].as_array().is_some_and(|categories| !categories.is_empty());
    if domains_left > 1 || named {
        return None;
    }
    let mut config = if config.is_object() { config.clone() } else { json!({}) };
    config["driverType"] = json!("vSphere");
    if !config["vSphere"].is_object() {
        config["vSphere"] = json!({});
    }
    config["vSphere"]["topologyCategories"] = json!([ZONE_CATEGORY, REGION_CATEGORY]);
    Some(json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": driver.metadata.resource_version},
        {"op": "add", "path": "/spec/driverConfig", "value": config},
    ]))
}

/// Whether the driver's configuration has a section for the server.
pub fn names(config: &str, server: &str) -> bool {
    let section = |line: &str| line.strip_prefix("[VirtualCenter")?.strip_suffix(']').map(|name| name.trim().trim_matches('"').to_owned());
    config.lines().filter_map(|line| section(line.trim())).any(|name| name == server)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(config: &Value) -> DynamicObject {
        let spec = json!({"managementState": "Managed", "driverConfig": config});
        serde_json::from_value(json!({"metadata": {"name": DRIVER, "resourceVersion": "7"}, "spec": spec})).unwrap()
    }

    #[test]
    fn zones_are_kept_where_one_domain_is_left_and_nobody_named_categories() {
        let categories = json!([ZONE_CATEGORY, REGION_CATEGORY]);
        assert!(kept(&driver(&json!(null)), 2).is_none());
        assert!(kept(&driver(&json!({"driverType": "vSphere", "vSphere": {"topologyCategories": ["k8s-zone"]}})), 1).is_none());
        let fresh = kept(&driver(&json!({"driverType": ""})), 1).unwrap();
        assert_eq!(fresh[1]["value"], json!({"driverType": "vSphere", "vSphere": {"topologyCategories": categories}}));
        let other = json!({"driverType": "vSphere", "vSphere": {"globalMaxSnapshotsPerBlockVolume": 5}});
        let merged = kept(&driver(&other), 1).unwrap();
        assert_eq!(merged[1]["value"]["vSphere"], json!({"globalMaxSnapshotsPerBlockVolume": 5, "topologyCategories": categories}));
        assert_eq!(merged[0]["value"], "7");
    }

    #[test]
    fn a_server_is_named_by_its_section_and_not_by_any_mention() {
        let config = "[Global]\ncluster-id = \"a.example\"\n[VirtualCenter \"b.example\"]\nuser = \"x@a.example\"\n";
        assert!(names(config, "b.example") && !names(config, "a.example") && !names("", "b.example"));
    }
}
