//! Stands in for the cluster-cloud-controller-manager-operator, whose pod runs two processes: `config-sync` prepares what the
//! cloud controller manager reads, `operator` keeps its Deployment and answers for the whole in the ClusterOperator.
//!
//! The Deployment itself is made by the lab; its pod template gets the same hash the real operator gives it, so that it rolls
//! when its configuration changed.

mod config_sync;
mod operator;
mod trusted_ca;

use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use kube::Client;

use super::cloud_config::{Generation, Panic};
use super::{Error, operator_status, release_version};
use crate::kubernetes;

pub use config_sync::keep as keep_config;
pub use operator::keep as keep_deployment;

const NAME: &str = "cloud-controller-manager";
const OWN_NAMESPACE: &str = "openshift-cloud-controller-manager-operator";
const MANAGED_NAMESPACE: &str = "openshift-cloud-controller-manager";
const CLOUD_CONF: &str = "cloud-conf";
const TRUSTED_CA: &str = "ccm-trusted-ca";

#[derive(Parser)]
struct Arguments {
    job: Job,
    /// Whose behaviour: 4.17, 4.21 or next.
    #[arg(long)]
    generation: Generation,
}

#[derive(Clone, Copy, ValueEnum)]
enum Job {
    ConfigSync,
    Operator,
}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    let arguments = Arguments::try_parse_from(["cccmo".to_owned()].iter().chain(arguments))?;
    let version = release_version()?;
    match arguments.job {
        Job::ConfigSync => config_sync::keep(&client, &version, arguments.generation).await,
        Job::Operator => operator::keep(&client, &version, arguments.generation).await,
    }
}

/// Why a pass came to nothing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Wrong until somebody changes an object.
    #[error("{0}")]
    Terminal(String),
    /// May pass by itself.
    #[error("{0}")]
    Transient(String),
    #[error(transparent)]
    Request(#[from] kubernetes::Error),
    #[error("panic: {0} [recovered]")]
    Panic(Panic),
}

impl Failure {
    /// Somebody else wrote the object meanwhile, and the event that says so is on the way.
    fn is_conflict(&self) -> bool {
        matches!(self, Failure::Request(error) if error.is_conflict())
    }
}

/// Since when a controller fails, which from 4.23 on decides whether it calls itself degraded.
struct Patience {
    generation: Generation,
    threshold: Duration,
    failing_since: Option<Instant>,
}

impl Patience {
    fn new(generation: Generation, threshold: Duration) -> Self {
        Patience { generation, threshold, failing_since: None }
    }

    fn succeeded(&mut self) {
        self.failing_since = None;
    }

    /// Whether this failure is one to report.
    fn is_over(&mut self, failure: &Failure, now: Instant) -> bool {
        match failure {
            // The real code never comes to the line that would report it: the conditions stay as they were.
            Failure::Panic(_) => false,
            _ if self.generation != Generation::Next => true,
            Failure::Terminal(_) => true,
            Failure::Transient(_) | Failure::Request(_) => now - *self.failing_since.get_or_insert(now) >= self.threshold,
        }
    }
}

/// Both processes report into one ClusterOperator; conditions of the other stay.
async fn report(client: &Client, version: &str, conditions: &[operator_status::Condition<'_>]) -> Result<(), kubernetes::Error> {
    let related = [
        ("", "namespaces", "", OWN_NAMESPACE),
        ("config.openshift.io", "clusteroperators", "", NAME),
        ("", "namespaces", "", MANAGED_NAMESPACE),
    ];
    operator_status::report(client, NAME, version, conditions, &related).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_4_22_every_failure_but_a_panic_is_reported_at_once() {
        let mut patience = Patience::new(Generation::V4_21, Duration::from_secs(120));
        let now = Instant::now();
        assert!(patience.is_over(&Failure::Transient("x".to_owned()), now));
        assert!(patience.is_over(&Failure::Terminal("x".to_owned()), now));
        assert!(!patience.is_over(&Failure::Panic(Panic::NilPointer), now));
    }

    #[test]
    fn from_4_23_what_may_pass_is_reported_only_when_it_lasts() {
        let mut patience = Patience::new(Generation::Next, Duration::from_secs(120));
        let now = Instant::now();
        let transient = Failure::Transient("x".to_owned());
        assert!(patience.is_over(&Failure::Terminal("x".to_owned()), now));
        assert!(!patience.is_over(&transient, now));
        assert!(!patience.is_over(&transient, now + Duration::from_secs(119)));
        assert!(patience.is_over(&transient, now + Duration::from_secs(120)));
        patience.succeeded();
        assert!(!patience.is_over(&transient, now + Duration::from_secs(121)));
    }

    #[test]
    fn the_job_and_the_generation_must_be_known() {
        let parse = |line: &str| Arguments::try_parse_from(line.split(' ')).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(parse("cccmo operator --generation 4.21"), Ok(()));
        assert_eq!(parse("cccmo config-sync --generation next"), Ok(()));
        assert!(parse("cccmo config-sync --generation 5").unwrap_err().contains("use 4.17, 4.21 or next"));
        assert!(parse("cccmo both --generation next").is_err());
        assert!(parse("cccmo operator").is_err());
    }
}
