//! The `/api` dialect, which the simulator does not speak: exchanges written from the published reference, replayed.
//! Their sources stand beside them in `documented/api.json`.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tempfile::TempDir;
use vsphere::{Cardinality, CategorySpec, Client, Credentials, Endpoint, Fault, Kind, Proxy, Ref, Settings, Trust};

use crate::{
    pki::Authority,
    serve::{Asked, Reply, Server, serve},
};

struct Book {
    server: Server,
    left: Arc<Mutex<Vec<Value>>>,
    strange: Arc<Mutex<Vec<String>>>,
    authority: Authority,
    _dir: TempDir,
}

const API: &str = include_str!("documented/api.json");

pub(crate) fn envelope(inner: &str) -> Reply {
    let body = format!(
        r#"<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>{inner}</soapenv:Body></soapenv:Envelope>"#
    );
    Reply::new(200, body)
}

/// Only what a login needs.
pub(crate) fn soap(body: &str) -> Reply {
    let object = |name: &str, kind: &str| format!(r#"<{name} type="{kind}">{kind}</{name}>"#);
    if body.contains("<RetrieveServiceContent") {
        let managers = object("rootFolder", "Folder")
            + &object("propertyCollector", "PropertyCollector")
            + "<about><name>VMware vCenter Server</name><fullName>VMware vCenter Server 9.0.0</fullName><version>9.0.0</version>"
            + "<apiType>VirtualCenter</apiType><apiVersion>9.0.0.0</apiVersion></about>"
            + &object("sessionManager", "SessionManager")
            + &object("authorizationManager", "AuthorizationManager")
            + &object("searchIndex", "SearchIndex");
        return envelope(&format!("<RetrieveServiceContentResponse><returnval>{managers}</returnval></RetrieveServiceContentResponse>"));
    }
    if body.contains("<Login") {
        let mut reply =
            envelope("<LoginResponse><returnval><key>marker-key</key><userName>VSPHERE.LOCAL\\me</userName></returnval></LoginResponse>");
        // A real vCenter puts the value in quotes.
        reply.headers.insert("set-cookie", "vmware_soap_session=\"marker-cookie\"; Path=/; HttpOnly; Secure".parse().unwrap());
        return reply;
    }
    if body.contains("<CurrentTime") {
        return envelope("<CurrentTimeResponse><returnval>2026-01-01T00:00:00.000000Z</returnval></CurrentTimeResponse>");
    }
    envelope("<LogoutResponse/>")
}

fn replay(asked: &Asked, left: &Mutex<Vec<Value>>, strange: &Mutex<Vec<String>>) -> Reply {
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
    let mut left = left.lock().unwrap();
    let fits =
        |one: &Value| one["request"]["method"] == asked.method && one["request"]["path"] == asked.path && one["request"]["body"] == body;
    let Some(at) = left.iter().position(fits) else {
        strange.lock().unwrap().push(format!("{} {} {body}", asked.method, asked.path));
        return Reply::new(500, "");
    };
    let exchange = left.remove(at);
    for (name, value) in exchange["request"]["headers"].as_object().into_iter().flatten() {
        let sent = asked.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !sent.starts_with(value.as_str().unwrap()) {
            strange.lock().unwrap().push(format!("{} {}: header {name} is {sent:?}", asked.method, asked.path));
        }
    }
    let answer = &exchange["answer"];
    let body = if answer["body"].is_null() { String::new() } else { answer["body"].to_string() };
    Reply::new(u16::try_from(answer["status"].as_u64().unwrap()).unwrap(), body)
}

fn open(chapter: &str) -> Book {
    let book: Value = serde_json::from_str(API).unwrap();
    let chapter = book[chapter].as_array().unwrap_or_else(|| panic!("no chapter {chapter}")).clone();
    assert!(chapter.iter().all(|exchange| exchange["source"].as_str().is_some_and(|source| source.starts_with("https://"))));
    let (left, strange) = (Arc::new(Mutex::new(chapter)), Arc::new(Mutex::new(Vec::new())));
    let dir = TempDir::new().unwrap();
    let authority = Authority::new("documented");
    let pair = authority.issue(dir.path(), "server", &["127.0.0.1"]);
    let server = serve(&pair, {
        let (left, strange) = (Arc::clone(&left), Arc::clone(&strange));
        move |asked: Asked| {
            let reply = if asked.path == "/sdk" { soap(&String::from_utf8_lossy(&asked.body)) } else { replay(&asked, &left, &strange) };
            async move { reply }
        }
    });
    Book { server, left, strange, authority, _dir: dir }
}

impl Book {
    fn client(&self) -> Client {
        let endpoint = Endpoint { server: "127.0.0.1".into(), port: self.server.address.port() };
        let mut settings = Settings::new(endpoint, Credentials::new("me@vsphere.local", "s3cr3t"), Trust::Bundle(self.authority.pem()));
        settings.proxy = Proxy::none();
        Client::new(settings).unwrap()
    }

    /// Every exchange happened, and nothing else did.
    fn closed(&self) {
        assert_eq!(*self.strange.lock().unwrap(), Vec::<String>::new());
        assert_eq!(*self.left.lock().unwrap(), Vec::<Value>::new());
    }
}

fn region() -> CategorySpec {
    CategorySpec {
        name: "openshift-region".into(),
        description: "Region".into(),
        cardinality: Cardinality::Single,
        types: vec![Kind::Datacenter],
    }
}

#[tokio::test]
async fn documented_api_makes_attaches_detaches_and_deletes() {
    let book = open("make");
    let client = book.client();
    let tags = client.tags();
    let category = tags.ensure_category(&region()).await.unwrap();
    let made = tags.ensure(&category, &["eu"]).await.unwrap();
    let datacenter = Ref::new("Datacenter", "datacenter-3");
    tags.attach(&category, &made, std::slice::from_ref(&datacenter)).await.unwrap();
    tags.detach(&made, std::slice::from_ref(&datacenter)).await.unwrap();
    assert_eq!(tags.objects(&made).await.unwrap(), [vec![]]);
    tags.delete(&made[0]).await.unwrap();
    tags.delete_category(&category).await.unwrap();
    client.logout().await.unwrap();
    book.closed();
}

#[tokio::test]
async fn documented_api_finds_what_is_there() {
    let book = open("find");
    let client = book.client();
    let category = client.tags().ensure_category(&region()).await.unwrap();
    assert_eq!(category.types, ["Datacenter"], "written with a prefix by this server");
    assert_eq!(client.tags().of(&category).await.unwrap()[0].name, "eu");
    client.logout().await.unwrap();
    book.closed();
}

#[tokio::test]
async fn a_success_that_says_it_failed_gets_patience_and_is_told_with_words_object_and_operation_id() {
    let book = open("late");
    let client = book.client();
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
    client.logout().await.unwrap();
    book.closed();
}

#[tokio::test]
async fn documented_api_errors_have_their_types() {
    let book = open("errors");
    let client = book.client();
    let tags = client.tags();
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
    }
    // The session is gone: a new one is made, and the call repeated.
    tags.categories().await.unwrap();
    client.logout().await.unwrap();
    book.closed();
}

#[tokio::test]
async fn a_server_without_the_dialect_its_version_suggests_is_asked_in_the_other() {
    let book = open("fallback");
    let client = book.client();
    assert_eq!(client.tags().categories().await.unwrap(), []);
    client.logout().await.unwrap();
    book.closed();
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
