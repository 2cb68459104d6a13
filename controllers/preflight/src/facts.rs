//! All that the checks judge, gathered beforehand: a check looks at nothing else. No way of printing shows it, for it holds secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use serde_json::Value;
use vmi_crds::spec::{FailureDomain, VSphereMigrationInfraSpec};
use vmi_crds::status::Path;
use vmi_intent::places::off_the_source;
use vmi_intent::secret::Data;

/// An object as the cache has it.
pub type Object = Arc<DynamicObject>;

/// All that the checks judge.
pub struct Facts {
    /// What the user asks for.
    pub spec: VSphereMigrationInfraSpec,
    /// What the user notes at the vmi.
    pub annotations: BTreeMap<String, String>,
    /// When it is judged.
    pub now: Timestamp,
    /// The vCenters to move from.
    pub sources: Vec<String>,
    /// What the cluster says.
    pub cluster: Cluster,
    /// What had to be asked for.
    pub looked: Arc<Looked>,
}

/// What the cluster says, as last seen.
#[derive(Default)]
pub struct Cluster {
    /// `cluster`.
    pub infrastructure: Option<Object>,
    /// `version`.
    pub version: Option<Object>,
    /// The Deployment of the cluster version operator.
    pub version_operator: Option<Object>,
    /// All.
    pub operators: Vec<Object>,
    /// All; none where the cluster does not serve them.
    pub pools: Option<Vec<Object>>,
    /// That of vSphere.
    pub csi_driver: Option<Object>,
    /// All.
    pub machines: Vec<Object>,
    /// All.
    pub machine_sets: Vec<Object>,
    /// The one, where there is one.
    pub control_plane_set: Option<Object>,
    /// All.
    pub nodes: Vec<Object>,
    /// The DaemonSet of the vSphere CSI driver.
    pub csi_nodes: Option<Object>,
    /// All.
    pub credentials_requests: Vec<Object>,
    /// The ConfigMap that Infrastructure names.
    pub cloud_config: Option<Object>,
    /// The Secret that components get copies of.
    pub root_secret: Option<Data>,
    /// The Secret that the vmi names.
    pub credentials: Option<Data>,
    /// Originals that other migrations saved and still need.
    pub unfinished: Vec<Unfinished>,
    /// Abandoned migrations, and what each left.
    pub abandoned: Vec<(String, String)>,
}

/// Originals that another migration saved and still needs.
pub struct Unfinished {
    /// The Secret they are in.
    pub secret: String,
    /// The migration's UID.
    pub owner: String,
}

/// What had to be asked for: of the apiserver, and in vCenters.
pub struct Looked {
    /// Of the apiserver.
    pub asked: Asked,
    /// By server, sources and targets.
    pub vcenters: Arc<Vcenters>,
}

/// What each vCenter has, by server.
pub type Vcenters = BTreeMap<String, Result<Vcenter, Trouble>>;

/// What the apiserver was asked for: by a dry run, by a list of what nobody watches, by its word on our rights. Each may fail by
/// itself; the error says why.
pub struct Asked {
    /// Whether the cluster takes a vCenter more as it is.
    pub path: Result<Chosen, String>,
    /// PersistentVolumes of vSphere, each by its claim.
    pub volumes: Result<Vec<String>, String>,
    /// What the path takes and the operator may not do, in words.
    pub denied: Result<Vec<String>, String>,
    /// Secrets of CredentialsRequests that the operator may not read and write, by namespace and name.
    pub denied_secrets: Result<Vec<(String, String)>, String>,
}

impl Asked {
    /// Whether asking again soon may bring more.
    pub fn lacks(&self) -> bool {
        let rights = self.denied.as_ref().is_ok_and(Vec::is_empty) && self.denied_secrets.as_ref().is_ok_and(Vec::is_empty);
        self.path.is_err() || self.volumes.is_err() || !rights
    }
}

/// Whether the cluster takes a vCenter more as it is.
pub struct Chosen {
    /// None where it takes the target on no path.
    pub path: Option<Path>,
    /// Why.
    pub reason: String,
}

/// A vCenter that answered.
#[derive(Default)]
pub struct Vcenter {
    /// As it calls itself.
    pub full_name: String,
    /// The same under every name.
    pub instance_uuid: String,
    /// Whether it is new enough.
    pub new_enough: bool,
    /// How far its clock is ahead.
    pub ahead: SignedDuration,
    /// What is in it; only looked at in targets.
    pub places: Places,
    /// What the user may not do.
    pub lacks: Vec<Lack>,
    /// Tags of regions and zones on the objects that are to get one.
    pub tags: Vec<Carried>,
}

