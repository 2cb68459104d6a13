//! The virtual machines of an inventory: read by reference, several pages at a time, and all of them or none.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Barrier;
use vsphere::{Client, Credentials, Endpoint, Fault, Inventory, Kind, Proxy, Settings, Trust, Want};

use crate::{
    book::{envelope, soap},
    broken::{Fake, fake, text},
    pki::Authority,
    serve::{Asked, Reply, serve},
    vcsim::Vcsim,
};

const READ: &str = "RetrievePropertiesEx";

#[tokio::test]
async fn a_machine_that_goes_while_the_inventory_is_read_is_left_out_and_all_others_are_there() {
    for page in [1, 500] {
        let sim = Vcsim::with(&["a"], 30);
        let mut settings = sim.settings();
        settings.page = page;
        // Requests go one by one in the order in which they are made: the clock is asked between the folders and the machines.
        settings.in_flight = 1;
        let client = Client::new(settings).unwrap();
        let before = client.inventory(Want::Vms).await.unwrap();
        let doomed = ["synthetic-000003", "synthetic-000017", "synthetic-000029"];
        sim.reset_calls();
        let destroy = async {
            client.clock().await.unwrap();
            doomed.iter().for_each(|name| drop(sim.control("POST", &format!("/vms/a/{name}/destroy"), &Value::Null)));
        };
        let (found, ()) = tokio::join!(client.inventory(Want::Vms), destroy);
        let mut expected = before.clone();
        expected.vms.retain(|vm| !doomed.contains(&vm.node.name.as_str()));
        assert_eq!((expected.vms.len(), before.vms.len()), (27, 30));
        assert_eq!(found.unwrap(), expected, "{page}");
        let refused = client.calls().recent().iter().filter(|call| call.method == READ && call.result == "NotFound").count();
        assert_eq!(refused, doomed.len(), "each was asked for, and once");
        client.logout().await.unwrap();
    }
}

#[tokio::test]
async fn a_session_lost_while_machines_are_read_is_replaced_once_and_nothing_is_twice_or_missing() {
    let sim = Vcsim::with(&["a"], 1300);
    let whole = sim.client();
    let calm = whole.inventory(Want::Vms).await.unwrap();
    whole.logout().await.unwrap();
    let mut settings = sim.settings();
    settings.page = 20;
    let client = Client::new(settings).unwrap();
    client.clock().await.unwrap();
    sim.reset_calls();
    let deadline = Instant::now() + Duration::from_secs(60);
    let lose = async {
        // On the thread of the client, which therefore gets no further than this looks.
        while sim.count(READ) < 10 {
            assert!(Instant::now() < deadline, "{} reads", sim.count(READ));
            tokio::task::yield_now().await;
        }
        sim.fault(&json!({ "kind": "sessions" }));
    };
    let (shaken, ()) = tokio::join!(client.inventory(Want::Vms), lose);
    assert!(shaken.unwrap() == calm, "nothing twice, nothing missing");
    assert_eq!(sim.count("Login"), 1, "however many were under way");
    let repeated: u64 = client.calls().recent().iter().filter(|call| call.method == READ).map(|call| u64::from(call.retries)).sum();
    assert!((1..=4).contains(&repeated), "{repeated} of those under way");
    assert_eq!(sim.count(READ), 1 + 1301_u64.div_ceil(20) + repeated);
    client.logout().await.unwrap();
}

