//! Answers that are cut, huge, deep, or something else altogether: refused in words, without eating memory or panicking.

use serde_json::json;
use vsphere::{Client, Fault, Want};

use crate::vcsim::Vcsim;

#[tokio::test]
async fn an_answer_beyond_the_limit_is_not_read() {
    let sim = Vcsim::with(&["a"], 400);
    let mut settings = sim.settings();
    settings.largest_answer = 50_000;
    let client = Client::new(settings).unwrap();
    let error = client.inventory(Want::Vms).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::TooLarge { limit: 50_000 });
    let call = client.calls().recent().pop().unwrap();
    assert!(call.bytes_in <= 50_000 && call.result == "TooLarge", "{call:?}");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn an_answer_that_is_not_the_protocol_is_malformed_over_soap_and_rest() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.tags().categories().await.unwrap();
    let deep = "<a>".repeat(100_000);
    for body in ["<html><body>Welcome</body></html>", "", " ", "{}", "\u{0}\u{1}", "<", deep.as_str()] {
        if body.is_empty() {
            sim.fault(&json!({ "kind": "truncate", "bytes": 0, "method": "CurrentTime", "count": 1 }));
        } else {
            sim.fault(&json!({ "kind": "garbage", "body": body, "method": "CurrentTime", "count": 1 }));
        }
        let error = client.clock().await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Malformed(_) | Fault::Dropped(_)), "{error}");
        assert!(error.to_string().len() < 1000, "the answer itself is not quoted at length");
    }
    let nested = "[".repeat(100_000);
    for body in ["not json", "[1,2", "[]", nested.as_str()] {
        sim.fault(&json!({ "kind": "garbage", "body": body, "method": "GET /rest/com/vmware/cis/tagging/category", "count": 1 }));
        let error = client.tags().categories().await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Malformed(_)), "{error}");
    }
    client.logout().await.unwrap();
}

#[tokio::test]
async fn an_inventory_cut_anywhere_is_an_error_and_never_half_an_inventory() {
    let sim = Vcsim::start();
    let client = sim.client();
    let whole = client.inventory(Want::Templates).await.unwrap();
    for bytes in [0, 1, 100, 500, 1000, 3000, 5000, 9000] {
        sim.fault(&json!({ "kind": "truncate", "bytes": bytes, "method": "RetrievePropertiesEx", "count": 1 }));
        let error = client.inventory(Want::Templates).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Malformed(_) | Fault::Dropped(_)), "{bytes}: {error}");
    }
    assert_eq!(client.inventory(Want::Templates).await.unwrap(), whole);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn never_more_than_four_requests_are_under_way() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.clock().await.unwrap();
    sim.fault(&json!({ "kind": "latency", "method": "CurrentTime", "milliseconds": 300 }));
    let begin = std::time::Instant::now();
    let callers: Vec<_> = (0..12)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.clock().await.unwrap() })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    // A lower bound cannot be missed by a slow machine: twelve calls of 300 ms, four at a time, take at least three rounds.
    assert!(begin.elapsed() >= std::time::Duration::from_millis(900), "{:?}", begin.elapsed());
    client.logout().await.unwrap();
}
