//! OpenShift's own manifests, taken from the pinned Go modules and kept in the cache, never committed.
//!
//! The program hack/tools/manifests collects them, a folder per generation of OpenShift and one for what all generations share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::build::retried;
use super::error::{At as _, Error};
use super::progress::Progress;

/// The program's name.
pub const COLLECTOR: &str = "manifests";

/// The folder of what belongs to every generation.
const SHARED: &str = "any";

/// Lets `collector` fill `folder`, then gives each generation its copy of what they share.
pub async fn collect(collector: &Path, folder: &Path, pauses: &[Duration], progress: &mut Progress) -> Result<(), Error> {
    retried(pauses, progress, async |_| {
        let mut command = Command::new(collector);
        command.arg("--into").arg(folder).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.at(collector)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Go { command: COLLECTOR.into(), folder: folder.to_owned(), said })
    })
    .await?;
    let shared = folder.join(SHARED);
    if shared.is_dir() {
        for generation in entries(folder)?.into_iter().filter(|path| *path != shared) {
            copy_tree(&shared, &generation)?;
        }
        fs::remove_dir_all(&shared).at(&shared)?;
    }
    Ok(())
}

/// The files under `folder` that define custom resources, in the order of their paths.
pub fn crds(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(crds(&path)?);
        } else if fs::read_to_string(&path).at(&path)?.lines().any(|line| line == "kind: CustomResourceDefinition") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Copies all files under `from` to the same places under `to`.
pub fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).at(to)?;
    for source in entries(from)? {
        let target = to.join(source.file_name().unwrap_or_default());
        if source.is_dir() {
            copy_tree(&source, &target)?;
        } else {
            fs::copy(&source, &target).at(&source)?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    fs::read_dir(folder).at(folder)?.map(|entry| entry.at(folder).map(|entry| entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crds_are_known_by_their_kind_wherever_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("machine")).unwrap();
        let put = |path: &str, text: &str| fs::write(folder.path().join(path), text).unwrap();
        put("machine/sets.yaml", "apiVersion: v1\nkind: CustomResourceDefinition\n");
        put("dns.yaml", "kind: CustomResourceDefinition\n");
        put("webhooks.yaml", "kind: ValidatingWebhookConfiguration\nspec:\n  kind: CustomResourceDefinition\n");
        assert_eq!(crds(folder.path()).unwrap(), [folder.path().join("dns.yaml"), folder.path().join("machine/sets.yaml")]);
    }
}
