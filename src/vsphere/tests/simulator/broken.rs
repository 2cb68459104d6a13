//! Servers that break off, never end, or say less than they should.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;
use vsphere::{Client, Credentials, Endpoint, Fault, Identity, Proxy, Ref, Settings, Trust, Uuid, Want};

use crate::{
    book::{envelope, soap},
    logs::Log,
    pki::Authority,
    serve::{Asked, End, Reply, Server, serve},
};

pub(crate) struct Fake {
    _server: Server,
    _dir: TempDir,
    pub(crate) settings: Settings,
    seen: Arc<Mutex<Vec<Asked>>>,
}

/// A server that logs everybody in and answers everything else as it is told.
pub(crate) fn fake(answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Fake {
    let (dir, authority, seen) = (TempDir::new().unwrap(), Authority::new("fake"), Arc::new(Mutex::new(Vec::new())));
    let server = serve(&authority.issue(dir.path(), "server", &["127.0.0.1"]), {
        let seen = Arc::clone(&seen);
        move |asked: Asked| {
            let reply = answer(&asked).unwrap_or_else(|| match asked.path.as_str() {
                "/sdk" => soap(&text(&asked)),
                "/api/session" => Reply::new(201, "\"marker-session\""),
                _ => Reply::new(200, "[]"),
            });
            seen.lock().unwrap().push(asked);
            async move { reply }
        }
    });
    let endpoint = Endpoint { server: "127.0.0.1".into(), port: server.address.port() };
    let mut settings = Settings::new(endpoint, Credentials::new("me", "s3cr3t"), Trust::Bundle(authority.pem()));
    settings.proxy = Proxy::none();
    settings.deadlines.request = Duration::from_secs(60);
    Fake { _server: server, _dir: dir, settings, seen }
}

impl Fake {
    pub(crate) fn count(&self, what: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|asked| format!("{} {}", asked.method, asked.path) == what || text(asked).contains(what)).count()
    }
}

pub(crate) fn text(asked: &Asked) -> String {
    String::from_utf8_lossy(&asked.body).into_owned()
}

fn ended(mut reply: Reply, end: End) -> Reply {
    reply.end = end;
    reply
}

#[tokio::test]
async fn a_rest_login_that_breaks_off_is_logged_out_wherever_its_id_was_seen_and_told_where_it_was_not() {
    for (header, body, end, known) in [
        (None, "\"marker-cut\"", End::Cut, true),
        (Some("marker-cut"), "\"mark", End::Cut, true),
        (Some("marker-cut"), "", End::Never, true),
        (None, "\"mark", End::Cut, false),
    ] {
        let fake = fake(move |asked| {
            (asked.method == "POST" && asked.path == "/api/session").then(|| {
                let mut reply = ended(Reply::new(201, body), end);
                header.map(|id| reply.headers.insert("vmware-api-session-id", id.parse().unwrap()));
                reply
            })
        });
        let log = Log::begin();
        let mut settings = fake.settings.clone();
        if end == End::Never {
            settings.deadlines.request = Duration::from_secs(5);
        }
        let client = Client::new(settings).unwrap();
        let error = client.tags().categories().await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Dropped(_) | Fault::Timeout { .. }), "{error}");
        let out: Vec<String> = {
            let seen = fake.seen.lock().unwrap();
            let logouts = seen.iter().filter(|asked| asked.method == "DELETE" && asked.path == "/api/session");
            logouts.map(|asked| asked.headers["vmware-api-session-id"].to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(out, if known { vec!["marker-cut"] } else { vec![] }, "{body}");
        assert_eq!(log.text().contains("cannot be ended"), !known);
        assert!(!log.text().contains("marker-cut"));
        client.logout().await.unwrap();
    }
}

#[tokio::test]
async fn a_read_that_never_ends_is_given_up_and_given_back() {
    for objects in ["", "<objects><obj type=\"Folder\">group-d1</obj></objects>"] {
        let fake = fake(move |asked| {
            let page = format!("<r><returnval><token>again</token>{objects}</returnval></r>");
            text(asked).contains("RetrievePropertiesEx").then(|| envelope(&page))
        });
        let mut settings = fake.settings.clone();
        settings.largest_read = 40;
        let client = Client::new(settings).unwrap();
        let error = client.inventory(Want::Infrastructure).await.unwrap_err();
        assert_eq!(*error.fault(), Fault::TooMany { limit: 40 });
        assert!(error.to_string().contains("more than 40 objects"), "{error}");
        assert_eq!((fake.count("<ContinueRetrievePropertiesEx"), fake.count("<CancelRetrievePropertiesEx")), (40, 1));
        client.logout().await.unwrap();
    }
}

