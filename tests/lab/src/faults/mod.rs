//! Ways to break a running lab, each of which can be lifted again. Those of vCenters are the simulator's; those of the cluster
//! stand on a board, a ConfigMap that the supervisor, the node agent and the stand-ins watch.

pub mod board;
mod objects;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::home::{self, Record};
use crate::pki::{self, Authority};
use crate::vcenter::{self, Control};
use crate::{cluster, control_plane, kubernetes};

/// One thing that goes wrong on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fault {
    /// vCenter: calls wait before they are served
    Latency {
        vcenter: String,
        #[arg(long, default_value_t = 1000)]
        milliseconds: u32,
        #[command(flatten)]
        #[serde(flatten)]
        calls: Calls,
    },
    /// vCenter: calls are answered with an HTTP status alone
    Status {
        vcenter: String,
        #[arg(long, default_value_t = 503)]
        code: u16,
        #[command(flatten)]
        #[serde(flatten)]
        calls: Calls,
    },
    /// vCenter: connections are cut in the middle of an answer
    Drop {
        vcenter: String,
        #[command(flatten)]
        #[serde(flatten)]
        calls: Calls,
    },
    /// vCenter: all sessions end, once
    Sessions { vcenter: String },
    /// vCenter: its password is another one; refused logins are counted
    Password { vcenter: String },
    /// vCenter: privileges are missing, on the object of that name or everywhere
    Privileges {
        vcenter: String,
        #[arg(required = true)]
        missing: Vec<String>,
        #[arg(long, default_value = "")]
        object: String,
    },
    /// vCenter: its certificate is another one, signed by an authority that nobody knows
    Certificate { vcenter: String },
    /// vCenter: the folder, template, network, cluster or datastore at this path is not there
    Gone {
        vcenter: String,
        #[arg(value_name = "PATH")]
        object: String,
    },
    /// cluster: the apiserver is killed and comes back after so long, which lifts this
    ApiserverRestart {
        #[arg(long, default_value_t = 0)]
        milliseconds: u32,
    },
    /// cluster: what an operator's watches bring comes late
    SlowWatch {
        #[arg(long, default_value_t = 3000)]
        milliseconds: u32,
    },
    /// cluster: new machines whose names begin so boot, but do not join as Nodes
    NeverJoins {
        #[arg(default_value = "")]
        prefix: String,
    },
    /// cluster: the containers of pods whose names begin so end as soon as they start
    CrashLoop {
        namespace: String,
        workload: String,
        /// Only this one
        #[arg(default_value = "")]
        container: String,
    },
    /// cluster: the machine controller ends as soon as it starts
    MachineControllerCrashLoop,
    /// cluster: the cloud controller manager is killed, and whenever it starts again
    CcmKilled,
    /// cluster: no worker can be drained, for a disruption budget that allows none
    DrainBlocked,
    /// cluster: the control plane machine set is degraded by a control plane Node without a Machine
    CpmsDegraded,
    /// cluster: a new member of etcd does not become a voting one
    EtcdMemberStuck,
}

/// Which calls of a vCenter a fault is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct Calls {
    /// soap or rest [default: both]
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Its name; may end in * [default: every method]
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Part of the caller's user agent [default: everybody]
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// How many [default: all until the fault is lifted]
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no fault {id:?}; there are: {known}")]
    Unknown { id: String, known: String },
    #[error("lab {lab} has no vCenter {vcenter:?}; it has: {known}")]
    NoVcenter { lab: String, vcenter: String, known: String },
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("the board of faults has {key:?}, which this program does not know: {source}")]
    Board { key: String, source: serde_json::Error },
    #[error(transparent)]
    Vcenter(#[from] vcenter::Error),
    #[error(transparent)]
    Pki(#[from] pki::Error),
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::Error),
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
}

impl Error {
    /// Whether another input is wanted, rather than something being broken.
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Unknown { .. } | Error::NoVcenter { .. } | Error::Vcenter(vcenter::Error::Refused { .. }))
    }
}

/// A fault in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// By which it is lifted.
    pub id: String,
    /// What it was added with.
    pub about: String,
    /// How often it has struck, where that is counted.
    pub hits: Option<u64>,
}

/// The faults of one lab.
pub struct Faults {
    client: Client,
    control: Control,
    record: Record,
}

impl Faults {
    /// Of the lab of this record, which has to be running.
    pub async fn of(record: &Record) -> Result<Faults, Error> {
        let folder = home::of(&record.name);
        let client = control_plane::client(&folder.join("kubeconfig")).await?;
        Ok(Faults { client, control: Control { socket: folder.join("vcsim.sock") }, record: record.clone() })
    }

