//! The engine that controllers are built on, with a step that makes one ConfigMap, on a real apiserver.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use vmi_crds::graph::{self, StepName};
use vmi_crds::status::StepState;
use vmi_crds::turn::Turn;
use vmi_kit::cache::Cache;
use vmi_kit::failure::overtaken;
use vmi_kit::kind::{CONFIG_MAP, LEASE, SECRET};
use vmi_kit::leader::{self, Timing};
use vmi_kit::{OWN, Stop, Touch, reads};
use vmi_lab::kubernetes;
use vmi_steps::saved;
use vmi_steps::{Controller, Migration, Report, Seen, Step, Wake, Writer, take};

use crate::support::alone::{Alone, Ground, NAME};
use crate::support::lab::Lab;
use crate::support::openshift::PATIENCE;
use crate::support::suite::TestResult;

/// A controller with one step.
struct Toy;

impl Controller for Toy {
    const NAME: graph::Controller = graph::Controller::VcenterPrep;
    const TOUCHES: &'static [Touch] = &[
        reads(CONFIG_MAP).within(OWN).writes(&["create", "delete"]),
        // What is saved before the first write.
        reads(SECRET).within(OWN).writes(&["create", "patch"]),
    ];

    async fn reconcile(&self, m: &Migration, report: &mut Report) -> Result<Wake, Stop> {
        take(&MakeConfigMap, m, report).await
    }
}

struct MakeConfigMap;

enum Act {
    Make,
    Remove,
}

impl Step for MakeConfigMap {
    const NAME: StepName = StepName::TagsAttached;
    type Act = Act;

    async fn observe(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        Ok(match m.get(CONFIG_MAP, &m.cx.namespace, "toy") {
            Some(_) => Seen::done("Attached", "the ConfigMap is there"),
            None => Seen::Todo { act: Act::Make, changes: vec!["make the ConfigMap toy".to_owned()] },
        })
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        Ok(match m.get(CONFIG_MAP, &m.cx.namespace, "toy") {
            None => Seen::done("Undone", "the ConfigMap is gone"),
            Some(_) => Seen::Todo { act: Act::Remove, changes: vec!["delete the ConfigMap toy".to_owned()] },
        })
    }

    async fn act(&self, m: &Migration, act: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
        match act {
            Act::Make => {
                writer.save("toy", &json!("absent")).await?;
                writer.create(CONFIG_MAP, config_map(&m.cx.namespace), "make the ConfigMap toy").await?;
            }
            Act::Remove => {
                let Some(object) = m.get(CONFIG_MAP, &m.cx.namespace, "toy") else { return Ok(()) };
                writer.delete(CONFIG_MAP, &object, "delete the ConfigMap toy").await?;
            }
        }
        Ok(())
    }

    fn drifted(&self, m: &Migration) -> Option<String> {
        m.get(CONFIG_MAP, &m.cx.namespace, "toy").is_none().then(|| "the ConfigMap toy is gone".to_owned())
    }
}

fn config_map(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "toy", "namespace": namespace}})
}

const STEP: StepName = StepName::TagsAttached;

async fn made(ground: &Ground<'_>) -> TestResult<bool> {
    Ok(kubernetes::get(&ground.lab.client, kubernetes::CONFIG_MAP, &ground.namespace, "toy").await?.is_some())
}

