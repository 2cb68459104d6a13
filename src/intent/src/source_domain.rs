//! The failure domain of a source that Infrastructure does not describe, told from a machine that lives there.

use serde_json::{Value, json};

/// Its name.
pub const NAME: &str = "migration-source";
/// Its tags' names, which are attached in vCenter under the same names.
pub const REGION: &str = "migration-region";
pub const ZONE: &str = "migration-zone";

/// What to do where no machine tells it.
pub const BY_HAND: &str =
    "list the source's vCenter and a failure domain that is the master's, letter by letter, in Infrastructure by hand";

/// The failure domain by the machine's provider spec; an error names the field that does not tell.
pub fn failure_domain(provider: &Value) -> Result<Value, String> {
    let text = |pointer: &str| {
        let found = provider.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        found.ok_or_else(|| format!("its providerSpec.value{} is empty", pointer.replace('/', ".")))
    };
    let (server, datacenter) = (text("/workspace/server")?, text("/workspace/datacenter")?);
    let within = |kind: &str, name: &str| if name.starts_with('/') { name.to_owned() } else { format!("/{datacenter}/{kind}/{name}") };
    let pool = text("/workspace/resourcePool")?;
    // A cluster may have a name that begins like its root pool's.
    let cluster = pool
        .match_indices("/Resources")
        .find(|(at, found)| matches!(pool.as_bytes().get(at + found.len()), None | Some(b'/')))
        .filter(|_| pool.starts_with('/'))
        .map(|(end, _)| &pool[..end])
        .ok_or_else(|| format!("its resource pool {pool:?} is no path that names the cluster"))?;
    let devices = provider.pointer("/network/devices").and_then(Value::as_array).into_iter().flatten();
    let networks: Vec<&str> = devices.filter_map(|device| device["networkName"].as_str()).collect();
    if networks.is_empty() {
        return Err("its providerSpec.value.network.devices name no network".to_owned());
    }
    let folder = within("vm", text("/workspace/folder")?);
    let template = text("/template")?;
    let template = if template.starts_with('/') { template.to_owned() } else { format!("{folder}/{template}") };
    Ok(json!({
        "name": NAME, "region": REGION, "zone": ZONE, "server": server,
        "topology": {
            "datacenter": datacenter,
            "computeCluster": cluster,
            "networks": networks,
            "datastore": within("datastore", text("/workspace/datastore")?),
            "resourcePool": pool,
            "folder": folder,
            "template": template,
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_is_what_stands_before_the_root_pool_also_if_its_name_begins_alike() {
        let cluster = |pool: &str| {
            let workspace = json!({"server": "a", "datacenter": "dc", "datastore": "fast", "folder": "id", "resourcePool": pool});
            let provider = json!({"template": "rhcos", "network": {"devices": [{"networkName": "n"}]}, "workspace": workspace});
            failure_domain(&provider).map(|domain| domain["topology"]["computeCluster"].clone())
        };
        for (pool, wanted) in [
            ("/dc/host/cl/Resources", "/dc/host/cl"),
            ("/dc/host/cl/Resources/ours", "/dc/host/cl"),
            ("/dc/host/Resources-East/Resources", "/dc/host/Resources-East"),
            ("/dc/host/Resources-East/Resources/Resources", "/dc/host/Resources-East"),
        ] {
            assert_eq!(cluster(pool), Ok(json!(wanted)), "{pool}");
        }
        for pool in ["/dc/host/Resources-East", "cl/Resources"] {
            assert!(cluster(pool).is_err_and(|why| why.contains("no path that names the cluster")), "{pool}");
        }
    }
}
