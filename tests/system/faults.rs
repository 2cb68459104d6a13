//! Ways to break a lab: each strikes, is listed, and is gone when it is lifted.

use std::time::Duration;

use kube::ResourceExt as _;
use serde_json::{Value, json};
use vmi_lab::cache::Cache;
use vmi_lab::control_plane::SIDE_DOOR;
use vmi_lab::faults::{Calls, Fault, Faults, Listed};
use vmi_lab::kubernetes::{
    self, CLUSTER_OPERATOR, CONFIG_MAP, CONTROL_PLANE_MACHINE_SET, EVENT, MACHINE, MACHINE_SET, NODE, POD, condition,
};
use vmi_lab::migration::vcenters;
use vmi_lab::vcenter::{Vcenter, random_password};
use vsphere::{Cardinality, CategorySpec, Kind};

use crate::pods::running;
use crate::support::command;
use crate::support::lab::Lab;
use crate::support::openshift::{MACHINE_API, PATIENCE, copy_machine_set, scaled, vcenter, virtual_machines};
use crate::support::suite::TestResult;

const CCM: &str = "openshift-cloud-controller-manager";

async fn listed(faults: &Faults, id: &str) -> TestResult<Option<Listed>> {
    Ok(faults.list().await?.into_iter().find(|fault| fault.id == id))
}

/// Adds a fault, lets `look` see it strike, and lifts it, also where it did not strike.
async fn with<T>(lab: &Lab, fault: Fault, look: impl AsyncFnOnce() -> TestResult<T>) -> TestResult<T> {
    let faults = Faults::of(&lab.record).await?;
    let id = faults.add(&fault).await?;
    assert!(listed(&faults, &id).await?.is_some(), "{id} is not listed");
    let seen = look().await;
    faults.lift(&id).await?;
    assert_eq!(listed(&faults, &id).await?, None, "it is still listed");
    seen.map_err(|error| format!("{fault:?}: {error}").into())
}

pub async fn every_fault_of_a_vcenter_strikes_until_it_is_lifted(lab: &Lab) -> TestResult {
    let target = vcenter(lab, "b")?;
    let name = || "b".to_owned();
    let calls = Calls { method: Some("RetrieveP*".to_owned()), ..Calls::default() };
    for fault in [
        Fault::Status { vcenter: name(), code: 503, calls: Calls::default() },
        Fault::Drop { vcenter: name(), calls },
        Fault::Certificate { vcenter: name() },
        Fault::Gone { vcenter: name(), object: "/dc-b".to_owned() },
    ] {
        let gone = matches!(fault, Fault::Gone { .. });
        with(lab, fault, async || match vcenters::read(&target).await {
            // What is gone is no failure of the vCenter's.
            Ok(contents) if gone => {
                assert!(!contents.folders.iter().any(|folder| folder.starts_with("/dc-b")), "{:?}", contents.folders);
                Ok(())
            }
            Ok(_) => Err("nothing failed".into()),
            Err(_) => Ok(()),
        })
        .await?;
        vcenters::read(&target).await?;
    }
    Ok(())
}

pub async fn what_a_fault_did_to_a_vcenters_calls_is_counted(lab: &Lab) -> TestResult {
    let target = vcenter(lab, "b")?;
    let faults = Faults::of(&lab.record).await?;
    for fault in [
        Fault::Latency { vcenter: "b".to_owned(), milliseconds: 5, calls: Calls { api: Some("soap".to_owned()), ..Calls::default() } },
        Fault::Password { vcenter: "b".to_owned() },
    ] {
        let id = faults.add(&fault).await?;
        // The client never sends a refused password again, also not when it is right once more: so it is sent one that never is.
        let read = match fault {
            Fault::Password { .. } => vcenters::read(&Vcenter { password: random_password(), ..target.clone() }).await,
            _ => vcenters::read(&target).await,
        };
        assert_eq!(read.is_err(), matches!(fault, Fault::Password { .. }), "{fault:?}");
        let hits = listed(&faults, &id).await?.and_then(|listed| listed.hits);
        assert!(hits > Some(0), "{fault:?} has {hits:?} hits");
        faults.lift(&id).await?;
    }
    Ok(())
}

