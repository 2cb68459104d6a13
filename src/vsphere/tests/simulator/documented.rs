//! The `/api` dialect, which the simulator does not speak: exchanges written from the published reference, replayed.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use vsphere::{Cardinality, CategorySpec, Client, Credentials, Endpoint, Fault, Kind, Proxy, Ref, Settings, Trust};

use crate::{
    book::{API, open, soap},
    pki::Authority,
    serve::{Asked, Reply, Server, serve},
};

/// Plays a chapter to its end and returns all that can be read of it afterwards.
async fn play(chapter: &str, story: impl AsyncFnOnce(&Client) -> String) -> String {
    let book = open(chapter);
    let client = book.client();
    let said = story(&client).await;
    client.logout().await.unwrap();
    book.closed();
    format!("{said}\n{client:?} {:?}\n{}\n{}", client.calls(), client.calls().csv(), client.calls().json())
}

/// Plays the whole book.
pub(crate) async fn play_everything() -> String {
    let chapters = [
        play("make", making).await,
        play("find", finding).await,
        play("taken", adopting).await,
        play("many", attaching_many).await,
        play("kept", keeping).await,
        play("late", waiting).await,
        play("errors", failing).await,
        play("fallback", falling_back).await,
    ];
    let book: Value = serde_json::from_str(API).unwrap();
    assert_eq!(chapters.len(), book.as_object().unwrap().len());
    chapters.join("\n")
}

fn region() -> CategorySpec {
    CategorySpec {
        name: "openshift-region".into(),
        description: "Region".into(),
        cardinality: Cardinality::Single,
        types: vec![Kind::Datacenter],
    }
}

async fn making(client: &Client) -> String {
    let tags = client.tags();
    let category = tags.ensure_category(&region()).await.unwrap();
    let made = tags.ensure(&category, &["eu"]).await.unwrap();
    let datacenter = Ref::new("Datacenter", "datacenter-3");
    tags.attach(&category, &made, std::slice::from_ref(&datacenter)).await.unwrap();
    tags.detach(&made, std::slice::from_ref(&datacenter)).await.unwrap();
    assert_eq!(tags.objects(&made).await.unwrap(), [vec![]]);
    tags.delete(&made[0]).await.unwrap();
    tags.delete_category(&category).await.unwrap();
    format!("{category:?} {made:?}")
}

#[tokio::test]
async fn documented_api_makes_attaches_detaches_and_deletes() {
    play("make", making).await;
}

async fn finding(client: &Client) -> String {
    let category = client.tags().ensure_category(&region()).await.unwrap();
    assert_eq!(category.types, ["Datacenter"], "written with a prefix by this server");
    let found = client.tags().of(&category).await.unwrap();
    assert_eq!(found[0].name, "eu");
    format!("{category:?} {found:?}")
}

#[tokio::test]
async fn documented_api_finds_what_is_there() {
    play("find", finding).await;
}

async fn adopting(client: &Client) -> String {
    let tags = client.tags();
    let category = tags.ensure_category(&region()).await.unwrap();
    let adopted = tags.ensure(&category, &["eu"]).await.unwrap();
    assert!(category.id.starts_with("urn:vmomi:InventoryServiceCategory:") && adopted[0].id.starts_with("urn:vmomi:InventoryServiceTag:"));
    let results: Vec<String> = client.calls().recent().into_iter().map(|call| call.result).filter(|result| result != "ok").collect();
    assert_eq!(results, ["AlreadyExists", "AlreadyExists"]);
    format!("{category:?} {adopted:?}")
}

#[tokio::test]
async fn documented_api_adopts_a_category_and_a_tag_that_somebody_else_made_first() {
    play("taken", adopting).await;
}

async fn attaching_many(client: &Client) -> String {
    let tags = client.tags();
    let category = tags.ensure_category(&CategorySpec { cardinality: Cardinality::Multiple, ..region() }).await.unwrap();
    let made = tags.ensure(&category, &["eu", "us"]).await.unwrap();
    let datacenter = Ref::new("Datacenter", "datacenter-3");
    tags.attach(&category, &made, std::slice::from_ref(&datacenter)).await.unwrap();
    tags.detach(&made, std::slice::from_ref(&datacenter)).await.unwrap();
    format!("{category:?} {made:?}")
}

#[tokio::test]
async fn documented_api_attaches_many_tags_to_one_object_in_a_call_and_detaches_them_in_another() {
    play("many", attaching_many).await;
}

