//! Finds or builds the Go programs the lab runs, and OpenShift's manifests.
//!
//! What is there is used; what is missing is built by one `go build` from the pinned module hack/tools into a cache outside the
//! checkout, under a key of its content. `VMI_TOOLS` names a folder with all of it, ready, for machines without go.

mod build;
mod error;
mod go;
mod key;
mod manifests;
#[cfg(test)]
mod need_tests;
mod progress;
mod ready;
mod settings;
mod store;
mod table;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use build::Build;
use error::At as _;
pub use error::Error;
use go::{Go, Module};
use key::Key;
pub use progress::{Progress, spoken};
use settings::Settings;
use store::{Adding, Store};
pub use table::Tool;

use crate::output;

/// The lab's programs and OpenShift's manifests, all on this machine's disk.
#[derive(Debug)]
pub struct Tools {
    places: Vec<Place>,
    manifests: PathBuf,
}

/// A program and where it is.
#[derive(Debug)]
pub struct Place {
    pub tool: Tool,
    pub version: String,
    pub path: PathBuf,
    pub origin: Origin,
}

/// Where a program came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Built,
    Cache,
    /// The folder of `VMI_TOOLS`.
    Ready,
    /// The folder of `KUBEBUILDER_ASSETS`.
    Assets,
}

impl Origin {
    fn spoken(self) -> &'static str {
        match self {
            Origin::Built => "built now",
            Origin::Cache => "cache",
            Origin::Ready => "VMI_TOOLS",
            Origin::Assets => "KUBEBUILDER_ASSETS",
        }
    }
}

/// What the manifests' folder is called in the cache and among exported programs.
const MANIFESTS: &str = "openshift-manifests";

impl Tools {
    /// Makes sure that every program and manifest is there.
    pub async fn prepare(progress: &mut Progress) -> Result<Tools, Error> {
        let settings = Settings::from_environment();
        Tools::prepare_with(&settings, table::tools(&settings.source)?, true, progress).await
    }

    /// Makes sure that one program is there, and says where.
    pub async fn prepare_one(name: &str, progress: &mut Progress) -> Result<PathBuf, Error> {
        let settings = Settings::from_environment();
        let known = table::tools(&settings.source)?;
        let Some(tool) = known.iter().find(|tool| tool.name == name) else { return Err(unknown(name, known.iter())) };
        let tools = Tools::prepare_with(&settings, vec![tool.clone()], false, progress).await?;
        tools.path(name).map(Path::to_owned)
    }

    async fn prepare_with(settings: &Settings, wanted: Vec<Tool>, with_manifests: bool, progress: &mut Progress) -> Result<Tools, Error> {
        if let Some(folder) = &settings.ready {
            return ready::from_folder(folder, wanted, with_manifests);
        }
        let module = Module::read(&settings.source)?;
        let go = Go::find(&settings.go, &module).await?;
        let store = Store::open(settings.cache()?)?;
        let builder = Builder { settings, module, go, store };
        let order: Vec<String> = wanted.iter().map(|tool| tool.name.clone()).collect();
        let mut places = Vec::new();
        let mut from_source = Vec::new();
        for tool in wanted {
            let ready = match &settings.assets {
                Some(folder) => ready::from_assets(folder, &tool, &tool.version(&builder.module), progress).await?,
                None => None,
            };
            match ready {
                Some(place) => places.push(place),
                None => from_source.push(tool),
            }
        }
        places.extend(builder.programs(from_source, progress).await?);
        places.sort_by_key(|place| order.iter().position(|name| *name == place.tool.name));
        let mut tools = Tools { places, manifests: PathBuf::new() };
        if with_manifests {
            tools.manifests = builder.manifests(&tools, progress).await?;
        }
        Ok(tools)
    }

    /// The program's file.
    pub fn path(&self, name: &str) -> Result<&Path, Error> {
        self.place(name).map(|place| place.path.as_path())
    }

    /// The version the program shows.
    pub fn version(&self, name: &str) -> Result<&str, Error> {
        self.place(name).map(|place| place.version.as_str())
    }

    fn place(&self, name: &str) -> Result<&Place, Error> {
        let found = self.places.iter().find(|place| place.tool.name == name);
        found.ok_or_else(|| unknown(name, self.places.iter().map(|place| &place.tool)))
    }

    /// Every program and where it is.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The folder with the manifests of a generation of OpenShift, as list.json in hack/tools/manifests arranges them.
    pub fn manifests(&self, generation: &str) -> Result<PathBuf, Error> {
        let folder = self.manifests.join(generation);
        fs::metadata(&folder).at(&folder)?;
        Ok(folder)
    }

    /// The files that define a generation's custom resources.
    pub fn crds(&self, generation: &str) -> Result<Vec<PathBuf>, Error> {
        manifests::crds(&self.manifests(generation)?)
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a Tool>) -> Error {
    let known = known.map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    Error::Unknown { name: name.to_owned(), known }
}

/// All that making programs takes.
struct Builder<'a> {
    settings: &'a Settings,
    module: Module,
    go: Go,
    store: Store,
}

/// A program with its key.
type Keyed = (Tool, String);

