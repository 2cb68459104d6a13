//! Installs the operator as deploy/ describes it, all but its Deployment: in a lab it runs as a process that tests can kill.
//!
//! There is no kustomize in a lab. The overlays only add files, so following their `resources` is all it takes; a
//! kustomization that wants more than that is refused rather than half understood.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{NAMESPACE, Site};
use crate::cache::Cache;
use crate::cluster::{self, crds};
use crate::kubernetes::VMI;
use crate::shape::Generation;
use crate::yaml;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {reason}", path = .path.display())]
    Read { path: PathBuf, reason: String },
    #[error("{path} has {field:?}: the lab follows `resources` only; say it in a file of its own, or teach tests/lab/src/migration/deploy.rs", path = .path.display())]
    Unknown { path: PathBuf, field: String },
    #[error("{path} lists {entry:?}, which is neither a file nor a folder", path = .path.display())]
    Missing { path: PathBuf, entry: String },
}

/// The overlay of the checkout that a shape is installed from.
pub fn overlay(generation: Generation) -> PathBuf {
    let name = match generation {
        Generation::V4_21 => "legacy",
        Generation::Next => "native",
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).join("deploy/overlays").join(name)
}

/// Every object that the kustomization in `folder` comes to.
pub fn objects(folder: &Path) -> Result<Vec<Value>, Error> {
    let path = folder.join("kustomization.yaml");
    let kustomization = documents(&path)?.into_iter().next().unwrap_or_default();
    for (field, _) in kustomization.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "resources"].contains(&field.as_str()) {
            return Err(Error::Unknown { path, field: field.clone() });
        }
    }
    let mut found = Vec::new();
    for entry in kustomization["resources"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let place = folder.join(entry);
        if place.is_dir() {
            found.extend(objects(&place)?);
        } else if place.is_file() {
            found.extend(documents(&place)?);
        } else {
            return Err(Error::Missing { path, entry: entry.to_owned() });
        }
    }
    Ok(found)
}

fn documents(path: &Path) -> Result<Vec<Value>, Error> {
    let fail = |reason: String| Error::Read { path: path.to_owned(), reason };
    let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    yaml::documents(&text).map_err(|error| fail(error.to_string()))
}

/// Applies the overlay of the site's shape but for its Deployment.
pub async fn install(site: &Site) -> Result<(), super::Error> {
    let client = &site.client;
    let (mut first, mut crd, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for object in objects(&overlay(site.shape.generation))? {
        match object["kind"].as_str().unwrap_or_default() {
            "Deployment" => {}
            "Namespace" => first.push(object),
            "CustomResourceDefinition" => crd.push(object),
            _ => rest.push(object),
        }
    }
    cluster::apply_all(client, &first).await?;
    crds::install(client, &crd).await?;
    // Established comes a moment before the first request is answered; a first list says that it is.
    drop(Cache::start(client, &[(VMI, NAMESPACE)]).await);
    cluster::apply_all(client, &rest).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn an_overlay_is_its_base_and_what_it_adds() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("base/kustomization.yaml", "kind: Kustomization\nresources:\n- one.yaml\n- more/two.yaml\n"),
                ("base/one.yaml", "kind: A\n---\nkind: B\n"),
                ("base/more/two.yaml", "kind: C\n"),
                ("overlay/kustomization.yaml", "resources: [../base, own.yaml]\n"),
                ("overlay/own.yaml", "kind: D\n"),
            ],
        );
        let kinds: Vec<Value> = objects(&folder.path().join("overlay")).unwrap().iter().map(|object| object["kind"].clone()).collect();
        assert_eq!(kinds, ["A", "B", "C", "D"]);
    }

    #[test]
    fn what_the_lab_would_only_half_understand_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("kustomization.yaml", "resources: []\nnamePrefix: x-\n")]);
        let message = objects(folder.path()).unwrap_err().to_string();
        assert!(message.contains("namePrefix") && message.contains("kustomization.yaml"), "{message}");
    }

    #[test]
    fn a_listed_file_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("kustomization.yaml", "resources: [gone.yaml]\n")]);
        let message = objects(folder.path()).unwrap_err().to_string();
        assert!(message.contains("gone.yaml"), "{message}");
    }
}
