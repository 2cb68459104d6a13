//! Moves while something else happens: the apiserver restarts, the leader dies, others change what is being moved, a cluster that
//! grew or was moved is moved again.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::StepName::{self, ControlPlaneReady, SourceWorkersRemoved, WorkersReady};
use vmi_crds::spec::{SourceRetirement, State};
use vmi_crds::status::StepState;
use vmi_lab::kubernetes::{self, CONTROL_PLANE_MACHINE_SET, LEASE, MACHINE, MACHINE_SET};
use vmi_lab::migration::dump::Dump;
use vmi_lab::migration::operator::{Operator, Options};
use vmi_lab::migration::view::View;
use vmi_lab::migration::watch::{self, End};
use vmi_lab::migration::{ACCOUNT, NAMESPACE, Site, deploy, moved, rehearsal, request};

use crate::faults::restart_the_apiserver;
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, passed, server};
use crate::support::suite::TestResult;

/// For a whole move that is disturbed, on a loaded machine.
const LONG: Duration = Duration::from_secs(900);

/// Waits until the step is being taken.
async fn taken(site: &Site, step: StepName) -> TestResult {
    let reached = |vmi: &VSphereMigrationInfra| match watch::end(vmi) {
        Some(end) => Some(Err(format!("it ended as {end:?}"))),
        None => (watch::state(vmi, step) != StepState::Waiting).then_some(Ok(())),
    };
    Ok(watch::follow(site, &mut View::stderr(), step.as_str(), LONG, reached).await??)
}

async fn asked(lab: &Lab) -> TestResult<(Site, Dump)> {
    let site = Site::of(&lab.record).await?;
    let before = Dump::take(&site).await?;
    deploy::install(&site).await?;
    request::ask(&site, &request::asked(&site, SourceRetirement::Remove)?).await?;
    request::set_state(&site, State::Running).await?;
    Ok((site, before))
}

/// The move is completed under this operator, and the cluster is as a move leaves it.
async fn completed(site: &Site, before: &Dump, mut operator: Operator) -> TestResult {
    let end = operator.while_alive(watch::follow(site, &mut View::stderr(), "the end of the move", LONG, watch::end)).await?;
    assert_eq!(end, End::Completed);
    let checks = moved::verdict(site, before).await?;
    operator.stop().await;
    passed(&checks)
}

/// A lab of its own: a cluster that was moved stays where it is.
pub async fn restarts_of_the_apiserver_and_the_death_of_its_leader_do_not_end_a_move() -> TestResult {
    let lab = Lab::start("native", "restarted").await?;
    let result = restarted(&lab).await;
    lab.stop().await?;
    result
}

async fn restarted(lab: &Lab) -> TestResult {
    let (site, before) = asked(lab).await?;
    let named = |name: &str| Options { identity: name.to_owned(), ..Options::default() };
    let mut operators = BTreeMap::new();
    for name in ["first", "second"] {
        operators.insert(name.to_owned(), Operator::start(&site, &named(name)).await?);
    }
    for step in [WorkersReady, ControlPlaneReady, SourceWorkersRemoved] {
        taken(&site, step).await?;
        let leader = leader(&site).await?;
        restart_the_apiserver(lab, 500).await?;
        if step == ControlPlaneReady {
            operators.remove(&leader).ok_or_else(|| format!("{leader:?} leads, which is neither"))?.kill().await?;
        }
    }
    completed(&site, &before, operators.pop_first().ok_or("no operator")?.1).await
}

