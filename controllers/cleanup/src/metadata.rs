//! metadata.json as the installer would have written it for both sides: with it `openshift-install destroy cluster` finds what is the
//! cluster's in either vCenter. It holds passwords: no way of printing shows it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use vmi_intent::secret::{Data, pair};

/// The file's name, and the key in the Secret.
pub const FILE: &str = "metadata.json";

/// The Secret's name.
pub fn secret_name(vmi: &str) -> String {
    format!("vmi-{vmi}-metadata")
}

/// Who the cluster is.
pub struct Cluster<'a> {
    /// ClusterVersion's clusterID.
    pub id: &'a str,
    /// What the installer called it in vSphere.
    pub infra_id: &'a str,
    /// As its API is reached, `https://api.NAME.DOMAIN:6443`.
    pub api_url: &'a str,
}

impl Cluster<'_> {
    /// The first word of its domain; the destroyer only shows it.
    fn name(&self) -> &str {
        let host = self.api_url.split("://").nth(1).unwrap_or_default();
        let host = host.strip_prefix("api.").unwrap_or(host);
        host.split(['.', ':']).next().filter(|name| !name.is_empty()).unwrap_or(self.infra_id)
    }
}

/// The vCenters that a Secret of an earlier migration names.
pub fn vcenters(secret: &DynamicObject) -> Vec<Value> {
    let file = secret.data["data"][FILE].as_str().and_then(|text| STANDARD.decode(text).ok());
    let file: Option<Value> = file.and_then(|text| serde_json::from_slice(&text).ok());
    file.and_then(|file| file["vsphere"]["VCenters"].as_array().cloned()).unwrap_or_default()
}

/// The Secret with the file. A server without a pair is listed without one: whoever destroys is asked for it. Those known from an
/// earlier migration stay: what that left there is still the cluster's.
pub fn secret(place: (&str, &str), owner: (&str, &str), cluster: &Cluster<'_>, servers: &[(String, &Data)], known: &[Value]) -> Value {
    let others = known.iter().filter(|vcenter| servers.iter().all(|(server, _)| vcenter["vCenter"] != server.as_str()));
    let vcenters: Vec<Value> = servers
        .iter()
        .map(|(server, data)| {
            let found = pair(data, server).ok().flatten();
            let (user, password) = found.as_ref().map_or(("", ""), |pair| (pair.username(), pair.password()));
            json!({"vCenter": server, "username": user, "password": password})
        })
        .chain(others.cloned())
        .collect();
    let file = json!({
        "clusterName": cluster.name(), "clusterID": cluster.id, "infraID": cluster.infra_id,
        "vsphere": {"terraform_platform": "vsphere", "VCenters": vcenters},
        "featureSet": "", "customFeatureSet": null,
    });
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"namespace": place.0, "name": place.1, "annotations": {owner.0: owner.1}},
        "data": {FILE: STANDARD.encode(file.to_string())},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_the_cluster_and_every_vcenter_with_its_pair() {
        let data: Data = [("a.username", "user@a"), ("a.password", "secret-a"), ("b.username", "user@b")]
            .map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()))
            .into();
        let cluster = Cluster { id: "uuid", infra_id: "prod-x7k2p", api_url: "https://api.prod.example.com:6443" };
        let made = secret(("ns", "vmi-m-metadata"), ("uid-key", "uid"), &cluster, &[("a".to_owned(), &data), ("b".to_owned(), &data)], &[]);
        let file: Value = serde_json::from_slice(&STANDARD.decode(made["data"][FILE].as_str().unwrap()).unwrap()).unwrap();
        assert_eq!((&file["clusterName"], &file["clusterID"], &file["infraID"]), (&json!("prod"), &json!("uuid"), &json!("prod-x7k2p")));
        assert_eq!(
            file["vsphere"]["VCenters"],
            json!([
                {"vCenter": "a", "username": "user@a", "password": "secret-a"},
                {"vCenter": "b", "username": "", "password": ""},
            ])
        );
        assert_eq!(made["metadata"]["annotations"]["uid-key"], "uid");

        let known = vcenters(&serde_json::from_value(made).unwrap());
        let next: Data = [("b.username", "new@b"), ("b.password", "n"), ("c.username", "user@c"), ("c.password", "secret-c")]
            .map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()))
            .into();
        let servers = [("b".to_owned(), &next), ("c".to_owned(), &next)];
        let made = secret(("ns", "vmi-m-metadata"), ("uid-key", "other"), &cluster, &servers, &known);
        let listed = vcenters(&serde_json::from_value(made).unwrap());
        let users: Vec<&str> = listed.iter().filter_map(|vcenter| vcenter["username"].as_str()).collect();
        assert_eq!(users, ["new@b", "user@c", "user@a"], "an earlier migration's source is not forgotten");
    }

    #[test]
    fn a_cluster_without_a_usual_url_goes_by_its_infrastructure_name() {
        for url in ["", "https://"] {
            assert_eq!(Cluster { id: "", infra_id: "prod-x7k2p", api_url: url }.name(), "prod-x7k2p");
        }
        assert_eq!(Cluster { id: "", infra_id: "x", api_url: "https://prod:6443" }.name(), "prod");
    }
}