pub async fn a_step_plans_acts_in_its_turn_latches_and_is_taken_back(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "kit-turns", json!({})).await?;
    let alone = Alone::run(&ground, Toy).await?;
    let planned = ground.until_condition(STEP, "False", "NotStarted").await?;
    assert_eq!(planned.step(STEP).unwrap().changes, ["make the ConfigMap toy"]);
    ground.start("native").await?;
    ground.until_condition(STEP, "False", "Waiting").await?;
    assert!(!made(&ground).await?, "it acted before its turn");
    ground.done(&[StepName::ClusterVersionFrozen, StepName::InfrastructureUnlocked, StepName::ControlPlaneSetSaved]).await?;
    let done = ground.until_condition(STEP, "True", "Attached").await?;
    assert!(made(&ground).await?);
    let step = done.step(STEP).unwrap();
    assert_eq!((step.state, step.attempts), (StepState::Done, 1));
    assert!(step.log.iter().any(|line| line.ends_with("make the ConfigMap toy")), "{:?}", step.log);

    // What is done is not done again, whatever becomes of it; an edit of the spec only restamps it.
    kubernetes::delete(&lab.client, kubernetes::CONFIG_MAP, &ground.namespace, "toy").await?;
    ground.edit(json!({"health": {"quietPeriod": "4s"}})).await?;
    let generation = ground.vmi().await?.metadata.generation;
    ground
        .until("the step to be restamped", |vmi| match vmi.condition(STEP.as_str()) {
            Some(condition) if condition.observed_generation == generation && condition.status == "True" => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    assert!(!made(&ground).await?, "a step that is done acted again");

    kubernetes::apply(&lab.client, "test", &config_map(&ground.namespace)).await?;
    // The controller sees it by another watch than the vmi.
    let mut changes = alone.context().cache.changes();
    while alone.context().cache.get(CONFIG_MAP, &ground.namespace, "toy").is_none() {
        tokio::time::timeout(PATIENCE, changes.changed()).await??;
    }
    ground.edit(json!({"state": "RollingBack"})).await?;
    let undone = ground.until_condition(STEP, "False", "Undone").await?;
    assert_eq!(undone.step_state(STEP), StepState::Undone);
    assert!(!made(&ground).await?);
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn a_paused_step_changes_nothing_until_it_is_resumed(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "kit-pause", json!({})).await?;
    ground.start("native").await?;
    ground.edit(json!({"state": "Paused"})).await?;
    ground.done(&[StepName::ClusterVersionFrozen, StepName::InfrastructureUnlocked, StepName::ControlPlaneSetSaved]).await?;
    let alone = Alone::run(&ground, Toy).await?;
    ground.until_condition(STEP, "False", "Paused").await?;
    assert!(!made(&ground).await?);
    ground.edit(json!({"state": "Running"})).await?;
    ground.until_condition(STEP, "True", "Attached").await?;
    alone.finish(&ground).await?;
    ground.leave().await
}

pub async fn a_write_is_not_made_when_the_vmi_has_changed_its_mind(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "kit-fence", json!({})).await?;
    ground.start("native").await?;
    ground.done(&[StepName::ClusterVersionFrozen, StepName::InfrastructureUnlocked, StepName::ControlPlaneSetSaved]).await?;
    let seen = Arc::new(ground.vmi().await?);
    let alone = Alone::run(&ground, Idle).await?;
    let m = Migration { vmi: seen, cx: alone.context() };
    assert_eq!(vmi_crds::turn::turn(&m.vmi, STEP), Turn::Forward);
    // The controller still sees a vmi that runs; the apiserver knows better.
    ground.edit(json!({"state": "Paused"})).await?;
    let mut writer = Writer::new(&m, STEP, Turn::Forward);
    let outcome = writer.create(CONFIG_MAP, config_map(&ground.namespace), "make the ConfigMap toy").await;
    assert!(matches!(outcome, Err(Stop::Fenced(_))), "{outcome:?}");
    assert!(!made(&ground).await?);
    alone.finish(&ground).await?;
    ground.leave().await
}

/// Looks and does nothing.
struct Idle;

impl Controller for Idle {
    const NAME: graph::Controller = graph::Controller::VcenterPrep;
    const TOUCHES: &'static [Touch] = Toy::TOUCHES;

    async fn reconcile(&self, _: &Migration, _: &mut Report) -> Result<Wake, Stop> {
        Ok(None)
    }
}

