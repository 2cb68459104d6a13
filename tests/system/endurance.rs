//! A growth that two operators watch, that meets restarts of the apiserver or is asked for twice: it goes on from what is there.

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{StepName, UNITS};
use vmi_crds::spec::{SourceRetirement, State};
use vmi_crds::status::StepState;
use vmi_crds::turn::unit_begun;
use vmi_lab::kubernetes::{self, LEASE, NAMESPACE as NAMESPACE_KIND};
use vmi_lab::migration::dump::Dump;
use vmi_lab::migration::operator::{Operator, Options};
use vmi_lab::migration::verdict::{self, Check};
use vmi_lab::migration::view::View;
use vmi_lab::migration::watch::{self, End};
use vmi_lab::migration::{ACCOUNT, NAMESPACE, Site, deploy, request};

use crate::faults::restart_the_apiserver;
use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

/// For a whole way with a new process after each write, on a loaded machine.
pub const LONG: Duration = Duration::from_secs(2000);
fn is_true(step: StepName) -> impl FnMut(&VSphereMigrationInfra) -> Option<TestResult> {
    move |vmi| match watch::end(vmi) {
        Some(end) => Some(Err(format!("it ended as {end:?}").into())),
        None => vmi.is_true(step.as_str()).then_some(Ok(())),
    }
}

/// A growth that stays in step 10 until it is turned back: one that is found healthy goes through its one-way door at once.
pub async fn ready(lab: &Lab) -> TestResult<(Site, Dump)> {
    let (site, before) = asked(lab, SourceRetirement::Keep).await?;
    change(&site, &json!({"health": {"quietPeriod": "20m", "deadline": "30m"}})).await?;
    Ok((site, before))
}

/// Sends a growth that was made ready so back, on which pods are judged as quickly as in any rehearsal.
pub async fn turn_back(site: &Site) -> TestResult {
    change(site, &json!({"state": State::RollingBack, "health": {"quietPeriod": "5s"}})).await
}