async fn keeping(client: &Client) -> String {
    let held = client.keep_alive();
    client.tags().categories().await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let kept = || client.calls().recent().into_iter().find(|call| call.method == "GET /api/session");
    while kept().is_none() {
        assert!(Instant::now() < deadline, "nobody kept the session alive: {:?}", client.calls());
        // The keeper works behind the test's back and has no event.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(held);
    assert_eq!(kept().unwrap().result, "ok");
    String::new()
}

#[tokio::test]
async fn documented_api_keeps_its_session_alive() {
    play("kept", keeping).await;
}

async fn waiting(client: &Client) -> String {
    let tags = client.tags();
    let category = tags.ensure_category(&CategorySpec { cardinality: Cardinality::Multiple, ..region() }).await.unwrap();
    let made = tags.ensure(&category, &["eu"]).await.unwrap();
    let datacenter = Ref::new("Datacenter", "datacenter-3");
    // Twice it is not there yet, then it is.
    tags.attach(&category, &made, std::slice::from_ref(&datacenter)).await.unwrap();
    let error = tags.attach(&category, &made, std::slice::from_ref(&datacenter)).await.unwrap_err();
    assert_eq!((error.fault().name(), error.words()), ("BatchFailedInPart", "It was too blue."));
    assert_eq!(error.object(), Some(made[0].id.as_str()));
    let calls = client.calls().recent();
    let results: Vec<&str> =
        calls.iter().filter(|call| call.method.ends_with("attach-tag-to-multiple-objects")).map(|call| call.result.as_str()).collect();
    assert_eq!(results, ["NotFound", "NotFound", "ok", "BatchFailedInPart"]);
    assert_eq!(error.operation(), calls.last().unwrap().operation);
    format!("{error} {error:?}")
}

#[tokio::test]
async fn a_success_that_says_it_failed_gets_patience_and_is_told_with_words_object_and_operation_id() {
    play("late", waiting).await;
}

async fn failing(client: &Client) -> String {
    let tags = client.tags();
    let mut said = String::new();
    for expected in [
        Fault::NoPermission { privilege: String::new(), object: None },
        Fault::NotFound { object: None },
        Fault::InvalidArgument { property: String::new() },
        Fault::InUse,
        Fault::Other { kind: "INTERNAL_SERVER_ERROR".into() },
    ] {
        let error = tags.categories().await.unwrap_err();
        assert_eq!(*error.fault(), expected);
        assert!(!error.words().is_empty());
        said += &format!("{error} {error:?}\n");
    }
    // The session is gone: a new one is made, and the call repeated.
    tags.categories().await.unwrap();
    said
}

#[tokio::test]
async fn documented_api_errors_have_their_types() {
    play("errors", failing).await;
}

async fn falling_back(client: &Client) -> String {
    assert_eq!(client.tags().categories().await.unwrap(), []);
    String::new()
}

#[tokio::test]
async fn a_server_without_the_dialect_its_version_suggests_is_asked_in_the_other() {
    play("fallback", falling_back).await;
}

/// A server that says yes to everything and keeps what it was asked.
fn recorder(authority: &Authority, dir: &TempDir) -> (Server, Arc<Mutex<Vec<Asked>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = serve(&authority.issue(dir.path(), "server", &["127.0.0.1"]), {
        let seen = Arc::clone(&seen);
        move |asked: Asked| {
            let reply = match asked.path.as_str() {
                "/sdk" => soap(&String::from_utf8_lossy(&asked.body)),
                "/api/session" => Reply::new(201, "\"marker-session\""),
                _ => Reply::new(200, "[]"),
            };
            seen.lock().unwrap().push(asked);
            async move { reply }
        }
    });
    (server, seen)
}

#[tokio::test]
async fn the_cookie_goes_back_as_it_came_and_every_request_bears_the_operation_id_of_its_call() {
    let dir = TempDir::new().unwrap();
    let authority = Authority::new("recorder");
    let (server, seen) = recorder(&authority, &dir);
    let endpoint = Endpoint { server: "127.0.0.1".into(), port: server.address.port() };
    let mut settings = Settings::new(endpoint, Credentials::new("me", "s3cr3t"), Trust::Bundle(authority.pem()));
    settings.proxy = Proxy::none();
    settings.user_agent = "recorded/1.0".into();
    let client = Client::new(settings).unwrap();
    client.tags().categories().await.unwrap();
    assert_eq!(client.user().await.unwrap(), "VSPHERE.LOCAL\\me");
    client.logout().await.unwrap();
    let calls = client.calls().recent();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), calls.len());
    for (asked, call) in seen.iter().zip(&calls) {
        let header = |name: &str| asked.headers.get(name).map(|value| value.to_str().unwrap());
        let body = String::from_utf8_lossy(&asked.body);
        if call.api == "soap" {
            assert!(body.contains(&format!(r#"<operationID xmlns="urn:vim25">{}</operationID>"#, call.operation)), "{body}");
            let expected =
                (!["RetrieveServiceContent", "Login"].contains(&call.method.as_str())).then_some("vmware_soap_session=\"marker-cookie\"");
            assert_eq!(header("cookie"), expected, "{}", call.method);
            assert_eq!(header("soapaction"), Some("urn:vim25/7.0"));
        } else {
            assert_eq!(header("x-request-id"), Some(call.operation.as_str()));
        }
        assert_eq!(header("user-agent"), Some("recorded/1.0"));
    }
}
