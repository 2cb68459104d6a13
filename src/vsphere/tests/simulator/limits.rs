//! Answers that are cut, huge, deep, or something else altogether: refused in words, without eating memory or panicking.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Barrier;
use vsphere::{Client, Credentials, Endpoint, Fault, Pool, Proxy, Settings, Trust, Want};

use crate::{
    book::soap,
    pki::Authority,
    serve::{Asked, Server, serve},
    vcsim::Vcsim,
};

#[tokio::test]
async fn an_answer_beyond_the_limit_is_not_read() {
    let sim = Vcsim::with(&["a"], 400);
    for (limit, reads) in [(50_000, 1), (200_000, 2)] {
        let mut settings = sim.settings();
        settings.largest_answer = limit;
        let client = Client::new(settings).unwrap();
        let error = client.inventory(Want::Vms).await.unwrap_err();
        assert_eq!(*error.fault(), Fault::TooLarge { limit });
        let mut calls = client.calls().recent();
        let read = |call: &vsphere::Call| call.method == "RetrievePropertiesEx";
        assert_eq!(calls.iter().filter(|call| read(call)).count(), reads, "the folders, then the virtual machines");
        let call = calls.pop().unwrap();
        assert!(call.bytes_in <= limit as u64 && call.result == "TooLarge", "{call:?}");
        client.logout().await.unwrap();
    }
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
    let sim = Vcsim::with(&["a"], 100);
    let client = sim.client();
    let whole = client.inventory(Want::Templates).await.unwrap();
    // The last two are more than the folders have, and cut what is told of the virtual machines.
    for (bytes, reads) in [(0, 1), (1, 1), (100, 1), (500, 1), (1000, 1), (3000, 1), (5000, 1), (9000, 1), (50_000, 2), (80_000, 2)] {
        sim.reset_calls();
        sim.fault(&json!({ "kind": "truncate", "bytes": bytes, "method": "RetrievePropertiesEx" }));
        let error = client.inventory(Want::Templates).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Malformed(_) | Fault::Dropped(_)), "{bytes}: {error}");
        assert_eq!(sim.count("RetrievePropertiesEx"), reads, "{bytes}");
        sim.no_faults();
    }
    assert_eq!(client.inventory(Want::Templates).await.unwrap(), whole);
    client.logout().await.unwrap();
}

/// A server that answers only when four are asking, and counts how many do at the same time.
fn turnstile(authority: &Authority, dir: &TempDir) -> (Server, Arc<AtomicUsize>) {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let four = Arc::new(Barrier::new(4));
    let server = serve(&authority.issue(dir.path(), "server", &["127.0.0.1"]), {
        let most = Arc::clone(&most);
        move |asked: Asked| {
            let (now, most, four) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&four));
            async move {
                let body = String::from_utf8_lossy(&asked.body).into_owned();
                if body.contains("<CurrentTime") {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    four.wait().await;
                    // Time for a fifth to come, if the client lets it.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                }
                soap(&body)
            }
        }
    });
    (server, most)
}

#[tokio::test]
async fn four_requests_are_under_way_at_a_time_and_never_more() {
    let dir = TempDir::new().unwrap();
    let authority = Authority::new("turnstile");
    let (server, most) = turnstile(&authority, &dir);
    let endpoint = Endpoint { server: "127.0.0.1".into(), port: server.address.port() };
    let mut settings = Settings::new(endpoint, Credentials::new("me", "s3cr3t"), Trust::Bundle(authority.pem()));
    settings.proxy = Proxy::none();
    let client = Client::new(settings).unwrap();
    let callers: Vec<_> = (0..12)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.clock().await.unwrap() })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 4);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn two_users_and_a_client_remade_with_other_trust_share_the_four_requests_of_their_vcenter() {
    let dir = TempDir::new().unwrap();
    let authority = Authority::new("turnstile");
    let (server, most) = turnstile(&authority, &dir);
    let endpoint = Endpoint { server: "127.0.0.1".into(), port: server.address.port() };
    let settings = |user: &str, trust: Trust| {
        let mut settings = Settings::new(endpoint.clone(), Credentials::new(user, "s3cr3t"), trust);
        settings.proxy = Proxy::none();
        settings
    };
    let pool = Pool::new();
    let bundle = || Trust::Bundle(authority.pem());
    let mut clients = Vec::new();
    for settings in [settings("me", bundle()), settings("somebody", bundle()), settings("me", Trust::Insecure)] {
        clients.push(pool.client(settings).await.unwrap());
    }
    let callers: Vec<_> = (0..12)
        .map(|number| {
            let client = clients[number % clients.len()].clone();
            tokio::spawn(async move { client.clock().await.unwrap() })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 4);
    for client in clients {
        client.logout().await.unwrap();
    }
}
