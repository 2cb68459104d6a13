//! Trust: who is believed, and what is said of those who are not.

use serde_json::json;
use vsphere::{Certificate, Client, Error, Fault, Thumbprint, Trust};

use crate::{pki::Authority, vcsim::Vcsim};

fn with(sim: &Vcsim, trust: Trust) -> Client {
    let mut settings = sim.settings();
    settings.trust = trust;
    Client::new(settings).unwrap()
}

fn refused(error: &Error) -> (&str, &Certificate) {
    match error.fault() {
        Fault::Tls { reason, presented } => (reason, presented),
        _ => panic!("not refused for its certificate: {error}"),
    }
}

async fn presented(sim: &Vcsim) -> Thumbprint {
    let client = with(sim, Trust::Insecure);
    client.about().await.unwrap();
    client.certificate().unwrap().thumbprint
}

#[tokio::test]
async fn a_bundle_is_believed_alone_and_beside_the_system() {
    let sim = Vcsim::start();
    for trust in [Trust::Bundle(sim.authority.pem()), Trust::SystemAnd(sim.authority.pem())] {
        let client = with(&sim, trust);
        client.about().await.unwrap();
        let certificate = client.certificate().unwrap();
        assert_eq!((certificate.subject.as_str(), certificate.issuer.as_str()), ("vcenter", "test authority"));
        assert_eq!(certificate.names, ["127.0.0.1"]);
    }
}

#[tokio::test]
async fn a_stranger_is_refused_once_and_shown() {
    let sim = Vcsim::start();
    let client = with(&sim, Trust::Bundle(Authority::new("somebody else").pem()));
    let error = client.clock().await.unwrap_err();
    let (reason, certificate) = refused(&error);
    assert!(reason.contains("no trusted authority has signed it"), "{reason}");
    assert_eq!(certificate.subject, "vcenter");
    let shown = certificate.thumbprint.to_string();
    assert!(error.to_string().contains(&shown) && error.to_string().contains("test authority"), "{error}");
    assert_eq!(client.calls().recent()[0].retries, 0, "asking again would not make it known");
    assert_eq!(sim.sessions().logins, 0);
}

#[tokio::test]
async fn a_pinned_thumbprint_is_enough_and_another_is_not() {
    let sim = Vcsim::start();
    let pin = presented(&sim).await;
    with(&sim, Trust::Thumbprint(pin)).about().await.unwrap();
    let other: Thumbprint = "00".repeat(32).parse().unwrap();
    let error = with(&sim, Trust::Thumbprint(other)).about().await.unwrap_err();
    let (reason, certificate) = refused(&error);
    assert!(reason.contains(&other.to_string()), "{reason}");
    assert_eq!(certificate.thumbprint, pin);
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_with_the_names_it_is_for() {
    let sim = Vcsim::start();
    let pair = sim.authority.issue(sim.dir.path(), "elsewhere", &["elsewhere.example.com"]);
    sim.fault(&json!({ "kind": "certificate", "certificate": pair.certificate, "key": pair.key }));
    let error = sim.client().about().await.unwrap_err();
    let (reason, certificate) = refused(&error);
    assert!(reason.contains("not for the name 127.0.0.1"), "{reason}");
    assert_eq!(certificate.names, ["elsewhere.example.com"]);
    with(&sim, Trust::Insecure).about().await.unwrap();
}

#[tokio::test]
async fn an_expired_certificate_is_refused_with_the_time_it_was_for() {
    let sim = Vcsim::start();
    let pair = sim.authority.issue_expired(sim.dir.path(), "bygone", &["127.0.0.1"]);
    sim.fault(&json!({ "kind": "certificate", "certificate": pair.certificate, "key": pair.key }));
    let error = sim.client().about().await.unwrap_err();
    let (reason, certificate) = refused(&error);
    assert_eq!(reason, "it has expired");
    assert_eq!((certificate.subject.as_str(), certificate.not_after.as_str()), ("bygone", "191231000000Z"));
    let shown = format!("{} {}", certificate.not_after, certificate.thumbprint);
    assert!(shown.split(' ').all(|part| error.to_string().contains(part)), "{error}");
    assert_eq!(sim.traffic().0, 0, "nothing was sent");
    // Pinned by its thumbprint it is believed all the same: that says which certificate, not until when.
    with(&sim, Trust::Thumbprint(certificate.thumbprint)).about().await.unwrap();
}

/// The simulator closes its connections when its certificate changes; who finds one closed is told, and asks again.
async fn on_a_new_connection<T, F: Future<Output = vsphere::Result<T>>>(call: impl Fn() -> F) -> vsphere::Result<T> {
    match call().await {
        Err(error) if matches!(error.fault(), Fault::Dropped(_)) => call().await,
        outcome => outcome,
    }
}

#[tokio::test]
async fn a_certificate_that_changes_under_way_is_judged_anew() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.clock().await.unwrap();
    let renewed = sim.authority.issue(sim.dir.path(), "renewed", &["127.0.0.1"]);
    sim.fault(&json!({ "kind": "certificate", "certificate": renewed.certificate, "key": renewed.key }));
    on_a_new_connection(|| client.clock()).await.unwrap();
    assert_eq!(client.certificate().unwrap().subject, "renewed");
    let stolen = Authority::new("thief").issue(sim.dir.path(), "stolen", &["127.0.0.1"]);
    sim.fault(&json!({ "kind": "certificate", "certificate": stolen.certificate, "key": stolen.key }));
    let error = on_a_new_connection(|| client.clock()).await.unwrap_err();
    assert_eq!(refused(&error).1.subject, "stolen");
    assert_eq!(refused(&error).1.issuer, "thief");
    sim.no_faults();
    on_a_new_connection(|| client.clock()).await.unwrap();
    client.logout().await.unwrap();
    assert_eq!(sim.sessions().soap, 0);
}

#[tokio::test]
async fn a_certificate_that_changes_before_a_rest_call_keeps_the_session_id_from_a_stranger() {
    let sim = Vcsim::start();
    let client = sim.client();
    let list = "GET /rest/com/vmware/cis/tagging/category";
    let tags = client.tags();
    tags.categories().await.unwrap();
    let renewed = sim.authority.issue(sim.dir.path(), "renewed", &["127.0.0.1"]);
    sim.fault(&json!({ "kind": "certificate", "certificate": renewed.certificate, "key": renewed.key }));
    on_a_new_connection(|| tags.categories()).await.unwrap();
    assert_eq!(client.certificate().unwrap().subject, "renewed");
    let stolen = Authority::new("thief").issue(sim.dir.path(), "stolen", &["127.0.0.1"]);
    sim.fault(&json!({ "kind": "certificate", "certificate": stolen.certificate, "key": stolen.key }));
    sim.reset_calls();
    let error = on_a_new_connection(|| tags.categories()).await.unwrap_err();
    assert_eq!((refused(&error).1.subject.as_str(), error.method()), ("stolen", list));
    assert_eq!(sim.count(list), 0, "nothing was sent, the session's id least of all");
    sim.no_faults();
    on_a_new_connection(|| tags.categories()).await.unwrap();
    assert_eq!(sim.sessions().logins, 2, "of the session before, SOAP and REST");
    client.logout().await.unwrap();
}