pub async fn one_process_leads_at_a_time_and_the_next_takes_over(lab: &Lab) -> TestResult {
    let timing: Timing = "4,3,1".parse()?;
    let begin = |identity: &str| {
        let (leads, led) = watch::channel(false);
        let holding = leader::hold(lab.client.clone(), "default".to_owned(), "kit-leader", identity.to_owned(), timing, leads);
        (tokio::spawn(holding), led)
    };
    let (first, mut first_leads) = begin("first");
    tokio::time::timeout(PATIENCE, first_leads.wait_for(|leads| *leads)).await??;
    let (second, mut second_leads) = begin("second");
    // Long enough to have tried more than once.
    let early = tokio::time::timeout(Duration::from_secs(3), second_leads.wait_for(|leads| *leads)).await.is_ok();
    assert!(!early, "two lead at once");
    // As a crash: nothing is released, and the lease runs out.
    first.abort();
    tokio::time::timeout(PATIENCE, second_leads.wait_for(|leads| *leads)).await??;
    second.abort();
    leader::release(&lab.client, "default", "kit-leader", "second").await?;
    let (third, mut third_leads) = begin("third");
    tokio::time::timeout(PATIENCE, third_leads.wait_for(|leads| *leads)).await??;
    third.abort();
    Ok(LEASE.api(&lab.client, "default").delete("kit-leader", &kube::api::DeleteParams::default()).await.map(drop)?)
}

pub async fn a_killed_step_goes_on_from_what_it_sees(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "kit-kill", json!({})).await?;
    ground.start("native").await?;
    let alone = Alone::run(&ground, Toy).await?;
    ground.until_condition(STEP, "False", "Waiting").await?;
    alone.kill().await;
    // It had made the ConfigMap and was killed before it could say so.
    kubernetes::apply(&lab.client, "test", &config_map(&ground.namespace)).await?;
    ground.done(&[StepName::ClusterVersionFrozen, StepName::InfrastructureUnlocked, StepName::ControlPlaneSetSaved]).await?;
    let alone = Alone::run(&ground, Toy).await?;
    ground.until_condition(STEP, "True", "Attached").await?;
    assert_eq!(ground.vmi().await?.metadata.name.as_deref(), Some(NAME));
    alone.finish(&ground).await?;
    ground.leave().await
}

/// Steps that are taken at the same time save into one Secret, and none of them changes what another has saved.
pub async fn an_original_is_saved_once_whatever_others_save_meanwhile(lab: &Lab) -> TestResult {
    let api = SECRET.api(&lab.client, "default");
    let first = serde_json::from_value(saved::first("kit", "default", "mine", "one.1", &json!("as it was")))?;
    api.create(&kube::api::PostParams::default(), &first).await?;
    let save = async |uid: &str, key: &str, value: &str| {
        let patch: json_patch::Patch = serde_json::from_value(saved::added(uid, key, &json!(value)))?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(
            match api.patch(&saved::secret_name("kit"), &kube::api::PatchParams::default(), &kube::api::Patch::Json::<()>(patch)).await {
                Ok(_) => true,
                Err(kube::Error::Api(answer)) if overtaken(&answer) => false,
                Err(error) => return Err(error.into()),
            },
        )
    };
    assert!(save("mine", "two-2", "as it was").await?, "a new key");
    assert!(!save("mine", "one.1", "as it is").await?, "a key that is there");
    assert!(!save("another", "three", "as it was").await?, "another migration's Secret");
    let secret = api.get(&saved::secret_name("kit")).await?;
    for (key, wanted) in [("one.1", Some("as it was")), ("two-2", Some("as it was")), ("three", None)] {
        assert_eq!(saved::read(&secret, key), wanted.map(|text| json!(text)), "{key}");
    }
    Ok(api.delete(&saved::secret_name("kit"), &kube::api::DeleteParams::default()).await.map(drop)?)
}

pub async fn what_was_made_can_be_read_at_once_and_what_was_deleted_cannot(lab: &Lab) -> TestResult {
    let cache = Cache::start(&lab.client, "default", &[reads(CONFIG_MAP).within(OWN)]);
    cache.ready().await;
    let api = CONFIG_MAP.api(&lab.client, "default");
    let made = serde_json::from_value(config_map("default"))?;
    for _ in 0..20 {
        let made = api.create(&kube::api::PostParams::default(), &made).await?;
        let uid = made.metadata.uid.clone().unwrap_or_default();
        cache.take(made, CONFIG_MAP);
        assert!(cache.get(CONFIG_MAP, "default", "toy").is_some(), "it was made, and a look would make it once more");
        api.delete("toy", &kube::api::DeleteParams::default()).await?;
        cache.until_deleted(CONFIG_MAP, "default", "toy", &uid).await;
    }
    Ok(())
}

