//! A server that plays from a book: the exchanges of a chapter, once each, and nothing else. Their sources stand beside them
//! in `documented/api.json`.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use vsphere::{Client, Credentials, Endpoint, Proxy, Settings, Trust};

use crate::{
    pki::Authority,
    serve::{Asked, Reply, Server, serve},
};

pub(crate) struct Book {
    server: Server,
    left: Arc<Mutex<Vec<Value>>>,
    strange: Arc<Mutex<Vec<String>>>,
    authority: Authority,
    _dir: TempDir,
}

pub(crate) const API: &str = include_str!("documented/api.json");

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
    // One that stands may happen any number of times, the others once.
    let exchange = if left[at]["stands"] == true { left[at].clone() } else { left.remove(at) };
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

pub(crate) fn open(chapter: &str) -> Book {
    let book: Value = serde_json::from_str(API).unwrap();
    let chapter = book[chapter].as_array().unwrap_or_else(|| panic!("no chapter {chapter}")).clone();
    assert!(chapter.iter().all(|exchange| exchange["source"].as_str().is_some_and(|source| source.starts_with("https://"))));
    with(chapter)
}

/// A book of these exchanges.
pub(crate) fn with(chapter: Vec<Value>) -> Book {
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

/// Its secrets all begin with a marker.
pub(crate) const USER: &str = "me@vsphere.local";
pub(crate) const PASSWORD: &str = "marker-password-83";

impl Book {
    pub(crate) fn client(&self) -> Client {
        let endpoint = Endpoint { server: "127.0.0.1".into(), port: self.server.address.port() };
        let mut settings = Settings::new(endpoint, Credentials::new(USER, PASSWORD), Trust::Bundle(self.authority.pem()));
        settings.proxy = Proxy::none();
        settings.deadlines.keep_alive = Duration::from_millis(20);
        Client::new(settings).unwrap()
    }

    /// Every exchange happened, and nothing else did.
    pub(crate) fn closed(&self) {
        assert_eq!(*self.strange.lock().unwrap(), Vec::<String>::new());
        self.left.lock().unwrap().retain(|exchange| exchange["stands"] != true);
        assert_eq!(*self.left.lock().unwrap(), Vec::<Value>::new());
    }
}