/// What is in a vCenter.
#[derive(Default)]
pub struct Places {
    /// Datacenters.
    pub datacenters: Vec<Place>,
    /// Clusters.
    pub clusters: Vec<Place>,
    /// Datastores.
    pub datastores: Vec<Place>,
    /// Networks and port groups.
    pub networks: Vec<Place>,
    /// Resource pools.
    pub pools: Vec<Place>,
    /// What the hosts of a cluster see, by the path of the cluster.
    pub reach: BTreeMap<String, Reach>,
    /// The templates asked for that are there, by path, with the version of the hardware where it is told.
    pub templates: BTreeMap<String, Option<String>>,
    /// The paths of all templates; only looked at where one that was asked for is not there.
    pub other_templates: Vec<String>,
}

/// Something in a vCenter.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// As people write it.
    pub name: String,
    /// Where it is.
    pub path: String,
}

/// What the usable hosts of a cluster see, by path, and the names of those that do not.
#[derive(Default)]
pub struct Reach {
    /// How many there are.
    pub hosts: usize,
    /// Networks.
    pub networks: BTreeMap<String, Vec<String>>,
    /// Datastores.
    pub datastores: BTreeMap<String, Vec<String>>,
}

/// What the user may not do.
pub struct Lack {
    /// With what.
    pub path: String,
    /// As vCenter names them.
    pub privileges: Vec<String>,
}

/// A tag on an object.
pub struct Carried {
    /// The object.
    pub path: String,
    /// The tag's category.
    pub category: String,
    /// The tag.
    pub tag: String,
}

/// Why a vCenter could not be looked at.
pub struct Trouble {
    /// Of what sort.
    pub cause: Cause,
    /// In words, with what to do.
    pub text: String,
}

/// Of what sort a trouble is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No user and password to try.
    Credentials,
    /// They were refused.
    Refused,
    /// The certificate is not believed.
    Certificate,
    /// It does not answer.
    Connection,
    /// It answers something else than wanted.
    Answer,
}

impl Facts {
    /// A field of Infrastructure; null where there is none.
    pub fn infrastructure(&self, pointer: &str) -> &Value {
        let object = self.cluster.infrastructure.as_ref();
        object.and_then(|object| object.data.pointer(pointer)).unwrap_or(&Value::Null)
    }

    /// The failure domains of Infrastructure.
    pub fn listed_domains(&self) -> &[Value] {
        self.infrastructure("/spec/platformSpec/vsphere/failureDomains").as_array().map_or(&[], Vec::as_slice)
    }

    /// The servers of Infrastructure.
    pub fn listed_servers(&self) -> Vec<&str> {
        let vcenters = self.infrastructure("/spec/platformSpec/vsphere/vcenters").as_array();
        vcenters.into_iter().flatten().filter_map(|vcenter| vcenter["server"].as_str()).collect()
    }

    /// Where nodes may be without being on the source, each a region and its zone.
    pub fn off_the_source(&self) -> Vec<(&str, &str)> {
        let to_come = self.spec.failure_domains.iter().map(|domain| (domain.region.as_str(), domain.zone.as_str()));
        off_the_source(self.infrastructure("/spec"), &self.sources, to_come)
    }

    /// The targets.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.spec.vcenters.iter().map(|vcenter| vcenter.server.as_str())
    }

    /// A vCenter that answered.
    pub fn vcenter(&self, server: &str) -> Option<&Vcenter> {
        self.looked.vcenters.get(server)?.as_ref().ok()
    }

    /// Why a vCenter could not be looked at.
    pub fn trouble(&self, server: &str) -> Option<&Trouble> {
        self.looked.vcenters.get(server)?.as_ref().err()
    }
}

impl Places {
    /// The domain's datacenter.
    pub fn datacenter(&self, domain: &FailureDomain) -> Option<&Place> {
        find(&self.datacenters, &domain.topology.datacenter)
    }

    /// The network of this name in the domain's datacenter.
    pub fn network(&self, domain: &FailureDomain, wanted: &str) -> Option<&Place> {
        let inside = format!("{}/network/", self.datacenter(domain)?.path);
        let here = |place: &&Place| place.path.starts_with(&inside) && (place.name == wanted || same_path(&place.path, wanted));
        self.networks.iter().find(here)
    }
}

/// The place of this path, or of this name where it is no path.
pub fn find<'a>(places: &'a [Place], wanted: &str) -> Option<&'a Place> {
    places.iter().find(|place| same_path(&place.path, wanted) || (!wanted.contains('/') && place.name == wanted))
}

fn same_path(path: &str, wanted: &str) -> bool {
    path.trim_matches('/') == wanted.trim_matches('/')
}
