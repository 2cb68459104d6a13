//! The pod health watch: real controllers are replaced, their real logs are judged.

use std::collections::BTreeSet;

use kube::ResourceExt;
use serde_json::{Value, json};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName;
use vmi_lab::kubernetes::{self, POD};
use vmi_pod_health_watch::PodHealthWatch;

use crate::support::alone::{Alone, Ground, NAME};
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE};
use crate::support::suite::TestResult;

const CCM: &str = "openshift-cloud-controller-manager";
pub const BEFORE: [StepName; 8] = [
    StepName::ClusterVersionFrozen,
    StepName::InfrastructureUnlocked,
    StepName::ControlPlaneSetSaved,
    StepName::CredentialsAdded,
    StepName::TagsAttached,
    StepName::FolderCreated,
    StepName::InfrastructureExtended,
    StepName::CloudConfigExtended,
];

/// The pods of the workloads that are replaced, by UID.
async fn replaced(lab: &Lab) -> TestResult<BTreeSet<String>> {
    let mut uids = BTreeSet::new();
    for (namespace, prefix) in [(CCM, "vsphere-cloud-controller-manager"), (MACHINE_API, "machine-api-controllers")] {
        let pods = kubernetes::list(&lab.client, POD, namespace).await?;
        uids.extend(pods.iter().filter(|pod| pod.name_any().starts_with(prefix)).filter_map(ResourceExt::uid));
    }
    Ok(uids)
}

/// All other pods, by UID.
async fn others(lab: &Lab) -> TestResult<BTreeSet<String>> {
    let replaced = replaced(lab).await?;
    let all = kubernetes::list(&lab.client, POD, "").await?;
    Ok(all.iter().filter_map(ResourceExt::uid).filter(|uid| !replaced.contains(uid)).collect())
}

async fn saved(ground: &Ground<'_>, key: &str) -> TestResult<BTreeSet<String>> {
    let name = format!("vmi-{NAME}-saved");
    let secret = kubernetes::get(&ground.lab.client, kubernetes::SECRET, &ground.namespace, &name).await?.ok_or("nothing was saved")?;
    let round: Value = vmi_steps::saved::read(&secret, key).ok_or_else(|| format!("{key} was not saved"))?;
    Ok(serde_json::from_value(round["uids"].clone())?)
}

fn held(vmi: &VSphereMigrationInfra) -> Result<(&str, &str, &str), String> {
    let condition = vmi.condition("Held").ok_or("there is no condition Held")?;
    Ok((&condition.status, &condition.reason, &condition.message))
}

pub async fn until_held(ground: &Ground<'_>, what: &str, fits: impl Fn(&str, &str) -> bool) -> TestResult<VSphereMigrationInfra> {
    ground
        .until(what, |vmi| match held(vmi)? {
            (status, reason, _) if fits(status, reason) => Ok(()),
            (status, reason, message) => Err(format!("Held is {status}, {reason}: {message}")),
        })
        .await
}

async fn go_back(ground: &Ground<'_>, started: &VSphereMigrationInfra) -> TestResult {
    ground.edit(json!({"state": "RollingBack"})).await?;
    let (seen, now) = (started.seen(), k8s_openapi::jiff::Timestamp::now());
    let fields = json!({"startedAt": seen.started_at, "source": seen.source, "graphVersion": 1, "rollingBackAt": format!("{now:.0}")});
    ground.report("summary", fields, &[]).await?;
    ground.undone(&[StepName::InfrastructureExtended, StepName::CloudConfigExtended]).await
}