pub async fn change(site: &Site, spec: &serde_json::Value) -> TestResult {
    let api: Api<VSphereMigrationInfra> = Api::namespaced(site.client.clone(), NAMESPACE);
    api.patch(request::NAME, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await?;
    Ok(())
}

/// Whether a step is at work.
pub fn is_taken(step: StepName) -> impl FnMut(&VSphereMigrationInfra) -> Option<TestResult> {
    move |vmi| match watch::end(vmi) {
        Some(end) => Some(Err(format!("it ended as {end:?}").into())),
        None => (watch::state(vmi, step) == StepState::Active).then_some(Ok(())),
    }
}

pub async fn asked(lab: &Lab, source: SourceRetirement) -> TestResult<(Site, Dump)> {
    let site = Site::of(&lab.record).await?;
    let before = Dump::take(&site).await?;
    deploy::install(&site).await?;
    request::ask(&site, &request::asked(&site, source)?).await?;
    request::set_state(&site, State::Running).await?;
    Ok((site, before))
}

/// Turned back with a normal operator, ends where it began, and the vmi goes.
pub async fn back_to(site: &Site, before: &Dump) -> TestResult {
    let mut operator = Operator::start(site, &Options::default()).await?;
    let mut view = View::stderr();
    let end = operator.while_alive(watch::follow(site, &mut view, "the way back", LONG, watch::end)).await?;
    assert_eq!(end, End::RolledBack);
    operator.while_alive(request::remove(site)).await?;
    operator.stop().await;
    let healthy = verdict::healthy(site).await;
    assert_eq!(failed(&healthy), Vec::<&Check>::new());
    assert_eq!(before.difference(&Dump::take(site).await?), Vec::<String>::new());
    Ok(())
}

pub fn failed(checks: &[Check]) -> Vec<&Check> {
    checks.iter().filter(|check| !check.passed).collect()
}

/// Waits until every controller has seen the vmi as it is now and no unit is half done.
pub async fn seen_by_all(site: &Site) -> Result<(), vmi_lab::migration::Error> {
    let mut view = View::stderr();
    watch::follow(site, &mut view, "everybody to see the vmi", PATIENCE, |vmi| {
        let current =
            |step: &&vmi_crds::graph::Step| vmi.step(step.name).is_none_or(|seen| seen.observed_generation == vmi.metadata.generation);
        let summed =
            vmi.condition("Paused").is_some_and(|paused| paused.status == "True" && paused.observed_generation == vmi.metadata.generation);
        let half = UNITS.iter().copied().flatten().any(|step| unit_begun(vmi, *step) && !vmi.is_true(step.as_str()));
        (summed && !half && vmi.request().steps().all(|step| current(&step))).then_some(())
    })
    .await
}

pub async fn of_two_operators_one_acts_and_the_other_takes_over_when_it_is_killed(lab: &Lab) -> TestResult {
    let (site, before) = ready(lab).await?;
    // Long, so that the second does not lead before the first is killed.
    let named = |name: &str| Options { identity: name.to_owned(), lease: "20,15,2", ..Options::default() };
    let mut first = Operator::start(&site, &named("first")).await?;
    let mut leases = lab.watch(&[LEASE]).await;
    let holder = |cache: &vmi_lab::cache::Cache| {
        let lease = cache.get(LEASE, NAMESPACE, ACCOUNT)?;
        lease.data["spec"]["holderIdentity"].as_str().map(str::to_owned)
    };
    leases
        .until("the first to lead", PATIENCE, |cache| (holder(cache).as_deref() == Some("first")).then_some(()).ok_or("not yet".to_owned()))
        .await?;
    let mut second = Operator::start(&site, &named("second")).await?;
    let mut view = View::stderr();
    watch::follow(&site, &mut view, "tags", LONG, is_true(StepName::TagsAttached)).await??;
    assert_eq!(holder(&leases).as_deref(), Some("first"));
    first.kill().await?;
    second.while_alive(watch::follow(&site, &mut view, "health", LONG, is_true(StepName::PodsRestarted))).await??;
    leases
        .until("the second to lead", PATIENCE, |cache| {
            (holder(cache).as_deref() == Some("second")).then_some(()).ok_or("not yet".to_owned())
        })
        .await?;
    turn_back(&site).await?;
    second.while_alive(watch::follow(&site, &mut view, "the way back", LONG, watch::end)).await?;
    second.stop().await;
    back_to(&site, &before).await
}

pub async fn a_growth_and_its_way_back_go_on_when_the_apiserver_was_restarted(lab: &Lab) -> TestResult {
    let (site, before) = ready(lab).await?;
    let mut operator = Operator::start(&site, &Options::default()).await?;
    let mut view = View::stderr();
    for step in [StepName::ControlPlaneSetSaved, StepName::InfrastructureExtended, StepName::PodsRestarted] {
        operator.while_alive(watch::follow(&site, &mut view, step.as_str(), LONG, is_true(step))).await??;
        restart_the_apiserver(lab, 500).await?;
    }
    operator.while_alive(watch::follow(&site, &mut view, "health", LONG, is_taken(StepName::PodsHealthy))).await??;
    turn_back(&site).await?;
    restart_the_apiserver(lab, 500).await?;
    let end = operator.while_alive(watch::follow(&site, &mut view, "the way back", LONG, watch::end)).await?;
    assert_eq!(end, End::RolledBack);
    operator.stop().await;
    back_to(&site, &before).await
}

pub async fn a_second_vmi_waits_and_one_in_another_namespace_is_left_alone(lab: &Lab) -> TestResult {
    let (site, before) = ready(lab).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}});
    kubernetes::apply(&site.client, "test", &namespace).await?;
    let other = |name: &str, namespace: &str| -> TestResult<(Api<VSphereMigrationInfra>, VSphereMigrationInfra)> {
        let mut vmi = request::growth(&site)?;
        vmi.metadata.name = Some(name.to_owned());
        vmi.metadata.namespace = Some(namespace.to_owned());
        vmi.spec.state = State::Running;
        Ok((Api::namespaced(site.client.clone(), namespace), vmi))
    };
    let mut operator = Operator::start(&site, &Options::default()).await?;
    let mut view = View::stderr();
    operator.while_alive(watch::follow(&site, &mut view, "the start", LONG, is_true(StepName::PreflightPassed))).await??;
    // It keeps its place meanwhile, and changes nothing that would have to be judged on the way back.
    request::set_state(&site, State::Paused).await?;
    let (here, second) = other("second", NAMESPACE)?;
    here.create(&PostParams::default(), &second).await?;
    let (there, foreign) = other("foreign", "elsewhere")?;
    there.create(&PostParams::default(), &foreign).await?;
    let mut vmis = lab.watch(&[kubernetes::VMI]).await;
    let waits = |cache: &vmi_lab::cache::Cache| {
        let vmi = cache.get(kubernetes::VMI, NAMESPACE, "second").ok_or("no second vmi")?;
        let conditions = vmi.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let progressing = conditions.iter().find(|condition| condition["type"] == "Progressing").ok_or("nothing said")?.clone();
        if progressing["status"] == "False" && progressing["reason"] == "AnotherMigrationActive" {
            Ok(())
        } else {
            Err(progressing.to_string())
        }
    };
    operator.while_alive(async { Ok(vmis.until("the second to wait", PATIENCE, waits).await?) }).await?;
    // The second one would start as soon as the first is over, and leaves only as long as somebody can let it go.
    kubernetes::delete(&site.client, kubernetes::VMI, NAMESPACE, "second").await?;
    let gone = |cache: &vmi_lab::cache::Cache| match cache.get(kubernetes::VMI, NAMESPACE, "second") {
        Some(vmi) => Err(format!("it is there, with the finalizers {:?}", vmi.metadata.finalizers)),
        None => Ok(()),
    };
    operator.while_alive(async { Ok(vmis.until("the second to go", PATIENCE, gone).await?) }).await?;
    turn_back(&site).await?;
    operator.while_alive(watch::follow(&site, &mut view, "the way back", LONG, watch::end)).await?;
    operator.stop().await;
    let foreign = there.get("foreign").await?;
    assert!(foreign.status.is_none() && foreign.metadata.finalizers.is_none(), "{foreign:#?}");
    kubernetes::delete(&site.client, kubernetes::VMI, "elsewhere", "foreign").await?;
    kubernetes::delete(&site.client, NAMESPACE_KIND, "", "elsewhere").await?;
    assert_eq!(watch::state(&here.get(request::NAME).await?, StepName::PodsHealthy), StepState::Waiting);
    back_to(&site, &before).await
}
