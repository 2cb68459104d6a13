//! ControllerConfig `machine-config-controller`: everything a node's configuration is made from, the whole Infrastructure and the
//! text of the cloud configuration among it.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::standins::config_operator::platform;
use crate::standins::operator_status::with_conditions;

pub const NAME: &str = "machine-config-controller";

/// What the ControllerConfig is made from.
pub struct Sources<'a> {
    pub infrastructure: &'a DynamicObject,
    pub network: &'a DynamicObject,
    pub dns: &'a DynamicObject,
    pub proxy: Option<&'a DynamicObject>,
    /// openshift-config-managed/kube-cloud-config
    pub cloud_config: Option<&'a DynamicObject>,
    pub root_ca: &'a str,
    pub release_image: &'a str,
}

/// The spec that these sources give, or why there is none, in the words of the real operator.
pub fn spec(sources: &Sources<'_>) -> Result<Value, String> {
    let infrastructure = &sources.infrastructure.data;
    let platform_name = platform(infrastructure);
    let services = sources.network.data["spec"]["serviceNetwork"].as_array().cloned().unwrap_or_default();
    let network_type = [&sources.network.data["status"], &sources.network.data["spec"]]
        .into_iter()
        .find_map(|place| place["networkType"].as_str().filter(|name| !name.is_empty()))
        .unwrap_or_default();
    let (text, cloud_ca) = cloud_config(sources.cloud_config, infrastructure, platform_name)?;
    let certificates = STANDARD.encode(sources.root_ca);
    let proxy =
        sources.proxy.map(|proxy| proxy.data["status"].clone()).filter(|status| status.as_object().is_some_and(|map| !map.is_empty()));
    Ok(json!({
        "additionalTrustBundle": null,
        "baseOSContainerImage": "vmi-lab/os",
        "cloudProviderCAData": cloud_ca.map(|pem| STANDARD.encode(pem)),
        "cloudProviderConfig": text,
        "clusterDNSIP": dns_address(&services)?,
        "dns": embedded(sources.dns),
        "etcdDiscoveryDomain": infrastructure["status"]["etcdDiscoveryDomain"].as_str().unwrap_or_default(),
        "images": {},
        "infra": embedded(sources.infrastructure),
        "ipFamilies": ip_families(&services)?,
        "kubeAPIServerServingCAData": certificates,
        "network": null,
        "networkType": network_type,
        "platform": platform_name.to_lowercase(),
        "proxy": proxy,
        "releaseImage": sources.release_image,
        "rootCAData": certificates,
    }))
}

/// An object as it is carried inside another.
fn embedded(object: &DynamicObject) -> Value {
    let mut value = json!(object);
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.shift_remove("managedFields");
    }
    value
}

fn cloud_config(map: Option<&DynamicObject>, infrastructure: &Value, platform: &str) -> Result<(String, Option<String>), String> {
    const PLACE: &str = "openshift-config-managed/kube-cloud-config configmap";
    let needs_text = ["Azure", "GCP", "OpenStack", "VSphere"].contains(&platform);
    let names_one = infrastructure["spec"]["cloudConfig"]["name"].as_str().is_some_and(|name| !name.is_empty());
    let Some(map) = map else {
        return if needs_text || names_one {
            Err(format!("{PLACE} is required on platform {platform} but not found: configmap \"kube-cloud-config\" not found"))
        } else {
            Ok((String::new(), None))
        };
    };
    let entry = |key: &str| map.data["data"][key].as_str().map(ToOwned::to_owned);
    match entry("cloud.conf") {
        None if needs_text => Err(format!("{PLACE} must have the cloud.conf key on platform {platform} but not found")),
        text => Ok((text.unwrap_or_default(), entry("ca-bundle.pem"))),
    }
}

fn networks(services: &[Value]) -> Result<Vec<IpAddr>, String> {
    let address = |service: &Value| {
        let text = service.as_str().unwrap_or_default();
        text.split('/')
            .next()
            .and_then(|address| address.parse().ok())
            .ok_or_else(|| format!("invalid service network {text:?} in Network"))
    };
    let parsed: Vec<IpAddr> = services.iter().map(address).collect::<Result<_, _>>()?;
    if parsed.is_empty() { Err("service cidr is empty in Network".to_owned()) } else { Ok(parsed) }
}

/// The tenth address of the first service network.
fn dns_address(services: &[Value]) -> Result<String, String> {
    let tenth = match networks(services)?[0] {
        IpAddr::V4(network) => IpAddr::from((u32::from(network) + 10).to_be_bytes()),
        IpAddr::V6(network) => IpAddr::from((u128::from(network) + 10).to_be_bytes()),
    };
    Ok(tenth.to_string())
}

fn ip_families(services: &[Value]) -> Result<&'static str, String> {
    let networks = networks(services)?;
    Ok(match (networks[0].is_ipv4(), networks.len()) {
        (true, 1) => "IPv4",
        (false, 1) => "IPv6",
        (true, _) => "DualStack",
        (false, _) => "DualStackIPv6Primary",
    })
}

/// `existing` with what the sources give. Fields the sources say nothing about stay, and a text once there is never emptied.
pub fn merged(existing: &Value, wanted: &Value) -> Value {
    let mut spec = if existing.is_object() { existing.clone() } else { json!({}) };
    for (field, value) in wanted.as_object().into_iter().flatten() {
        let says_nothing = value == "" || (value.is_null() && field != "proxy" && field != "network");
        if !says_nothing || spec.get(field).is_none() {
            spec[field] = value.clone();
        }
    }
    spec
}

/// The status after the templates were rendered for this generation.
pub fn status(config: &DynamicObject, version: &str, now: &str) -> Value {
    let existing = &config.data["status"];
    let generation = config.metadata.generation.unwrap_or_default();
    let done = format!("sync completed towards ({generation}) generation using controller version {version}");
    let conditions = [
        ("TemplateControllerCompleted", "True", "", done.as_str()),
        ("TemplateControllerRunning", "False", "", ""),
        ("TemplateControllerFailing", "False", "", ""),
    ];
    let mut status = if existing.is_object() { existing.clone() } else { json!({}) };
    status["observedGeneration"] = json!(generation);
    status["conditions"] = with_conditions(&existing["conditions"], &conditions, now);
    status
}

#[cfg(test)]
#[path = "controller_config_tests.rs"]
mod tests;
