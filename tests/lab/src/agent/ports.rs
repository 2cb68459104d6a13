//! Free local ports for the ports that pods declare. Pods share one machine here, so two of them cannot both have 8443: each
//! declared port gets a free one, told to the pod's containers by environment and to everybody else by an annotation.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The pod annotation that tells where each declared port really is: `{"8443": "127.5.0.1:23456"}`.
pub const ANNOTATION: &str = "vmi-lab/ports";

/// Below the kernel's range for outgoing connections, which would take a port between its choice and its use.
const LOWEST: u16 = 10_240;
const HIGHEST: u16 = 32_767;

/// Hands out ports, never one that is held, and one that was given back only after all others: somebody may still take it for
/// the pod that had it, and must find nobody there rather than another pod.
pub(super) struct Ports(Mutex<Given>);

struct Given {
    held: BTreeSet<u16>,
    next: u16,
}

impl Ports {
    /// Labs side by side begin their search at different places, so that they do not race for the same port.
    pub fn new(address: IpAddr) -> Ports {
        let mut hasher = DefaultHasher::new();
        (address, std::process::id()).hash(&mut hasher);
        let spread = hasher.finish() % u64::from(HIGHEST - LOWEST);
        Ports(Mutex::new(Given { held: BTreeSet::new(), next: LOWEST + u16::try_from(spread).unwrap_or(0) }))
    }

    /// A port nobody listens on, on any address; nothing if there is none.
    pub fn take(&self) -> Option<u16> {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let port = (given.next..=HIGHEST)
            .chain(LOWEST..given.next)
            .filter(|port| !given.held.contains(port))
            .find(|port| TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port))).is_ok())?;
        given.held.insert(port);
        given.next = if port == HIGHEST { LOWEST } else { port + 1 };
        Some(port)
    }

    pub fn release(&self, ports: impl IntoIterator<Item = u16>) {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for port in ports {
            given.held.remove(&port);
        }
    }
}

/// Every port the pod's containers declare: its number and, where it has one, its name.
pub(super) fn declared(spec: &PodSpec) -> BTreeMap<i32, Option<String>> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    containers.flat_map(|container| container.ports.iter().flatten()).map(|port| (port.container_port, port.name.clone())).collect()
}

/// The number of a port given by number or by name; nothing if no container has a port of that name.
pub(super) fn number(spec: &PodSpec, port: &IntOrString) -> Option<i32> {
    match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => match name.parse() {
            Ok(number) => Some(number),
            Err(_) => declared(spec).into_iter().find(|(_, declared)| declared.as_ref() == Some(name)).map(|(number, _)| number),
        },
    }
}

/// The environment that tells the pod's processes where to listen: `LAB_PORT_8443` and, by name, `LAB_PORT_WEBHOOK_SERVER`.
pub(super) fn environment(spec: &PodSpec, given: &BTreeMap<i32, u16>) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for (number, name) in declared(spec) {
        let Some(port) = given.get(&number) else { continue };
        variables.push((format!("LAB_PORT_{number}"), port.to_string()));
        if let Some(name) = name {
            variables.push((format!("LAB_PORT_{}", variable(&name)), port.to_string()));
        }
    }
    variables
}

/// A name as a part of an environment variable's name.
pub(super) fn variable(name: &str) -> String {
    name.to_uppercase().replace(['-', '.'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec() -> PodSpec {
        serde_json::from_value(json!({"containers": [
            {"name": "one", "ports": [{"containerPort": 8443, "name": "webhook-server"}]},
            {"name": "two", "ports": [{"containerPort": 9090}]},
        ]}))
        .unwrap()
    }

    #[test]
    fn a_port_is_known_by_its_name_and_by_its_number() {
        let given = BTreeMap::from([(8443, 20001), (9090, 20002)]);
        let variables: BTreeMap<_, _> = environment(&spec(), &given).into_iter().collect();
        assert_eq!(variables["LAB_PORT_WEBHOOK_SERVER"], "20001");
        assert_eq!(variables["LAB_PORT_8443"], "20001");
        assert_eq!(variables["LAB_PORT_9090"], "20002");
        assert_eq!(number(&spec(), &IntOrString::String("webhook-server".into())), Some(8443));
        assert_eq!(number(&spec(), &IntOrString::String("9090".into())), Some(9090));
        assert_eq!(number(&spec(), &IntOrString::String("nobody".into())), None);
    }

    #[test]
    fn a_port_in_use_or_held_is_never_handed_out() {
        let ports = Ports::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let first = ports.take().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        ports.release([first]);
        let second = ports.take().unwrap();
        assert_ne!(first, second);
        drop(listener);
        assert_ne!(ports.take().unwrap(), second);
    }

    #[test]
    fn a_port_that_was_given_back_is_not_the_next_ones() {
        let ports = Ports::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let first = ports.take().unwrap();
        ports.release([first]);
        assert!((0..100).all(|_| ports.take().unwrap() != first));
    }
}