pub async fn pods_are_planned_replaced_once_and_healthy_after_the_quiet_period_and_again_on_the_way_back(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "vmi-pods", json!({})).await?;
    let (old, bystanders) = (replaced(lab).await?, others(lab).await?);
    let watch = Alone::run(&ground, PodHealthWatch::new()?).await?;

    let planned = ground.until_condition(StepName::PodsRestarted, "False", "NotStarted").await?;
    let changes = planned.step(StepName::PodsRestarted).map(|step| step.changes.clone()).unwrap_or_default();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes[1].starts_with("delete the pods of Deployment openshift-machine-api/machine-api-controllers, since "), "{changes:?}");
    assert_eq!(held(&planned)?.1, "NothingWrong");
    ground.start("native").await?;
    ground.until_condition(StepName::PodsRestarted, "False", "Waiting").await?;
    assert_eq!(replaced(lab).await?, old, "nothing is done before its turn");

    // Killed as soon as it has begun, the next process goes on with the same list.
    ground.done(&BEFORE).await?;
    ground.until("the restart to begin", |vmi| if vmi.begun(StepName::PodsRestarted) { Ok(()) } else { Err("not yet".into()) }).await?;
    watch.kill().await;
    let watch = Alone::run(&ground, PodHealthWatch::new()?).await?;
    ground.until_condition(StepName::PodsRestarted, "True", "Restarted").await?;
    let new = replaced(lab).await?;
    assert_eq!(saved(&ground, "pods-forward").await?, old);
    assert!(new.is_disjoint(&old) && new.len() == old.len(), "{old:?} became {new:?}");
    assert_eq!(others(lab).await?, bystanders, "only pods that keep what they read are replaced");

    let healthy = ground.until_condition(StepName::PodsHealthy, "True", "Healthy").await?;
    let message = &healthy.condition("PodsHealthy").ok_or("no condition")?.message;
    let reached = format!("the cloud controller manager reached {}", lab.vcenter("a").server);
    for sign in ["quiet since ", "5 leases held by new pods", &reached, "operators no worse than at the start"] {
        assert!(message.contains(sign), "{message}");
    }
    let pods = kubernetes::list(&lab.client, POD, CCM).await?;
    let ready = pods.iter().filter_map(|pod| {
        let conditions = pod.data["status"]["conditions"].as_array()?;
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
        ready["lastTransitionTime"].as_str()?.parse::<k8s_openapi::jiff::Timestamp>().ok()
    });
    let ready = ready.max().ok_or("no pod is Ready")?;
    let finished = healthy.step(StepName::PodsHealthy).and_then(|step| step.finished_at.clone()).ok_or("it did not finish")?.0;
    let quiet = finished.duration_since(ready);
    assert!(quiet.as_secs() >= 3, "healthy {quiet:?} after the last pod was Ready");
    assert_eq!(held(&healthy)?, ("False", "NothingWrong", "nothing holds the migration"));

    go_back(&ground, &healthy).await?;
    ground.until_condition(StepName::PodsRestarted, "False", "Undone").await?;
    let back = replaced(lab).await?;
    assert_eq!(saved(&ground, "pods-back").await?, new);
    assert!(back.is_disjoint(&new) && back.len() == new.len(), "{new:?} became {back:?}");
    ground.until_condition(StepName::PodsHealthy, "False", "Undone").await?;
    watch.finish(&ground).await?;
    ground.leave().await
}

