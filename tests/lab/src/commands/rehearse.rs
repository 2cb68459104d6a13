//! `rehearse`: boots a lab, looks at the cluster itself, says what stands where, and writes the report of docs/lab.md.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::report::{check_writable, unwritable};
use super::status::{resident_mb, summary};
use super::{Failure, kubeconfig};
use crate::cache::Cache;
use crate::kubernetes::{CLUSTER_OPERATOR, CONTROL_PLANE_MACHINE_SET, DEPLOYMENT, MACHINE, MACHINE_SET, NODE};
use crate::shape::Shape;
use crate::supervisor::{Order, Running};
use crate::tools::{Progress, Tools, spoken};
use crate::{control_plane, health, standins};

/// Other rehearsals may run at the same time: each has a name of its own.
fn name(shape: &str) -> String {
    format!("{shape}-{}", std::process::id())
}

pub async fn rehearse(shape: &str, report: Option<&Path>, keep: bool) -> Result<u8, Failure> {
    let wanted = Shape::named(shape)?;
    if let Some(path) = report {
        check_writable(path)?;
    }
    let mut progress = Progress::stderr();
    let tools = Tools::prepare(&mut progress).await?;
    let began = Instant::now();
    let name = if keep { shape.to_owned() } else { name(shape) };
    let order = Order { shape: shape.to_owned(), name, block: None };
    let running = Running::start(&order, !keep, |text| progress.line(&format!("{:>6}  {text}", spoken(began.elapsed())))).await?;
    let record = running.record.clone();

    let client = control_plane::client(&kubeconfig(&record)).await?;
    let resident = resident_mb(&record.name)?;
    let checks = verdict(&client, &wanted).await;
    let passed = checks.iter().all(|check| check["passed"] == true);
    let real: Vec<String> =
        tools.places().iter().filter(|place| place.tool.real).map(|place| format!("{} {}", place.tool.name, place.version)).collect();
    let boot = record.boot_seconds.unwrap_or_default();

    println!("{shape}: healthy after {boot:.1} s, {resident} MB resident");
    for line in summary(&client, &record).await? {
        println!("  {line}");
    }
    for vcenter in &record.vcenters {
        println!("  vCenter {}   https://{}:{}", vcenter.name, vcenter.server, vcenter.port);
    }
    println!("  real        {}", real.join(", "));
    println!("  stand-ins   {}", standins::NAMES.join(", "));
    for check in &checks {
        println!("  {}  {}{}", if check["passed"] == true { "ok    " } else { "FAILED" }, text(&check["name"]), detail(check));
    }
    if let Some(path) = report {
        let report = json!({
            "shape": shape, "boot_seconds": boot, "resident_mb": resident,
            "real_components": real, "stand_ins": standins::NAMES,
            "migration": null,
            "verdict": {"passed": passed, "checks": checks},
        });
        std::fs::write(path, format!("{report:#}\n")).map_err(|error| unwritable(path, &error))?;
    }
    if keep {
        running.leave();
        println!("the lab keeps running: `vmi-lab status`, `vmi-lab down --name {}`", record.name);
    } else {
        running.stop().await?;
    }
    Ok(u8::from(!passed))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn detail(check: &Value) -> String {
    let detail = text(&check["detail"]);
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

/// Looks at the cluster itself once more, not at what the boot said of it.
async fn verdict(client: &kube::Client, shape: &Shape) -> Vec<Value> {
    let check = |name: &str, result: Result<(), String>| json!({"name": name, "passed": result.is_ok(), "detail": result.err().unwrap_or_default()});
    if !shape.has_openshift() {
        let cache = Cache::start(client, &[(NODE, "")]).await;
        return vec![check("every node is ready", health::nodes(&cache, usize::from(shape.plain_nodes)))];
    }
    let kinds = [(MACHINE, ""), (MACHINE_SET, ""), (NODE, ""), (CLUSTER_OPERATOR, ""), (DEPLOYMENT, ""), (CONTROL_PLANE_MACHINE_SET, "")];
    let cache = Cache::start(client, &kinds).await;
    let machines = health::machines(&cache);
    let count = machines.as_ref().copied().unwrap_or_default();
    let wanted = usize::from(shape.control_plane) + shape.machine_sets.iter().map(|set| usize::from(set.replicas)).sum::<usize>();
    let all_there = if count == wanted { Ok(()) } else { Err(format!("{count} of {wanted} are there")) };
    vec![
        check("every machine of the shape is there", all_there),
        check("every machine is Running", machines.map(|_| ())),
        check("every node is Ready and initialised", health::nodes(&cache, count)),
        check("every deployment is available", health::all_available(&cache)),
        check("every operator is available and not degraded", health::all_operators(&cache)),
        check("the control plane machine set is complete", health::control_plane_complete(&cache)),
    ]
}