pub async fn sessions_end_and_privileges_are_missing(lab: &Lab) -> TestResult {
    let target = vcenter(lab, "b")?;
    let client = vcenters::client(&target)?;
    client.tags().categories().await?;
    let faults = Faults::of(&lab.record).await?;
    faults.add(&Fault::Sessions { vcenter: "b".to_owned() }).await?;
    let open = |all: Value| all.as_array().into_iter().flatten().find(|count| count["vcenter"] == "b").map(|count| count["rest"].clone());
    assert_eq!(open(lab.control.get("/sessions").await?), Some(json!(0)));
    assert_eq!(faults.list().await?, [], "what happened once is not in force");

    let denied = Fault::Privileges {
        vcenter: "b".to_owned(),
        missing: vec!["InventoryService.Tagging.CreateCategory".to_owned()],
        object: String::new(),
    };
    let category = CategorySpec {
        name: "vmi-lab-denied".to_owned(),
        description: String::new(),
        cardinality: Cardinality::Single,
        types: vec![Kind::Datacenter],
    };
    with(lab, denied, async || {
        let made = client.tags().ensure_category(&category).await;
        if made.is_err() { Ok(()) } else { Err("the category could be made".into()) }
    })
    .await?;
    Ok(client.logout().await?)
}

pub async fn a_fault_that_there_is_not_is_refused_with_what_there_is(lab: &Lab) -> TestResult {
    let run = async |arguments: &[&str]| command::vmi_lab(&vmi_lab::home::folder(), arguments).await;
    let refused = run(&["fault", "add", "latency", "z", "--name", &lab.record.name]).await?;
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("has no vCenter \"z\"; it has: a, b"), "{}", refused.stderr);
    let refused = run(&["fault", "lift", "b/99", "--name", &lab.record.name]).await?;
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("there is no fault \"b/99\""), "{}", refused.stderr);
    Ok(())
}

pub async fn faults_are_added_shown_by_status_and_lifted_on_the_command_line(lab: &Lab) -> TestResult {
    let run = async |arguments: &[&str]| {
        let named: Vec<&str> = arguments.iter().copied().chain(["--name", &lab.record.name]).collect();
        command::vmi_lab(&vmi_lab::home::folder(), &named).await?.success()
    };
    let id = run(&["fault", "add", "latency", "b", "--milliseconds", "7"]).await?.stdout;
    assert_eq!(run(&["fault", "add", "never-joins", "nobody"]).await?.stdout.trim(), "never-joins.nobody");
    let status = run(&["status"]).await?.stdout;
    for words in [id.trim(), "latency milliseconds=7 vcenter=b, 0 hits", "never-joins.nobody never-joins prefix=nobody"] {
        assert!(status.contains(words), "{words:?} is missing in: {status}");
    }
    run(&["fault", "lift", id.trim()]).await?;
    assert!(!run(&["fault", "list"]).await?.stdout.contains("latency"));
    run(&["fault", "lift", "--all"]).await?;
    assert_eq!(run(&["fault", "list"]).await?.stdout, "");
    Ok(())
}

pub async fn the_apiserver_is_restarted_and_the_lab_goes_on(lab: &Lab) -> TestResult {
    restart_the_apiserver(lab, 200).await
}

/// Returns when another one is there, which lifts the fault.
pub async fn restart_the_apiserver(lab: &Lab, milliseconds: u32) -> TestResult {
    let before = running(lab, "kube-apiserver")?;
    let faults = Faults::of(&lab.record).await?;
    // The answer may be lost with the apiserver that was to give it.
    let _ = faults.add(&Fault::ApiserverRestart { milliseconds }).await;
    let mut cache = lab.watch(&[CONFIG_MAP, NODE]).await;
    cache
        .until("the fault to be lifted by the apiserver's return", PATIENCE, |cache| {
            let left = vmi_lab::faults::board::seen(cache);
            let now = running(lab, "kube-apiserver").map_err(|error| error.to_string())?;
            if left.is_empty() && now != before && now.len() == 1 {
                Ok(())
            } else {
                Err(format!("{left:?}, process {now:?} after {before:?}"))
            }
        })
        .await?;
    Ok(())
}

