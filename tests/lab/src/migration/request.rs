//! What a rehearsal asks for: the cluster moves to the lab's second vCenter, or grows by it and keeps the first.

use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::VSphereMigrationInfraSpec;
use vmi_crds::period::{NotAPeriod, Period};
use vmi_crds::spec::{CredentialsSecret, FailureDomain, Health, Source, SourceRetirement, State, Topology, Trust, VCenter};

use super::{NAMESPACE, Site};
use crate::cache::Cache;
use crate::cluster::config::{self, named_domain};
use crate::kubernetes::{self, VMI};
use crate::shape::FailureDomains;
use crate::vcenter::Vcenter;

/// What the vmi of a rehearsal is called.
pub const NAME: &str = "rehearsal";
/// Where the target's credentials are.
pub const CREDENTIALS: &str = "target-credentials";
/// Where the certificates of the lab's authorities are.
pub const AUTHORITIES: &str = "vcenter-authorities";

/// How long pods must have been quiet: long enough to see a controller that fails at once, short enough to rehearse often.
const QUIET: &str = "5s";
const DEADLINE: &str = "5m";
/// For a finalizer.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Period(#[from] NotAPeriod),
    #[error("cannot create the vmi {NAMESPACE}/{NAME}: {0}")]
    Create(Box<kube::Error>),
    #[error("cannot read the vmi {NAMESPACE}/{NAME}: {0}")]
    Get(Box<kube::Error>),
    #[error("cannot set the vmi {NAMESPACE}/{NAME} to {state:?}: {source}")]
    State { state: State, source: Box<kube::Error> },
}

/// The vmi that grows the site's cluster by its target.
pub fn growth(site: &Site) -> Result<VSphereMigrationInfra, Error> {
    asked(site, SourceRetirement::Keep)
}

/// The vmi that brings the site's cluster to its target and does so with the source; `Pending`, so that it is only planned at first.
pub fn asked(site: &Site, source_retirement: SourceRetirement) -> Result<VSphereMigrationInfra, Error> {
    let targets = site.targets();
    let spec = VSphereMigrationInfraSpec {
        state: State::Pending,
        vcenters: targets.iter().map(|target| vcenter(target)).collect(),
        failure_domains: targets.iter().flat_map(|target| target.zones.iter().map(|zone| failure_domain(target, zone))).collect(),
        node_networking: None,
        credentials_secret: CredentialsSecret { name: CREDENTIALS.to_owned() },
        trust: Some(Trust { ca_bundle: Some(AUTHORITIES.to_owned()), ..Trust::default() }),
        source: unlisted_source(site),
        machine_sets: Vec::new(),
        control_plane: None,
        source_retirement,
        freeze: vmi_crds::spec::Freeze::default(),
        volumes: site.shape.volumes,
        rollout: vmi_crds::spec::Rollout::default(),
        approval: vmi_crds::spec::Approval::default(),
        approved_plan: None,
        health: Health {
            quiet_period: Period::try_from(QUIET.to_owned())?,
            deadline: Period::try_from(DEADLINE.to_owned())?,
            ..Health::default()
        },
        // A lab has no backups of etcd.
        acknowledged: vec!["ETC-001".to_owned()],
    };
    let mut vmi = VSphereMigrationInfra::new(NAME, spec);
    vmi.metadata.namespace = Some(NAMESPACE.to_owned());
    Ok(vmi)
}

/// Where Infrastructure lists no vCenter, only the user can say which one the cluster is on.
fn unlisted_source(site: &Site) -> Option<Source> {
    (site.shape.failure_domains == FailureDomains::None).then(|| Source { servers: vec![site.source.server.clone()] })
}

/// The port, where it is not the one that everybody expects.
fn unusual_port(vcenter: &Vcenter) -> Option<i32> {
    (vcenter.port != 443).then_some(i32::from(vcenter.port))
}

fn vcenter(target: &Vcenter) -> VCenter {
    VCenter { server: target.server.clone(), port: unusual_port(target), datacenters: vec![target.datacenter()] }
}

/// As a user would write it: everything by its full path, and the folder left to the operator.
fn failure_domain(target: &Vcenter, zone: &str) -> FailureDomain {
    let domain = named_domain(target, zone);
    FailureDomain {
        name: domain.name,
        region: domain.region,
        zone: domain.zone,
        server: target.server.clone(),
        region_affinity: None,
        zone_affinity: None,
        topology: Topology {
            datacenter: target.datacenter(),
            compute_cluster: target.cluster(zone),
            networks: vec![target.network()],
            datastore: target.datastore(),
            resource_pool: Some(target.resource_pool(zone)),
            folder: None,
            template: Some(target.template()),
        },
    }
}

/// What the vmi refers to: the targets' credentials and the authorities of all vCenters.
pub fn belongings(site: &Site) -> Vec<Value> {
    let authorities: String = site.vcenters().into_iter().map(|vcenter| vcenter.ca.as_str()).collect();
    let pairs = site.targets().into_iter().filter_map(|target| config::credentials(target).as_object().cloned());
    let credentials: serde_json::Map<String, Value> = pairs.flatten().collect();
    vec![
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": CREDENTIALS, "namespace": NAMESPACE},
            "stringData": credentials,
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": AUTHORITIES, "namespace": NAMESPACE},
            "data": {"ca-bundle.crt": authorities},
        }),
    ]
}

fn api(client: &Client) -> Api<VSphereMigrationInfra> {
    Api::namespaced(client.clone(), NAMESPACE)
}

/// Asks for a growth.
pub async fn create(site: &Site) -> Result<VSphereMigrationInfra, super::Error> {
    ask(site, &growth(site)?).await
}

/// Creates what the vmi refers to and the vmi itself.
pub async fn ask(site: &Site, vmi: &VSphereMigrationInfra) -> Result<VSphereMigrationInfra, super::Error> {
    for object in belongings(site) {
        kubernetes::apply(&site.client, crate::cluster::MANAGER, &object).await?;
    }
    let made = api(&site.client).create(&PostParams::default(), vmi).await;
    Ok(made.map_err(|error| Error::Create(Box::new(error)))?)
}

/// The vmi as it is now.
pub async fn get(site: &Site) -> Result<VSphereMigrationInfra, super::Error> {
    Ok(api(&site.client).get(NAME).await.map_err(|error| Error::Get(Box::new(error)))?)
}

/// Takes the vmi away, and returns when it is gone: the operator may have something to finish first.
pub async fn remove(site: &Site) -> Result<(), super::Error> {
    let mut cache = Cache::start(&site.client, &[(VMI, NAMESPACE)]).await;
    kubernetes::delete(&site.client, VMI, NAMESPACE, NAME).await?;
    let gone = |cache: &Cache| cache.get(VMI, NAMESPACE, NAME).map_or(Ok(()), |_| Err(format!("{NAMESPACE}/{NAME} is still there")));
    cache.until("the vmi to go", PATIENCE, gone).await?;
    Ok(())
}

/// Has the operator do something else from now on.
pub async fn set_state(site: &Site, state: State) -> Result<(), super::Error> {
    let patch = json!({"spec": {"state": state}});
    let patched = api(&site.client).patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map_err(|source| Error::State { state, source: Box::new(source) })?;
    Ok(())
}
