//! Faults as types, with the server's words, the method, the object and the operation id.

use std::time::Duration;

use serde_json::json;
use vsphere::{Client, Fault, Ref};

use crate::vcsim::Vcsim;

async fn vm_folder(client: &Client) -> Ref {
    client.find_by_path("/dc-a/vm").await.unwrap().unwrap()
}

#[tokio::test]
async fn a_missing_privilege_is_named_with_its_object_and_all_that_helps_to_find_it() {
    let sim = Vcsim::start();
    let client = sim.client();
    let folder = vm_folder(&client).await;
    sim.fault(&json!({ "kind": "privileges", "missing": ["Folder.Create"], "object": "*" }));
    let error = client.ensure_folder(&folder, "x").await.unwrap_err();
    assert_eq!(*error.fault(), Fault::NoPermission { privilege: "Folder.Create".into(), object: Some(folder.clone()) });
    assert_eq!((error.method(), error.object()), ("CreateFolder", Some(folder.to_string().as_str())));
    assert_eq!(error.words(), "Permission to perform this operation was denied.");
    assert!(error.operation().starts_with("op-"));
    let text = error.to_string();
    for part in ["127.0.0.1", "CreateFolder", "Folder.Create", &folder.to_string(), error.words(), error.operation()] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn every_soap_fault_has_its_type_and_unknown_ones_keep_their_name() {
    let sim = Vcsim::start();
    let client = sim.client();
    let folder = vm_folder(&client).await;
    for (kind, expected) in [
        ("ResourceInUse", Fault::InUse),
        ("NotFound", Fault::NotFound { object: None }),
        ("AlreadyExists", Fault::AlreadyExists),
        ("InvalidArgument", Fault::InvalidArgument { property: String::new() }),
        ("InvalidState", Fault::Other { kind: "InvalidState".into() }),
        ("RestrictedVersion", Fault::Other { kind: "RestrictedVersion".into() }),
    ] {
        sim.fault(&json!({ "kind": "fault", "method": "CreateFolder", "type": kind, "message": "In its own words.", "count": 1 }));
        let error = client.ensure_folder(&folder, "x").await.unwrap_err();
        assert_eq!((error.fault(), error.words()), (&expected, "In its own words."));
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn every_rest_error_has_its_type() {
    let sim = Vcsim::start();
    let client = sim.client();
    for (kind, expected) in [
        ("NoPermission", Fault::NoPermission { privilege: String::new(), object: None }),
        ("NotFound", Fault::NotFound { object: None }),
        ("InUse", Fault::InUse),
        ("InvalidArgument", Fault::InvalidArgument { property: String::new() }),
        ("too_blue", Fault::Other { kind: "too_blue".into() }),
    ] {
        let method = "GET /rest/com/vmware/cis/tagging/category";
        sim.fault(&json!({ "kind": "fault", "api": "rest", "method": method, "type": kind, "message": "In its own words.", "count": 1 }));
        let error = client.tags().categories().await.unwrap_err();
        assert_eq!((error.fault(), error.words(), error.method()), (&expected, "In its own words.", method));
        assert!(!error.to_string().contains("privilege ;") && !error.to_string().contains("  "), "{error}");
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn an_object_that_never_was_is_not_found() {
    let sim = Vcsim::start();
    let client = sim.client();
    let nobody = Ref::new("VirtualMachine", "vm-4711");
    let error = client.vm_details(std::slice::from_ref(&nobody)).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::NotFound { object: Some(nobody) });
    client.logout().await.unwrap();
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again_for_idempotent_calls_only() {
    let sim = Vcsim::start();
    let client = sim.client();
    let folder = vm_folder(&client).await;
    client.tags().categories().await.unwrap();
    for code in [502, 503] {
        sim.reset_calls();
        sim.fault(&json!({ "kind": "status", "code": code, "method": "CurrentTime", "count": 2 }));
        client.clock().await.unwrap();
        assert_eq!(sim.count("CurrentTime"), 3);
        let call = client.calls().recent().into_iter().rev().find(|call| call.method == "CurrentTime").unwrap();
        assert_eq!((call.result.as_str(), call.retries), ("ok", 2));
        sim.fault(&json!({ "kind": "status", "code": code, "method": "GET /rest/com/vmware/cis/tagging/category", "count": 1 }));
        client.tags().categories().await.unwrap();
        sim.fault(&json!({ "kind": "status", "code": code, "method": "CreateFolder", "count": 1 }));
        let error = client.ensure_folder(&folder, "once").await.unwrap_err();
        assert_eq!(*error.fault(), Fault::Unavailable { status: code });
        assert_eq!(sim.count("CreateFolder"), 1, "what changes something is not sent twice");
    }
    sim.fault(&json!({ "kind": "status", "code": 503, "method": "CurrentTime" }));
    sim.reset_calls();
    assert_eq!(*client.clock().await.unwrap_err().fault(), Fault::Unavailable { status: 503 });
    assert_eq!(sim.count("CurrentTime"), 4, "three repetitions, then the caller is told");
    sim.no_faults();
    sim.fault(&json!({ "kind": "status", "code": 500, "method": "CurrentTime" }));
    sim.reset_calls();
    client.clock().await.unwrap_err();
    assert_eq!(sim.count("CurrentTime"), 1, "no other status is repeated");
    sim.no_faults();
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_server_may_ask_for_patience_but_not_for_an_hour() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.clock().await.unwrap();
    sim.fault(&json!({ "kind": "status", "code": 503, "retryAfter": "1", "method": "CurrentTime", "count": 1 }));
    client.clock().await.unwrap();
    assert!(client.calls().recent().last().unwrap().duration_ms >= 1000.0);
    sim.fault(&json!({ "kind": "status", "code": 503, "retryAfter": "3600", "method": "CurrentTime", "count": 1 }));
    assert_eq!(*client.clock().await.unwrap_err().fault(), Fault::Unavailable { status: 503 });
    client.logout().await.unwrap();
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_told_and_not_repeated() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.tags().categories().await.unwrap();
    sim.reset_calls();
    sim.fault(&json!({ "kind": "drop", "method": "CurrentTime", "count": 1 }));
    assert!(matches!(client.clock().await.unwrap_err().fault(), Fault::Dropped(_)));
    assert_eq!(sim.count("CurrentTime"), 1);
    let method = "GET /rest/com/vmware/cis/tagging/category";
    sim.fault(&json!({ "kind": "drop", "method": method, "count": 1 }));
    assert!(matches!(client.tags().categories().await.unwrap_err().fault(), Fault::Dropped(_)));
    assert_eq!(sim.count(method), 1);
    client.clock().await.unwrap();
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_answer_runs_into_the_deadline() {
    let sim = Vcsim::start();
    let mut settings = sim.settings();
    let after = Duration::from_secs(5);
    settings.deadlines.request = after;
    let client = Client::new(settings).unwrap();
    client.tags().categories().await.unwrap();
    for method in ["CurrentTime", "GET /rest/com/vmware/cis/tagging/category"] {
        sim.fault(&json!({ "kind": "latency", "method": method, "milliseconds": 60_000, "count": 1 }));
    }
    let tags = client.tags();
    let (soap, rest) = tokio::join!(client.clock(), tags.categories());
    for error in [soap.unwrap_err(), rest.unwrap_err()] {
        assert_eq!(*error.fault(), Fault::Timeout { after });
    }
    let ends = client.calls().recent().into_iter().filter(|call| call.result == "Timeout");
    assert_eq!(ends.map(|call| call.retries).collect::<Vec<_>>(), [0, 0], "it may still be happening, so it is not sent again");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_server_that_takes_the_connection_and_says_nothing_runs_into_the_deadline_for_connecting() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let sim = Vcsim::start();
    let mut settings = sim.settings();
    settings.endpoint.port = mute.local_addr().unwrap().port();
    settings.deadlines.connect = Duration::from_millis(300);
    settings.retries = 1;
    let client = Client::new(settings).unwrap();
    let error = client.about().await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Connect(words) if words.contains("timed out")), "{error}");
    assert_eq!(client.calls().recent()[0].retries, 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_asked_again_and_then_named() {
    // Bound, so that nobody else gets the port, and not listening.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = nobody.local_addr().unwrap().port();
    let sim = Vcsim::start();
    let mut settings = sim.settings();
    settings.endpoint.port = port;
    let client = Client::new(settings).unwrap();
    let error = client.about().await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Connect(_)), "{error}");
    assert_eq!(client.calls().recent()[0].retries, 3);
}