pub async fn what_others_change_of_a_finished_step_is_shown_until_it_is_mended_or_taken_over_and_never_repaired(lab: &Lab) -> TestResult {
    let ground = Ground::new(lab, "kit-drift", json!({})).await?;
    ground.start("native").await?;
    ground.done(&[StepName::ClusterVersionFrozen, StepName::InfrastructureUnlocked, StepName::ControlPlaneSetSaved]).await?;
    let alone = Alone::run(&ground, Toy).await?;
    let done = ground.until_condition(STEP, "True", "Attached").await?.condition(STEP.as_str()).cloned().ok_or("no condition")?;
    let gone = || kubernetes::delete(&lab.client, kubernetes::CONFIG_MAP, &ground.namespace, "toy");
    gone().await?;
    let vmi = ground.until_condition(STEP, "True", "Drifted").await?;
    let shown = vmi.condition(STEP.as_str()).cloned().ok_or("no condition")?;
    assert!(shown.message.starts_with("the ConfigMap toy is gone; ") && shown.message.contains("put it back by hand"), "{}", shown.message);
    assert_eq!(shown.last_transition_time, done.last_transition_time, "it was True all the time");
    assert_eq!(shown.observed_generation, vmi.metadata.generation);
    let step = vmi.step(STEP).ok_or("no step")?;
    assert_eq!((step.state, step.attempts, step.message.as_str()), (StepState::Done, 1, done.message.as_str()));
    assert!(step.log.iter().any(|line| line.ends_with("the ConfigMap toy is gone")), "{:?}", step.log);

    // An edit restamps it, and a restart knows it: neither repairs it or tells of it again.
    ground.edit(json!({"health": {"quietPeriod": "4s"}})).await?;
    let generation = ground.vmi().await?.metadata.generation;
    let restamped = ground
        .until("the drift to be restamped", |vmi| match vmi.condition(STEP.as_str()) {
            Some(condition) if condition.observed_generation == generation && condition.reason == "Drifted" => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
    alone.finish(&ground).await?;
    let alone = Alone::run(&ground, Toy).await?;
    assert!(!made(&ground).await?, "a drift was repaired");
    kubernetes::apply(&lab.client, "test", &config_map(&ground.namespace)).await?;
    let mended = ground.until_condition(STEP, "True", "Attached").await?;
    assert_eq!(mended.condition(STEP.as_str()).map(|condition| &condition.message), Some(&done.message));
    let lines = |vmi: &vmi_crds::VSphereMigrationInfra| vmi.step(STEP).map_or(0, |step| step.log.len());
    assert_eq!(lines(&mended), lines(&restamped) + 1, "{:?}", mended.step(STEP));

    // On the way back it is not looked for, also while others come first.
    ground.done(&[StepName::CredentialsAdded, StepName::InfrastructureExtended, StepName::CloudConfigExtended]).await?;
    gone().await?;
    ground.until_condition(STEP, "True", "Drifted").await?;
    ground.edit(json!({"state": "RollingBack"})).await?;
    let waits = ground.until_condition(STEP, "True", "Attached").await?;
    assert_eq!(waits.condition(STEP.as_str()).map(|condition| &condition.message), Some(&done.message));
    ground
        .report(
            "config-rewrite",
            json!({}),
            &[
                (StepName::CredentialsAdded, "True", "Done", "Done"),
                (StepName::InfrastructureExtended, "False", "Undone", "Undone"),
                (StepName::CloudConfigExtended, "False", "Undone", "Undone"),
            ],
        )
        .await?;
    ground.undone(&[StepName::PodsRestarted, StepName::PodsHealthy]).await?;
    ground.until_condition(STEP, "False", "Undone").await?;
    alone.finish(&ground).await?;
    ground.leave().await
}
