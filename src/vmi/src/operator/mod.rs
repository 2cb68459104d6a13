//! The operator: every controller in one process over one cache, acting only while it leads.

mod admin;
mod gauges;
mod listener;
mod summary;
mod words;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use vmi_kit::cache::Cache;
use vmi_kit::kind::{CONFIG_MAP, SECRET, VMI};
use vmi_kit::leader::{self, Timing};
use vmi_kit::metrics::Metrics;
use vmi_kit::{Context, OWN, Touch, reads};
use vmi_steps::{Controller, driver};

pub use summary::Summary;

/// The Lease of the process that leads.
const LEASE: &str = "vmi-operator";

/// How the operator runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace whose vmis it carries out, and the only one.
    pub namespace: String,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// The folder with the certificate they are served under, tls.crt and tls.key; without it they are served without TLS.
    pub certificate: Option<PathBuf>,
    /// How leadership is kept.
    pub lease: Timing,
    /// Who this process is to the others.
    pub identity: String,
}

/// Why the operator ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port of health and metrics cannot be had.
    #[error("cannot serve health and metrics on {address}: {source}; choose another with --admin")]
    Admin {
        /// Where it should be.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Signals cannot be waited for.
    #[error("cannot wait for signals: {0}")]
    Signals(std::io::Error),
    /// A metric was defined twice.
    #[error("the metrics cannot be set up: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The rules by which logs are judged make no sense.
    #[error(transparent)]
    Rules(#[from] vmi_pod_health_watch::BadRules),
    /// A part of the operator ended, which none ever should: the process ends, so that a new one takes over.
    #[error("{0} ended unexpectedly; the process ends so that another takes over, see the log before this line")]
    Ended(String),
}

/// Everything that any controller touches.
pub fn touches() -> Vec<Touch> {
    let own = [reads(VMI).within(OWN), reads(SECRET).within(OWN), reads(CONFIG_MAP).within(OWN)];
    let all: [&[Touch]; 8] = [
        Summary::TOUCHES,
        vmi_preflight::Preflight::TOUCHES,
        vmi_cluster_freeze::ClusterFreeze::TOUCHES,
        vmi_vcenter_prep::VcenterPrep::TOUCHES,
        vmi_config_rewrite::ConfigRewrite::TOUCHES,
        vmi_pod_health_watch::PodHealthWatch::TOUCHES,
        vmi_cleanup::Cleanup::TOUCHES,
        vmi_machine_rollout::MachineRollout::TOUCHES,
    ];
    own.iter().chain(all.into_iter().flatten()).copied().collect()
}

/// Runs until a signal ends it.
pub async fn run(client: Client, options: Options) -> Result<(), Error> {
    let (leads, led) = watch::channel(false);
    let cache = Cache::start(&client, &options.namespace, &touches());
    let context = Context::new(client.clone(), cache, &options.namespace, Metrics::new()?, led);
    let listener = listener::Listener::bind(options.admin, options.certificate.clone()).await;
    let listener = listener.map_err(|source| Error::Admin { address: options.admin, source })?;
    let mut parts = JoinSet::new();
    spawn(&mut parts, "the admin server", admin::serve(listener, Arc::clone(&context)));
    let lease = leader::hold(client.clone(), options.namespace.clone(), LEASE, options.identity.clone(), options.lease, leads);
    let holding = tokio::spawn(lease);
    controllers(&mut parts, &context)?;
    tracing::info!(namespace = options.namespace, identity = options.identity, "started");

    let ended = tokio::select! {
        () = asked_to_end()? => None,
        part = parts.join_next() => Some(part.and_then(Result::ok).unwrap_or("a controller")),
    };
    // No controller acts any more before the lease is given away.
    parts.shutdown().await;
    if let Err(error) = context.vcenters.close().await {
        tracing::warn!(%error, "a session was not ended; vCenter will, when it has been idle for a while");
    }
    holding.abort();
    if let Err(error) = leader::release(&client, &options.namespace, LEASE, &options.identity).await {
        tracing::warn!(%error, "the lease was not released; it runs out by itself");
    }
    match ended {
        None => Ok(()),
        Some(part) => Err(Error::Ended(part.to_owned())),
    }
}

fn controllers(parts: &mut JoinSet<&'static str>, context: &Arc<Context>) -> Result<(), Error> {
    spawn(parts, "summary", driver::run(Summary, Arc::clone(context)));
    spawn(parts, "preflight", driver::run(vmi_preflight::Preflight::default(), Arc::clone(context)));
    spawn(parts, "cluster-freeze", driver::run(vmi_cluster_freeze::ClusterFreeze, Arc::clone(context)));
    spawn(parts, "vcenter-prep", driver::run(vmi_vcenter_prep::VcenterPrep::default(), Arc::clone(context)));
    spawn(parts, "config-rewrite", driver::run(vmi_config_rewrite::ConfigRewrite, Arc::clone(context)));
    spawn(parts, "pod-health-watch", driver::run(vmi_pod_health_watch::PodHealthWatch::new()?, Arc::clone(context)));
    spawn(parts, "cleanup", driver::run(vmi_cleanup::Cleanup, Arc::clone(context)));
    spawn(parts, "machine-rollout", driver::run(vmi_machine_rollout::MachineRollout, Arc::clone(context)));
    Ok(())
}

fn spawn(parts: &mut JoinSet<&'static str>, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
    parts.spawn(async move {
        part.await;
        name
    });
}

fn asked_to_end() -> Result<impl Future<Output = ()>, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to end");
    })
}