pub async fn what_a_slow_watch_brings_comes_after_it_has_happened(lab: &Lab) -> TestResult {
    let door = format!("https://{}:{SIDE_DOOR}", lab.record.block.control_plane());
    let mut config = lab.config().await?;
    config.cluster_url = door.parse()?;
    let mut late = Cache::start(&kube::Client::try_from(config)?, &[(CONFIG_MAP, "default")]).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen-late", "namespace": "default"}});
    with(lab, Fault::SlowWatch { milliseconds: 30_000 }, async || {
        // Before an event can be told from an answer.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut at_once = lab.watch(&[CONFIG_MAP]).await;
        kubernetes::apply(&lab.client, "system-test", &map).await?;
        let there = |cache: &Cache| cache.get(CONFIG_MAP, "default", "seen-late").map(drop).ok_or_else(|| "it is not there".to_owned());
        at_once.until("the others to see it", PATIENCE, there).await?;
        assert_eq!(there(&late), Err("it is not there".to_owned()));
        Ok(late.until("the slow watch to bring it", PATIENCE, there).await?)
    })
    .await?;
    Ok(kubernetes::delete(&lab.client, CONFIG_MAP, "default", "seen-late").await?)
}

/// Waits until the containers of a workload's pods are all as wanted.
async fn containers(lab: &Lab, namespace: &str, workload: &str, wanted: impl Fn(&Value) -> bool) -> TestResult {
    let mut cache = lab.watch(&[POD]).await;
    cache
        .until(&format!("the containers of {workload}"), PATIENCE, |cache| {
            let pods = cache.list(POD);
            let of: Vec<_> =
                pods.iter().filter(|pod| pod.namespace().as_deref() == Some(namespace) && pod.name_any().starts_with(workload)).collect();
            let all: Vec<&Value> =
                of.iter().flat_map(|pod| pod.data["status"]["containerStatuses"].as_array().into_iter().flatten()).collect();
            if !all.is_empty() && all.iter().all(|status| wanted(status)) { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await?;
    Ok(())
}

pub async fn the_machine_controller_crash_loops_and_its_neighbours_do_not(lab: &Lab) -> TestResult {
    let workload = "machine-api-controllers";
    with(lab, Fault::MachineControllerCrashLoop, async || {
        containers(lab, MACHINE_API, workload, |status| match status["name"] == "machine-controller" {
            true => status["state"]["waiting"]["reason"] == "CrashLoopBackOff",
            false => status["ready"] == true,
        })
        .await
    })
    .await?;
    // It starts again at once, whatever its back-off was.
    containers(lab, MACHINE_API, workload, |status| status["ready"] == true).await
}

pub async fn the_cloud_controller_manager_is_killed_and_comes_back(lab: &Lab) -> TestResult {
    let workload = "vsphere-cloud-controller-manager";
    with(lab, Fault::CcmKilled, async || containers(lab, CCM, workload, |status| status["ready"] == false).await).await?;
    containers(lab, CCM, workload, |status| status["ready"] == true).await
}

pub async fn a_control_plane_node_without_a_machine_degrades_the_control_plane_machine_set(lab: &Lab) -> TestResult {
    let mut cache = lab.watch(&[CLUSTER_OPERATOR, CONTROL_PLANE_MACHINE_SET]).await;
    let mut says = async |wanted: &str| {
        cache
            .until(&format!("Degraded to be {wanted}"), PATIENCE, |cache| {
                let operator = cache.get(CLUSTER_OPERATOR, "", "control-plane-machine-set").ok_or("no operator")?;
                let set = cache.get(CONTROL_PLANE_MACHINE_SET, MACHINE_API, "cluster").ok_or("no set")?;
                let is = (condition(&operator, "Degraded"), condition(&set, "Degraded"));
                if is == (wanted, wanted) { Ok(()) } else { Err(format!("{is:?}")) }
            })
            .await
    };
    with(lab, Fault::CpmsDegraded, async || Ok(says("True").await?)).await?;
    Ok(says("False").await?)
}

pub async fn a_machine_that_never_joins_is_provisioned_and_has_no_node(lab: &Lab) -> TestResult {
    let set = "lab-x7k2p-lonely";
    with(lab, Fault::NeverJoins { prefix: set.to_owned() }, async || {
        copy_machine_set(lab, set, 1).await?;
        let mut cache = lab.watch(&[MACHINE, NODE]).await;
        let phase = |cache: &Cache| {
            let machines = cache.list(MACHINE);
            let machine = machines.iter().find(|machine| machine.name_any().starts_with(set)).ok_or("no machine yet")?;
            let phase = machine.data["status"]["phase"].as_str().unwrap_or_default();
            if phase == "Provisioned" { Ok(machine.name_any()) } else { Err(format!("it is {phase}")) }
        };
        let name = cache.until("the machine to be Provisioned", PATIENCE, phase).await?;
        assert!(cache.get(NODE, "", &name).is_none(), "{name} has joined");
        Ok(())
    })
    .await?;
    scaled(lab, set, 1).await?;
    kubernetes::delete(&lab.client, MACHINE_SET, MACHINE_API, set).await?;
    gone(lab, set).await
}

/// Waits until no Machine and no Node has a name that begins so.
async fn gone(lab: &Lab, prefix: &str) -> TestResult {
    let mut cache = lab.watch(&[MACHINE, NODE]).await;
    cache
        .until(&format!("{prefix} to be gone"), PATIENCE, |cache| {
            let mut all = cache.list(MACHINE);
            all.extend(cache.list(NODE));
            all.iter().find(|object| object.name_any().starts_with(prefix)).map_or(Ok(()), |left| Err(left.name_any()))
        })
        .await?;
    Ok(())
}

pub async fn a_blocked_drain_holds_a_machine_until_it_is_lifted(lab: &Lab) -> TestResult {
    let machines = kubernetes::list(&lab.client, MACHINE, MACHINE_API).await?;
    let name = machines.iter().map(kube::ResourceExt::name_any).find(|name| name.contains("worker")).ok_or("no worker")?;
    with(lab, Fault::DrainBlocked, async || {
        let mut cache = lab.watch(&[MACHINE, POD, EVENT]).await;
        let on_it =
            |pod: &kube::api::DynamicObject| pod.name_any().starts_with("drain-blocker") && pod.data["spec"]["nodeName"] == name.as_str();
        let running = |cache: &Cache| {
            let ready = cache.list(POD).iter().any(|pod| on_it(pod) && condition(pod, "Ready") == "True");
            if ready { Ok(()) } else { Err("no blocker on it".to_owned()) }
        };
        cache.until("a pod that may not be evicted", PATIENCE, running).await?;
        kubernetes::delete(&lab.client, MACHINE, MACHINE_API, &name).await?;
        // Its condition never gets so far: the real controller sets it and then forgets to write it.
        let blocked = |cache: &Cache| {
            cache.get(MACHINE, MACHINE_API, &name).ok_or("the machine is gone")?;
            let events = cache.list(EVENT);
            let of_it = events.iter().filter(|event| event.data["involvedObject"]["name"] == name.as_str());
            let requeued = of_it.clone().any(|event| event.data["reason"] == "DrainRequeued");
            if requeued { Ok(()) } else { Err(of_it.map(|event| event.data["reason"].to_string()).collect()) }
        };
        Ok(cache.until("the drain to fail", PATIENCE, blocked).await?)
    })
    .await?;
    gone(lab, &name).await
}

pub async fn a_vcenter_is_crowded_in_one_go(lab: &Lab) -> TestResult {
    let before = virtual_machines(lab, "b").await?.len();
    let run = async |arguments: &[&str]| {
        let named: Vec<&str> = arguments.iter().copied().chain(["--name", &lab.record.name]).collect();
        command::vmi_lab(&vmi_lab::home::folder(), &named).await
    };
    run(&["crowd", "b", "10000"]).await?.success()?;
    assert_eq!(virtual_machines(lab, "b").await?.len(), before + 10_000);
    let again = run(&["crowd", "b", "1"]).await?;
    assert_eq!(again.code(), 2, "{}", again.stderr);
    assert!(again.stderr.contains("has its synthetic virtual machines already"), "{}", again.stderr);
    Ok(())
}
