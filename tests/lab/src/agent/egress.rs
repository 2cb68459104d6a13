//! The apiserver's way into the cluster: an HTTP CONNECT proxy on a Unix socket, for its egress selector.
//!
//! The lab has no pod network. A kubelet's port leads to the node agent whatever the node's address, a Service's address to the
//! real port of one of its ready pods, and a pod's address to that pod's; everything else is dialled as it is.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodSpec, Service};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Client;
use kube::api::DynamicObject;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::{Error, ports};
use crate::cache::Cache;
use crate::kubernetes::{POD, SERVICE};
use crate::yaml;

/// The port that kubelets listen on and Nodes carry in their status.
pub const KUBELET_PORT: u16 = 10250;

/// A request is one line and a header or two.
const LONGEST_REQUEST: u64 = 8 * 1024;

/// Addresses that nobody has may swallow a call without an answer.
const LONGEST_DIAL: Duration = Duration::from_secs(10);

/// A running proxy; it ends when dropped.
pub struct Egress {
    _task: JoinSet<()>,
}

/// The apiserver's `--egress-selector-config-file` for a proxy at `socket`.
pub fn configuration(socket: &Path) -> Result<String, yaml::Error> {
    yaml::print(&json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{
            "name": "cluster",
            "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": socket}}},
        }],
    }))
}

/// Starts the proxy at `socket`; `kubelet` is where the node agent serves its API.
pub async fn start(socket: &Path, kubelet: SocketAddr, client: &Client) -> Result<Egress, Error> {
    let failed = |source| Error::Listen { place: socket.display().to_string(), source };
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = UnixListener::bind(socket).map_err(failed)?;
    let cache = Arc::new(Cache::start(client, &[(SERVICE, ""), (POD, "")]).await);
    let mut task = JoinSet::new();
    task.spawn(serve(listener, kubelet, cache));
    Ok(Egress { _task: task })
}

