//! The pod health watch under a flood of logs that come the whole way: containers, node, the real apiserver.

use std::time::Duration;

use serde_json::{Value, json};
use vmi_crds::graph::StepName;
use vmi_lab::kubernetes::{self, POD};
use vmi_pod_health_watch::PodHealthWatch;

use super::pod_health_watch::{BEFORE, until_held};
use crate::support::alone::{Alone, Ground};
use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

/// A workload that is read but not replaced, and whose pods nobody else looks for.
const COMPONENT: &str = "cloud-controller-manager-operator";
const NAMESPACE: &str = "openshift-cloud-controller-manager-operator";
const CONTAINERS: [&str; 2] = ["cluster-cloud-controller-manager", "config-sync-controllers"];
const PODS: usize = 10;
/// Each container writes 256 KB in each of so many seconds, one line of which counts.
const SECONDS: u64 = 20;
const SCRIPT: &str = r#"
piece='I1116 19:49:46.391861       1 flood.go:174] worker-1: reconciling machine triggers idempotent update of its whole status ......
'
for twice in 1 2 3 4 5 6 7 8 9 10 11; do piece="$piece$piece"; done
second=0
while [ $second -lt SECONDS ]; do printf '%sthe line of the flood that counts\n' "$piece"; sleep 1; second=$((second + 1)); done
exec sleep infinity
"#;
/// What the reader may keep of it.
const ROOM_KB: u64 = 16 * 1024;

fn pod(number: usize) -> Value {
    let script = SCRIPT.replace("SECONDS", &SECONDS.to_string());
    let container = |name: &str| json!({"name": name, "image": "vmi-lab/shell", "args": ["-c", script]});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name(number), "namespace": NAMESPACE, "labels": {"k8s-app": "cloud-manager-operator"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": CONTAINERS.map(container)},
    })
}

fn name(number: usize) -> String {
    format!("flood-{number}")
}

fn resident_kb() -> TestResult<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the kernel tells no size")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

pub async fn twenty_containers_that_flood_their_logs_are_read_whole_and_take_no_room(lab: &Lab) -> TestResult {
    let patterns = json!([{"component": COMPONENT, "pattern": "the line of the flood that counts", "verdict": "fatal"}]);
    let health = json!({"patterns": patterns, "quietPeriod": "30m", "deadline": "1h"});
    let ground = Ground::new(lab, "vmi-flood", json!({"health": health})).await?;
    let watch = Alone::run(&ground, PodHealthWatch::new()?).await?;
    ground.start("native").await?;
    ground.done(&BEFORE).await?;
    ground.until_condition(StepName::PodsRestarted, "True", "Restarted").await?;

    for number in 0..PODS {
        kubernetes::apply(&lab.client, "test", &pod(number)).await?;
    }
    let context = watch.context();
    let counted = || context.metrics.log_failures.with_label_values(&[COMPONENT, "USR-001"]).get();
    // A counter tells nobody when it counts.
    let until = async |lines: u64| -> TestResult {
        let reached = async {
            while counted() < lines {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let late = |_| format!("{} of {lines} lines were read", counted());
        Ok(tokio::time::timeout(PATIENCE, reached).await.map_err(late)?)
    };
    let all = (PODS * CONTAINERS.len()) as u64 * SECONDS;
    until(all / 4).await?;
    let before = resident_kb()?;
    until(all).await?;
    let grown = resident_kb()?.saturating_sub(before);
    assert!(grown < ROOM_KB, "grew by {grown} KB while the rest of the flood was read");
    until_held(&ground, "the flood to be told", |status, reason| (status, reason) == ("True", "USR-001")).await?;
    watch.finish(&ground).await?;
    assert_eq!(counted(), all, "each line is read once");
    assert_eq!(context.metrics.log_skipped.with_label_values(&[COMPONENT]).get(), 0, "nothing was skipped");

    for number in 0..PODS {
        kubernetes::delete(&lab.client, POD, NAMESPACE, &name(number)).await?;
    }
    ground.leave().await
}
