//! The way to the cluster.

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::{Client, Config};

/// Why there is no way.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither kubeconfig nor service account.
    #[error("no cluster to talk to: {0}; name a kubeconfig in KUBECONFIG, or log in with `oc login`")]
    NoCluster(Box<kube::config::InferConfigError>),
    /// What was found cannot be used.
    #[error("cannot talk to the cluster at {url}: {source}; look at its entry in the kubeconfig")]
    Unusable {
        /// Of the apiserver.
        url: String,
        /// What the client says.
        source: Box<kube::Error>,
    },
}

/// A client for the cluster of KUBECONFIG or, inside one, for that; the audit log shows it as `program/VERSION`.
pub async fn connect(program: &str) -> Result<Client, Error> {
    // Another part of this process may have installed the same provider already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = Config::infer().await.map_err(|error| Error::NoCluster(Box::new(error)))?;
    // The environment's proxy is for the vCenters; apiservers are reached directly, and the client refuses to start where it is
    // given a proxy that it was not built for.
    config.proxy_url = None;
    if let Ok(agent) = HeaderValue::try_from(format!("{program}/{}", env!("CARGO_PKG_VERSION"))) {
        config.headers.push((USER_AGENT, agent));
    }
    let url = config.cluster_url.to_string();
    Client::try_from(config).map_err(|source| Error::Unusable { url, source: Box::new(source) })
}