pub async fn a_line_that_the_user_calls_fatal_holds_the_migration_until_it_is_accepted(lab: &Lab) -> TestResult {
    // The real manager finds its nodes; here that is called fatal. The second pattern is no regular expression.
    let patterns = json!([
        {"component": "cloud-controller-manager", "pattern": "Found node .* in vc=", "verdict": "fatal"},
        {"component": "cloud-controller-manager", "pattern": "([", "verdict": "benign"},
    ]);
    // Longer than the manager takes to find its nodes.
    let ground = Ground::new(lab, "vmi-pods-held", json!({"health": {"patterns": patterns, "quietPeriod": "20s"}})).await?;
    let watch = Alone::run(&ground, PodHealthWatch::new()?).await?;
    ground.start("native").await?;
    ground.done(&BEFORE).await?;
    let vmi = until_held(&ground, "the line to hold the migration", |status, reason| (status, reason) == ("True", "USR-001")).await?;
    let failure = vmi.step(StepName::PodsHealthy).and_then(|step| step.failure.clone()).ok_or("the step does not explain it")?;
    assert_eq!(failure.rule, "USR-001");
    assert_eq!(
        (failure.component.as_deref(), failure.container.as_deref()),
        (Some("cloud-controller-manager"), Some("cloud-controller-manager"))
    );
    assert!(failure.line.as_deref().is_some_and(|line| line.contains("Found node ") && line.len() <= 300), "{failure:?}");
    assert!(!failure.cluster_state.is_empty() && failure.next.contains("USR-001"), "{failure:?}");
    // The command works when it is pasted, and shows the line.
    let command: Vec<&str> = failure.look.first().ok_or("no command")?.split(' ').skip(1).collect();
    let log = lab.kubectl(&command).await?;
    let line = failure.line.as_deref().unwrap_or_default();
    assert!(line.split('…').all(|part| log.stdout.contains(part)), "{command:?} does not show {line}");
    assert!(!vmi.is_true("PodsHealthy"));

    // A new process knows nothing of the logs at first, and lets nothing go because of that.
    watch.kill().await;
    ground.edit(json!({"health": {"accept": ["ZZZ-000"]}})).await?;
    let watch = Alone::run(&ground, PodHealthWatch::new()?).await?;
    let again = ground
        .until("a new process to see the vmi", |vmi| match vmi.step(StepName::PodsHealthy) {
            Some(step) if step.observed_generation == vmi.metadata.generation => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    assert_eq!(
        again.condition("Held").map(|held| &held.last_transition_time),
        vmi.condition("Held").map(|held| &held.last_transition_time)
    );
    assert!(again.is_true("Held"));

    ground.edit(json!({"health": {"accept": ["USR-001"]}})).await?;
    ground.until_condition(StepName::PodsHealthy, "True", "Healthy").await?;
    let vmi = until_held(&ground, "the hold to be cleared", |status, reason| (status, reason) == ("False", "Cleared")).await?;
    assert_eq!(held(&vmi)?.2, "USR-001 no longer holds the migration");
    assert!(vmi.step(StepName::PodsHealthy).is_some_and(|step| step.failure.is_none()));

    // What is done stays done; but it holds again, and other patterns are judged from the same logs.
    ground.edit(json!({"health": {"accept": []}})).await?;
    let vmi = until_held(&ground, "the line to hold again", |status, reason| (status, reason) == ("True", "USR-001")).await?;
    assert!(vmi.is_true("PodsHealthy"));
    ground.edit(json!({"health": {"patterns": []}})).await?;
    until_held(&ground, "the hold to be cleared", |status, _| status == "False").await?;
    watch.finish(&ground).await?;
    ground.leave().await
}

/// A workload that is watched and not replaced, and whose pods nobody else looks for.
const CRASHES: &str = "openshift-cloud-controller-manager-operator";
const CRASH: &str = "echo 'panic: runtime error: invalid memory address or nil pointer dereference'; exit 2";

pub async fn a_process_that_crashes_holds_the_migration_through_its_back_off_and_is_told_with_its_last_words(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "vmi-pods-crash", json!({"health": {"quietPeriod": "30m", "deadline": "1h"}})).await?;
    let watch = Alone::run(&ground, PodHealthWatch::new()?).await?;
    ground.start("native").await?;
    ground.done(&BEFORE).await?;
    ground.until_condition(StepName::PodsRestarted, "True", "Restarted").await?;
    let container = json!({"name": "cluster-cloud-controller-manager", "image": "vmi-lab/shell", "args": ["-c", CRASH]});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "crashes", "namespace": CRASHES, "labels": {"k8s-app": "cloud-manager-operator"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    });
    kubernetes::apply(&lab.client, "test", &pod).await?;
    let vmi = until_held(&ground, "the crash to hold the migration", |status, reason| (status, reason) == ("True", "RUN-001")).await?;
    let since = vmi.condition("Held").map(|held| held.last_transition_time.clone());

    // One more than the controller counts: it may hear of the pod later than others do, but not by a whole back-off.
    let mut cache = lab.watch(&[POD]).await;
    cache
        .until("the longest back-off of four", PATIENCE, |cache| {
            let pod = cache.get(POD, CRASHES, "crashes").ok_or("the pod is gone")?;
            let status = &pod.data["status"]["containerStatuses"][0];
            let waits = status["state"]["waiting"]["reason"] == "CrashLoopBackOff" && status["restartCount"].as_u64() >= Some(4);
            if waits { Ok(()) } else { Err(status.to_string()) }
        })
        .await?;
    // The rule of the line is accepted: that the container ends again and again is another, and is told with the same line.
    ground.edit(json!({"health": {"accept": ["RUN-001"]}})).await?;
    let vmi = until_held(&ground, "the back-off to hold it", |status, reason| (status, reason) == ("True", "POD-002")).await?;
    let told = vmi.step(StepName::PodsHealthy).map(|step| step.log.join("\n")).unwrap_or_default();
    assert_eq!(vmi.condition("Held").map(|held| held.last_transition_time.clone()), since, "it was not held all the time:\n{told}");
    let failure = vmi.step(StepName::PodsHealthy).and_then(|step| step.failure.clone()).ok_or("the step does not explain it")?;
    assert!(failure.line.as_deref().is_some_and(|line| line.starts_with("panic: runtime error")), "{failure:?}");
    assert!(failure.message.contains("RUN-001"), "{failure:?}");
    let command: Vec<&str> = failure.look[1].split(' ').skip(1).collect();
    assert!(lab.kubectl(&command).await?.success()?.stdout.contains("panic: runtime error"), "{command:?}");

    kubernetes::delete(&lab.client, POD, CRASHES, "crashes").await?;
    until_held(&ground, "the hold to be cleared", |status, reason| (status, reason) == ("False", "Cleared")).await?;
    watch.finish(&ground).await?;
    ground.leave().await
}

