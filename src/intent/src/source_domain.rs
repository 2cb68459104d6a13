//! The failure domain of a source that Infrastructure does not describe, told from a machine that lives there.

use serde_json::{Value, json};

/// Its name.
pub const NAME: &str = "migration-source";
/// Its tags' names, which are attached in vCenter under the same names.
pub const REGION: &str = "migration-region";
pub const ZONE: &str = "migration-zone";

/// The failure domain by the machine's provider spec; an error names the field that does not tell.
pub fn failure_domain(provider: &Value) -> Result<Value, String> {
    let text = |pointer: &str| {
        let found = provider.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        found.ok_or_else(|| format!("its providerSpec.value{} is empty", pointer.replace('/', ".")))
    };
    let (server, datacenter) = (text("/workspace/server")?, text("/workspace/datacenter")?);
    let within = |kind: &str, name: &str| if name.starts_with('/') { name.to_owned() } else { format!("/{datacenter}/{kind}/{name}") };
    let pool = text("/workspace/resourcePool")?;
    let cluster = pool
        .find("/Resources")
        .filter(|_| pool.starts_with('/'))
        .map(|end| &pool[..end])
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
