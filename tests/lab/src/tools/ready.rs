//! Programs that somebody else made ready: a folder that `export` filled, or the one of kubebuilder's setup-envtest.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use tokio::process::Command;

use super::error::{At as _, Error};
use super::manifests::copy_tree;
use super::progress::Progress;
use super::table::Tool;
use super::{MANIFESTS, Origin, Place, Tools};

/// What kubebuilder's folder holds, and how each program is asked for its version.
const ASSETS: [(&str, &[&str]); 3] =
    [("etcd", &["--version"]), ("kube-apiserver", &["--version"]), ("kubectl", &["version", "--client", "--output=yaml"])];

/// Names the versions in an exported folder: a file cannot be asked everywhere.
const VERSIONS: &str = "versions.json";

/// Everything of `tools` from the folder that VMI_TOOLS names.
pub fn from_folder(folder: &Path, tools: Vec<Tool>, with_manifests: bool) -> Result<Tools, Error> {
    let missing = |missing: &str| Error::NotReady { folder: folder.to_owned(), missing: missing.to_owned() };
    let file = folder.join(VERSIONS);
    let versions: BTreeMap<String, String> = match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| Error::content(&file, error.to_string()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => return Err(error).at(&file),
    };
    let mut places = Vec::new();
    for tool in tools {
        let path = folder.join(&tool.name);
        if !path.is_file() {
            return Err(missing(&tool.name));
        }
        let version = versions.get(&tool.name).map_or("version unknown", String::as_str).to_owned();
        places.push(Place { tool, version, path, origin: Origin::Ready });
    }
    let manifests = folder.join(MANIFESTS);
    if with_manifests && !manifests.is_dir() {
        return Err(missing(MANIFESTS));
    }
    Ok(Tools { places, manifests })
}

/// `tool` from kubebuilder's folder, if it has it in the release that is `pinned`.
pub async fn from_assets(folder: &Path, tool: &Tool, pinned: &str, progress: &mut Progress) -> Result<Option<Place>, Error> {
    let Some((name, question)) = ASSETS.into_iter().find(|(name, _)| *name == tool.name) else { return Ok(None) };
    let path = folder.join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let output = Command::new(&path).args(question).output().await.at(&path)?;
    let version =
        first_version(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| Error::content(&path, "it does not tell its version"))?;
    if release(&version) != release(pinned) {
        progress.line(&format!(
            "{} is {version} and {pinned} is wanted: it is built rather than taken from KUBEBUILDER_ASSETS",
            path.display()
        ));
        return Ok(None);
    }
    Ok(Some(Place { tool: tool.clone(), version, path, origin: Origin::Assets }))
}

/// The first word that looks like a version: `v1.34.4`, `3.6.4`.
fn first_version(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let numbers = word.trim_start_matches('v');
        numbers.starts_with(|c: char| c.is_ascii_digit()) && numbers.matches('.').count() >= 2
    };
    text.split_whitespace().find(is_version).map(str::to_owned)
}

/// Major and minor version: what differs in more than mended faults differs in these.
fn release(version: &str) -> Vec<&str> {
    version.trim_start_matches('v').split('.').take(2).collect()
}

impl Tools {
    /// Copies every program and manifest into `folder`, for use as VMI_TOOLS on a machine without go.
    pub fn export(&self, folder: &Path) -> Result<(), Error> {
        fs::create_dir_all(folder).at(folder)?;
        for place in &self.places {
            let target = folder.join(&place.tool.name);
            // Beside and then over: what is there may be running.
            let beside = folder.join(format!(".{}", place.tool.name));
            fs::copy(&place.path, &beside).at(&place.path)?;
            fs::rename(&beside, &target).at(&target)?;
        }
        copy_tree(&self.manifests, &folder.join(MANIFESTS))?;
        let versions: BTreeMap<_, _> = self.places.iter().map(|place| (&place.tool.name, &place.version)).collect();
        let file = folder.join(VERSIONS);
        let text = serde_json::to_vec_pretty(&versions).map_err(|error| Error::content(&file, error.to_string()))?;
        fs::write(&file, text).at(&file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(first_version("etcd Version: 3.6.4\nGit SHA: abc").as_deref(), Some("3.6.4"));
        assert_eq!(first_version("Kubernetes v1.34.4\n").as_deref(), Some("v1.34.4"));
        assert_eq!(first_version("clientVersion:\n  gitVersion: v1.34.4\n").as_deref(), Some("v1.34.4"));
        assert_eq!(first_version("no version"), None);
    }

    #[test]
    fn a_release_is_told_by_its_first_two_numbers() {
        assert_eq!(release("v1.34.4"), release("1.34.11"));
        assert_ne!(release("v1.34.4"), release("v1.3.4"));
        assert_ne!(release("3.6.4"), release("3.5.99"));
    }
}
