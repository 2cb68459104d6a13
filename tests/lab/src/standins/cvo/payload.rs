//! The release payload: a folder of manifests, of which a cluster takes those made for its feature set.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::kubernetes::{self, Kind};
use crate::yaml;

const FEATURE_SET: &str = "release.openshift.io/feature-set";
const CREATE_ONLY: &str = "release.openshift.io/create-only";
const PROFILE_PREFIX: &str = "include.release.openshift.io/";
const PROFILE: &str = "include.release.openshift.io/self-managed-high-availability";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the payload at {}: {source}; --payload wants a folder of manifests", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("payload file {}: {source}", path.display())]
    Yaml { path: PathBuf, source: yaml::Error },
    #[error("payload file {}: {source}", path.display())]
    Manifest { path: PathBuf, source: kubernetes::Error },
    #[error("the payload at {} holds no manifest (*.yaml, *.yml, *.json)", .0.display())]
    Empty(PathBuf),
    #[error("{first} and {second} both describe {what} for feature set {feature_set:?}: each would undo the other; keep one")]
    Twice { first: String, second: String, what: String, feature_set: String },
}

#[derive(Debug, Clone)]
pub struct Manifest {
    pub file: String,
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub body: Value,
}

impl Manifest {
    fn new(file: String, body: Value) -> Result<Manifest, kubernetes::Error> {
        let kind = Kind::of(&body)?;
        let metadata = &body["metadata"];
        let name = metadata["name"].as_str().ok_or(kubernetes::Error::Incomplete("metadata.name"))?.to_owned();
        let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
        if kind.namespaced && namespace.is_empty() {
            return Err(kubernetes::Error::Incomplete("metadata.namespace"));
        }
        Ok(Manifest { file, kind, namespace, name, body })
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.body["metadata"]["annotations"][name].as_str()
    }

    /// Made once, then left to whoever owns it.
    pub fn create_only(&self) -> bool {
        self.annotation(CREATE_ONLY) == Some("true")
    }

    /// `Deployment ns/name`, as the real operator names it.
    pub fn what(&self) -> String {
        let kind = if self.kind == kubernetes::CRD { "CRD" } else { self.kind.kind };
        if self.namespace.is_empty() { format!("{kind} {}", self.name) } else { format!("{kind} {}/{}", self.namespace, self.name) }
    }

    fn made_for(&self, feature_set: &str) -> bool {
        let wanted = if feature_set.is_empty() { "Default" } else { feature_set };
        let set_fits = self.annotation(FEATURE_SET).is_none_or(|sets| sets.split(',').any(|set| set.trim() == wanted));
        let annotations = self.body["metadata"]["annotations"].as_object();
        let names_profiles = annotations.is_some_and(|all| all.keys().any(|name| name.starts_with(PROFILE_PREFIX)));
        set_fits && (!names_profiles || self.annotation(PROFILE) == Some("true"))
    }
}

pub struct Payload {
    pub manifests: Vec<Manifest>,
    /// Changes with any byte of the payload.
    pub hash: String,
}

