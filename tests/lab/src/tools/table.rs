//! Which programs there are, which package each is built from and which version it shows.

use std::fs;
use std::path::Path;

use super::error::{At as _, Error};
use super::go::Module;

/// A program of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// What the lab calls it, and the file's name.
    pub name: String,
    /// The Go package it is built from.
    pub package: String,
    /// The module whose version it shows; our own programs have none.
    pub module: Option<&'static str>,
    /// Whether it is what an OpenShift cluster runs, rather than a program of the lab's own.
    pub real: bool,
}

const KUBERNETES: &str = "k8s.io/kubernetes";
const CLOUD: &str = "k8s.io/cloud-provider-vsphere";
const MACHINES: &str = "github.com/openshift/machine-api-operator";
const CONTROL_PLANE: &str = "github.com/openshift/cluster-control-plane-machine-set-operator";
const ETCD: &str = "go.etcd.io/etcd/server/v3";

/// Name, module, package within the module.
const REAL: [(&str, &str, &str); 11] = [
    ("etcd", ETCD, ""),
    ("kube-apiserver", KUBERNETES, "/cmd/kube-apiserver"),
    ("kube-controller-manager", KUBERNETES, "/cmd/kube-controller-manager"),
    ("kube-scheduler", KUBERNETES, "/cmd/kube-scheduler"),
    ("kubectl", KUBERNETES, "/cmd/kubectl"),
    ("vsphere-cloud-controller-manager", CLOUD, "/cmd/vsphere-cloud-controller-manager"),
    ("machine-controller", MACHINES, "/cmd/vsphere"),
    ("machineset", MACHINES, "/cmd/machineset"),
    ("nodelink-controller", MACHINES, "/cmd/nodelink-controller"),
    ("machine-healthcheck", MACHINES, "/cmd/machine-healthcheck"),
    ("control-plane-machine-set-operator", CONTROL_PLANE, "/cmd/control-plane-machine-set-operator"),
];

/// The real components and every program whose source lies in a folder of hack/tools.
pub fn tools(source: &Path) -> Result<Vec<Tool>, Error> {
    let mut tools: Vec<Tool> = REAL
        .into_iter()
        .map(|(name, module, rest)| Tool { name: name.into(), package: format!("{module}{rest}"), module: Some(module), real: true })
        .collect();
    for name in program_folders(source)? {
        tools.push(Tool { package: format!("./{name}"), name, module: None, real: false });
    }
    Ok(tools)
}

fn program_folders(source: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(source).at(source)? {
        let folder = entry.at(source)?;
        if folder.path().join("main.go").is_file() {
            names.push(folder.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

impl Tool {
    /// What `go build -o FOLDER/` calls the file: the package's last part, leaving out a major version.
    pub fn built_as(&self) -> &str {
        let mut parts = self.package.rsplit('/');
        let last = parts.next().unwrap_or_default();
        let is_major = last.strip_prefix('v').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        if is_major { parts.next().unwrap_or_default() } else { last }
    }

    /// The version to show: the pinned one of a real component.
    pub fn version(&self, module: &Module) -> String {
        self.module.and_then(|name| module.version(name)).unwrap_or("this checkout").to_owned()
    }
}

/// Linker flags: without them kubectl and the apiserver's discovery do not know their own version, nor do the OpenShift parts.
/// The second set is for the cloud controller manager alone, which keeps its version in `main`.
pub fn linker_flags(module: &Module) -> Vec<String> {
    let version = |name| module.version(name).unwrap_or("v0.0.0");
    let kubernetes = version(KUBERNETES);
    let mut numbers = kubernetes.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let mut flags = String::from("-s -w");
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        let values =
            [("gitVersion", kubernetes), ("gitMajor", major), ("gitMinor", minor), ("gitCommit", "unknown"), ("gitTreeState", "clean")];
        for (name, value) in values {
            flags += &format!(" -X {package}.{name}={value}");
        }
    }
    flags += &format!(" -X {MACHINES}/pkg/version.Raw={}", version(MACHINES));
    let cloud = format!("{CLOUD}/cmd/...={flags} -X main.version={}", version(CLOUD));
    vec![format!("-ldflags={flags}"), format!("-ldflags={cloud}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/tools")
    }

    #[test]
    fn every_real_component_has_a_pinned_version() {
        let module = Module::read(&source()).unwrap();
        for tool in tools(&source()).unwrap().iter().filter(|tool| tool.real) {
            assert!(module.version(tool.module.unwrap()).is_some(), "{} is not pinned in go.mod", tool.package);
        }
    }

    #[test]
    fn no_two_programs_are_built_under_one_name() {
        let tools = tools(&source()).unwrap();
        let mut names: Vec<_> = tools.iter().map(Tool::built_as).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), tools.len());
    }

    #[test]
    fn a_major_version_is_no_file_name() {
        let named = |package: &str| Tool { name: "x".into(), package: package.into(), module: None, real: true }.built_as().to_owned();
        assert_eq!(named("go.etcd.io/etcd/server/v3"), "server");
        assert_eq!(named("github.com/x/cmd/vsphere"), "vsphere");
        assert_eq!(named("./vcsim"), "vcsim");
    }

    #[test]
    fn the_linked_version_is_the_pinned_one() {
        let module = Module::read(&source()).unwrap();
        let version = module.version(KUBERNETES).unwrap();
        let flags = linker_flags(&module);
        assert!(flags[0].contains(&format!("-X k8s.io/component-base/version.gitVersion={version} ")), "{flags:?}");
        assert!(flags[1].starts_with("-ldflags=k8s.io/cloud-provider-vsphere/cmd/...=-s -w "), "{flags:?}");
    }
}