impl Builder<'_> {
    async fn programs(&self, tools: Vec<Tool>, progress: &mut Progress) -> Result<Vec<Place>, Error> {
        let flags = table::linker_flags(&self.module);
        let flag_text = flags.join(" ");
        let ground = [self.module.pins.as_slice(), self.go.version.as_bytes(), flag_text.as_bytes()];
        let mut places = Vec::new();
        let mut missing = Vec::new();
        for tool in tools {
            let key = key::of(&tool, &self.settings.source, &ground)?;
            match self.find(&tool, &key, Origin::Cache) {
                Some(place) => places.push(place),
                None => missing.push((tool, key)),
            }
        }
        if missing.is_empty() {
            return Ok(places);
        }
        let adding = self.store.add(progress).await?;
        // Whoever had the lock before us may have built the very same.
        let missing: Vec<Keyed> = missing
            .into_iter()
            .filter_map(|(tool, key)| match self.find(&tool, &key, Origin::Cache) {
                Some(place) => {
                    places.push(place);
                    None
                }
                None => Some((tool, key)),
            })
            .collect();
        self.build(&missing, &flags, &adding, progress).await?;
        for (tool, key) in &missing {
            let place = self.find(tool, key, Origin::Built);
            places.push(place.ok_or_else(|| Error::content(&adding.workshop(), format!("go build left no {}", tool.name)))?);
        }
        Ok(places)
    }

    fn find(&self, tool: &Tool, key: &str, origin: Origin) -> Option<Place> {
        let path = self.store.find(&tool.name, key)?.join(&tool.name);
        path.is_file().then(|| Place { tool: tool.clone(), version: tool.version(&self.module), path, origin })
    }

    async fn build(&self, missing: &[Keyed], flags: &[String], adding: &Adding, progress: &mut Progress) -> Result<(), Error> {
        if missing.is_empty() {
            return Ok(());
        }
        let programs = if missing.len() == 1 { "program" } else { "programs" };
        progress.line(&format!("building {} {programs} with {} (minutes the first time, then seconds)", missing.len(), self.go.version));
        let built = adding.workshop().join("built");
        fs::create_dir(&built).at(&built)?;
        let tools: Vec<&Tool> = missing.iter().map(|(tool, _)| tool).collect();
        let build = Build { go: &self.go, source: &self.settings.source, flags, pauses: &self.settings.pauses };
        build.run(&tools, &built, progress).await?;
        for (tool, key) in missing {
            let folder = adding.workshop().join(&tool.name);
            fs::create_dir(&folder).at(&folder)?;
            let from = built.join(tool.built_as());
            fs::rename(&from, folder.join(&tool.name)).at(&from)?;
            adding.put(&folder, &tool.name, key)?;
        }
        Ok(())
    }

    async fn manifests(&self, tools: &Tools, progress: &mut Progress) -> Result<PathBuf, Error> {
        let collector = tools.path(manifests::COLLECTOR)?;
        // The collector carries its list and the modules' checksums, and its place in the cache carries the collector's key.
        let key = Key::new().with(collector.as_os_str().as_encoded_bytes()).done();
        if let Some(folder) = self.store.find(MANIFESTS, &key) {
            return Ok(folder);
        }
        let adding = self.store.add(progress).await?;
        if self.store.find(MANIFESTS, &key).is_none() {
            progress.line("fetching OpenShift's manifests");
            let folder = adding.workshop().join(MANIFESTS);
            fs::create_dir(&folder).at(&folder)?;
            manifests::collect(collector, &folder, &self.settings.pauses, progress).await?;
            adding.put(&folder, MANIFESTS, &key)?;
        }
        self.store.find(MANIFESTS, &key).ok_or_else(|| Error::content(&adding.workshop(), "the manifests were not kept"))
    }
}

/// `vmi-lab tools [--export DIR]`: makes everything ready and says what came from where.
pub async fn command(export: Option<PathBuf>) -> Result<(), Error> {
    let tools = Tools::prepare(&mut Progress::stderr()).await?;
    output::raw(tools.table().as_bytes());
    if let Some(folder) = export {
        tools.export(&folder)?;
        output::line(format_args!("all of it is in {0}; use it with VMI_TOOLS={0}", folder.display()));
    }
    Ok(())
}

/// `vmi-lab tools --print NAME`: makes one program ready and prints its file.
pub async fn print(name: &str) -> Result<(), Error> {
    let path = Tools::prepare_one(name, &mut Progress::stderr()).await?;
    output::line(format_args!("{}", path.display()));
    Ok(())
}

impl Tools {
    fn table(&self) -> String {
        let mut rows = vec![["NAME", "VERSION", "PART", "FROM", "FILE"].map(str::to_owned)];
        for Place { tool, version, path, origin } in &self.places {
            let part = if tool.real { "real" } else { "own" };
            rows.push([tool.name.clone(), version.clone(), part.into(), origin.spoken().into(), path.display().to_string()]);
        }
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2), width(3)];
        let mut text = String::new();
        for [name, version, part, from, file] in &rows {
            let [a, b, c, d] = widths;
            text += &format!("{name:a$}  {version:b$}  {part:c$}  {from:d$}  {file}\n");
        }
        text
    }
}
