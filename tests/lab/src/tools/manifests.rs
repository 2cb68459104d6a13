//! OpenShift's own manifests, taken from the pinned Go modules: read there, kept in the cache, never committed.
//!
//! hack/tools/manifests/list.json says which. The newer generation of a module that the programs need in its older one is
//! pinned in a module of its own beside that list.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::build::retried;
use super::error::{At as _, Error};
use super::go::{Go, Module};
use super::key::Key;
use super::progress::Progress;

/// Files of a module and where they belong.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    module: String,
    /// A generation of OpenShift, or `any`.
    generation: String,
    /// Within the module; `*` in the last part stands for any characters.
    path: String,
    /// A file's new name, where it has an ending, else a folder.
    into: String,
}

/// An entry that belongs to every generation.
const ANY: &str = "any";

/// The list with the modules it is resolved in.
pub struct List {
    file: PathBuf,
    text: String,
    entries: Vec<Entry>,
    modules: Vec<Module>,
}

/// What `go mod download -json` prints per module.
#[derive(Deserialize)]
struct Downloaded {
    #[serde(rename = "Path")]
    path: String,
    #[serde(rename = "Dir", default)]
    folder: PathBuf,
    #[serde(rename = "Error")]
    error: Option<String>,
}

impl List {
    pub fn read(source: &Path) -> Result<List, Error> {
        let folder = source.join("manifests");
        let file = folder.join("list.json");
        let text = fs::read_to_string(&file).at(&file)?;
        let entries = serde_json::from_str(&text).map_err(|error| Error::content(&file, error.to_string()))?;
        let mut modules = vec![Module::read(source)?];
        if folder.join("go.mod").exists() {
            modules.push(Module::read(&folder)?);
        }
        Ok(List { file, text, entries, modules })
    }

    pub fn key(&self) -> String {
        self.modules.iter().fold(Key::new().with(&self.text), |key, module| key.with(&module.pins)).done()
    }

    fn generations(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.entries.iter().map(|entry| entry.generation.as_str()).filter(|name| *name != ANY).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The module that pins an entry's: programs and older manifests share one, the rest is beside the list.
    fn home(&self, entry: &Entry) -> Result<usize, Error> {
        let oldest = self.generations().first() == Some(&entry.generation.as_str());
        let mut order: Vec<usize> = (0..self.modules.len()).collect();
        if !oldest {
            order.reverse();
        }
        let pinned = order.into_iter().find(|index| self.modules[*index].version(&entry.module).is_some());
        pinned.ok_or_else(|| Error::content(&self.file, format!("{} is pinned in no go.mod", entry.module)))
    }

    /// Copies everything into `folder`, one folder per generation.
    pub async fn copy(&self, go: &Go, folder: &Path, pauses: &[Duration], progress: &mut Progress) -> Result<(), Error> {
        let mut wanted: BTreeMap<usize, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.entries {
            wanted.entry(self.home(entry)?).or_default().push(entry);
        }
        for (home, entries) in wanted {
            let folders = retried(pauses, progress, async |_| self.download(go, &self.modules[home], &entries).await).await?;
            for entry in entries {
                let from = folders.get(&entry.module).ok_or_else(|| Error::content(&self.file, format!("go gave no {}", entry.module)))?;
                for generation in self.generations().iter().filter(|name| entry.generation == ANY || entry.generation == **name) {
                    copy_entry(entry, from, &folder.join(generation))?;
                }
            }
        }
        Ok(())
    }

    async fn download(&self, go: &Go, module: &Module, entries: &[&Entry]) -> Result<BTreeMap<String, PathBuf>, Error> {
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.module.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let arguments = ["mod", "download", "-json"].into_iter().chain(names);
        let output = go.command(&module.folder, arguments).output().await.at(&module.folder)?;
        let failed = |said: String| Error::Go { command: "go mod download".into(), folder: module.folder.clone(), said };
        let mut folders = BTreeMap::new();
        for downloaded in serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Downloaded>() {
            let downloaded = downloaded.map_err(|error| failed(error.to_string()))?;
            if let Some(error) = downloaded.error {
                return Err(failed(error));
            }
            folders.insert(downloaded.path, downloaded.folder);
        }
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(folders)
    }
}

fn copy_entry(entry: &Entry, module: &Path, generation: &Path) -> Result<(), Error> {
    let pattern = Path::new(&entry.path);
    let folder = module.join(pattern.parent().unwrap_or(Path::new("")));
    let pattern = pattern.file_name().unwrap_or_default().to_string_lossy();
    let mut copied = 0;
    for file in fs::read_dir(&folder).at(&folder)? {
        let file = file.at(&folder)?;
        let name = file.file_name().to_string_lossy().into_owned();
        if !matches(&pattern, &name) || file.path().is_dir() {
            continue;
        }
        let into = generation.join(&entry.into);
        let target = if into.extension().is_some() { into } else { into.join(name) };
        if target.exists() {
            return Err(Error::content(&target, format!("two files of {} would be it", entry.module)));
        }
        let parent = target.parent().unwrap_or(generation);
        fs::create_dir_all(parent).at(parent)?;
        // Not fs::copy: it would carry over that the module cache is read-only.
        fs::write(&target, fs::read(file.path()).at(&file.path())?).at(&target)?;
        copied += 1;
    }
    if copied == 0 { Err(Error::content(&folder.join(&*pattern), format!("{} has no such file", entry.module))) } else { Ok(()) }
}

/// Whether `name` is what `pattern` means, `*` being any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => {
            let Some(name) = name.strip_prefix(start) else { return false };
            name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| matches(rest, &name[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_characters() {
        for (pattern, name, expected) in [
            ("*infrastructures-Default.crd.yaml", "0000_10_infrastructures-Default.crd.yaml", true),
            ("*infrastructures-Default.crd.yaml", "0000_10_infrastructures-Custom.crd.yaml", false),
            ("0000*_dnses*.yaml", "0000_10_config_dnses.crd.yaml", true),
            ("a.yaml", "a.yaml", true),
            ("a.yaml", "a.yaml.bak", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    fn entry(path: &str, into: &str) -> Entry {
        Entry { module: "a.io/api".into(), generation: ANY.into(), path: path.into(), into: into.into() }
    }

    #[test]
    fn a_pattern_without_a_file_is_an_error_that_names_it() {
        let module = tempfile::tempdir().unwrap();
        let target = tempfile::tempdir().unwrap();
        let error = copy_entry(&entry("*.crd.yaml", "crds"), module.path(), target.path()).unwrap_err().to_string();
        assert!(error.ends_with("*.crd.yaml: a.io/api has no such file"), "{error}");
    }

    #[test]
    fn two_files_never_become_one() {
        let module = tempfile::tempdir().unwrap();
        let target = tempfile::tempdir().unwrap();
        for name in ["a.yaml", "b.yaml"] {
            fs::write(module.path().join(name), name).unwrap();
        }
        copy_entry(&entry("*.yaml", "crds"), module.path(), target.path()).unwrap();
        assert_eq!(fs::read_to_string(target.path().join("crds/b.yaml")).unwrap(), "b.yaml");
        let error = copy_entry(&entry("*.yaml", "one.yaml"), module.path(), target.path()).unwrap_err().to_string();
        assert!(error.ends_with("one.yaml: two files of a.io/api would be it"), "{error}");
    }
}
