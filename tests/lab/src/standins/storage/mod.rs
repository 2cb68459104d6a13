//! Stand-ins for OpenShift's storage on vSphere: the driver's operator, the storage operator above it, and the problem detector.

mod attacher;
pub mod driver_operator;
pub mod problem_detector;
pub mod storage_operator;

use std::collections::BTreeSet;

use base64::Engine as _;
use serde_json::Value;
use vsphere::{Client as Session, Credentials, Endpoint, Proxy, Settings, Trust};

use super::cloud_config::{Config, Generation};
use crate::cache::Cache;
use crate::kubernetes::{CONFIG_MAP, INFRASTRUCTURE, SECRET};

/// Where the driver lives.
pub const DRIVERS: &str = "openshift-cluster-csi-drivers";
/// Where the operators above it live.
pub const STORAGE: &str = "openshift-cluster-storage-operator";
/// The driver's name.
pub const DRIVER: &str = "csi.vsphere.vmware.com";
const CONFIG: &str = "openshift-config";

/// By its providerID alone: no vCenter is asked.
fn is_virtual_machine(node: &Value) -> bool {
    node["spec"]["providerID"].as_str().is_some_and(|id| id.starts_with("vsphere://"))
}

/// What the cluster says of its vCenters, in the three places where it does.
struct View {
    infrastructure: Value,
    config: Config,
    secret: Value,
}

impl View {
    /// As a cache sees it that watches Infrastructure, openshift-config and the namespace of this secret.
    fn of(cache: &Cache, namespace: &str, secret: &str) -> Result<View, String> {
        let infrastructure = cache.get(INFRASTRUCTURE, "", "cluster").ok_or("infrastructure.config.openshift.io \"cluster\" not found")?;
        let place = &infrastructure.data["spec"]["cloudConfig"];
        let (name, key) = (place["name"].as_str().unwrap_or_default(), place["key"].as_str().unwrap_or("config"));
        let map = cache.get(CONFIG_MAP, CONFIG, name).ok_or_else(|| format!("configmap \"{name}\" not found"))?;
        let text = map.data["data"][key].as_str().unwrap_or_default();
        let config = Config::read(text, Generation::Next).map_err(|error| format!("error parsing cloud config: {error}"))?;
        let secret = cache.get(SECRET, namespace, secret).ok_or_else(|| format!("secret \"{secret}\" not found"))?;
        Ok(View { infrastructure: infrastructure.data.clone(), config, secret: secret.data["data"].clone() })
    }

    fn vsphere(&self, list: &str) -> impl Iterator<Item = &Value> {
        self.infrastructure["spec"]["platformSpec"]["vsphere"][list].as_array().into_iter().flatten()
    }

    /// Of the cloud configuration, with the port and datacenters of each.
    fn configured(&self) -> Vec<(String, u16, Vec<String>)> {
        let entries = self.config.vcenter.iter().flatten().filter_map(|(name, entry)| Some((name, entry.as_ref()?)));
        let of = |(name, entry): (&String, &super::cloud_config::Section)| {
            let server = entry.get("server").as_str().filter(|server| !server.is_empty()).unwrap_or(name).to_owned();
            let port = entry.get("port").as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0);
            (server, port.unwrap_or(443), entry.list("datacenters"))
        };
        entries.map(of).collect()
    }

    fn listed(&self) -> BTreeSet<String> {
        self.vsphere("vcenters").filter_map(|entry| entry["server"].as_str()).map(str::to_owned).collect()
    }

    /// The user and password of a server.
    fn pair(&self, server: &str) -> Option<(String, String)> {
        let text = |key: &str| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(self.secret[format!("{server}.{key}")].as_str()?).ok()?;
            String::from_utf8(bytes).ok()
        };
        Some((text("username")?, text("password")?))
    }

    /// A session that asks for no certificate, as the cloud configuration says.
    fn session(&self, server: &str, port: u16, agent: &str) -> Result<Session, String> {
        let (user, password) =
            self.pair(server).ok_or_else(|| format!("failed to get credentials to {server}: unable to find {server}.username"))?;
        let mut settings = Settings::new("", Credentials::new(user, password), Trust::Insecure);
        settings.endpoint = Endpoint { server: server.to_owned(), port };
        settings.proxy = Proxy::none();
        settings.user_agent = agent.to_owned();
        Session::new(settings).map_err(|error| format!("failed to connect to {server}: {error}"))
    }

    /// Several failure domains turn topology on.
    fn has_topology(&self) -> bool {
        self.vsphere("failureDomains").count() > 1
    }
}

#[cfg(test)]
impl View {
    /// Where Infrastructure has this of vSphere, the cloud configuration these vCenters, and the secret a pair for these servers.
    fn made(vsphere: &Value, vcenters: &Value, pairs: &[&str]) -> View {
        use serde_json::json;
        let text = json!({"global": {}, "vcenter": vcenters}).to_string();
        let encoded = base64::engine::general_purpose::STANDARD.encode("of-the-lab");
        let keys = pairs.iter().flat_map(|server| ["username", "password"].map(|key| format!("{server}.{key}")));
        View {
            infrastructure: json!({"spec": {"cloudConfig": {"name": "cloud-provider-config"}, "platformSpec": {"vsphere": vsphere}}}),
            config: Config::read(&text, Generation::Next).unwrap(),
            secret: keys.map(|key| (key, json!(encoded))).collect::<serde_json::Map<_, _>>().into(),
        }
    }
}
