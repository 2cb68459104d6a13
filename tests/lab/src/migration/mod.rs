//! A migration in a lab: the operator under its own account, what it is asked for, and what the lab itself sees of it. Nothing
//! here takes the operator's word: the cluster, the audit log and the vCenters are asked.

pub mod account;
pub mod audit;
pub mod back;
pub mod conditions;
pub mod deploy;
pub mod dump;
pub mod figures;
pub mod identities;
pub mod moved;
pub mod operator;
pub mod rehearsal;
pub mod request;
pub mod timeline;
pub mod trial;
pub mod vcenters;
pub mod verdict;
pub mod view;
pub mod watch;
pub mod witness;

use std::path::PathBuf;

use kube::Client;

use crate::cluster::config;
use crate::home::{self, Record};
use crate::net::Block;
use crate::shape::{self, Shape};
use crate::vcenter::{self, Control, Vcenter};
use crate::{cache, cluster, control_plane, kubernetes};

/// Where the operator and its vmi live.
pub const NAMESPACE: &str = "openshift-vsphere-migration";
/// The account that the operator runs under.
pub const ACCOUNT: &str = "vmi-operator";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Shape(#[from] shape::Error),
    #[error(transparent)]
    Vcenter(#[from] vcenter::Error),
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::Error),
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    #[error(transparent)]
    GaveUp(#[from] cache::GaveUp),
    #[error(transparent)]
    Account(#[from] account::Error),
    #[error(transparent)]
    Audit(#[from] audit::Error),
    #[error(transparent)]
    Deploy(#[from] deploy::Error),
    #[error(transparent)]
    Operator(#[from] operator::Error),
    #[error(transparent)]
    Request(#[from] request::Error),
    #[error(transparent)]
    Watch(#[from] watch::Error),
    #[error(transparent)]
    Inventory(#[from] vcenters::Error),
    #[error("shape {0} has no second vCenter to grow to: native and legacy-yaml have one")]
    NoTarget(String),
}

/// A running lab, as a migration sees it.
pub struct Site {
    pub client: Client,
    /// The vCenter simulator's control socket.
    pub control: Control,
    pub shape: Shape,
    pub folder: PathBuf,
    /// What the lab's processes carry.
    pub mark: String,
    pub block: Block,
    pub source: Vcenter,
    pub target: Vcenter,
    /// Where the shape has more than one to move to.
    pub more_targets: Vec<Vcenter>,
}

impl Site {
    /// The lab of this record, which has to be running.
    pub async fn of(record: &Record) -> Result<Site, Error> {
        let shape = Shape::named(&record.shape)?;
        let folder = home::of(&record.name);
        let mut vcenters = vcenter::of(&folder, &shape, &record.vcenters)?.into_iter();
        let (Some(source), Some(target)) = (vcenters.next(), vcenters.next()) else {
            return Err(Error::NoTarget(shape.name));
        };
        Ok(Site {
            client: control_plane::client(&folder.join("kubeconfig")).await?,
            control: Control { socket: folder.join("vcsim.sock") },
            mark: home::mark(&record.name),
            block: record.block,
            shape,
            folder,
            source,
            target,
            more_targets: vcenters.collect(),
        })
    }

    /// Where the cluster moves to.
    pub fn targets(&self) -> Vec<&Vcenter> {
        std::iter::once(&self.target).chain(&self.more_targets).collect()
    }

    /// What the failure domains there are called.
    pub fn target_domains(&self) -> Vec<String> {
        let zones = self.targets().into_iter().flat_map(|target| target.zones.iter().map(move |zone| (target, zone)));
        zones.map(|(target, zone)| config::named_domain(target, zone).name).collect()
    }

    /// All, the source first.
    pub fn vcenters(&self) -> Vec<&Vcenter> {
        std::iter::once(&self.source).chain(self.targets()).collect()
    }
}
