//! Everything is done at the most talkative level, and no secret is found in anything that can be read.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use vsphere::{Cardinality, CategorySpec, Client, Credentials, Fault, Identity, Kind, Pool, Proxy, Ref, Secret, Settings, Trust, Want};

use crate::{
    book, documented,
    logs::Log,
    pki::Authority,
    plain,
    proxy::Tunnel,
    serve::{Asked, Reply, Server, serve},
    vcsim::{PASSWORD, USER, Vcsim},
};

const WRONG: &str = "marker-wrong-password-91";
const PROXY_PASSWORD: &str = "marker-proxy%40password-13";

/// A man in the middle, who sees every session id the simulator hands out and every credential the client sends.
fn spy(sim: &Vcsim) -> (Server, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let pair = sim.authority.issue(sim.dir.path(), "spy", &["127.0.0.1"]);
    let onward = plain::https(sim);
    let base = format!("https://{}", sim.settings().endpoint);
    let server = serve(&pair, {
        let seen = Arc::clone(&seen);
        move |asked: Asked| {
            let (onward, base, seen) = (onward.clone(), base.clone(), Arc::clone(&seen));
            async move { relay(asked, &onward, &base, &seen).await }
        }
    });
    (server, seen)
}

async fn relay(mut asked: Asked, onward: &reqwest::Client, base: &str, seen: &Mutex<Vec<String>>) -> Reply {
    if let Some(basic) = asked.headers.get("authorization") {
        seen.lock().unwrap().push(basic.to_str().unwrap().trim_start_matches("Basic ").to_owned());
    }
    asked.headers.remove("host");
    let request = onward.request(asked.method.parse().unwrap(), format!("{base}{}", asked.path)).headers(asked.headers).body(asked.body);
    let Ok(response) = request.send().await else { return Reply::new(502, "") };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut reply = Reply::new(status, response.bytes().await.unwrap_or_default().to_vec());
    if let Some(cookie) = headers.get("set-cookie") {
        let value = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap().1;
        seen.lock().unwrap().push(value.to_owned());
        reply.headers.insert("set-cookie", cookie.clone());
    }
    if asked.path.ends_with("/session") {
        let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        seen.lock().unwrap().extend(answer["value"].as_str().map(str::to_owned));
    }
    reply
}

const PATIENT: Duration = Duration::from_secs(60);

/// All of the tagging service that others do not do for us.
async fn sparingly(client: &Client, folder: &Ref, say: &mut impl FnMut(String)) {
    let tags = client.tags();
    let spec =
        CategorySpec { name: "sparing".into(), description: String::new(), cardinality: Cardinality::Multiple, types: vec![Kind::Folder] };
    let category = tags.create_category(&spec).await.unwrap();
    let tag = tags.create(&category, "t").await.unwrap();
    say(format!("{category:?} {tag:?} {:?}", tags.create(&category, "t").await.unwrap_err()));
    say(format!("{:?}", tags.create_category(&spec).await.unwrap_err()));
    say(format!("{:?}", tags.attach_to_untagged(&category, &tag, std::slice::from_ref(folder)).await.unwrap()));
    say(format!("{:?}", tags.attached(std::slice::from_ref(folder)).await.unwrap()));
    say(format!("{:?}", tags.read_categories(tags.category_ids().await.unwrap()).await.unwrap()));
    say(format!("{:?}", tags.read(tags.ids_of(&category).await.unwrap()).await.unwrap()));
    say(format!("{:?} {:?}", tags.category("sparing").await.unwrap(), tags.of(&category).await.unwrap()));
    tags.delete_category(&category).await.unwrap();
}