    /// Puts a fault in force and returns what it is lifted by.
    pub async fn add(&self, fault: &Fault) -> Result<String, Error> {
        let Some(vcenter) = fault.vcenter() else { return board::put(&self.client, fault).await };
        if !self.record.vcenters.iter().any(|known| known.name == vcenter) {
            let known: Vec<&str> = self.record.vcenters.iter().map(|vcenter| vcenter.name.as_str()).collect();
            return Err(Error::NoVcenter { lab: self.record.name.clone(), vcenter: vcenter.to_owned(), known: known.join(", ") });
        }
        let mut body = json!(fault);
        match fault {
            Fault::Password { .. } => body["password"] = json!(vcenter::random_password()),
            Fault::Certificate { .. } => {
                let (certificate, key) = self.another_certificate(vcenter)?;
                (body["certificate"], body["key"]) = (json!(certificate), json!(key));
            }
            _ => {}
        }
        let made = self.control.post(&format!("/vcenters/{vcenter}/faults"), &body).await?;
        Ok(format!("{vcenter}/{}", made["id"]))
    }

    /// Everything that is in force.
    pub async fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut all = Vec::new();
        if !self.record.vcenters.is_empty() {
            let listed = self.control.get("/faults").await?;
            all.extend(listed.as_array().into_iter().flatten().map(of_simulator));
        }
        for (id, fault) in board::list(&self.client).await? {
            all.push(Listed { id, about: about(&json!(fault)), hits: None });
        }
        Ok(all)
    }

    /// Lifts the fault with this id.
    pub async fn lift(&self, id: &str) -> Result<(), Error> {
        let all = self.list().await?;
        if !all.iter().any(|listed| listed.id == id) {
            let known: Vec<&str> = all.iter().map(|listed| listed.id.as_str()).collect();
            return Err(Error::Unknown { id: id.to_owned(), known: known.join(", ") });
        }
        match id.split_once('/') {
            Some((vcenter, number)) => self.control.delete(&format!("/vcenters/{vcenter}/faults/{number}")).await.map(drop)?,
            None => board::take(&self.client, id).await?,
        }
        Ok(())
    }

    pub async fn lift_all(&self) -> Result<(), Error> {
        for listed in self.list().await? {
            self.lift(&listed.id).await?;
        }
        Ok(())
    }

    /// Makes a certificate for the vCenter's address and returns where it and its key are.
    fn another_certificate(&self, vcenter: &str) -> Result<(PathBuf, PathBuf), Error> {
        let server = self.record.vcenters.iter().find(|known| known.name == vcenter).map(|known| known.server.as_str());
        let pair = Authority::new("nobody-knows-this-ca")?.server(vcenter, &[server.unwrap_or_default()])?;
        let folder = home::of(&self.record.name).join("pki");
        let file = |ending: &str| folder.join(format!("vcenter-{vcenter}-changed.{ending}"));
        let (certificate, key) = (file("crt"), file("key"));
        for (path, text) in [(&certificate, &pair.certificate), (&key, &pair.key)] {
            write(path, text).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
        Ok((certificate, key))
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

impl Fault {
    /// The vCenter it is about, where it is about one.
    fn vcenter(&self) -> Option<&str> {
        match self {
            Fault::Latency { vcenter, .. }
            | Fault::Status { vcenter, .. }
            | Fault::Drop { vcenter, .. }
            | Fault::Sessions { vcenter }
            | Fault::Password { vcenter }
            | Fault::Privileges { vcenter, .. }
            | Fault::Certificate { vcenter }
            | Fault::Gone { vcenter, .. } => Some(vcenter),
            _ => None,
        }
    }
}

fn of_simulator(entry: &Value) -> Listed {
    let mut fields = entry.clone();
    // What is said elsewhere in the line, and what only this lab's folder is interested in.
    for field in ["id", "hits", "certificate", "key"] {
        fields.as_object_mut().map(|fields| fields.remove(field));
    }
    Listed {
        id: format!("{}/{}", entry["vcenter"].as_str().unwrap_or_default(), entry["id"]),
        about: about(&fields),
        hits: entry["hits"].as_u64(),
    }
}

/// The kind and then what is said of it, as `name=value`.
fn about(fault: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = fault.as_object().cloned().unwrap_or_default();
    let kind = fields.get("kind").map(plain).unwrap_or_default();
    let rest =
        fields.iter().filter(|(name, value)| *name != "kind" && **value != "").map(|(name, value)| format!(" {name}={}", plain(value)));
    std::iter::once(kind).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_a_vcenter_is_sent_in_the_simulators_words() {
        let fault = Fault::Status { vcenter: "b".to_owned(), code: 503, calls: Calls { count: Some(2), ..Calls::default() } };
        assert_eq!(json!(fault), json!({"kind": "status", "vcenter": "b", "code": 503, "count": 2}));
    }

    #[test]
    fn a_listed_fault_is_told_by_its_kind_and_its_fields() {
        let entry = json!({"id": 3, "vcenter": "a", "hits": 2, "kind": "gone", "object": "/dc-a/vm/x"});
        let listed = of_simulator(&entry);
        assert_eq!((listed.id.as_str(), listed.hits), ("a/3", Some(2)));
        assert_eq!(listed.about, "gone object=/dc-a/vm/x vcenter=a");
        assert_eq!(about(&json!(Fault::CcmKilled)), "ccm-killed");
    }
}