impl Payload {
    /// Reads every manifest of a folder, in the order of the file names.
    pub fn read(folder: &Path) -> Result<Payload, Error> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Unreadable { path, source }
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
            files.push(entry.map_err(unreadable(folder))?.path());
        }
        files.retain(|file| file.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known)));
        files.sort();
        let mut hash = Sha256::new();
        let mut manifests = Vec::new();
        for path in files {
            let text = fs::read_to_string(&path).map_err(unreadable(&path))?;
            hash.update(&text);
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for body in yaml::documents(&text).map_err(|source| Error::Yaml { path: path.clone(), source })? {
                manifests.push(Manifest::new(file.clone(), body).map_err(|source| Error::Manifest { path: path.clone(), source })?);
            }
        }
        if manifests.is_empty() {
            return Err(Error::Empty(folder.to_owned()));
        }
        let hash = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(Payload { manifests, hash })
    }

    /// The manifests a cluster of this feature set ("" is the default one) is made of.
    pub fn made_for(&self, feature_set: &str) -> Result<Vec<&Manifest>, Error> {
        let mut seen: HashMap<String, &Manifest> = HashMap::new();
        let mut chosen = Vec::new();
        for manifest in self.manifests.iter().filter(|manifest| manifest.made_for(feature_set)) {
            if let Some(first) = seen.insert(manifest.what(), manifest) {
                return Err(Error::Twice {
                    first: first.file.clone(),
                    second: manifest.file.clone(),
                    what: manifest.what(),
                    feature_set: feature_set.to_owned(),
                });
            }
            chosen.push(manifest);
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn crd(file: &str, annotations: &Value) -> Manifest {
        let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "infrastructures.config.openshift.io", "annotations": annotations}});
        Manifest::new(file.to_owned(), body).unwrap()
    }

    fn payload(manifests: Vec<Manifest>) -> Payload {
        Payload { manifests, hash: String::new() }
    }

    #[test]
    fn a_cluster_gets_the_crd_of_its_feature_set() {
        let payload = payload(vec![
            crd("default", &json!({FEATURE_SET: "Default"})),
            crd("tech", &json!({FEATURE_SET: "TechPreviewNoUpgrade, CustomNoUpgrade"})),
        ]);
        for (feature_set, expected) in
            [("", vec!["default"]), ("TechPreviewNoUpgrade", vec!["tech"]), ("CustomNoUpgrade", vec!["tech"]), ("OKD", vec![])]
        {
            let files: Vec<&str> = payload.made_for(feature_set).unwrap().iter().map(|manifest| manifest.file.as_str()).collect();
            assert_eq!(files, expected, "{feature_set:?}");
        }
    }

    #[test]
    fn a_manifest_that_names_profiles_must_name_the_self_managed_one() {
        for (annotations, wanted) in [
            (json!({}), true),
            (json!({PROFILE: "true", "include.release.openshift.io/ibm-cloud-managed": "true"}), true),
            (json!({"include.release.openshift.io/ibm-cloud-managed": "true"}), false),
        ] {
            assert_eq!(crd("f", &annotations).made_for(""), wanted, "{annotations}");
        }
    }

    #[test]
    fn two_manifests_for_one_object_are_refused() {
        let twice = payload(vec![crd("a.yaml", &json!({})), crd("b.yaml", &json!({FEATURE_SET: "Default"}))]);
        let error = twice.made_for("").unwrap_err().to_string();
        assert!(error.starts_with("a.yaml and b.yaml both describe CRD infrastructures.config.openshift.io"), "{error}");
        assert_eq!(twice.made_for("OKD").unwrap().len(), 1);
    }

    #[test]
    fn a_payload_is_read_in_order_and_its_faults_are_named_by_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(matches!(Payload::read(&path.join("nowhere")), Err(Error::Unreadable { .. })));
        assert!(matches!(Payload::read(path), Err(Error::Empty(_))));
        fs::write(path.join("b.json"), r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "second"}}"#).unwrap();
        fs::write(path.join("a.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: first}\n---\n").unwrap();
        fs::write(path.join("README"), "not a manifest").unwrap();
        let read = Payload::read(path).unwrap();
        assert_eq!(read.manifests.iter().map(Manifest::what).collect::<Vec<_>>(), ["Namespace first", "Namespace second"]);
        for (text, words) in [
            ("a: [", "not valid YAML"),
            ("apiVersion: v1\nkind: Widget\nmetadata: {name: x}", "does not know the kind Widget"),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}", "no metadata.namespace"),
        ] {
            fs::write(path.join("c.yaml"), text).unwrap();
            let error = Payload::read(path).err().unwrap().to_string();
            assert!(error.contains("c.yaml") && error.contains(words), "{error}");
        }
    }
}
