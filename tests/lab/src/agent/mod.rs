//! The node agent: what stands in the place of the kubelet, for all nodes at once.
//!
//! Each pod bound to a node has a task ([`pod`]) that runs its containers as local processes and writes its status as a kubelet
//! would. One HTTPS server ([`server`]) answers for every node's kubelet, and the apiserver finds it through [`egress`].

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kube::Client;
use kube::runtime::watcher;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cache::Cache;
use crate::kubernetes::{CONFIG_MAP, NODE, POD, SECRET};

mod backoff;
mod container;
pub mod egress;
mod environment;
mod events;
mod ground;
mod http;
mod kubeconfig;
mod leases;
mod logs;
mod observing;
mod pod;
pub mod ports;
mod probes;
mod reading;
mod record;
mod reporting;
mod server;
mod starting;
mod status;
mod volumes;

/// The Node annotations whose change has the node's containers started again.
pub use crate::nodes::{BOOTS, REBOOTS};

/// The label of a Pod or Node that is only an object: the agent does not even see it.
pub const WRITTEN: &str = "vmi-lab/written";

/// The image of a program that ends at once: what a container runs while a fault makes it crash.
pub const CRASHES: &str = "vmi-lab/crashes";

/// What the agent is started with. Not printable: it holds a private key.
pub struct Settings {
    /// A client that may do anything.
    pub client: Client,
    /// The folder for pods' files and logs.
    pub directory: PathBuf,
    /// The program behind each container image.
    pub programs: HashMap<String, Program>,
    /// The local address where pods' ports are.
    pub address: IpAddr,
    /// Where to serve the kubelet API; port 0 for any.
    pub listen: SocketAddr,
    pub serving: Identity,
    /// Who signs the certificates of those who may call the kubelet API.
    pub client_ca: String,
    /// The apiserver's URL and CA, for pods' kubeconfigs.
    pub apiserver: String,
    pub cluster_ca: String,
    /// The lab that the processes belong to.
    pub mark: String,
}

/// A certificate and its key, in PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// What comes before the container's own arguments.
    pub arguments: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen at {place}: {source}")]
    Listen { place: String, source: std::io::Error },
    #[error("cannot write {path}, where the node agent keeps its pods: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the kubelet API's {what} cannot be used: {reason}")]
    Certificate { what: &'static str, reason: String },
}

/// What every pod's task shares.
struct Shared {
    settings: Settings,
    authority: PathBuf,
    cache: Cache,
    logs: logs::LogBook,
    leases: leases::Leases,
    ports: ports::Ports,
    events: events::Events,
    tls: Arc<rustls::ClientConfig>,
    stop: CancellationToken,
    addresses: AtomicU32,
}

impl Shared {
    /// A pod address as OpenShift gives them. Nothing answers there but through the egress proxy; a loopback address would be
    /// refused in EndpointSlices.
    fn pod_address(&self) -> String {
        let number = self.addresses.fetch_add(1, Ordering::Relaxed);
        std::net::Ipv4Addr::from_bits(u32::from_be_bytes([10, 128, 0, 2]) + number % (1 << 18)).to_string()
    }
}

/// A running agent. Dropping it kills every container.
pub struct Agent {
    address: SocketAddr,
    stop: CancellationToken,
    pods: JoinSet<()>,
    _servers: JoinSet<()>,
}

impl Agent {
    /// Where the kubelet API is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills every container and returns when they are gone. The pods stay as the API shows them.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        while self.pods.join_next().await.is_some() {}
    }
}

/// Starts the agent: it takes every pod bound to a node from now on.
pub async fn start(settings: Settings) -> Result<Agent, Error> {
    let tls = server::tls(&settings.serving, &settings.client_ca)?;
    let probing = http::unverified().map_err(|error| Error::Certificate { what: "TLS client", reason: error.to_string() })?;
    let authority = settings.directory.join("ca.crt");
    volumes::write_file(&authority, settings.cluster_ca.as_bytes(), 0o644)
        .map_err(|source| Error::Write { path: authority.clone(), source })?;
    let refused = |source| Error::Listen { place: settings.listen.to_string(), source };
    let listener = TcpListener::bind(settings.listen).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let kinds = [(POD, ""), (NODE, ""), (SECRET, ""), (CONFIG_MAP, "")];
    let cache = Cache::start_selected(&settings.client, &kinds, &watcher::Config::default().labels(&format!("!{WRITTEN}"))).await;
    let (events, event_writer) = events::Events::new(settings.client.clone());
    let stop = CancellationToken::new();
    let shared = Arc::new(Shared {
        ports: ports::Ports::new(settings.address),
        authority,
        cache,
        logs: logs::LogBook::default(),
        leases: leases::Leases::default(),
        events,
        tls: probing,
        stop: stop.clone(),
        addresses: AtomicU32::new(0),
        settings,
    });
    let mut servers = JoinSet::new();
    servers.spawn(event_writer);
    servers.spawn(server::serve(listener, tls, shared.clone()));
    let mut pods = JoinSet::new();
    pods.spawn(take_pods(shared));
    Ok(Agent { address, stop, pods, _servers: servers })
}

/// Gives every pod that is bound to a node a task of its own, which ends when the pod's object is gone.
async fn take_pods(shared: Arc<Shared>) {
    let mut changes = shared.cache.changes();
    let mut tasks = JoinSet::new();
    let mut owners = HashMap::new();
    loop {
        changes.mark_unchanged();
        let known: HashSet<String> = owners.values().cloned().collect();
        for object in shared.cache.list(POD) {
            let bound = object.data["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
            let Some(uid) = object.metadata.uid.clone().filter(|uid| bound && !known.contains(uid)) else { continue };
            match pod::PodTask::new(shared.clone(), &object) {
                Ok(task) => {
                    owners.insert(tasks.spawn(task.run()).id(), uid);
                }
                Err(error) => tracing::error!(pod = crate::kubernetes::full_name(&object), %error, "the node agent cannot read a pod"),
            }
        }
        tokio::select! {
            Ok(()) = changes.changed() => {}
            Some(ended) = tasks.join_next_with_id() => {
                let id = ended.as_ref().map_or_else(tokio::task::JoinError::id, |(id, ())| *id);
                if let Err(error) = ended {
                    tracing::error!(%error, "a pod's task broke down, the pod is started afresh");
                }
                owners.remove(&id);
            }
            () = shared.stop.cancelled() => break,
        }
    }
    while tasks.join_next().await.is_some() {}
}
