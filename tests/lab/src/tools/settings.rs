//! What the environment says about where programs come from and where they go.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::build::PAUSES;
use super::error::Error;

pub struct Settings {
    /// `VMI_TOOLS`: a folder with all of it, ready; go is not needed then.
    pub ready: Option<PathBuf>,
    /// `KUBEBUILDER_ASSETS`: a folder that may hold etcd, kube-apiserver and kubectl.
    pub assets: Option<PathBuf>,
    /// The cache's folder; it is only asked for where something has to be kept.
    pub cache: Option<PathBuf>,
    /// The folder hack/tools of this checkout.
    pub source: PathBuf,
    /// The go program.
    pub go: PathBuf,
    pub pauses: Vec<Duration>,
}

impl Settings {
    pub fn from_environment() -> Settings {
        Settings::read(|name| std::env::var_os(name))
    }

    fn read(variable: impl Fn(&str) -> Option<OsString>) -> Settings {
        let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from).map(absolute);
        let cache = folder("VMI_CACHE")
            .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("vmi")))
            .or_else(|| folder("HOME").map(|home| home.join(".cache/vmi")));
        Settings {
            ready: folder("VMI_TOOLS"),
            assets: folder("KUBEBUILDER_ASSETS"),
            cache,
            source: repository().join("hack/tools"),
            go: PathBuf::from("go"),
            pauses: PAUSES.to_vec(),
        }
    }

    pub fn cache(&self) -> Result<&Path, Error> {
        self.cache.as_deref().ok_or(Error::NoCache)
    }
}

/// The checkout that this program was built from, two folders above its package.
fn repository() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package)
}

/// Programs are started from other folders than this one.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(set: &[(&str, &str)]) -> Option<PathBuf> {
        let find = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        Settings::read(find).cache
    }

    #[test]
    fn the_cache_is_where_the_user_wants_it() {
        assert_eq!(cache(&[("VMI_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")]), Some("/a".into()));
        assert_eq!(cache(&[("VMI_CACHE", ""), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")]), Some("/b/vmi".into()));
        assert_eq!(cache(&[("HOME", "/c")]), Some("/c/.cache/vmi".into()));
        assert_eq!(cache(&[]), None);
    }
}
