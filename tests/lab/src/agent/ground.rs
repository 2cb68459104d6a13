//! What a pod's containers stand on: its folder, ports, volumes, tokens and kubeconfig.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use serde_json::json;
use tokio::time::Instant;

use super::kubeconfig::{self, Token};
use super::ports;
use super::volumes::{self, Files};
use super::{Shared, environment::Objects};
use crate::kubernetes::{self, Kind, POD};

/// Why a pod cannot start yet.
pub(super) enum Obstacle {
    /// Something it needs is not there; its appearance is an event.
    Missing(String),
    /// A request or a write failed; to be tried again.
    Failed(String),
}

pub(super) struct Ground {
    pub folder: PathBuf,
    pub ports: BTreeMap<i32, u16>,
    ports_told: bool,
    kubeconfig: Option<PathBuf>,
    tokens: Vec<Token>,
    written: HashMap<String, Files>,
    laid: bool,
}

impl Ground {
    pub fn new(folder: PathBuf) -> Ground {
        Ground {
            folder,
            ports: BTreeMap::new(),
            ports_told: false,
            kubeconfig: None,
            tokens: Vec::new(),
            written: HashMap::new(),
            laid: false,
        }
    }

    /// When a token has to be renewed.
    pub fn due(&self) -> Option<Instant> {
        self.tokens.iter().filter_map(Token::due).min()
    }

    /// Lays whatever is missing and renews what is old. Once all was there, what goes missing later is no obstacle: running
    /// pods keep what they have.
    pub async fn lay(&mut self, shared: &Shared, pod: &Pod, spec: &PodSpec) -> Result<(), Obstacle> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        std::fs::create_dir_all(self.folder.join("tmp")).map_err(|error| self.unwritable(&error))?;
        let objects = |kind: Kind, name: &str| shared.cache.get(kind, namespace, name);
        match self.fill_volumes(shared, pod, spec, &objects) {
            Err(Obstacle::Missing(_)) if self.laid => {}
            outcome => outcome?,
        }
        self.give_ports(shared, pod, spec).await?;
        if self.kubeconfig.is_none() {
            let (path, token) = kubeconfig::write(&self.folder, &shared.settings.apiserver, &shared.authority, namespace)
                .map_err(|error| Obstacle::Failed(error.to_string()))?;
            self.kubeconfig = Some(path);
            self.tokens.push(token);
            for volume in spec.volumes.iter().flatten() {
                let wanted = volumes::tokens(volume, &volumes::directory(volume, &self.folder));
                self.tokens.extend(wanted.into_iter().map(Token::new));
            }
        }
        for token in &mut self.tokens {
            token.refresh(&shared.settings.client, pod, Instant::now()).await.map_err(|error| Obstacle::Failed(error.to_string()))?;
        }
        self.laid = true;
        Ok(())
    }

    fn unwritable(&self, error: &std::io::Error) -> Obstacle {
        Obstacle::Failed(format!("cannot write to {}: {error}", self.folder.display()))
    }

    fn fill_volumes(&mut self, shared: &Shared, pod: &Pod, spec: &PodSpec, objects: Objects<'_>) -> Result<(), Obstacle> {
        for volume in spec.volumes.iter().flatten() {
            let directory = volumes::directory(volume, &self.folder);
            if let Some(host) = &volume.host_path {
                match host.type_.as_deref() {
                    Some("DirectoryOrCreate") => std::fs::create_dir_all(&host.path).map_err(|error| self.unwritable(&error))?,
                    None | Some("") => {}
                    Some(_) if Path::new(&host.path).exists() => {}
                    Some(kind) => return Err(Obstacle::Failed(format!("volume {:?}: there is no {kind} {}", volume.name, host.path))),
                }
                continue;
            }
            let wanted = volumes::wanted(pod, volume, objects, shared.settings.address).map_err(Obstacle::Missing)?;
            let written = self.written.entry(volume.name.clone()).or_default();
            volumes::write(&directory, wanted, written)
                .map_err(|error| Obstacle::Failed(format!("cannot write volume {:?}: {error}", volume.name)))?;
        }
        Ok(())
    }

    async fn give_ports(&mut self, shared: &Shared, pod: &Pod, spec: &PodSpec) -> Result<(), Obstacle> {
        for number in ports::declared(spec).into_keys() {
            if let Entry::Vacant(place) = self.ports.entry(number) {
                place.insert(shared.ports.take().ok_or_else(|| Obstacle::Failed("no port is free on this machine".to_owned()))?);
            }
        }
        if self.ports_told || self.ports.is_empty() {
            return Ok(());
        }
        let address = shared.settings.address;
        let places: BTreeMap<String, String> =
            self.ports.iter().map(|(number, port)| (number.to_string(), std::net::SocketAddr::new(address, *port).to_string())).collect();
        let patch = json!({"metadata": {"uid": pod.metadata.uid, "annotations": {ports::ANNOTATION: json!(places).to_string()}}});
        let (namespace, name) = (pod.metadata.namespace.as_deref().unwrap_or_default(), pod.metadata.name.as_deref().unwrap_or_default());
        kubernetes::merge(&shared.settings.client, POD, namespace, name, &patch)
            .await
            .map_err(|error| Obstacle::Failed(error.to_string()))?;
        self.ports_told = true;
        Ok(())
    }

    /// What the lab tells every process of the pod.
    pub fn environment(&self, shared: &Shared, pod: &Pod, spec: &PodSpec) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::from([
            ("LAB_ADDRESS".to_owned(), shared.settings.address.to_string()),
            ("HOSTNAME".to_owned(), pod.metadata.name.clone().unwrap_or_default()),
            ("HOME".to_owned(), self.folder.display().to_string()),
            ("TMPDIR".to_owned(), self.folder.join("tmp").display().to_string()),
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())),
        ]);
        variables.extend(self.kubeconfig.as_ref().map(|path| ("KUBECONFIG".to_owned(), path.display().to_string())));
        variables.extend(ports::environment(spec, &self.ports));
        for volume in spec.volumes.iter().flatten() {
            let name = format!("LAB_VOLUME_{}", ports::variable(&volume.name));
            variables.insert(name, volumes::directory(volume, &self.folder).display().to_string());
        }
        variables
    }

    /// Gives everything back.
    pub fn clear(&self, shared: &Shared) {
        shared.ports.release(self.ports.values().copied());
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(folder = %self.folder.display(), %error, "a pod's folder could not be removed");
            }
            _ => {}
        }
    }
}
