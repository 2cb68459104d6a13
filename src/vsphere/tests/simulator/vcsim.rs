// One simulator per test: started, spoken to over its control socket, ended with the test. The examples of the documentation
// include this file, which therefore has no inner documentation and names its neighbour from the module above.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use vsphere::{Client, Credentials, Endpoint, Proxy, Settings, Trust};

use super::pki::Authority;

pub(crate) const USER: &str = "administrator@vsphere.local";
/// With all that XML, JSON and addresses must escape.
pub(crate) const PASSWORD: &str = "marker-\"p&a's<s>\\w%rd/57";

pub(crate) struct Vcsim {
    process: Child,
    pub(crate) dir: TempDir,
    pub(crate) authority: Authority,
    addresses: Vec<String>,
}

impl Drop for Vcsim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A datacenter with a little of everything, in a folder or in none.
fn datacenter(name: &str, folder: &str) -> Value {
    json!({
        "name": format!("dc-{name}"),
        "folder": folder,
        "clusters": [{ "name": format!("cluster-{name}"), "hosts": 2, "resourcePools": [format!("ocp-{name}")] }],
        "datastores": [format!("datastore-{name}")],
        "networks": [format!("network-{name}")],
        "folders": ["lab-x7k2p", "outer/inner"],
        "templates": [{ "name": format!("rhcos-{name}"), "folder": "", "hardware": "vmx-19", "diskGiB": 120 }],
    })
}

impl Vcsim {
    /// One vCenter, `a`.
    pub(crate) fn start() -> Self {
        Self::with(&["a"], 0)
    }

    /// These vCenters, each with that many synthetic virtual machines.
    pub(crate) fn with(names: &[&str], synthetic: usize) -> Self {
        Self::launch(names, synthetic, "")
    }

    /// One vCenter, whose datacenter lies in this folder.
    pub(crate) fn with_datacenter_in(folder: &str) -> Self {
        Self::launch(&["a"], 2, folder)
    }

    fn launch(names: &[&str], synthetic: usize, folder: &str) -> Self {
        let binary = std::env::var_os("VMI_VCSIM")
            .expect("set VMI_VCSIM to the vcsim binary built from hack/tools (hack/test does): these tests need the simulator");
        let dir = TempDir::new().unwrap();
        let authority = Authority::new("test authority");
        let pair = authority.issue(dir.path(), "vcenter", &["127.0.0.1"]);
        let vcenters: Vec<Value> = names
            .iter()
            .map(|name| {
                json!({
                    "name": name, "listen": "127.0.0.1:0", "certificate": pair.certificate, "key": pair.key,
                    "username": USER, "password": PASSWORD, "version": "8.0.3",
                    "datacenters": [datacenter(name, folder)], "guests": "10.31.0.0/16", "synthetic": synthetic,
                })
            })
            .collect();
        let config = json!({ "control": dir.path().join("control.sock"), "vcenters": vcenters });
        std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
        let log = std::fs::File::create(dir.path().join("vcsim.log")).unwrap();
        let mut process = Command::new(&binary)
            .arg("--config")
            .arg(dir.path().join("config.json"))
            // The simulator leaves files behind when it is killed; they go with the test's folder.
            .env("TMPDIR", dir.path())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start VMI_VCSIM={}: {error}", binary.display()));
        let line = first_line(process.stdout.take().unwrap());
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!("the simulator did not start: {}", std::fs::read_to_string(dir.path().join("vcsim.log")).unwrap_or_default())
        });
        let addresses = ready["vcenters"].as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap().to_owned()).collect();
        Self { process, dir, authority, addresses }
    }

    /// Settings for the vCenter of that number, patient enough for a busy machine.
    pub(crate) fn settings_of(&self, number: usize) -> Settings {
        let (server, port) = self.addresses[number].rsplit_once(':').unwrap();
        let endpoint = Endpoint { server: server.into(), port: port.parse().unwrap() };
        let mut settings = Settings::new(endpoint, Credentials::new(USER, PASSWORD), Trust::Bundle(self.authority.pem()));
        settings.proxy = Proxy::none();
        settings.deadlines.request = Duration::from_secs(300);
        settings.deadlines.connect = Duration::from_secs(300);
        settings
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings_of(0)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.settings()).unwrap()
    }

    /// Asks the control socket.
    pub(crate) fn control(&self, verb: &str, path: &str, body: &Value) -> Value {
        let mut stream = UnixStream::connect(self.dir.path().join("control.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        // In one piece: the server may answer and close before it has seen the rest of a request in pieces.
        let request = format!("{verb} {path} HTTP/1.0\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.split(' ').nth(1).is_some_and(|status| status.starts_with('2')), "{verb} {path}: {answer}");
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    pub(crate) fn fault(&self, fault: &Value) -> u64 {
        self.control("POST", "/vcenters/a/faults", fault)["id"].as_u64().unwrap_or(0)
    }

    pub(crate) fn no_faults(&self) {
        self.control("DELETE", "/vcenters/a/faults", &Value::Null);
    }

    /// Sessions open now, SOAP and REST, and logins so far, accepted and refused.
    pub(crate) fn sessions(&self) -> Sessions {
        let all = self.control("GET", "/sessions", &Value::Null);
        let count = |field: &str| all[0][field].as_u64().unwrap();
        Sessions { soap: count("soap"), rest: count("rest"), logins: count("logins"), refused: count("refusedLogins") }
    }

    /// How often a method has arrived since the last reset.
    pub(crate) fn count(&self, method: &str) -> u64 {
        let all = self.control("GET", "/calls", &Value::Null);
        let calls = all.as_array().into_iter().flatten();
        calls.filter(|call| call["method"] == method).map(|call| call["count"].as_u64().unwrap()).sum()
    }

    /// Calls, and bytes the clients received, since the last reset.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        let all = self.control("GET", "/calls", &Value::Null);
        let calls: Vec<&Value> = all.as_array().into_iter().flatten().collect();
        let sum = |field: &str| calls.iter().map(|call| call[field].as_u64().unwrap()).sum();
        (sum("count"), sum("bytesOut"))
    }

    pub(crate) fn reset_calls(&self) {
        self.control("POST", "/calls/reset", &Value::Null);
    }

    /// Waits until a method has arrived this often; the simulator has no event for it.
    pub(crate) async fn counts(&self, method: &str, times: u64) {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while self.count(method) < times {
            assert!(std::time::Instant::now() < deadline, "{method} came only {} times, not {times}", self.count(method));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the server counts this many sessions of each kind; logouts at idle happen behind the test's back.
    pub(crate) async fn sessions_become(&self, soap: u64, rest: u64) {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        loop {
            let now = self.sessions();
            if (now.soap, now.rest) == (soap, rest) {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "still {now:?}, not {soap} and {rest}");
            // The simulator has no event for the end of a session.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// What it says when it is ready; nothing if it does not say so in time.
fn first_line(from: ChildStdout) -> String {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // An error is an empty line to whoever waits, and so is a wait that was given up.
        let _ = BufReader::new(from).read_line(&mut line).map(|_| tell.send(line));
    });
    told.recv_timeout(Duration::from_secs(120)).unwrap_or_default()
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sessions {
    pub(crate) soap: u64,
    pub(crate) rest: u64,
    pub(crate) logins: u64,
    pub(crate) refused: u64,
}
