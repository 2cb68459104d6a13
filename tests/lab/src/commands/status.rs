//! `status`: which labs run, and what stands where in each.

use std::collections::BTreeMap;

use kube::Client;

use super::{Failure, fault, kubeconfig};
use crate::faults::Faults;
use crate::home::{self, Record};
use crate::kubernetes::{self, CLUSTER_OPERATOR, MACHINE, NODE, condition};
use crate::{control_plane, output, process};

pub async fn status(name: Option<&str>) -> Result<(), Failure> {
    let records = match name {
        Some(name) => vec![home::choose(Some(name))?],
        None => home::running()?,
    };
    if records.is_empty() {
        output::line(format_args!("no lab is running; `vmi-lab up SHAPE` starts one"));
    }
    for record in &records {
        show(record).await?;
    }
    Ok(())
}

async fn show(record: &Record) -> Result<(), Failure> {
    let state = record.boot_seconds.map_or_else(|| "booting".to_owned(), |seconds| format!("up, booted in {seconds:.1} s"));
    output::line(format_args!(
        "lab {}: shape {}, 127.{}.0.0/16, {state}, {} MB resident",
        record.name,
        record.shape,
        record.block.0,
        resident_mb(&record.name)?
    ));
    output::line(format_args!("  kubeconfig  {}", kubeconfig(record).display()));
    for vcenter in &record.vcenters {
        output::line(format_args!("  vCenter {}   https://{}:{}", vcenter.name, vcenter.server, vcenter.port));
    }
    if record.boot_seconds.is_none() {
        return Ok(());
    }
    let client = control_plane::client(&kubeconfig(record)).await?;
    for line in summary(&client, record).await? {
        output::line(format_args!("  {line}"));
    }
    for line in fault::lines(&Faults::of(record).await?.list().await?) {
        output::line(format_args!("  fault       {line}"));
    }
    Ok(())
}

/// Resident memory of everything that belongs to a lab.
pub fn resident_mb(name: &str) -> Result<u64, Failure> {
    let pids = process::marked(Some(&home::mark(name)))?;
    Ok(pids.into_iter().map(process::resident_kb).sum::<u64>() / 1_000)
}

/// What stands where, a line per kind.
pub async fn summary(client: &Client, record: &Record) -> Result<Vec<String>, Failure> {
    let nodes = kubernetes::list(client, NODE, "").await?;
    let ready = nodes.iter().filter(|node| condition(node, "Ready") == "True").count();
    let mut lines = vec![format!("nodes       {ready} of {} ready", nodes.len())];
    if record.vcenters.is_empty() {
        return Ok(lines);
    }
    let mut machines: BTreeMap<String, usize> = BTreeMap::new();
    for machine in kubernetes::list(client, MACHINE, "").await? {
        let server = machine.data["spec"]["providerSpec"]["value"]["workspace"]["server"].as_str().unwrap_or("nowhere").to_owned();
        let vcenter = record.vcenters.iter().find(|vcenter| vcenter.server == server).map_or(server, |vcenter| vcenter.name.clone());
        let phase = machine.data["status"]["phase"].as_str().unwrap_or("new");
        *machines.entry(format!("{phase} on vCenter {vcenter}")).or_default() += 1;
    }
    let machines: Vec<String> = machines.into_iter().map(|(place, count)| format!("{count} {place}")).collect();
    lines.push(format!("machines    {}", machines.join(", ")));
    let operators = kubernetes::list(client, CLUSTER_OPERATOR, "").await?;
    let bad: Vec<String> = operators
        .iter()
        .filter(|operator| condition(operator, "Available") != "True" || condition(operator, "Degraded") != "False")
        .map(kube::ResourceExt::name_any)
        .collect();
    let rest = if bad.is_empty() { String::new() } else { format!("; not so: {}", bad.join(", ")) };
    lines.push(format!("operators   {} of {} available{rest}", operators.len() - bad.len(), operators.len()));
    Ok(lines)
}
