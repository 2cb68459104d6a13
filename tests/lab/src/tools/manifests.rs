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

/// The generation that the programs are pinned to: its manifests come from the same module as they do.
const OF_THE_PROGRAMS: &str = "4.21";

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

    /// Which go.mod to resolve an entry in: both may pin its module, each in its own generation.
    fn home(&self, entry: &Entry) -> Result<usize, Error> {
        let mut order: Vec<usize> = (0..self.modules.len()).collect();
        if entry.generation != OF_THE_PROGRAMS {
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

/// The files under `folder` that define custom resources, in the order of their paths.
pub fn crds(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        if path.is_dir() {
            found.extend(crds(&path)?);
        } else if fs::read_to_string(&path).at(&path)?.lines().any(|line| line == "kind: CustomResourceDefinition") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
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
    fn crds_are_known_by_their_kind_wherever_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("machine")).unwrap();
        let put = |path: &str, text: &str| fs::write(folder.path().join(path), text).unwrap();
        put("machine/sets.yaml", "apiVersion: v1\nkind: CustomResourceDefinition\n");
        put("dns.yaml", "kind: CustomResourceDefinition\n");
        put("webhooks.yaml", "kind: ValidatingWebhookConfiguration\nspec:\n  kind: CustomResourceDefinition\n");
        assert_eq!(crds(folder.path()).unwrap(), [folder.path().join("dns.yaml"), folder.path().join("machine/sets.yaml")]);
    }

    #[test]
    fn each_generation_is_resolved_where_it_is_pinned() {
        let source = tempfile::tempdir().unwrap();
        let pins = |version: &str| format!("module m\n\ngo 1.26.0\n\nrequire a.io/api {version}\n");
        fs::create_dir(source.path().join("manifests")).unwrap();
        for (path, text) in [
            ("go.mod", pins("v1.0.0")),
            ("go.sum", String::new()),
            ("manifests/go.mod", pins("v2.0.0")),
            ("manifests/go.sum", String::new()),
            ("manifests/list.json", "[]".into()),
        ] {
            fs::write(source.path().join(path), text).unwrap();
        }
        let list = List::read(source.path()).unwrap();
        let version = |generation: &str, module: &str| {
            let entry = Entry { module: module.into(), generation: generation.into(), ..entry("a", "b") };
            list.home(&entry).map(|home| list.modules[home].version(module).unwrap().to_owned())
        };
        assert_eq!(version("4.21", "a.io/api").unwrap(), "v1.0.0");
        assert_eq!(version("next", "a.io/api").unwrap(), "v2.0.0");
        assert!(version("next", "b.io/other").unwrap_err().to_string().ends_with("b.io/other is pinned in no go.mod"));
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
