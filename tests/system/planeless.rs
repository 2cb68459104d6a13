//! A cluster that never had a control plane machine set, and whose operator makes none: step 12 makes one for the masters as they
//! are, moves it, and leaves none behind.

use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::json;
use vmi_crds::graph::StepName::ControlPlaneReady;
use vmi_crds::spec::{SourceRetirement, State};
use vmi_lab::cluster::machines;
use vmi_lab::kubernetes::{self, CONTROL_PLANE_MACHINE_SET, MACHINE};
use vmi_lab::migration::dump::Dump;
use vmi_lab::migration::operator::{Operator, Options};
use vmi_lab::migration::view::View;
use vmi_lab::migration::watch::{self, End};
use vmi_lab::migration::{ACCOUNT, NAMESPACE, Site, account, audit, moved, rehearsal, request};

use crate::endurance::LONG;
use crate::support::forbidden::Forbidden;
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, is_master, passed};
use crate::support::suite::TestResult;

/// As with releases whose generator does not know vSphere.
pub const NONE_IS_GENERATED: Forbidden = Forbidden {
    name: "no-control-plane-machine-set-is-generated",
    account: (MACHINE_API, "control-plane-machine-set-operator"),
    operation: "CREATE",
    kind: CONTROL_PLANE_MACHINE_SET,
    subresource: "",
};

/// A lab of its own: a cluster that was moved stays where it is.
pub async fn without_a_control_plane_machine_set_and_a_generator_one_is_made_moved_and_taken_away() -> TestResult {
    let lab = Lab::start("ancient", "planeless").await?;
    let result = there_and_back_and_there(&lab).await;
    lab.stop().await?;
    result
}

async fn there_and_back_and_there(lab: &Lab) -> TestResult {
    NONE_IS_GENERATED.add(lab).await?;
    let site = Site::of(&lab.record).await?;
    assert!(the_set(lab).await?.is_none(), "this shape has none");
    let back = rehearsal::rehearse(&site, SourceRetirement::Remove, Some(ControlPlaneReady), &mut View::stderr()).await?;
    passed(&back.checks)?;
    let mut operator = Operator::start(&site, &Options::default()).await?;
    operator.while_alive(request::remove(&site)).await?;

    let before = Dump::take(&site).await?;
    let began = jiff::Timestamp::now();
    request::ask(&site, &request::asked(&site, SourceRetirement::Remove)?).await?;
    request::set_state(&site, State::Running).await?;
    let end = operator.while_alive(watch::follow(&site, &mut View::stderr(), "the end of the move", LONG, watch::end)).await?;
    assert_eq!(end, End::Completed);
    made_moved_and_taken_away(&site, began).await?;
    assert!(the_set(lab).await?.is_none(), "where there was none, none is left");

    a_generator_comes(lab, &site).await?;
    let checks = moved::verdict(&site, &before).await?;
    operator.stop().await;
    passed(&checks)
}

async fn the_set(lab: &Lab) -> TestResult<Option<kube::api::DynamicObject>> {
    Ok(kubernetes::get(&lab.client, CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").await?)
}

/// First for the masters as they are, by the log of the step; and in this order, by the audit log.
async fn made_moved_and_taken_away(site: &Site, began: jiff::Timestamp) -> TestResult {
    let vmi = request::get(site).await?;
    let log = vmi.step(ControlPlaneReady).map(|step| step.log.join("\n")).unwrap_or_default();
    for words in ["made for the masters as they are, in migration", "failure domains from migration", "to fd-b, Active, RollingUpdate"] {
        assert!(log.contains(words), "{words:?} is missing in: {log}");
    }
    let user = account::user(NAMESPACE, ACCOUNT);
    let of_the_set = |event: &audit::Event| event.object_ref.resource == CONTROL_PLANE_MACHINE_SET.plural;
    let written = audit::read(&site.folder, began, |event| event.user.username == user && event.is_write() && of_the_set(event))?;
    let verbs: Vec<&str> = written.iter().map(|event| event.verb.as_str()).collect();
    assert_eq!(verbs, ["create", "patch", "delete"]);
    Ok(())
}

/// Once it can, the real generator makes an inactive one for the masters where they are now.
async fn a_generator_comes(lab: &Lab, site: &Site) -> TestResult {
    // By then its webhook, in the same process, also knows the failure domains that are listed now: refused, it would try again only
    // after many minutes.
    let made = machines::control_plane_machine_set(&site.target, &site.target_domains(), "Inactive");
    let made = serde_json::from_value(made)?;
    let attempt = async |client| {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        match CONTROL_PLANE_MACHINE_SET.api(&client, MACHINE_API).create(&dry_run, &made).await {
            // It was quicker.
            Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(()),
            other => other.map(drop),
        }
    };
    NONE_IS_GENERATED.lift_for_sure(lab, attempt).await?;
    let machines = kubernetes::list(&lab.client, MACHINE, MACHINE_API).await?;
    let master = machines.iter().find(|machine| is_master(machine)).ok_or("no master")?.name_any();
    // It looks whenever a machine changes.
    let noted = json!({"metadata": {"annotations": {"system-test/seen": "now"}}});
    kubernetes::merge(&lab.client, MACHINE, MACHINE_API, &master, &noted).await?;
    let mut cache = lab.watch(&[CONTROL_PLANE_MACHINE_SET]).await;
    let made = |cache: &vmi_lab::cache::Cache| {
        let set = cache.get(CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").ok_or("there is none")?;
        if set.data["spec"]["state"] == "Inactive" { Ok(()) } else { Err(set.data["spec"].to_string()) }
    };
    Ok(cache.until("an inactive control plane machine set", PATIENCE, made).await?)
}