/// Does everything, with and without success, and returns all that was said.
async fn everything(sim: &Vcsim, settings: Settings, seen: &Mutex<Vec<String>>) -> String {
    let mut said = String::new();
    let mut say = |text: String| said.push_str(&format!("{text}\n"));
    say(format!("{settings:?} {:?}", settings.credentials));
    let client = Client::new(settings.clone()).unwrap();
    say(format!("{client:?} {:?}", client.keep_alive()));
    say(format!("{:?} {:?}", client.about().await, client.clock().await));
    let inventory = client.inventory(Want::Vms).await.unwrap();
    say(format!("{inventory:?}"));
    let folder = client.find_by_path("/dc-a/vm").await.unwrap().unwrap();
    say(format!("{:?}", client.ensure_folder(&folder, "secrets").await));
    let made = client.find_by_path("/dc-a/vm/secrets").await.unwrap().unwrap();
    say(format!("{:?} {:?}", client.root_folder().await.unwrap(), client.children(&made).await.unwrap()));
    say(format!("{:?}", client.delete_folder(&made, PATIENT).await));
    for task in client.recent_tasks().await.unwrap() {
        say(format!("{:?}", client.wait(&task, PATIENT, |_| {}).await.unwrap()));
    }
    let nothing = Ref::new("Task", "task-4711");
    say(format!("{:?}", client.wait(&nothing, PATIENT, |_| {}).await.unwrap_err()));
    say(format!("{:?}", client.children(&made).await.unwrap_err()));
    let cluster = client.find_by_path("/dc-a/host/cluster-a").await.unwrap().unwrap();
    say(format!("{:?} {:?}", client.host_groups(&cluster).await.unwrap(), client.host_groups(&folder).await));
    let spec = CategorySpec { name: "c".into(), description: String::new(), cardinality: Cardinality::Single, types: vec![Kind::Folder] };
    let category = client.tags().ensure_category(&spec).await.unwrap();
    let tags = client.tags().ensure(&category, &["t"]).await.unwrap();
    say(format!("{:?} {category:?} {tags:?}", client.tags()));
    say(format!("{:?}", client.tags().attach(&category, &tags, std::slice::from_ref(&folder)).await));
    say(format!("{:?}", client.tags().objects(&tags).await.unwrap()));
    say(format!("{:?}", client.tags().detach(&tags, std::slice::from_ref(&folder)).await.unwrap()));
    say(format!("{:?}", client.tags().delete(&tags[0]).await.unwrap()));
    say(format!("{:?}", client.tags().delete(&tags[0]).await.unwrap_err()));
    say(format!("{:?}", client.tags().delete_category(&category).await.unwrap()));
    sparingly(&client, &folder, &mut say).await;
    say(format!("{:?}", client.missing_privileges(&[(folder.clone(), vec!["Folder.Create"])]).await));
    let uuid = inventory.vms[0].uuid.parse().unwrap();
    say(format!("{:?} {:?}", client.find_vms(&[uuid], Identity::Bios).await, client.user().await));
    say(format!("{:?}", client.vm_details(&[inventory.vms[0].node.reference.clone()]).await));
    // A server that quotes secrets where nobody expects them.
    for quoted in [PASSWORD, "session[52d0c3a1-marker-key]52aa", "<key>marker-key</key>"] {
        sim.fault(&json!({ "kind": "fault", "method": "CreateFolder", "type": "InvalidState", "message": format!("it was {quoted}"), "count": 1 }));
        let error = client.ensure_folder(&folder, "x").await.unwrap_err();
        say(format!("{error} {error:?}"));
        let list = "GET /rest/com/vmware/cis/tagging/category";
        sim.fault(&json!({ "kind": "fault", "api": "rest", "method": list, "type": quoted, "message": quoted, "count": 1 }));
        let error = client.tags().categories().await.unwrap_err();
        say(format!("{error} {error:?} {}", client.calls().csv()));
        sim.fault(&json!({ "kind": "garbage", "method": "CurrentTime", "body": format!("<a>{quoted}"), "count": 1 }));
        let error = client.clock().await.unwrap_err();
        say(format!("{error} {error:?}"));
    }
    for kind in ["drop", "sessions"] {
        sim.fault(&json!({ "kind": kind, "count": 1 }));
        say(format!("{:?}", client.clock().await));
        say(format!("{:?}", client.tags().categories().await));
    }
    client.set_credentials(Credentials::new(USER, WRONG)).await.unwrap();
    let error = client.tags().categories().await.unwrap_err();
    assert_eq!(*error.fault(), Fault::InvalidLogin);
    say(format!("{error} {error:?} {}", Arc::new(error.clone())));
    // A server that is not believed, and one that does not answer.
    let mut odd = settings.clone();
    odd.trust = Trust::Bundle(Authority::new("stranger").pem());
    let error = Client::new(odd).unwrap().clock().await.unwrap_err();
    assert_eq!(error.fault().name(), "Tls");
    say(format!("{error} {error:?}"));
    let mut odd = settings.clone();
    odd.deadlines.request = Duration::from_secs(5);
    sim.fault(&json!({ "kind": "latency", "method": "Login", "milliseconds": 8000, "count": 1 }));
    let late = Client::new(odd).unwrap();
    let error = late.clock().await.unwrap_err();
    assert_eq!(error.fault().name(), "Timeout");
    say(format!("{error} {error:?}"));
    // A proxy that wants a password, one that is not there, one that is none, and a bundle that is none.
    let through = |address: &str| {
        let address = format!("http://me:{PROXY_PASSWORD}@{address}");
        Proxy::from_environment(|name| (name == "HTTPS_PROXY").then(|| address.clone()))
    };
    let tunnel = Tunnel::to(settings.endpoint.to_string()).await;
    let mut odd = settings.clone();
    odd.retries = 0;
    odd.proxy = through(&tunnel.address);
    let proxied = Client::new(odd.clone()).unwrap();
    say(format!("{odd:?} {:?}", proxied.clock().await.unwrap()));
    proxied.logout().await.unwrap();
    let asked = tunnel.asked().concat();
    let sent = asked.lines().find_map(|line| line.to_lowercase().starts_with("proxy-authorization: basic ").then(|| &line[27..]));
    seen.lock().unwrap().push(sent.expect("the proxy was sent its password").to_owned());
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    odd.proxy = through(&nobody.local_addr().unwrap().to_string());
    say(format!("{odd:?}"));
    let error = Client::new(odd.clone()).unwrap().about().await.unwrap_err();
    say(format!("{error} {error:?}"));
    odd.proxy = through(":x y");
    say(format!("{:?}", Client::new(odd.clone()).unwrap_err()));
    odd.trust = Trust::Bundle(Vec::new());
    say(format!("{:?}", Client::new(odd).unwrap_err()));
    let pool = Pool::new();
    pool.client(settings).await.unwrap().clock().await.unwrap();
    say(format!("{pool:?} {:?}", Secret::from(PASSWORD)));
    pool.close().await.unwrap();
    say(format!("{:?} {} {}", client.calls(), client.calls().csv(), client.calls().json()));
    client.logout().await.unwrap();
    said
}

