//! The wire log: one event per call, complete, and the same id at the server.

use serde_json::{Value, json};
use vsphere::{Calls, Client, Want};

use crate::{logs::Log, vcsim::Vcsim};

async fn some_of_everything(sim: &Vcsim, client: &Client) {
    client.inventory(Want::Infrastructure).await.unwrap();
    sim.fault(&json!({ "kind": "status", "code": 503, "method": "CurrentTime", "count": 1 }));
    client.clock().await.unwrap();
    client.tags().categories().await.unwrap();
    let folder = client.find_by_path("/dc-a/vm").await.unwrap().unwrap();
    sim.fault(&json!({ "kind": "privileges", "missing": ["Folder.Create"], "object": "*" }));
    client.ensure_folder(&folder, "x").await.unwrap_err();
    client.logout().await.unwrap();
}

#[test]
fn every_call_is_one_event_with_all_its_fields_and_stays_in_the_ring() {
    let sim = Vcsim::start();
    let log = Log::begin();
    let mut settings = sim.settings();
    settings.calls = Calls::new(100);
    let client = Client::new(settings).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(some_of_everything(&sim, &client));
    let text = log.text();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&Value> = events.iter().filter(|event| event["target"] == "vsphere::call").map(|event| &event["fields"]).collect();
    let ring: Vec<Value> = serde_json::from_str(&client.calls().json()).unwrap();
    assert_eq!(events.len(), ring.len());
    for (event, call) in events.iter().zip(&ring) {
        for field in ["operation", "server", "api", "method", "object", "duration_ms", "bytes_out", "bytes_in", "result", "retries"] {
            assert_eq!(event.get(field).unwrap_or(&Value::Null), &call[field], "{field} of {call}");
        }
    }
    let find = |method: &str| ring.iter().find(|call| call["method"] == method).unwrap();
    assert_eq!(find("CurrentTime")["retries"], 1);
    assert_eq!(find("CreateFolder")["result"], "NoPermission");
    assert!(find("RetrievePropertiesEx")["bytes_in"].as_u64().unwrap() > 1000);
    assert_eq!(find("GET /rest/com/vmware/cis/tagging/category")["api"], "rest");
    assert_eq!(client.calls().csv().lines().count(), ring.len() + 1);
    let numbers: Vec<_> = ring.iter().map(|call| call["sequence"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
}

#[tokio::test]
async fn the_ring_agrees_with_what_the_server_counted() {
    let sim = Vcsim::with(&["a"], 900);
    let client = sim.client();
    client.inventory(Want::Vms).await.unwrap();
    client.tags().categories().await.unwrap();
    client.logout().await.unwrap();
    let calls = client.calls().recent();
    let (requests, received) = sim.traffic();
    assert_eq!(calls.len() as u64, requests);
    assert_eq!(calls.iter().map(|call| call.bytes_in).sum::<u64>(), received);
}

#[tokio::test]
async fn an_answer_that_only_says_come_again_is_counted_too() {
    let sim = Vcsim::start();
    let client = sim.client();
    let method = "GET /rest/com/vmware/cis/tagging/category";
    client.tags().categories().await.unwrap();
    let plain = client.calls().recent().pop().unwrap();
    sim.fault(
        &json!({ "kind": "fault", "api": "rest", "type": "ServiceUnavailable", "message": "Overloaded.", "method": method, "count": 2 }),
    );
    client.tags().categories().await.unwrap();
    let repeated = client.calls().recent().pop().unwrap();
    assert_eq!((repeated.method.as_str(), repeated.result.as_str(), repeated.retries), (method, "ok", 2));
    assert!(repeated.bytes_in > plain.bytes_in + 2 * "Overloaded.".len() as u64, "{plain:?} {repeated:?}");
    client.logout().await.unwrap();
    let (_, received) = sim.traffic();
    assert_eq!(client.calls().recent().iter().map(|call| call.bytes_in).sum::<u64>(), received, "what the server counted");
}

#[test]
fn a_body_is_shown_only_of_harmless_methods_and_no_more_of_it_than_four_kilobytes() {
    const MARK: &str = " ... (cut)";
    let sim = Vcsim::with(&["a"], 100);
    let log = Log::begin();
    let client = sim.client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        assert!(client.inventory(Want::Vms).await.unwrap().vms.len() >= 100);
        some_of_everything(&sim, &client).await;
    });
    let text = log.text();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let bodies: Vec<&Value> = events.iter().filter(|event| event["target"] == "vsphere::body").map(|event| &event["fields"]).collect();
    let mut cut = 0;
    for shown in &bodies {
        let (method, body, bytes) = (shown["method"].as_str().unwrap(), shown["body"].as_str().unwrap(), shown["bytes"].as_u64().unwrap());
        assert!(body.strip_suffix(MARK).unwrap_or(body).len() <= 4096, "{} bytes of {method}", body.len());
        assert_eq!(body.ends_with(MARK), bytes > 4096, "{bytes} bytes of {method}: {body}");
        cut += u32::from(body.ends_with(MARK));
        assert!(!method.contains("Log") && !method.contains("session"), "{method} is nobody's to see");
    }
    assert!(cut >= 1 && bodies.iter().any(|shown| shown["method"] == "RetrievePropertiesEx"), "{cut} of {} bodies", bodies.len());
    let methods: Vec<String> = client.calls().recent().into_iter().map(|call| call.method).collect();
    for secret in ["Login", "Logout", "POST /rest/com/vmware/cis/session", "DELETE /rest/com/vmware/cis/session"] {
        assert!(methods.iter().any(|method| method == secret), "{secret} was among the calls: {methods:?}");
    }
}