async fn serve(listener: UnixListener, kubelet: SocketAddr, cache: Arc<Cache>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let cache = cache.clone();
                    connections.spawn(async move {
                        if let Err(error) = carry(stream, kubelet, &cache).await {
                            tracing::debug!(%error, "a connection through the egress proxy broke");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the egress proxy could not accept a connection");
                    // Mostly too many open files: give others time to close theirs.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(stream: UnixStream, kubelet: SocketAddr, cache: &Cache) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (place, target) = match read_request(&mut stream).await? {
        Ok((host, port)) => (format!("{host}:{port}"), route(&host, port, kubelet, &lists(cache))),
        Err(sentence) => return refuse(stream, 400, &sentence).await,
    };
    let address = match target {
        Ok(address) => address,
        Err(sentence) => return refuse(stream, 502, &sentence).await,
    };
    let mut other = match tokio::time::timeout(LONGEST_DIAL, TcpStream::connect(&address)).await {
        Ok(Ok(other)) => other,
        Ok(Err(error)) => return refuse(stream, 502, &format!("cannot reach {place} at {address}: {error}")).await,
        Err(_) => return refuse(stream, 504, &format!("{place} at {address} does not answer within {LONGEST_DIAL:?}")).await,
    };
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    tokio::io::copy_bidirectional(&mut stream, &mut other).await?;
    Ok(())
}

/// The apiserver shows the reason phrase to its own caller, so that is where the sentence goes.
async fn refuse(mut stream: BufReader<UnixStream>, code: u16, sentence: &str) -> std::io::Result<()> {
    let sentence = sentence.replace(['\r', '\n'], " ");
    stream.write_all(format!("HTTP/1.1 {code} {sentence}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    stream.shutdown().await
}

async fn read_request(stream: &mut BufReader<UnixStream>) -> std::io::Result<Result<(String, u16), String>> {
    let mut head = String::new();
    let mut limited = stream.take(LONGEST_REQUEST);
    loop {
        let before = head.len();
        limited.read_line(&mut head).await?;
        match &head[before..] {
            "" => return Ok(Err("the request has no end".to_owned())),
            "\r\n" | "\n" => return Ok(parse(&head)),
            _ => {}
        }
    }
}

fn parse(head: &str) -> Result<(String, u16), String> {
    let line = head.lines().next().unwrap_or_default();
    let words: Vec<_> = line.split(' ').collect();
    let ["CONNECT", target, version] = words.as_slice() else { return Err(format!("only CONNECT is served here, not {line:?}")) };
    if !version.starts_with("HTTP/1.") {
        return Err(format!("only HTTP/1.1 is spoken here, not {version:?}"));
    }
    let (host, port) = target.rsplit_once(':').ok_or_else(|| format!("{target:?} has no port"))?;
    let port = port.parse().map_err(|error| format!("{port:?} is no port: {error}"))?;
    Ok((host.trim_start_matches('[').trim_end_matches(']').to_owned(), port))
}

struct Lists {
    services: Vec<Service>,
    pods: Vec<Pod>,
}

fn lists(cache: &Cache) -> Lists {
    let typed = |object: Arc<DynamicObject>| Arc::unwrap_or_clone(object);
    Lists {
        services: cache.list(SERVICE).into_iter().filter_map(|object| typed(object).try_parse().ok()).collect(),
        pods: cache.list(POD).into_iter().filter_map(|object| typed(object).try_parse().ok()).collect(),
    }
}

/// Where a connection to `host:port` really has to go.
fn route(host: &str, port: u16, kubelet: SocketAddr, lists: &Lists) -> Result<String, String> {
    if port == KUBELET_PORT {
        return Ok(kubelet.to_string());
    }
    if let Some(service) = lists.services.iter().find(|service| is_at(service, host)) {
        return behind(service, port, &lists.pods);
    }
    let has_address = |pod: &&Pod| pod.status.as_ref().is_some_and(|status| status.pod_ip.as_deref() == Some(host));
    let real = lists.pods.iter().filter(has_address).find_map(|pod| real_port(pod, &IntOrString::Int(i32::from(port))));
    Ok(real.unwrap_or_else(|| if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }))
}

fn is_at(service: &Service, host: &str) -> bool {
    let addresses = service.spec.as_ref().and_then(|spec| spec.cluster_ips.as_ref());
    if addresses.is_some_and(|addresses| addresses.iter().any(|address| address == host)) {
        return true;
    }
    let (Some(name), Some(namespace)) = (&service.metadata.name, &service.metadata.namespace) else { return false };
    let inside = format!("{name}.{namespace}.svc");
    host == inside || host.strip_prefix(&inside).is_some_and(|domain| domain == ".cluster.local")
}

fn behind(service: &Service, port: u16, pods: &[Pod]) -> Result<String, String> {
    let name =
        format!("{}/{}", service.metadata.namespace.as_deref().unwrap_or_default(), service.metadata.name.as_deref().unwrap_or_default());
    let spec = service.spec.clone().unwrap_or_default();
    let Some(entry) = spec.ports.iter().flatten().find(|entry| entry.port == i32::from(port)) else {
        return Err(format!("service {name} has no port {port}"));
    };
    let target = entry.target_port.clone().unwrap_or(IntOrString::Int(entry.port));
    let selector = spec.selector.filter(|selector| !selector.is_empty()).ok_or_else(|| format!("service {name} selects no pods"))?;
    let selected = pods.iter().filter(|pod| pod.metadata.namespace == service.metadata.namespace).filter(|pod| {
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    });
    let ready: Vec<_> = selected.filter(|pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none()).collect();
    if ready.is_empty() {
        return Err(format!("no ready pod stands behind service {name}"));
    }
    ready
        .iter()
        .find_map(|pod| real_port(pod, &target))
        .ok_or_else(|| format!("the pods behind service {name} declare no port {target:?}: add it to their containers' ports"))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Where the agent put a pod's port, by the annotation it left.
fn real_port(pod: &Pod, port: &IntOrString) -> Option<String> {
    let spec: &PodSpec = pod.spec.as_ref()?;
    let annotation = pod.metadata.annotations.as_ref()?.get(ports::ANNOTATION)?;
    let places: serde_json::Value = serde_json::from_str(annotation).ok()?;
    places[ports::number(spec, port)?.to_string()].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_requests_are_read_and_others_refused() {
        assert_eq!(parse("CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap(), ("10.0.0.1".to_owned(), 443));
        assert_eq!(parse("CONNECT [::1]:443 HTTP/1.1\r\n\r\n").unwrap(), ("::1".to_owned(), 443));
        for wrong in
            ["GET / HTTP/1.1\r\n\r\n", "CONNECT host HTTP/1.1\r\n\r\n", "CONNECT host:x HTTP/1.1\r\n\r\n", "CONNECT h:1 HTTP/2\r\n\r\n", ""]
        {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    fn lists(ready: &str) -> Lists {
        let service = json!({"metadata": {"name": "hook", "namespace": "n"}, "spec": {
            "clusterIPs": ["172.30.0.7"], "selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": "webhook"}]}});
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"app": "hook"}, "annotations": {"vmi-lab/ports": "{\"9443\": \"127.5.0.1:20001\"}"}},
            "spec": {"containers": [{"name": "c", "ports": [{"name": "webhook", "containerPort": 9443}]}]},
            "status": {"podIP": "10.128.0.2", "conditions": [{"type": "Ready", "status": ready}]}});
        Lists { services: vec![serde_json::from_value(service).unwrap()], pods: vec![serde_json::from_value(pod).unwrap()] }
    }

    fn to(host: &str, port: u16, ready: &str) -> Result<String, String> {
        route(host, port, "127.0.0.1:30001".parse().unwrap(), &lists(ready))
    }

    #[test]
    fn every_kubelet_is_the_node_agent() {
        assert_eq!(to("192.168.1.9", 10250, "True").unwrap(), "127.0.0.1:30001");
    }

    #[test]
    fn a_service_leads_to_the_real_port_of_a_ready_pod() {
        for host in ["172.30.0.7", "hook.n.svc", "hook.n.svc.cluster.local"] {
            assert_eq!(to(host, 443, "True").unwrap(), "127.5.0.1:20001");
        }
        assert_eq!(to("10.128.0.2", 9443, "True").unwrap(), "127.5.0.1:20001");
        assert_eq!(to("172.30.0.7", 443, "False").unwrap_err(), "no ready pod stands behind service n/hook");
        assert_eq!(to("172.30.0.7", 80, "True").unwrap_err(), "service n/hook has no port 80");
    }

    #[test]
    fn anything_else_is_dialled_as_it_is() {
        assert_eq!(to("127.0.0.1", 8443, "True").unwrap(), "127.0.0.1:8443");
        assert_eq!(to("::1", 8443, "True").unwrap(), "[::1]:8443");
    }
}
