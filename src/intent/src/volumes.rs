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

/// A volume of vSphere that can be used elsewhere than in these places, called by its claim: it stays behind when the source leaves.
pub fn left_behind(spec: &Value, name: &str, places: &[(&str, &str)]) -> Option<String> {
    of_vsphere(spec, name).filter(|_| !is_in_one_of(spec, places))
}

/// Whether the volume can be used only in one of these places, each a region and its zone. Zones alone do not tell: another region's
/// may have the same name.
pub fn is_in_one_of(spec: &Value, places: &[(&str, &str)]) -> bool {
    let terms = spec["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array().into_iter().flatten();
    terms.into_iter().any(|term| {
        let values = |part: &str| -> Vec<&Value> {
            let expressions = term["matchExpressions"].as_array().into_iter().flatten();
            let named = expressions.filter(|expression| expression["key"].as_str().is_some_and(|key| key.ends_with(part)));
            named.map(|expression| &expression["values"]).collect()
        };
        let (regions, zones) = (values("region"), values("zone"));
        let all = |lists: &[&Value], wanted: &str| {
            lists.iter().all(|list| list.as_array().is_some_and(|values| values.iter().any(|value| value == wanted)))
        };
        !zones.is_empty() && places.iter().any(|(region, zone)| all(&regions, region) && all(&zones, zone))
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
        let volume = |labels: &[(&str, &str)]| {
            let expression = |(key, value): &(&str, &str)| json!({"key": format!("topology.csi.vmware.com/openshift-{key}"), "operator": "In", "values": [value]});
            let expressions: Vec<Value> = labels.iter().map(expression).collect();
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}})
        };
        let places = [("region-b", "zone-b"), ("region-c", "zone-c")];
        for (labels, here) in [
            (&[("zone", "zone-b")][..], true),
            (&[("region", "region-c"), ("zone", "zone-c")], true),
            (&[("region", "region-a"), ("zone", "zone-b")], false),
            (&[("region", "region-b"), ("zone", "zone-c")], false),
            (&[("zone", "zone-a")], false),
            (&[("region", "region-b")], false),
        ] {
            assert_eq!(is_in_one_of(&volume(labels), &places), here, "{labels:?}");
        }
        assert!(!is_in_one_of(&json!({}), &places), "one that may be anywhere");
        let on = |labels: &[(&str, &str)]| {
            let mut spec = volume(labels);
            spec["csi"] = json!({"driver": "csi.vsphere.vmware.com"});
            left_behind(&spec, "pv-1", &places)
        };
        assert_eq!(on(&[("region", "region-b"), ("zone", "zone-b")]), None, "a volume of a vCenter that stays is not left behind");
        assert!(on(&[("region", "region-a"), ("zone", "zone-a")]).is_some());
    }
}