pub async fn a_refused_password_holds_the_migration_with_the_line_and_what_to_do_and_can_be_accepted(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "vmi-pods-login", json!({"health": {"deadline": "20s"}})).await?;
    let fault = lab.control.post("/vcenters/a/faults", &json!({"kind": "password", "password": "changed-meanwhile"})).await?;
    let watch = Alone::run(&ground, PodHealthWatch::new()?).await?;
    ground.start("native").await?;
    ground.done(&BEFORE).await?;
    let login = ["CCM-006", "CCM-007", "LOGIN-001", "MAO-001"];
    let vmi = until_held(&ground, "the refused login to hold the migration", |status, reason| status == "True" && login.contains(&reason))
        .await?;
    let failure = vmi.step(StepName::PodsHealthy).and_then(|step| step.failure.clone()).ok_or("the step does not explain it")?;
    let line = failure.line.clone().unwrap_or_default();
    assert!(line.contains("Cannot complete login due to an incorrect user name or password"), "{line}");
    assert!(failure.next.contains("correct"), "{failure:?}");
    // Past its deadline the step fails with what was found, not with the time that is up.
    let failed = ground
        .until("the step to fail", |vmi| match vmi.condition("PodsHealthy") {
            Some(condition) if login.contains(&condition.reason.as_str()) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    assert!(failed.step(StepName::PodsHealthy).and_then(|step| step.failure.as_ref()).is_some_and(|failure| failure.line.is_some()));
    // Nobody has reached the vCenter: that has to be accepted as well.
    ground.edit(json!({"health": {"accept": ["CCM-006", "CCM-007", "LOGIN-001", "MAO-001", "MAO-005", "EVD-003"]}})).await?;
    let vmi = ground.until_condition(StepName::PodsHealthy, "True", "Healthy").await?;
    assert!(vmi.condition("PodsHealthy").is_some_and(|condition| condition.message.contains("accepted: CCM-006")));
    watch.finish(&ground).await?;
    ground.leave().await?;

    lab.control.delete(&format!("/vcenters/a/faults/{}", fault["id"])).await?;
    // They would wait ever longer before they try again.
    for (namespace, prefix) in [(CCM, "vsphere-cloud-controller-manager"), (MACHINE_API, "machine-api-controllers")] {
        for pod in kubernetes::list(&lab.client, POD, namespace).await?.iter().filter(|pod| pod.name_any().starts_with(prefix)) {
            kubernetes::delete(&lab.client, POD, namespace, &pod.name_any()).await?;
        }
    }
    tokio::time::timeout(PATIENCE, lab.settled()).await?
}
