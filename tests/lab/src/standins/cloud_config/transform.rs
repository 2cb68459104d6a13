//! What the operator makes of a configuration once Infrastructure and Network had their say.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::schema::{Section, VCENTER};
use super::{Config, Error, Generation};

/// A crash of the real transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panic {
    /// The source is YAML without `vcenter:` and a vCenter is to be written.
    NilMap,
    /// A failure domain names a vCenter that has no entry, or one without body.
    NilPointer,
}

impl fmt::Display for Panic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Panic::NilMap => "assignment to entry in nil map",
            Panic::NilPointer => "runtime error: invalid memory address or nil pointer dereference",
        })
    }
}

/// The `cloud.conf` for the cloud controller manager, from the source's text, Infrastructure and Network.
pub fn transform(source: &str, infrastructure: &Value, network: Option<&Value>, generation: Generation) -> Result<String, Error> {
    let status = &infrastructure["status"]["platformStatus"];
    if status["type"] != "VSphere" {
        return Err(Error::NotVSphere);
    }
    let mut config = Config::read(source, generation)?;
    let spec = &infrastructure["spec"]["platformSpec"]["vsphere"];
    if !spec.is_null() {
        let services = network.map(|network| texts(&network["spec"]["serviceNetwork"])).unwrap_or_default();
        set_ip_families(&mut config, &services);
        set_nodes(&mut config, &spec["nodeNetworking"], &internal_addresses(&services, &status["vsphere"]));
        set_vcenters(&mut config, spec, generation).map_err(Error::Panic)?;
        // With one failure domain only, nodes need no region and zone, and installs without tags go on working.
        if items(&spec["failureDomains"]).len() > 1 {
            config.labels_mut().set("zone", "openshift-zone");
            config.labels_mut().set("region", "openshift-region");
        }
    }
    Ok(config.print(generation)?)
}

/// The service networks tell the cluster's families; a single IPv4 network leaves the configuration as it is.
fn set_ip_families(config: &mut Config, services: &[String]) {
    let families = match services {
        [only] if is_ipv6_network(only) => json!(["ipv6"]),
        [first, _] if is_network(first) && !is_ipv6_network(first) => json!(["ipv4", "ipv6"]),
        [_, _] => json!(["ipv6", "ipv4"]),
        _ => return,
    };
    config.global.set("ipFamily", families);
}

/// Addresses that must never become a node's own; only clusters with IPv6 exclude them.
fn internal_addresses(services: &[String], status: &Value) -> Vec<String> {
    if !services.iter().any(|network| is_ipv6_network(network)) {
        return Vec::new();
    }
    let virtual_ips = texts(&status["apiServerInternalIPs"]).into_iter().chain(texts(&status["ingressIPs"]));
    let single = virtual_ips.map(|address| match address.parse() {
        Ok(IpAddr::V4(_)) => format!("{address}/32"),
        _ => format!("{address}/128"),
    });
    single.chain(["fd69::2/128".to_owned()]).collect()
}

fn set_nodes(config: &mut Config, networking: &Value, excluded: &[String]) {
    let sides = [
        ("external", "externalVmNetworkName", "externalNetworkSubnetCidr", "excludeExternalNetworkSubnetCidr"),
        ("internal", "internalVmNetworkName", "internalNetworkSubnetCidr", "excludeInternalNetworkSubnetCidr"),
    ];
    for (side, network, subnets, exclusions) in sides {
        let side = &networking[side];
        let mut excluding = texts(&side["excludeNetworkSubnetCidr"]);
        excluding.extend_from_slice(excluded);
        config.nodes.set(network, side["network"].as_str().unwrap_or_default());
        config.nodes.set(subnets, texts(&side["networkSubnetCidr"]).join(","));
        config.nodes.set(exclusions, excluding.join(","));
    }
}

fn set_vcenters(config: &mut Config, spec: &Value, generation: Generation) -> Result<(), Panic> {
    if generation == Generation::Next {
        config.vcenter = Some(BTreeMap::new());
    }
    for vcenter in items(&spec["vcenters"]) {
        let entries = config.vcenter.as_mut().ok_or(Panic::NilMap)?;
        let mut entry = Section::new(VCENTER);
        entry.set("server", text(&vcenter["server"]));
        entry.set("port", vcenter["port"].as_u64().unwrap_or_default());
        entry.set("datacenters", json!(texts(&vcenter["datacenters"])));
        entries.insert(text(&vcenter["server"]), Some(entry));
    }
    for domain in items(&spec["failureDomains"]) {
        let entries = config.vcenter.as_mut().ok_or(Panic::NilMap)?;
        // The real code adds an entry for an unknown server and then goes on with the missing one.
        let Some(Some(entry)) = entries.get_mut(&text(&domain["server"])) else { return Err(Panic::NilPointer) };
        let mut datacenters = entry.list("datacenters");
        let datacenter = text(&domain["topology"]["datacenter"]);
        if !datacenters.contains(&datacenter) {
            datacenters.push(datacenter);
            entry.set("datacenters", json!(datacenters));
        }
    }
    Ok(())
}

fn is_network(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, _)| address.parse::<IpAddr>().is_ok())
}

fn is_ipv6_network(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, _)| matches!(address.parse(), Ok(IpAddr::V6(_))))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    items(value).iter().map(text).collect()
}
