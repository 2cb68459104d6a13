//! Folders and tasks.

use std::time::Duration;

use serde_json::json;
use vsphere::{Cardinality, CategorySpec, Client, Fault, Identity, Ref, Want};

use crate::vcsim::Vcsim;

const PATIENT: Duration = Duration::from_secs(60);

async fn vm_folder(client: &Client) -> Ref {
    client.find_by_path("/dc-a/vm").await.unwrap().unwrap()
}

#[tokio::test]
async fn a_folder_is_made_once_and_adopted_ever_after() {
    let sim = Vcsim::start();
    let client = sim.client();
    let parent = vm_folder(&client).await;
    let first = client.ensure_folder(&parent, "mycluster-x7k2p").await.unwrap();
    let second = client.ensure_folder(&parent, "mycluster-x7k2p").await.unwrap();
    assert!(first.created && !second.created);
    assert_eq!(first.folder, second.folder);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_name_that_belongs_to_something_else_is_not_adopted() {
    let sim = Vcsim::start();
    let client = sim.client();
    let parent = vm_folder(&client).await;
    let error = client.ensure_folder(&parent, "rhcos-a").await.unwrap_err();
    assert!(
        matches!(error.fault(), Fault::DuplicateName { name, object: Some(vm) } if name == "rhcos-a" && vm.kind.as_str() == "VirtualMachine")
    );
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_name_no_folder_can_have_is_refused_before_it_is_sent() {
    let sim = Vcsim::start();
    let client = sim.client();
    let parent = vm_folder(&client).await;
    for name in ["", "  ", &"x".repeat(81)] {
        assert!(matches!(client.ensure_folder(&parent, name).await.unwrap_err().fault(), Fault::Settings(_)));
    }
    assert_eq!(sim.count("CreateFolder"), 0);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn an_empty_folder_is_deleted_and_one_that_holds_something_is_not() {
    let sim = Vcsim::start();
    let client = sim.client();
    let parent = vm_folder(&client).await;
    let outer = client.find_by_path("/dc-a/vm/outer").await.unwrap().unwrap();
    let inner = client.find_by_path("/dc-a/vm/outer/inner").await.unwrap().unwrap();
    assert_eq!(*client.delete_folder(&outer, PATIENT).await.unwrap_err().fault(), Fault::NotEmpty { children: 1 });
    assert_eq!((client.children(&outer).await.unwrap(), client.children(&inner).await.unwrap()), (1, 0));
    client.delete_folder(&inner, PATIENT).await.unwrap();
    client.delete_folder(&outer, PATIENT).await.unwrap();
    assert_eq!(client.find_by_path("/dc-a/vm/outer").await.unwrap(), None);
    assert!(matches!(client.delete_folder(&outer, PATIENT).await.unwrap_err().fault(), Fault::NotFound { .. }), "gone is gone");
    let hosts = client.find_by_path("/dc-a/host").await.unwrap().unwrap();
    for root in [&parent, &hosts] {
        client.delete_folder(root, PATIENT).await.unwrap_err();
    }
    assert_eq!(sim.count("Destroy_Task"), 2, "what must not be destroyed is not even asked for");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn the_root_folder_of_a_datacenter_is_not_deleted_even_when_it_is_empty() {
    let sim = Vcsim::start();
    let client = sim.client();
    for path in ["/dc-a/vm/outer/inner", "/dc-a/vm/outer", "/dc-a/vm/lab-x7k2p"] {
        let folder = client.find_by_path(path).await.unwrap().unwrap();
        client.delete_folder(&folder, PATIENT).await.unwrap();
    }
    sim.control("POST", "/vms/a/rhcos-a/destroy", &json!(null));
    sim.reset_calls();
    let root = vm_folder(&client).await;
    let error = client.delete_folder(&root, PATIENT).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Settings(_)), "{error}");
    assert_eq!(sim.count("Destroy_Task"), 0);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_long_task_can_be_waited_for_again_and_reports_its_progress() {
    let sim = Vcsim::start();
    let client = sim.client();
    sim.fault(&json!({ "kind": "task", "method": "Destroy_Task", "milliseconds": 10_000 }));
    let folder = client.find_by_path("/dc-a/vm/lab-x7k2p").await.unwrap().unwrap();
    let after = Duration::from_millis(100);
    let error = client.delete_folder(&folder, after).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::Timeout { after });
    let task: Ref = error.object().unwrap().parse().unwrap();
    let mut seen = Vec::new();
    client.wait(&task, PATIENT, |progress| seen.push(progress)).await.unwrap();
    assert!(seen.iter().any(|progress| progress.running && progress.percent.is_some()), "{seen:?}");
    assert!(seen.is_sorted_by_key(|progress| progress.percent), "{seen:?}");
    assert_eq!(client.find_by_path("/dc-a/vm/lab-x7k2p").await.unwrap(), None);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_task_that_fails_has_its_fault_as_type_and_words() {
    let sim = Vcsim::start();
    let client = sim.client();
    let folder = client.find_by_path("/dc-a/vm/lab-x7k2p").await.unwrap().unwrap();
    for (kind, expected) in [("ResourceInUse", Fault::InUse), ("InvalidState", Fault::Other { kind: "InvalidState".into() })] {
        sim.fault(&json!({ "kind": "task", "method": "Destroy_Task", "error": kind, "count": 1 }));
        let error = client.delete_folder(&folder, PATIENT).await.unwrap_err();
        assert_eq!(*error.fault(), expected);
        assert!(!error.words().is_empty() && error.object().unwrap().starts_with("Task:"), "{error}");
        let began = client.calls().recent().into_iter().rev().find(|call| call.method == "Destroy_Task").unwrap();
        assert_eq!(error.operation(), began.operation, "vCenter logs the task under the id of the call that began it");
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_task_that_outlives_its_deadline_is_told_and_survives_a_lost_session_meanwhile() {
    let sim = Vcsim::start();
    let client = sim.client();
    let folder = client.find_by_path("/dc-a/vm/lab-x7k2p").await.unwrap().unwrap();
    sim.fault(&json!({ "kind": "task", "method": "Destroy_Task", "milliseconds": 120_000, "count": 1 }));
    let after = Duration::from_millis(300);
    assert_eq!(*client.delete_folder(&folder, after).await.unwrap_err().fault(), Fault::Timeout { after });
    sim.fault(&json!({ "kind": "task", "method": "Destroy_Task", "milliseconds": 10_000, "count": 1 }));
    let deleting = tokio::spawn({
        let (client, folder) = (client.clone(), folder.clone());
        async move { client.delete_folder(&folder, PATIENT).await }
    });
    // The session is to be lost while the task runs; only the count tells that it does.
    sim.counts("Destroy_Task", 2).await;
    sim.fault(&json!({ "kind": "sessions" }));
    deleting.await.unwrap().unwrap();
    assert_eq!(sim.count("Login"), 2, "the session was lost while the task ran");
    client.logout().await.unwrap();
    assert_eq!(sim.sessions().soap, 0);
}

#[tokio::test]
async fn endless_deadlines_and_no_requests_at_a_time_neither_panic_nor_hang() {
    let sim = Vcsim::with(&["a"], 3);
    let mut settings = sim.settings();
    (settings.in_flight, settings.page) = (0, usize::MAX);
    let deadlines = &mut settings.deadlines;
    for deadline in
        [&mut deadlines.connect, &mut deadlines.request, &mut deadlines.idle, &mut deadlines.keep_alive, &mut deadlines.replication]
    {
        *deadline = Duration::MAX;
    }
    let client = Client::new(settings).unwrap();
    let vm = client.inventory(Want::Vms).await.unwrap().vms.remove(0);
    assert_eq!(client.find_vms(&[vm.uuid.parse().unwrap()], Identity::Bios).await.unwrap(), [[vm.node.reference]]);
    let spec = CategorySpec { name: "c".into(), description: String::new(), cardinality: Cardinality::Multiple, types: Vec::new() };
    let category = client.tags().ensure_category(&spec).await.unwrap();
    assert_eq!(client.tags().ensure(&category, &["a", "b"]).await.unwrap().len(), 2);
    let folder = client.find_by_path("/dc-a/vm/lab-x7k2p").await.unwrap().unwrap();
    client.delete_folder(&folder, Duration::MAX).await.unwrap();
    client.logout().await.unwrap();
}
