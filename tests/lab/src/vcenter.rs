//! The simulated vCenters of a lab: their configuration, their process, and its control socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http_body_util::{BodyExt as _, BodyStream, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::component::{self, Component};
use crate::home::VcenterRecord;
use crate::net::Block;
use crate::pki::{self, Authority};
use crate::shape::Shape;

/// What the cluster is called in every vCenter: folder, ownership tag, names of machines.
pub const INFRA_ID: &str = "lab-x7k2p";

/// One vCenter as the cluster sees it.
#[derive(Clone)]
pub struct Vcenter {
    pub name: String,
    pub server: String,
    pub port: u16,
    pub username: String,
    pub password: String,
    /// The CA that signed its certificate, PEM.
    pub ca: String,
    pub zones: Vec<String>,
}

impl Vcenter {
    pub fn datacenter(&self) -> String {
        format!("dc-{}", self.name)
    }

    pub fn cluster(&self, zone: &str) -> String {
        format!("/{}/host/cluster-{zone}", self.datacenter())
    }

    pub fn resource_pool(&self, zone: &str) -> String {
        format!("{}/Resources", self.cluster(zone))
    }

    pub fn datastore(&self) -> String {
        format!("/{}/datastore/datastore-{}", self.datacenter(), self.name)
    }

    pub fn network(&self) -> String {
        format!("ocp-{}", self.name)
    }

    pub fn folder(&self) -> String {
        format!("/{}/vm/{INFRA_ID}", self.datacenter())
    }

    pub fn template(&self) -> String {
        format!("/{}/vm/rhcos-{}", self.datacenter(), self.name)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Component(#[from] component::Error),
    #[error(transparent)]
    Pki(#[from] pki::Error),
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot use {path}: {reason}", path = .path.display())]
    Read { path: PathBuf, reason: String },
    #[error("the vCenter simulator does not answer on {path}: {reason}", path = .path.display())]
    Control { path: PathBuf, reason: String },
    #[error("the vCenter simulator refused {method} {path}: {answer}")]
    Refused { method: &'static str, path: String, answer: String },
}

/// The vCenters a shape asks for, with their addresses and fresh passwords.
pub fn plan(shape: &Shape, block: Block, port: u16) -> Result<Vec<(Vcenter, Authority)>, Error> {
    let mut planned = Vec::new();
    for (index, vcenter) in (0..).zip(&shape.vcenters) {
        let authority = Authority::new(&format!("vcenter-{}-ca", vcenter.name))?;
        planned.push((
            Vcenter {
                name: vcenter.name.clone(),
                server: block.vcenter(index).to_string(),
                port,
                username: format!("openshift-{}@vsphere.local", vcenter.name),
                password: random_password(),
                ca: authority.certificate.clone(),
                zones: vcenter.zones.clone(),
            },
            authority,
        ));
    }
    Ok(planned)
}

/// Not a constant, so that no test can pass by knowing it and a leaked one is found by searching for it.
pub fn random_password() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!("pw-{:016x}", RandomState::new().hash_one("vcenter"))
}

/// Starts the simulator with these vCenters and returns once it listens.
pub async fn start(
    mark: &str,
    folder: &Path,
    program: &Path,
    block: Block,
    vcenters: &[(Vcenter, Authority)],
) -> Result<(Component, Control), Error> {
    let socket = folder.join("vcsim.sock");
    let mut listed = Vec::new();
    for (index, (vcenter, authority)) in (0..).zip(vcenters) {
        let pair = authority.server(&format!("vcenter-{}", vcenter.name), &[&vcenter.server])?;
        let (certificate, key) = (format!("pki/vcenter-{}.crt", vcenter.name), format!("pki/vcenter-{}.key", vcenter.name));
        write(&folder.join(&certificate), &pair.certificate)?;
        write(&folder.join(authority_file(&vcenter.name)), &authority.certificate)?;
        write(&folder.join(&key), &pair.key)?;
        listed.push(json!({
            "name": vcenter.name,
            "listen": format!("{}:{}", vcenter.server, vcenter.port),
            "certificate": folder.join(&certificate), "key": folder.join(&key),
            "username": vcenter.username, "password": vcenter.password,
            "instanceUuid": format!("5a5e0000-0000-4000-8000-{:012x}", u64::from(block.0) << 8 | u64::from(index)),
            "version": "8.0.3",
            "datacenters": [{
                "name": vcenter.datacenter(),
                "clusters": vcenter.zones.iter().map(|zone| json!({"name": format!("cluster-{zone}"), "hosts": 2})).collect::<Vec<_>>(),
                "datastores": [format!("datastore-{}", vcenter.name)],
                "networks": [vcenter.network()],
                "templates": [{"name": format!("rhcos-{}", vcenter.name), "hardware": "vmx-19", "diskGiB": 16}],
            }],
            "guests": block.guests(index),
        }));
    }
    let config = folder.join("vcsim.json");
    write(&config, &json!({"control": socket, "vcenters": listed}).to_string())?;
    let arguments = ["--config".to_owned(), config.display().to_string()];
    let mut component =
        Component::start(mark, &folder.join("logs"), "vcsim", program, &arguments, &[("TMPDIR", folder.display().to_string())])?;
    let control = Control { socket };
    component.while_alive(control.ready()).await?;
    Ok((component, control))
}

fn authority_file(name: &str) -> String {
    format!("pki/vcenter-{name}-ca.crt")
}

/// The vCenters of the lab in `folder`, with their credentials, which only the simulator's own configuration holds.
pub fn of(folder: &Path, shape: &Shape, records: &[VcenterRecord]) -> Result<Vec<Vcenter>, Error> {
    let path = folder.join("vcsim.json");
    let fail = |path: &Path, reason: String| Error::Read { path: path.to_owned(), reason };
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| fail(path, error.to_string()));
    let config: Value = serde_json::from_str(&read(&path)?).map_err(|error| fail(&path, error.to_string()))?;
    let mut vcenters = Vec::new();
    for (record, planned) in records.iter().zip(&shape.vcenters) {
        let listed = config["vcenters"].as_array().into_iter().flatten().find(|listed| listed["name"] == record.name.as_str());
        let password = listed.and_then(|listed| listed["password"].as_str());
        vcenters.push(Vcenter {
            name: record.name.clone(),
            server: record.server.clone(),
            port: record.port,
            username: record.username.clone(),
            password: password.ok_or_else(|| fail(&path, format!("it has no password for vCenter {}", record.name)))?.to_owned(),
            ca: read(&folder.join(authority_file(&record.name)))?,
            zones: planned.zones.clone(),
        });
    }
    Ok(vcenters)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let write = || -> io::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut file = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        io::Write::write_all(&mut file, text.as_bytes())
    };
    write().map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Waits for the line a simulator prints when it listens, and returns the address of its first vCenter.
pub async fn configured(simulator: &mut tokio::process::Child) -> Result<String, String> {
    use tokio::io::AsyncBufReadExt as _;
    let stdout = simulator.stdout.take().ok_or("its output is not read")?;
    let line = tokio::io::BufReader::new(stdout).lines().next_line().await.map_err(|error| error.to_string())?;
    let ready: Value = serde_json::from_str(&line.ok_or("it ended before it listened")?).map_err(|error| error.to_string())?;
    ready["vcenters"][0]["address"].as_str().map(str::to_owned).ok_or_else(|| format!("it printed {ready}"))
}

/// The simulator's control socket.
#[derive(Clone)]
pub struct Control {
    pub socket: PathBuf,
}

/// A virtual machine as the control socket tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub struct Guest {
    pub vcenter: String,
    pub name: String,
    pub uuid: String,
    pub power: String,
    pub ip: String,
    pub template: bool,
    pub boots: u64,
    pub deleted: bool,
}

impl Control {
    /// Waits until the simulator answers. There is no event for a socket that appears, so this tries twenty times a second.
    async fn ready(&self) -> Result<(), Error> {
        let answer = async {
            while self.get("/healthz").await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), answer).await.map_err(|_elapsed| self.failed("no answer within 60 s"))
    }

    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.call("GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.call("POST", path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Error> {
        self.call("DELETE", path, None).await
    }

