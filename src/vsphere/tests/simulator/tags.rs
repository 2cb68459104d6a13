//! Categories and tags: ensured, attached, detached and listed in bulk.

use std::time::Duration;

use serde_json::json;
use vsphere::{Cardinality, CategorySpec, Client, Fault, Kind, Ref, Want};

use crate::vcsim::Vcsim;

fn region(cardinality: Cardinality, types: &[Kind]) -> CategorySpec {
    CategorySpec { name: "openshift-region".into(), description: "Region".into(), cardinality, types: types.to_vec() }
}

async fn at(client: &Client, path: &str) -> Ref {
    client.find_by_path(path).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_category_and_its_tags_are_made_once_and_found_ever_after() {
    let sim = Vcsim::start();
    let client = sim.client();
    let tags = client.tags();
    assert_eq!(tags.categories().await.unwrap(), []);
    let spec = region(Cardinality::Single, &[Kind::Datacenter, Kind::ClusterComputeResource]);
    let made = tags.ensure_category(&spec).await.unwrap();
    assert_eq!(tags.ensure_category(&spec).await.unwrap(), made);
    assert_eq!(tags.category("openshift-region").await.unwrap(), Some(made.clone()));
    let first = tags.ensure(&made, &["eu", "us"]).await.unwrap();
    let second = tags.ensure(&made, &["us", "eu", "asia"]).await.unwrap();
    assert_eq!((&second[1], &second[0]), (&first[0], &first[1]));
    assert_eq!(tags.of(&made).await.unwrap().len(), 3);
    tags.delete(&second[2]).await.unwrap();
    assert_eq!(tags.of(&made).await.unwrap().len(), 2);
    tags.delete_category(&made).await.unwrap();
    assert_eq!(tags.categories().await.unwrap(), []);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn who_knows_what_is_missing_makes_and_attaches_it_with_a_call_each() {
    let sim = Vcsim::start();
    let client = sim.client();
    let datacenter = at(&client, "/dc-a").await;
    let tags = client.tags();
    assert_eq!(tags.category_ids().await.unwrap(), [""; 0]);
    let before = client.calls().recent().len();
    let spec = region(Cardinality::Single, &[Kind::Datacenter]);
    let category = tags.create_category(&spec).await.unwrap();
    let tag = tags.create(&category, "eu").await.unwrap();
    tags.attach_to_untagged(&category, &tag, std::slice::from_ref(&datacenter)).await.unwrap();
    assert_eq!(client.calls().recent().len() - before, 3);

    assert_eq!(*tags.create_category(&spec).await.unwrap_err().fault(), Fault::AlreadyExists);
    assert_eq!(*tags.create(&category, "eu").await.unwrap_err().fault(), Fault::AlreadyExists);
    let folder = at(&client, "/dc-a/vm").await;
    let unfit = tags.attach_to_untagged(&category, &tag, &[folder]).await.unwrap_err();
    assert!(matches!(unfit.fault(), Fault::CategoryMismatch { .. }), "{unfit}");
    assert_eq!(tags.read_categories(tags.category_ids().await.unwrap()).await.unwrap(), std::slice::from_ref(&category));
    assert_eq!(tags.read(tags.ids_of(&category).await.unwrap()).await.unwrap(), std::slice::from_ref(&tag));
    assert_eq!(tags.objects(&[tag]).await.unwrap(), [[datacenter]]);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_category_of_others_that_does_not_serve_is_refused_and_left_alone() {
    let sim = Vcsim::start();
    let client = sim.client();
    let tags = client.tags();
    let theirs = tags.ensure_category(&region(Cardinality::Multiple, &[Kind::Datacenter])).await.unwrap();
    for (spec, word) in [
        (region(Cardinality::Single, &[Kind::Datacenter]), "MULTIPLE"),
        (region(Cardinality::Multiple, &[Kind::Datacenter, Kind::Folder]), "Folder"),
        (region(Cardinality::Multiple, &[]), "fit only Datacenter"),
    ] {
        let error = tags.ensure_category(&spec).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::CategoryMismatch { .. }) && error.to_string().contains(word), "{error}");
    }
    assert_eq!(tags.categories().await.unwrap(), [theirs]);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn types_with_and_without_prefix_are_the_same() {
    let sim = Vcsim::start();
    let client = sim.client();
    let tags = client.tags();
    let prefixed = region(Cardinality::Single, &[Kind::Other("urn:vim25:Folder".into()), Kind::Datacenter]);
    tags.ensure_category(&prefixed).await.unwrap();
    let found = tags.ensure_category(&region(Cardinality::Single, &[Kind::Folder, Kind::Datacenter])).await.unwrap();
    assert_eq!(found.types, ["Folder", "Datacenter"]);
    let tag = tags.ensure(&found, &["one"]).await.unwrap();
    tags.attach(&found, &tag, &[at(&client, "/dc-a/vm").await]).await.unwrap();
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_second_tag_of_a_single_category_and_a_type_it_does_not_fit_are_refused_before_anything_changes() {
    let sim = Vcsim::start();
    let client = sim.client();
    let tags = client.tags();
    let datacenter = at(&client, "/dc-a").await;
    let category = tags.ensure_category(&region(Cardinality::Single, &[Kind::Datacenter])).await.unwrap();
    let made = tags.ensure(&category, &["eu", "us"]).await.unwrap();
    tags.attach(&category, &made[..1], std::slice::from_ref(&datacenter)).await.unwrap();
    tags.attach(&category, &made[..1], std::slice::from_ref(&datacenter)).await.unwrap();
    for both in [&made[1..], &made[..]] {
        let error = tags.attach(&category, both, std::slice::from_ref(&datacenter)).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::SecondTag { object, .. } if *object == datacenter), "{error}");
    }
    let folder = at(&client, "/dc-a/vm").await;
    let error = tags.attach(&category, &made[..1], &[folder]).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::CategoryMismatch { .. }), "{error}");
    assert_eq!(tags.attached(std::slice::from_ref(&datacenter)).await.unwrap(), [(datacenter.clone(), vec![made[0].id.clone()])]);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn twenty_tags_on_two_hundred_objects_cost_a_call_per_tag_and_can_be_attached_again() {
    let sim = Vcsim::with(&["a"], 200);
    let client = sim.client();
    let tags = client.tags();
    let vms: Vec<Ref> = client.inventory(Want::Vms).await.unwrap().vms.into_iter().map(|vm| vm.node.reference).collect();
    let category = tags.ensure_category(&region(Cardinality::Multiple, &[])).await.unwrap();
    let names: Vec<String> = (0..20).map(|number| format!("tag-{number}")).collect();
    let made = tags.ensure(&category, &names.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
    sim.reset_calls();
    tags.attach(&category, &made, &vms).await.unwrap();
    assert_eq!(sim.traffic().0, 20);
    for (_, ids) in tags.attached(&vms).await.unwrap() {
        assert_eq!(ids.len(), 20);
    }
    for objects in tags.objects(&made).await.unwrap() {
        assert_eq!(objects.len(), 200);
    }
    tags.attach(&category, &made, &vms).await.unwrap();
    sim.reset_calls();
    tags.detach(&made, &vms).await.unwrap();
    assert_eq!(sim.traffic().0, 21, "one to look, and one per tag");
    assert!(tags.attached(&vms).await.unwrap().iter().all(|(_, ids)| ids.is_empty()));
    sim.reset_calls();
    tags.detach(&made, &vms).await.unwrap();
    assert_eq!(sim.traffic().0, 1, "one to look");
    client.logout().await.unwrap();
}

const BULK_DETACH: &str = "POST /rest/com/vmware/cis/tagging/tag-association/{id}?~action=detach-tag-from-multiple-objects";
const SINGLE_DETACH: &str = "POST /rest/com/vmware/cis/tagging/tag-association?~action=detach-multiple-tags-from-object";

#[tokio::test]
async fn a_tag_comes_off_fifty_objects_in_as_many_calls_as_off_five_and_leaves_its_siblings_alone() {
    let sim = Vcsim::with(&["a"], 50);
    let client = sim.client();
    let tags = client.tags();
    let vms: Vec<Ref> = client.inventory(Want::Vms).await.unwrap().vms.into_iter().map(|vm| vm.node.reference).collect();
    let category = tags.ensure_category(&region(Cardinality::Multiple, &[])).await.unwrap();
    let made = tags.ensure(&category, &["gone", "kept"]).await.unwrap();
    tags.attach(&category, &made, &vms).await.unwrap();
    for some in [&vms[..5], &vms[..]] {
        sim.reset_calls();
        tags.detach(&made[..1], some).await.unwrap();
        assert_eq!((sim.traffic().0, sim.count(BULK_DETACH)), (2, 1), "one to look, one to detach");
    }
    assert_eq!(tags.attached(&vms).await.unwrap(), vms.iter().map(|vm| (vm.clone(), vec![made[1].id.clone()])).collect::<Vec<_>>());
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_know_the_call_for_many_objects_is_asked_for_each_and_one_that_refuses_is_not() {
    let sim = Vcsim::start();
    let client = sim.client();
    let tags = client.tags();
    let objects = [at(&client, "/dc-a").await, at(&client, "/dc-a/vm").await, at(&client, "/dc-a/host").await];
    let category = tags.ensure_category(&region(Cardinality::Multiple, &[])).await.unwrap();
    let made = tags.ensure(&category, &["eu"]).await.unwrap();
    for (fault, singly) in [
        (json!({ "kind": "status", "code": 404, "method": BULK_DETACH }), true),
        (json!({ "kind": "status", "code": 405, "method": BULK_DETACH }), true),
        (json!({ "kind": "fault", "type": "MethodNotFound", "method": BULK_DETACH }), true),
        (json!({ "kind": "fault", "type": "NotSupported", "method": BULK_DETACH }), true),
        (json!({ "kind": "garbage", "body": "{}", "method": BULK_DETACH }), true),
        (json!({ "kind": "fault", "type": "NoPermission", "method": BULK_DETACH }), false),
    ] {
        tags.attach(&category, &made, &objects).await.unwrap();
        sim.fault(&fault);
        sim.reset_calls();
        let outcome = tags.detach(&made, &objects).await.map_err(|error| error.fault().name().to_owned());
        assert_eq!(outcome.err().as_deref(), (!singly).then_some("NoPermission"), "{fault}");
        assert_eq!((sim.count(BULK_DETACH), sim.count(SINGLE_DETACH)), (1, if singly { 3 } else { 0 }), "{fault}");
        sim.no_faults();
        assert_eq!(tags.attached(&objects).await.unwrap().iter().all(|(_, ids)| ids.is_empty()), singly, "{fault}");
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn many_tags_on_few_objects_cost_a_call_per_object() {
    let sim = Vcsim::start();
    let client = sim.client();
    let tags = client.tags();
    let objects = [at(&client, "/dc-a").await, at(&client, "/dc-a/vm").await];
    let category = tags.ensure_category(&region(Cardinality::Multiple, &[])).await.unwrap();
    let made = tags.ensure(&category, &["a", "b", "c", "d", "e"]).await.unwrap();
    sim.reset_calls();
    tags.attach(&category, &made, &objects).await.unwrap();
    assert_eq!(sim.traffic().0, 2);
    assert!(tags.attached(&objects).await.unwrap().iter().all(|(_, ids)| ids.len() == 5));
    sim.reset_calls();
    tags.detach(&made[..4], &objects).await.unwrap();
    assert_eq!((sim.traffic().0, sim.count(SINGLE_DETACH)), (3, 2), "one to look, and one per object");
    assert!(tags.attached(&objects).await.unwrap().iter().all(|(_, ids)| ids.len() == 1));
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_tag_made_just_now_may_take_a_while_to_be_known_everywhere() {
    let sim = Vcsim::start();
    let client = sim.client();
    let tags = client.tags();
    let datacenter = at(&client, "/dc-a").await;
    let category = tags.ensure_category(&region(Cardinality::Multiple, &[])).await.unwrap();
    let list = "POST /rest/com/vmware/cis/tagging/tag/{id}?~action=list-tags-for-category";
    sim.fault(&json!({ "kind": "status", "code": 404, "method": list, "count": 2 }));
    let made = tags.ensure(&category, &["eu"]).await.unwrap();
    assert_eq!(sim.count(list), 3);
    let attach = "POST /rest/com/vmware/cis/tagging/tag-association/{id}?~action=attach-tag-to-multiple-objects";
    sim.fault(&json!({ "kind": "status", "code": 404, "method": attach, "count": 3 }));
    tags.attach(&category, &made, std::slice::from_ref(&datacenter)).await.unwrap();
    assert_eq!(sim.count(attach), 4);
    assert_eq!(tags.attached(&[datacenter]).await.unwrap()[0].1.len(), 1);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn patience_with_a_linked_vcenter_ends_and_a_tag_of_others_gets_none() {
    let sim = Vcsim::start();
    let mut settings = sim.settings();
    settings.deadlines.replication = Duration::from_secs(5);
    let client = Client::new(settings).unwrap();
    let tags = client.tags();
    let datacenter = at(&client, "/dc-a").await;
    let category = tags.ensure_category(&region(Cardinality::Multiple, &[])).await.unwrap();
    let made = tags.ensure(&category, &["eu"]).await.unwrap();
    let attach = "POST /rest/com/vmware/cis/tagging/tag-association/{id}?~action=attach-tag-to-multiple-objects";
    sim.fault(&json!({ "kind": "status", "code": 404, "method": attach }));
    let error = tags.attach(&category, &made, std::slice::from_ref(&datacenter)).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::NotFound { object: None });
    assert!(sim.count(attach) >= 2, "who made it does wait for it");
    sim.reset_calls();
    let stranger = Client::new(sim.settings()).unwrap();
    stranger.tags().attach(&category, &made, &[datacenter]).await.unwrap_err();
    assert_eq!(sim.count(attach), 1, "who did not make it does not wait for it");
    stranger.logout().await.unwrap();
    client.logout().await.unwrap();
}

#[tokio::test]
async fn who_comes_second_on_a_linked_vcenter_takes_what_the_first_made() {
    let sim = Vcsim::start();
    let client = sim.client();
    let tags = client.tags();
    let spec = region(Cardinality::Single, &[Kind::Datacenter]);
    let theirs = tags.ensure_category(&spec).await.unwrap();
    // At first the list does not show it, though the name is taken: that is how replication looks from outside.
    let list = "GET /rest/com/vmware/cis/tagging/category";
    sim.fault(&json!({ "kind": "garbage", "method": list, "body": "{\"value\":null}", "count": 3 }));
    sim.reset_calls();
    assert_eq!(tags.ensure_category(&spec).await.unwrap(), theirs);
    assert_eq!((sim.count(list), sim.count("POST /rest/com/vmware/cis/tagging/category")), (4, 1));
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_missing_tagging_privilege_is_no_permission() {
    let sim = Vcsim::start();
    let client = sim.client();
    sim.fault(&json!({ "kind": "privileges", "missing": ["InventoryService.Tagging.CreateCategory"], "object": "*" }));
    let error = client.tags().ensure_category(&region(Cardinality::Single, &[])).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::NoPermission { .. }), "{error}");
    client.logout().await.unwrap();
}