#[test]
fn no_secret_is_in_any_log_error_or_debug_output_even_at_the_most_talkative_level() {
    let sim = Vcsim::with(&["a"], 3);
    let (spy, seen) = spy(&sim);
    let mut settings = sim.settings();
    settings.endpoint.port = spy.address.port();
    // All tasks of a current-thread runtime run on this thread, and so log here.
    let log = Log::begin();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(everything(&sim, settings, &seen));
    let logged = log.text();
    assert!(logged.contains("vSphere body") && logged.contains("RetrievePropertiesEx") && logged.contains("vSphere call"), "trace is on");
    assert!(logged.contains("\"target\":\"rustls::"), "what is said through `log` is heard too");
    let sessions = seen.lock().unwrap().clone();
    assert!(sessions.len() >= 6, "the spy saw cookies, session ids and credentials: {sessions:?}");
    nowhere(sessions, &logged, &said);
}

/// None of these secrets is in either text, nor one of this test, which all begin so, whatever is escaped behind it.
fn nowhere(secrets: Vec<String>, logged: &str, said: &str) {
    for secret in ["marker-".to_owned()].into_iter().chain(secrets) {
        for (place, text) in [("log", logged), ("output", said)] {
            let found = text.lines().find(|line| line.contains(&secret));
            assert!(found.is_none(), "{secret} is in the {place}: {}", found.unwrap_or_default());
        }
    }
}

/// A server of the other dialect that quotes, where nobody expects it, the id it has just given.
async fn quoting() -> String {
    let exchange = |method: &str, path: &str, status: u16, body: Value| json!({ "request": { "method": method, "path": path, "body": null }, "answer": { "status": status, "body": body } });
    let list = "/api/cis/tagging/category";
    let words = json!([{ "id": "marker-session", "default_message": "it was marker-session, of marker-password-83", "args": [] }]);
    let book = book::with(vec![
        exchange("POST", "/api/session", 201, json!("marker-session")),
        exchange("GET", list, 500, json!({ "error_type": "marker-session", "messages": words })),
        exchange("GET", list, 200, json!(["marker-session"])),
        exchange("GET", "/api/cis/tagging/category/marker-session", 500, json!({ "error_type": "INTERNAL", "messages": words })),
        exchange("DELETE", "/api/session", 204, Value::Null),
    ]);
    let client = book.client();
    let mut said = String::new();
    for _ in 0..2 {
        let error = client.tags().categories().await.unwrap_err();
        assert!(error.words().contains("***"), "{error}");
        said += &format!("{error} {error:?} {}\n", error.object().unwrap_or_default());
    }
    client.logout().await.unwrap();
    book.closed();
    said + &client.calls().csv() + &client.calls().json()
}

#[test]
fn no_secret_is_in_any_log_or_output_of_the_other_dialect_either() {
    let log = Log::begin();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(async { documented::play_everything().await + &quoting().await });
    let logged = log.text();
    for shown in ["vSphere body", "/api/cis/tagging/tag-association", "\"method\":\"POST /api/session\"", "\"method\":\"GET /api/session\""]
    {
        assert!(logged.contains(shown), "{shown} is not in the log");
    }
    let basic = BASE64_STANDARD.encode(format!("{}:{}", book::USER, book::PASSWORD));
    nowhere(vec![basic], &logged, &said);
}
