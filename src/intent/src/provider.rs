//! What a machine is made of on vSphere, its provider spec, and the failure domain that decides where.

use serde_json::{Map, Value, json};

/// Known only to the vCenter it was written for: ids of tags, and what a clone is linked to.
const SOURCE_ONLY: [&str; 3] = ["tagIDs", "snapshot", "cloneMode"];

/// Whether a machine with this workspace is in the failure domain, string by string, as OpenShift itself compares them.
pub fn is_in(workspace: &Value, domain: &Value) -> bool {
    differences(workspace, domain).is_empty()
}

/// The fields in which the workspace is not the failure domain's, each with what it is and what the domain says.
pub fn differences(workspace: &Value, domain: &Value) -> Vec<String> {
    let topology = &domain["topology"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fields = [
        ("server", text(&workspace["server"]), text(&domain["server"])),
        ("datacenter", text(&workspace["datacenter"]), text(&topology["datacenter"])),
        ("datastore", text(&workspace["datastore"]), text(&topology["datastore"])),
        ("vmGroup", text(&workspace["vmGroup"]), text(&domain["zoneAffinity"]["hostGroup"]["vmGroup"])),
        ("resourcePool", text(&workspace["resourcePool"]), text(&topology["resourcePool"])),
    ];
    let same = |field: &str, found: &str, wanted: &str| match field {
        "resourcePool" => clean(found) == clean(wanted),
        _ => found == wanted,
    };
    let differs = fields.into_iter().filter(|(field, found, wanted)| !same(field, found, wanted));
    differs.map(|(field, found, wanted)| format!("{field} is {found:?}, the domain says {wanted:?}")).collect()
}

/// The shortest path that means the same, letter by letter as Go's `path.Clean` writes it: OpenShift compares what that returns, and
/// to it a path without its leading slash is another one.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, rest) => format!("/{rest}"),
        (false, rest) if rest.is_empty() => ".".to_owned(),
        (false, rest) => rest,
    }
}

/// Where the failure domain puts a machine.
pub fn workspace(domain: &Value, infrastructure_id: &str) -> Value {
    let topology = &domain["topology"];
    let or = |value: &Value, otherwise: String| {
        json!(value.as_str().filter(|text| !text.is_empty()).map_or(otherwise, std::borrow::ToOwned::to_owned))
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut workspace = json!({
        "server": domain["server"],
        "datacenter": topology["datacenter"],
        "datastore": topology["datastore"],
        "folder": or(&topology["folder"], format!("/{}/vm/{infrastructure_id}", text(&topology["datacenter"]))),
        "resourcePool": or(&topology["resourcePool"], clean(&format!("/{}/Resources", text(&topology["computeCluster"])))),
    });
    if let Some(group) = domain["zoneAffinity"]["hostGroup"]["vmGroup"].as_str() {
        workspace["vmGroup"] = json!(group);
    }
    workspace
}

/// The provider spec for a machine in the failure domain: sizes and disks stay, the place and what belongs to it change.
pub fn moved(provider: &Value, domain: &Value, infrastructure_id: &str) -> Value {
    let mut moved = without_source(provider);
    let text = |key: &str| domain[key].as_str().unwrap_or_default();
    let template = domain["topology"]["template"].as_str().filter(|path| !path.is_empty());
    moved["workspace"] = workspace(domain, infrastructure_id);
    moved["template"] = json!(
        // The name that OpenShift itself takes where the domain names none.
        template.map_or_else(|| format!("{infrastructure_id}-rhcos-{}-{}", text("region"), text("zone")), str::to_owned)
    );
    let networks = domain["topology"]["networks"].as_array().into_iter().flatten();
    let device = |(index, network): (usize, &Value)| {
        let mut device = from_a_pool(&provider["network"]["devices"][index]);
        device.insert("networkName".to_owned(), network.clone());
        Value::Object(device)
    };
    moved["network"] = json!({"devices": networks.enumerate().map(device).collect::<Vec<_>>()});
    moved
}

/// The provider spec of a control plane machine set, whose failure domains decide the place: it must not say so itself.
pub fn placeless(provider: &Value) -> Value {
    let mut placeless = without_source(provider);
    let devices = provider["network"]["devices"].as_array().into_iter().flatten();
    let pooled: Vec<Value> = devices.map(from_a_pool).filter(|device| !device.is_empty()).map(Value::Object).collect();
    placeless["workspace"] = json!({});
    placeless["template"] = json!("");
    placeless["network"] = if pooled.is_empty() { json!({"devices": null}) } else { json!({"devices": pooled}) };
    placeless
}

/// What a provider spec loses on its way to another vCenter, each with what it was.
pub fn left_out(provider: &Value) -> Vec<String> {
    let said = |value: &&Value| !value.is_null() && **value != json!("") && **value != json!([]);
    let told = |field: &str| {
        let value = provider.get(field).filter(said)?;
        let text = match (value.as_str(), value.as_array()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(list)) => format!("({} of them)", list.len()),
            (None, None) => value.to_string(),
        };
        Some(format!("{field} {text}"))
    };
    SOURCE_ONLY.into_iter().filter_map(told).collect()
}