#[tokio::test]
async fn a_page_is_read_while_it_arrives() {
    let asked_before = AtomicBool::new(false);
    let fake = fake(move |asked| {
        if !text(asked).contains("<RetrievePropertiesEx") {
            return None;
        }
        let schema = "http://www.w3.org/2001/XMLSchema-instance";
        let lost =
            format!(r#"<missingSet><path>name</path><fault><fault xmlns:i="{schema}" i:type="NotAuthenticated"/></fault></missingSet>"#);
        let folder = |inner: &str| format!(r#"<objects><obj type="Folder">group-d1</obj>{inner}</objects>"#);
        let page = |objects: String| envelope(&format!("<r><returnval>{objects}</returnval></r>"));
        if asked_before.swap(true, Ordering::SeqCst) {
            return Some(page(folder("")));
        }
        Some(ended(page(folder(&lost) + &folder("").repeat(1000)), End::Never))
    });
    let client = Client::new(fake.settings.clone()).unwrap();
    let found = client.inventory(Want::Infrastructure).await.unwrap();
    assert_eq!(found.folders.len(), 1, "nothing of the page that broke off");
    assert_eq!(fake.count("<Login"), 2, "that the session is lost was seen, though the answer saying so never ends");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn all_pages_of_a_read_together_are_bounded_in_bytes() {
    let fake = fake(|asked| {
        let page = format!("<r><returnval><token>again</token></returnval><!--{}--></r>", "x".repeat(60_000));
        text(asked).contains("RetrievePropertiesEx").then(|| envelope(&page))
    });
    let mut settings = fake.settings.clone();
    settings.largest_answer = 100_000;
    let client = Client::new(settings).unwrap();
    let error = client.inventory(Want::Infrastructure).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::TooLarge { limit: 400_000 });
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_large_json_answer_is_not_read_and_a_large_list_is_read_in_parts() {
    const TAGS: &str = "/api/cis/tagging/tag-association?action=list-attached-tags-on-objects";
    let fake = fake(|asked| match asked.path.as_str() {
        "/api/cis/tagging/category" => Some(Reply::new(200, format!("[{}0]", "0,".repeat(3 << 20)))),
        TAGS => {
            let asked: serde_json::Value = serde_json::from_slice(&asked.body).unwrap();
            let ids = asked["object_ids"].as_array().unwrap();
            let tag = "t".repeat(1 << 20);
            let rows: Vec<_> = ids.iter().map(|id| serde_json::json!({ "object_id": id, "tag_ids": [tag] })).collect();
            Some(Reply::new(200, serde_json::Value::from(rows).to_string()))
        }
        _ => None,
    });
    let client = Client::new(fake.settings.clone()).unwrap();
    assert_eq!(*client.tags().categories().await.unwrap_err().fault(), Fault::TooLarge { limit: 4 << 20 });
    let objects: Vec<Ref> = (0..7).map(|number| Ref::new("Folder", &format!("group-{number}"))).collect();
    let found = client.tags().attached(&objects).await.unwrap();
    assert_eq!(
        found.iter().map(|(object, tags)| (object, tags.len())).collect::<Vec<_>>(),
        objects.iter().map(|one| (one, 1)).collect::<Vec<_>>()
    );
    assert_eq!(fake.count(&format!("POST {TAGS}")), 5, "seven; three, and four; two and two");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_request_that_may_have_reached_the_server_is_not_repeated() {
    let fake = fake(|asked| text(asked).contains("<CurrentTime").then(|| ended(Reply::new(200, ""), End::Nothing)));
    let client = Client::new(fake.settings.clone()).unwrap();
    let error = client.clock().await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Dropped(_)) && error.to_string().contains("may have been done"), "{error}");
    assert_eq!(fake.count("<CurrentTime"), 1);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_call_whose_caller_goes_away_is_logged_as_cancelled() {
    let fake = fake(|asked| text(asked).contains("<CurrentTime").then(|| ended(Reply::new(200, ""), End::Never)));
    let client = Client::new(fake.settings.clone()).unwrap();
    client.user().await.unwrap();
    let log = Log::begin();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let arrived = async {
        while fake.count("<CurrentTime") == 0 {
            assert!(std::time::Instant::now() < deadline, "the call never arrived");
            // The server is on another thread and has no event for this one.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! { _ = client.clock() => panic!("it has no end"), () = arrived => {} }
    let call = client.calls().recent().pop().unwrap();
    assert_eq!((call.method.as_str(), call.result.as_str()), ("CurrentTime", "cancelled"));
    assert!(log.text().contains(&call.operation) && log.text().contains("\"result\":\"cancelled\""), "{}", log.text());
    client.logout().await.unwrap();
}

fn uuid(number: usize) -> Uuid {
    format!("00000000-0000-4000-8000-{number:012}").parse().unwrap()
}

/// Knows vm-1 to vm-15 by UUID, each with a twin from 101 on; a read shows what it is told to.
fn directory(shown: &'static [(usize, usize)], without: bool) -> Fake {
    fake(move |asked| {
        let body = text(asked);
        if body.contains("<FindAllByUuid") {
            let wanted = (1..=15).find(|number| body.contains(&uuid(*number).to_string()));
            let vm = |number: usize| format!(r#"<returnval type="VirtualMachine">vm-{number}</returnval>"#);
            return Some(envelope(&format!("<r>{}</r>", wanted.map(|number| vm(number + 100) + &vm(number)).unwrap_or_default())));
        }
        body.contains("<RetrievePropertiesEx").then(|| {
            let vm = |(vm, of): &(usize, usize)| {
                let property = format!("<propSet><name>config.uuid</name><val>{}</val></propSet>", uuid(*of));
                format!(r#"<objects><obj type="VirtualMachine">vm-{vm}</obj>{property}</objects>"#)
            };
            let dark = if without { r#"<objects><obj type="VirtualMachine">vm-200</obj></objects>"# } else { "" };
            envelope(&format!("<r><returnval>{}{dark}</returnval></r>", shown.iter().map(vm).collect::<String>()))
        })
    })
}

#[tokio::test]
async fn what_is_found_does_not_depend_on_how_many_are_asked_for() {
    // A read that shows whole pairs of some, and one that shows halves and a machine that does not tell its UUID.
    for (shown, without) in [(&[(102, 2), (2, 2), (103, 3), (3, 3)][..], false), (&[(1, 1), (2, 2)][..], true)] {
        let fake = directory(shown, without);
        let client = Client::new(fake.settings.clone()).unwrap();
        let mut all: Vec<Uuid> = (1..=15).map(uuid).collect();
        all.push(uuid(99));
        let together = client.find_vms(&all, Identity::Bios).await.unwrap();
        assert_eq!(fake.count("<RetrievePropertiesEx"), 1, "many begin with a read");
        for (uuid, found) in all.iter().zip(&together) {
            assert_eq!(client.find_vms(&[*uuid], Identity::Bios).await.unwrap().concat(), *found, "{uuid}");
        }
        assert_eq!((together[2].len(), together[15].len()), (2, 0));
        client.logout().await.unwrap();
    }
}

#[tokio::test]
async fn a_folder_that_does_not_tell_what_it_holds_is_not_deleted() {
    for silent in [
        "",
        r#"<missingSet><path>childEntity</path><fault><fault xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="NoPermission"/></fault></missingSet>"#,
    ] {
        let fake = fake(move |asked| {
            let parent = r#"<propSet><name>parent</name><val xmlns:i="http://www.w3.org/2001/XMLSchema-instance" type="Folder" i:type="ManagedObjectReference">group-v3</val></propSet>"#;
            let page = format!(r#"<r><returnval><objects><obj type="Folder">group-v9</obj>{parent}{silent}</objects></returnval></r>"#);
            text(asked).contains("<RetrievePropertiesEx").then(|| envelope(&page))
        });
        let client = Client::new(fake.settings.clone()).unwrap();
        let error = client.delete_folder(&Ref::new("Folder", "group-v9"), Duration::from_secs(60)).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Malformed(_) | Fault::NoPermission { .. }), "{error}");
        assert_eq!(fake.count("<Destroy_Task"), 0);
        client.logout().await.unwrap();
    }
}

#[tokio::test]
async fn what_could_not_be_read_does_not_quote_a_secret_either() {
    let fake = fake(|asked| {
        let fault = r#"<fault><fault xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="s3cr3t"/></fault>"#;
        let folder = format!(r#"<obj type="Folder">group-d1</obj><missingSet><path>s3cr3t</path>{fault}</missingSet>"#);
        let page = format!("<r><returnval><objects>{folder}</objects></returnval></r>");
        text(asked).contains("<RetrievePropertiesEx").then(|| envelope(&page))
    });
    let client = Client::new(fake.settings.clone()).unwrap();
    let found = client.inventory(Want::Infrastructure).await.unwrap();
    assert_eq!((found.unreadable[0].property.as_str(), found.unreadable[0].fault.name()), ("***", "***"));
    client.logout().await.unwrap();
}