    async fn call(&self, method: &'static str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let response = self.send(method, path, body).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await.map_err(|error| self.failed(error))?.to_bytes();
        if !status.is_success() {
            let answer = String::from_utf8_lossy(&bytes).trim().to_owned();
            return Err(Error::Refused { method, path: path.to_owned(), answer });
        }
        serde_json::from_slice(&bytes).map_err(|error| self.failed(error))
    }

    /// Every virtual machine and then every change of one; `None` marks the end of the first listing.
    pub async fn guests(&self) -> Result<impl Stream<Item = Option<Guest>> + use<>, Error> {
        let body = BodyStream::new(self.send("GET", "/guests", None).await?.into_body());
        let lines = futures::stream::unfold((body, Vec::new()), |(mut body, mut pending)| async move {
            loop {
                if let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = pending.drain(..=end).collect();
                    return Some((line, (body, pending)));
                }
                let frame = body.next().await?.ok()?;
                pending.extend_from_slice(frame.data_ref()?);
            }
        });
        Ok(lines.filter_map(|line| async move {
            let value: Value = serde_json::from_slice(&line).ok()?;
            if value.as_object().is_some_and(serde_json::Map::is_empty) {
                return Some(None);
            }
            serde_json::from_value(value).ok().map(Some)
        }))
    }

    async fn send(&self, method: &'static str, path: &str, body: Option<&Value>) -> Result<hyper::Response<hyper::body::Incoming>, Error> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| self.failed(error))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.failed(error))?;
        // The connection ends with its only request; an error of it surfaces there.
        tokio::spawn(connection);
        let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "vcsim")
            .body(Full::new(bytes))
            .map_err(|error| self.failed(error))?;
        sender.send_request(request).await.map_err(|error| self.failed(error))
    }

    fn failed(&self, reason: impl std::fmt::Display) -> Error {
        Error::Control { path: self.socket.clone(), reason: reason.to_string() }
    }
}