/// The machines that a read asks for by reference.
fn asked_for(body: &str) -> Vec<&str> {
    body.split(r#"<obj type="VirtualMachine">"#).skip(1).filter_map(|rest| rest.split('<').next()).collect()
}

fn page(machines: &[&str], token: &str) -> Reply {
    let machine = |id: &&str| {
        let name = format!("<propSet><name>name</name><val>{id}</val></propSet>");
        format!(r#"<objects><obj type="VirtualMachine">{id}</obj>{name}</objects>"#)
    };
    envelope(&format!("<r><returnval>{token}{}</returnval></r>", machines.iter().map(machine).collect::<String>()))
}

/// What a server says whose only folder holds so many machines, and a vApp; `None` where it is not asked for folders.
fn folder(machines: usize, body: &str) -> Option<Reply> {
    let listed: String =
        (0..machines).map(|id| format!(r#"<ManagedObjectReference type="VirtualMachine">vm-{id}</ManagedObjectReference>"#)).collect();
    let others = r#"<ManagedObjectReference type="VirtualApp">resgroup-v1</ManagedObjectReference>"#;
    let kind = r#"xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="ArrayOfManagedObjectReference""#;
    let children = format!("<propSet><name>childEntity</name><val {kind}>{others}{listed}</val></propSet>");
    let objects = format!(r#"<objects><obj type="Folder">Folder</obj>{children}</objects>"#);
    body.contains("<pathSet>childEntity</pathSet>").then(|| envelope(&format!("<r><returnval>{objects}</returnval></r>")))
}

/// A server with such a folder, which answers as told when machines are asked for.
fn holding(machines: usize, answer: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static) -> Fake {
    fake(move |asked: &Asked| {
        let body = text(asked);
        folder(machines, &body).or_else(|| answer(&body)).or_else(|| {
            let wanted = asked_for(&body);
            (!wanted.is_empty()).then(|| page(&wanted, ""))
        })
    })
}

fn refusal(kind: &str, inner: &str) -> Reply {
    let detail = format!(r#"<F xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="{kind}">{inner}</F>"#);
    let mut reply = envelope(&format!("<Fault><faultcode>f</faultcode><faultstring>No.</faultstring><detail>{detail}</detail></Fault>"));
    reply.status = 500;
    reply
}

fn client_of(fake: &Fake, change: impl FnOnce(&mut Settings)) -> Client {
    let mut settings = fake.settings.clone();
    change(&mut settings);
    Client::new(settings).unwrap()
}

fn names(found: &Inventory) -> Vec<&str> {
    let mut names: Vec<&str> = found.vms.iter().map(|vm| vm.node.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn four_pages_of_machines_are_read_at_a_time_and_never_more() {
    let dir = TempDir::new().unwrap();
    let authority = Authority::new("four");
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let four = Arc::new(Barrier::new(4));
    let server = serve(&authority.issue(dir.path(), "server", &["127.0.0.1"]), {
        let most = Arc::clone(&most);
        move |asked: Asked| {
            let (now, most, four) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&four));
            async move {
                let body = text(&asked);
                let wanted = asked_for(&body);
                if wanted.is_empty() {
                    return folder(24, &body).unwrap_or_else(|| soap(&body));
                }
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Nobody is answered before four have asked.
                four.wait().await;
                now.fetch_sub(1, Ordering::SeqCst);
                page(&wanted, "")
            }
        }
    });
    let endpoint = Endpoint { server: "127.0.0.1".into(), port: server.address.port() };
    let mut settings = Settings::new(endpoint, Credentials::new("me", "s3cr3t"), Trust::Bundle(authority.pem()));
    settings.proxy = Proxy::none();
    settings.page = 2;
    let client = Client::new(settings).unwrap();
    let found = client.inventory(Want::Vms).await.unwrap();
    assert_eq!((found.vms.len(), most.load(Ordering::SeqCst)), (24, 4));
    assert!(found.vms.iter().all(|vm| vm.node.parent.as_ref().is_some_and(|parent| parent.kind == Kind::Folder)));
    client.logout().await.unwrap();
}

#[tokio::test]
async fn the_limits_hold_for_all_pages_of_machines_together() {
    let fake = holding(100, |_| None);
    let client = client_of(&fake, |settings| (settings.page, settings.largest_read) = (1, 40));
    let error = client.inventory(Want::Vms).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::TooMany { limit: 40 });
    assert!((40..=44).contains(&fake.count(r#"<obj type="VirtualMachine">"#)), "the rest is not asked for");
    client.logout().await.unwrap();

    let fake = holding(100, |body| {
        let large = format!("<r><returnval/><!--{}--></r>", "x".repeat(60_000));
        (!asked_for(body).is_empty()).then(|| envelope(&large))
    });
    let client = client_of(&fake, |settings| (settings.page, settings.largest_answer) = (1, 100_000));
    let error = client.inventory(Want::Vms).await.unwrap_err();
    assert_eq!(*error.fault(), Fault::TooLarge { limit: 400_000 });
    client.logout().await.unwrap();
}

#[tokio::test]
async fn an_error_of_any_page_of_machines_is_one_of_the_whole_inventory() {
    for (kind, inner, name) in [
        ("NoPermission", "<privilegeId>System.Read</privilegeId>", "NoPermission"),
        ("ManagedObjectNotFound", r#"<obj type="VirtualMachine">vm-4711</obj>"#, "NotFound"),
        ("ManagedObjectNotFound", "", "NotFound"),
    ] {
        let fake = holding(30, move |body| asked_for(body).contains(&"vm-17").then(|| refusal(kind, inner)));
        let client = client_of(&fake, |settings| settings.page = 4);
        let error = client.inventory(Want::Vms).await.unwrap_err();
        assert_eq!((error.fault().name(), error.words()), (name, "No."));
        assert_eq!(fake.count(r#"<obj type="VirtualMachine">vm-17<"#), 1, "what would be refused again is not asked again");
        client.logout().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_gives_smaller_pages_of_machines_than_asked_for_gives_all_also_when_the_session_is_lost_between_them() {
    let lost = AtomicBool::new(false);
    let fake = holding(10, move |body| {
        if body.contains("<ContinueRetrievePropertiesEx") {
            let first = !lost.swap(true, Ordering::SeqCst);
            return Some(if first { refusal("NotAuthenticated", "") } else { page(&["vm-8", "vm-9"], "") });
        }
        (!asked_for(body).is_empty()).then(|| page(&asked_for(body)[..8], "<token>t</token>"))
    });
    // The folder and its machines, and no room for what came before the session was lost.
    let client = client_of(&fake, |settings| settings.largest_read = 11);
    let found = client.inventory(Want::Vms).await.unwrap();
    assert_eq!(names(&found), (0..10).map(|id| format!("vm-{id}")).collect::<Vec<_>>());
    assert_eq!((fake.count("<Login"), fake.count("<ContinueRetrievePropertiesEx")), (2, 2));
    client.logout().await.unwrap();
}

#[tokio::test]
async fn what_nobody_asked_for_is_not_in_the_inventory() {
    let fake = holding(2, |body| (!asked_for(body).is_empty()).then(|| page(&["vm-0", "vm-1", "vm-2"], "")));
    let client = client_of(&fake, |_| {});
    assert_eq!(names(&client.inventory(Want::Vms).await.unwrap()), ["vm-0", "vm-1"]);
    client.logout().await.unwrap();
}
