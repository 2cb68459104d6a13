//! Stands in for the vsphere-problem-detector: once an hour, and sooner after a failure, it looks whether Infrastructure, cloud
//! configuration, credentials, tags, privileges and nodes fit together, and says so in its log, in Events and in its metrics.
//!
//! Of the real one's checks CheckNodePerf is not made: it judges disks by their latency, which the simulator makes up.

mod checks;
mod credentials;
mod datastores;
mod host_groups;
mod metrics;
mod nodes;
mod permissions;
mod results;
mod vcenter;

use std::time::Duration;

use clap::Parser;
use kube::Client;

use super::{CONFIG, STORAGE, View};
use crate::cache::Cache;
use crate::kubernetes::{CONFIG_MAP, INFRASTRUCTURE, NODE, PERSISTENT_VOLUME, SECRET, STORAGE_CLASS};
use crate::standins::{Error, release_version};
use checks::Objects;
use metrics::Metrics;
use results::Results;
use vcenter::Vcenter;

const CREDENTIALS: &str = "vsphere-cloud-credentials";
/// By which the real one is known in a vCenter.
const AGENT: &str = "vsphere-problem-detector";
const HOUR: Duration = Duration::from_secs(3600);
const FIRST: Duration = Duration::from_secs(60);

#[derive(Parser)]
struct Arguments {
    /// Where its metrics are served, without which they are not
    #[arg(long)]
    metrics: Option<std::net::SocketAddr>,
}

pub async fn run(client: Client, arguments: &[String]) -> Result<(), Error> {
    let Arguments { metrics: listen } = Arguments::try_parse_from(["problem-detector".to_owned()].iter().chain(arguments))?;
    let version = release_version()?;
    tracing::info!("stand-in for the vsphere-problem-detector (all of its checks but CheckNodePerf) of release {version}");
    let metrics = Metrics::default();
    if let Some(address) = listen {
        metrics.serve(address).await.map_err(|source| Error::Listen { address, source })?;
    }
    let watched = [(INFRASTRUCTURE, ""), (CONFIG_MAP, CONFIG), (SECRET, STORAGE), (NODE, ""), (PERSISTENT_VOLUME, ""), (STORAGE_CLASS, "")];
    let cache = Cache::start(&client, &watched).await;
    let mut backoff = Duration::ZERO;
    loop {
        let (results, broke) = round(&cache, &metrics).await;
        let failed = broke.or_else(|| results.failure());
        if let Some(why) = &failed {
            say('E', "operator.go:242", &format!("failed to run checks: {why}"));
        }
        metrics.gauge("vsphere_sync_errors", &[("reason", "SyncError")], f64::from(u8::from(failed.is_some())));
        if let Err(error) = results.tell(&client).await {
            tracing::warn!("an event could not be written: {error}");
        }
        backoff = next(backoff, failed.is_none());
        let delay = if backoff.is_zero() { HOUR } else { backoff };
        say('I', "operator.go:195", &format!("Scheduled the next check in {}s", delay.as_secs()));
        // Like the real one it does not look before its time, whatever changes.
        tokio::time::sleep(delay).await;
    }
}

/// How long to wait after a bad round: a minute, then twice as long each time, up to an hour. Zero after a good one.
fn next(backoff: Duration, well: bool) -> Duration {
    match (well, backoff) {
        (true, _) => Duration::ZERO,
        (false, Duration::ZERO) => FIRST,
        (false, backoff) => (backoff * 2).min(HOUR),
    }
}

/// As klog prints it, for that is what others read.
fn say(level: char, place: &str, text: &str) {
    let now = jiff::Timestamp::now().strftime("%m%d %H:%M:%S%.6f");
    println!("{level}{now}       1 {place}] {text}");
}

/// What was found, and why no more was where the round broke off.
async fn round(cache: &Cache, metrics: &Metrics) -> (Results, Option<String>) {
    let mut results = Results::new(metrics.clone());
    let broke = checked(cache, metrics, &mut results).await.err();
    if broke.is_none() {
        say('I', "vsphere_check.go:109", "Finished running all vSphere specific checks in the cluster");
    }
    (results, broke)
}

async fn checked(cache: &Cache, metrics: &Metrics, results: &mut Results) -> Result<(), String> {
    let view = View::of(cache, STORAGE, CREDENTIALS)?;
    let mut vcenters = Vec::new();
    for (server, port, _) in view.configured() {
        let connected = Vcenter::connect(&view, &server, port).await;
        vcenters.push(match view.pair(&server) {
            Some((user, password)) => credentials::judged(&server, (&user, &password), connected, metrics)?,
            None => connected?,
        });
    }
    let objects = Objects { volumes: cache.list(PERSISTENT_VOLUME), classes: cache.list(STORAGE_CLASS) };
    checks::cluster(&view, &vcenters, &objects, metrics, results).await;
    nodes::all(&view, &vcenters, &cache.list(NODE), metrics, results).await;
    for vcenter in vcenters {
        vcenter.session.logout().await.map_err(|error| format!("failed to log out of {}: {error}", vcenter.server))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_ever_longer_after_bad_rounds_until_a_good_one() {
        let mut backoff = Duration::ZERO;
        let mut after = |well: bool| {
            backoff = next(backoff, well);
            backoff.as_secs() / 60
        };
        let minutes: Vec<u64> = (0..8).map(|_| after(false)).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!((after(true), after(false)), (0, 1));
    }
}