fn without_source(provider: &Value) -> Value {
    let mut provider = provider.clone();
    if let Some(fields) = provider.as_object_mut() {
        fields.retain(|field, _| !SOURCE_ONLY.contains(&field.as_str()));
    }
    provider
}

/// What stays of a network device: addresses that a pool of the cluster gives out, not those of the source's own network.
fn from_a_pool(device: &Value) -> Map<String, Value> {
    let pools = device["addressesFromPools"].as_array().is_some_and(|pools| !pools.is_empty());
    let kept = ["addressesFromPools", "nameservers"].into_iter().filter(|_| pools);
    kept.filter_map(|key| Some((key.to_owned(), device.get(key)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(topology: &Value) -> Value {
        let mut domain = json!({"name": "fd-b", "region": "r", "zone": "z", "server": "b", "topology": {
            "datacenter": "dc", "computeCluster": "/dc/host/c", "networks": ["n1", "n2"], "datastore": "/dc/datastore/d"}});
        for (key, value) in topology.as_object().cloned().unwrap_or_default() {
            domain["topology"][key] = value;
        }
        domain
    }

    #[test]
    fn a_path_is_cleaned_as_go_cleans_it() {
        for (path, cleaned) in [
            ("", "."),
            (".", "."),
            ("/", "/"),
            ("//", "/"),
            ("./", "."),
            ("/dc/host/c/Resources", "/dc/host/c/Resources"),
            ("dc/host/c/Resources", "dc/host/c/Resources"),
            ("//dc/host//c/Resources/", "/dc/host/c/Resources"),
            ("/dc/./host/c/x/../Resources", "/dc/host/c/Resources"),
            ("/..", "/"),
            ("/../dc", "/dc"),
            ("..", ".."),
            ("../../dc", "../../dc"),
            ("dc/..", "."),
            ("dc/../..", ".."),
            ("dc/../../x", "../x"),
            ("/dc/../../x", "/x"),
            ("/dc/.../x", "/dc/.../x"),
        ] {
            assert_eq!(clean(path), cleaned, "{path:?}");
        }
    }

    #[test]
    fn a_machine_is_in_a_domain_only_if_every_string_is_the_same_but_for_slashes_of_the_pool() {
        let domain = domain(&json!({"resourcePool": "/dc/host/c/Resources"}));
        let workspace = |key: &str, value: &str| {
            let mut workspace =
                json!({"server": "b", "datacenter": "dc", "datastore": "/dc/datastore/d", "resourcePool": "/dc/host/c/Resources"});
            workspace[key] = json!(value);
            workspace
        };
        for same in ["/dc/host/c//Resources/", "/dc/host/./c/Resources", "/dc/host/x/../c/Resources"] {
            assert!(is_in(&workspace("resourcePool", same), &domain), "{same}");
        }
        for other in ["dc/host/c/Resources", "/DC/host/c/Resources", "/dc/host/c/Resources/p", "../dc/host/c/Resources"] {
            assert_eq!(
                differences(&workspace("resourcePool", other), &domain),
                [format!("resourcePool is {other:?}, the domain says \"/dc/host/c/Resources\"")]
            );
        }
        for (key, value) in [("server", "B"), ("datacenter", "/dc"), ("datastore", "d"), ("vmGroup", "g"), ("resourcePool", "")] {
            assert_eq!(differences(&workspace(key, value), &domain).len(), 1, "{key} {value}");
        }
        assert_eq!(differences(&workspace("datastore", "d"), &domain), ["datastore is \"d\", the domain says \"/dc/datastore/d\""]);
        let mut group = domain.clone();
        group["zoneAffinity"] = json!({"type": "HostGroup", "hostGroup": {"vmGroup": "g"}});
        assert!(is_in(&workspace("vmGroup", "g"), &group) && !is_in(&workspace("vmGroup", ""), &group));
    }

    #[test]
    fn what_a_domain_leaves_open_is_filled_in_as_openshift_does() {
        let open = workspace(&domain(&json!({})), "id");
        assert_eq!((&open["folder"], &open["resourcePool"]), (&json!("/dc/vm/id"), &json!("/dc/host/c/Resources")));
        assert_eq!(open.get("vmGroup"), None);
        let said = workspace(&domain(&json!({"folder": "/dc/vm/f", "resourcePool": "/dc/host/c/Resources/p"})), "id");
        assert_eq!((&said["folder"], &said["resourcePool"]), (&json!("/dc/vm/f"), &json!("/dc/host/c/Resources/p")));
        assert_eq!(moved(&json!({}), &domain(&json!({})), "id")["template"], "id-rhcos-r-z");
        assert_eq!(moved(&json!({}), &domain(&json!({"template": "/dc/vm/t"})), "id")["template"], "/dc/vm/t");
    }

    #[test]
    fn sizes_and_disks_stay_and_what_only_the_source_knows_goes() {
        let provider = json!({
            "numCPUs": 8, "memoryMiB": 4096, "diskGiB": 200, "dataDisks": [{"name": "d", "sizeGiB": 10}], "userDataSecret": {"name": "u"},
            "tagIDs": ["urn:x"], "snapshot": "s", "cloneMode": "linkedClone", "template": "old", "workspace": {"server": "a", "folder": "/x"},
            "network": {"devices": [
                {"networkName": "old", "ipAddrs": ["192.0.2.3/24"], "gateway": "192.0.2.1", "nameservers": ["192.0.2.2"]},
            ]},
        });
        let new = moved(&provider, &domain(&json!({})), "id");
        for kept in ["numCPUs", "memoryMiB", "diskGiB", "dataDisks", "userDataSecret"] {
            assert_eq!(new[kept], provider[kept], "{kept}");
        }
        for gone in SOURCE_ONLY {
            assert_eq!(new.get(gone), None, "{gone}");
        }
        assert_eq!(left_out(&provider), ["tagIDs (1 of them)", "snapshot s", "cloneMode linkedClone"]);
        assert_eq!(left_out(&new), [""; 0]);
        assert_eq!(left_out(&json!({"tagIDs": [], "snapshot": "", "cloneMode": null})), [""; 0]);
        assert_eq!(new["network"], json!({"devices": [{"networkName": "n1"}, {"networkName": "n2"}]}));
        let mut pooled = provider;
        pooled["network"]["devices"][0]["addressesFromPools"] = json!([{"name": "p"}]);
        assert_eq!(
            moved(&pooled, &domain(&json!({})), "id")["network"]["devices"][0],
            json!({"addressesFromPools": [{"name": "p"}], "nameservers": ["192.0.2.2"], "networkName": "n1"})
        );
    }
}