/// Who acts now.
async fn leader(site: &Site) -> TestResult<String> {
    let lease = kubernetes::get(&site.client, LEASE, NAMESPACE, ACCOUNT).await?.ok_or("no lease")?;
    Ok(lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
}

/// A lab of its own, for the same reason.
pub async fn what_others_change_while_machines_are_replaced_is_dealt_with() -> TestResult {
    let lab = Lab::start("native", "meddled-with").await?;
    let result = meddled_with(&lab).await;
    lab.stop().await?;
    result
}

async fn meddled_with(lab: &Lab) -> TestResult {
    let (site, before) = asked(lab).await?;
    let operator = Operator::start(&site, &Options::default()).await?;
    // Somebody deletes the first machine on the target: its set makes another.
    taken(&site, WorkersReady).await?;
    let mut cache = lab.watch(&[MACHINE]).await;
    let target = lab.vcenter("b").server.clone();
    let first = cache
        .until("a machine on the target", PATIENCE, |cache| {
            let machines = cache.list(MACHINE);
            machines.iter().find(|machine| server(machine) == target).map(|machine| machine.name_any()).ok_or("none yet".to_owned())
        })
        .await?;
    kubernetes::delete(&lab.client, MACHINE, MACHINE_API, &first).await?;
    // Somebody brakes the control plane machine set behind the operator's back: nobody asked for it, and it rolls on.
    taken(&site, ControlPlaneReady).await?;
    let mut sets = lab.watch(&[CONTROL_PLANE_MACHINE_SET]).await;
    sets.until("the control plane to roll", PATIENCE, |cache| {
        let set = cache.get(CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").ok_or("no set")?;
        if set.data["spec"]["state"] == "Active" { Ok(()) } else { Err("it is not active yet".to_owned()) }
    })
    .await?;
    let braked = json!({"spec": {"strategy": {"type": "OnDelete"}}});
    kubernetes::merge(&lab.client, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster", &braked).await?;
    let operator = emptied_and_filled(lab, &site, &target, operator).await?;
    completed(&site, &before, operator).await
}

/// Somebody takes all machines of a set on the target away before the source's leave: these stay until it has machines again.
async fn emptied_and_filled(lab: &Lab, site: &Site, target: &str, mut operator: Operator) -> TestResult<Operator> {
    let sets = kubernetes::list(&lab.client, MACHINE_SET, MACHINE_API).await?;
    let made_there = |set: &&DynamicObject| set.data["spec"]["template"]["spec"]["providerSpec"]["value"]["workspace"]["server"] == target;
    let set = sets.iter().find(made_there).ok_or("no set on the target")?;
    let (name, replicas) = (set.name_any(), set.data["spec"]["replicas"].clone());
    let scale = async |replicas: serde_json::Value| {
        kubernetes::merge(&lab.client, MACHINE_SET, MACHINE_API, &name, &json!({"spec": {"replicas": replicas}})).await
    };
    scale(json!(0)).await?;
    let waits = |vmi: &VSphereMigrationInfra| match watch::end(vmi) {
        Some(end) => Some(Err(format!("it ended as {end:?}"))),
        None => vmi.step(SourceWorkersRemoved).filter(|step| step.message.contains(&name)).map(|step| Ok(step.message.clone())),
    };
    let told = operator.while_alive(watch::follow(site, &mut View::stderr(), "the source to be kept", LONG, waits)).await??;
    assert!(told.contains("no machine leaves the source"), "{told}");
    let machines = kubernetes::list(&lab.client, MACHINE, MACHINE_API).await?;
    assert!(machines.iter().any(|machine| server(machine) != target), "the source was drained");
    scale(replicas).await?;
    Ok(operator)
}

/// A lab of its own: it ends where it began, but with other machines and other domains.
pub async fn a_cluster_that_was_moved_is_moved_back_by_another_vmi_of_the_same_name_between_crowded_vcenters() -> TestResult {
    let lab = Lab::start("native", "there-and-back").await?;
    let result = there_and_back(&lab).await;
    lab.stop().await?;
    result
}

/// As many virtual machines of others in each vCenter.
const CROWD: u32 = 10_000;
/// What both vCenters together may be asked in a move, however many virtual machines they have.
const MOST_VCENTER_REQUESTS: u64 = 48;

async fn there_and_back(lab: &Lab) -> TestResult {
    let there = Site::of(&lab.record).await?;
    completed_and_removed(&there, SourceRetirement::Remove).await?;
    let Site { source, target, .. } = Site::of(&lab.record).await?;
    for vcenter in ["a", "b"] {
        lab.control.post(&format!("/vcenters/{vcenter}/crowd"), &json!({"count": CROWD})).await?;
    }
    let back = Site { source: target, target: source, ..there };
    let outcome = rehearsal::rehearse(&back, SourceRetirement::Remove, None, &mut View::stderr()).await?;
    passed(&outcome.checks)?;
    let asked = outcome.figures.vcenter_requests;
    assert!(asked.source + asked.target <= MOST_VCENTER_REQUESTS, "{asked:?}");
    Ok(())
}

/// A migration by a vmi that is gone afterwards, as users leave a cluster between two of them.
async fn completed_and_removed(site: &Site, source: SourceRetirement) -> TestResult {
    passed(&rehearsal::rehearse(site, source, None, &mut View::stderr()).await?.checks)?;
    let mut operator = Operator::start(site, &Options::default()).await?;
    operator.while_alive(request::remove(site)).await?;
    operator.stop().await;
    Ok(())
}

/// A lab of its own: the thaw after the growth has put the rule back that no vCenter may leave, and the target is there already.
pub async fn a_legacy_cluster_that_grew_is_moved_off_its_first_vcenter_later() -> TestResult {
    let lab = Lab::start("legacy-yaml", "grown-then-moved").await?;
    let result = grown_then_moved(&lab).await;
    lab.stop().await?;
    result
}

async fn grown_then_moved(lab: &Lab) -> TestResult {
    let site = Site::of(&lab.record).await?;
    completed_and_removed(&site, SourceRetirement::Keep).await?;
    passed(&rehearsal::rehearse(&site, SourceRetirement::Remove, None, &mut View::stderr()).await?.checks)
}
