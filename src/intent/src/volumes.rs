//! PersistentVolumes of vSphere: which they are, and where.

use serde_json::Value;

/// A volume of vSphere, called by the claim it is bound to.
pub fn of_vsphere(spec: &Value, name: &str) -> Option<String> {
    let ours = spec["csi"]["driver"] == "csi.vsphere.vmware.com" || spec.get("vsphereVolume").is_some_and(|volume| !volume.is_null());
    let claim = &spec["claimRef"];
    let called = match (claim["namespace"].as_str(), claim["name"].as_str()) {
        (Some(namespace), Some(claim)) => format!("{namespace}/{claim}"),
        _ => format!("{name} (no claim)"),
    };
    ours.then_some(called)
}

/// Whether the volume can be used in one of these zones only.
pub fn is_in_a_zone_of(spec: &Value, zones: &[&str]) -> bool {
    let terms = spec["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array().into_iter().flatten();
    let mut expressions = terms.flat_map(|term| term["matchExpressions"].as_array().into_iter().flatten());
    expressions.any(|expression| {
        let values = expression["values"].as_array().into_iter().flatten();
        expression["key"].as_str().is_some_and(|key| key.ends_with("zone"))
            && values.filter_map(Value::as_str).any(|zone| zones.contains(&zone))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_volumes_of_vsphere_count_also_those_in_tree() {
        let claim = json!({"namespace": "shop", "name": "data"});
        assert_eq!(
            of_vsphere(&json!({"csi": {"driver": "csi.vsphere.vmware.com"}, "claimRef": claim}), "pv-1").as_deref(),
            Some("shop/data")
        );
        assert_eq!(of_vsphere(&json!({"vsphereVolume": {"volumePath": "[ds] x"}}), "pv-1").as_deref(), Some("pv-1 (no claim)"));
        assert_eq!(of_vsphere(&json!({"csi": {"driver": "nfs.csi.k8s.io"}}), "pv-1"), None);
    }

    #[test]
    fn a_volume_is_where_its_affinity_says() {
        let volume = |key: &str, zone: &str| {
            let expression = json!({"key": key, "operator": "In", "values": [zone]});
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}})
        };
        let key = "topology.csi.vmware.com/openshift-zone";
        assert!(is_in_a_zone_of(&volume(key, "zone-b"), &["zone-b", "zone-c"]));
        assert!(!is_in_a_zone_of(&volume(key, "zone-a"), &["zone-b"]));
        assert!(!is_in_a_zone_of(&volume("topology.csi.vmware.com/openshift-region", "zone-b"), &["zone-b"]));
        assert!(!is_in_a_zone_of(&json!({}), &["zone-b"]), "one that may be anywhere");
    }
}
