//! Stand-ins for the OpenShift operators that cannot be built outside OpenShift. Each does what the lab's other parts, and a
//! migration, can see of the real one, and calls itself a stand-in in the first line of its log.

use std::time::Duration;

use kube::Client;

use crate::cache::Cache;
use crate::kubernetes;

pub mod autoscaler;
pub mod cccmo;
pub mod cco;
pub mod cloud_config;
pub mod config_operator;
pub mod cvo;
pub mod etcd;
pub mod mco;
pub mod operator_status;
mod requests;
pub mod storage;

/// What `vmi-lab stand-in NAME` knows.
pub const NAMES: &[&str] =
    &["cvo", "mco", "config-operator", "cco", "cccmo", "etcd", "csi-driver-operator", "storage-operator", "problem-detector", "autoscaler"];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no stand-in {0:?}; there are: {names}", names = NAMES.join(", "))]
    UnknownName(String),
    #[error("{0}")]
    Arguments(#[from] clap::Error),
    #[error(
        "RELEASE_VERSION is not set: a stand-in reports the release it belongs to, as the operator it stands for does; set it in the pod's env"
    )]
    NoReleaseVersion,
    #[error("cannot listen on {address}: {source}")]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::Error),
    #[error(transparent)]
    Payload(#[from] cvo::payload::Error),
}

/// Runs one stand-in until its process is ended; only returns if it cannot go on.
pub async fn run(name: &str, client: Client, arguments: &[String]) -> Result<(), Error> {
    match name {
        "cvo" => cvo::run(client, arguments).await,
        "mco" => mco::run(client, arguments).await,
        "config-operator" => config_operator::run(client, arguments).await,
        "cco" => cco::run(client, arguments).await,
        "cccmo" => cccmo::run(client, arguments).await,
        "etcd" => etcd::run(client, arguments).await,
        "csi-driver-operator" => storage::driver_operator::run(client, arguments).await,
        "storage-operator" => storage::storage_operator::run(client, arguments).await,
        "problem-detector" => storage::problem_detector::run(client, arguments).await,
        "autoscaler" => autoscaler::run(client, arguments).await,
        unknown => Err(Error::UnknownName(unknown.to_owned())),
    }
}

/// The release this process reports, given to it in the way OpenShift gives it to its operators.
pub fn release_version() -> Result<String, Error> {
    std::env::var("RELEASE_VERSION").ok().filter(|version| !version.is_empty()).ok_or(Error::NoReleaseVersion)
}

/// Returns when something changed. What failed is tried again after a while all the same, since no event says that the apiserver
/// is reachable again or would now take what it refused: after a change of a CRD it needs a moment before it goes by it.
async fn woken(cache: &mut Cache, failed: bool) {
    const PACE: Duration = Duration::from_secs(2);
    // The real operators look again every few minutes without being told to; so does this, a little sooner.
    const RESYNC: Duration = Duration::from_secs(15);
    let _ = tokio::time::timeout(if failed { PACE } else { RESYNC }, cache.changed()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_names_there_are() {
        assert_eq!(
            Error::UnknownName("cso".to_owned()).to_string(),
            "there is no stand-in \"cso\"; there are: cvo, mco, config-operator, cco, cccmo, etcd, csi-driver-operator, storage-operator, problem-detector, autoscaler"
        );
    }
}
