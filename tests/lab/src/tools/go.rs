//! The Go toolchain and the module that pins what it builds.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::error::{At as _, Error};

/// Nothing of the machine may reach the binaries, and go.mod is law.
const GOFLAGS: &str = "-mod=readonly -trimpath -buildvcs=false";

/// A go.mod: the Go release it wants and what it requires.
pub struct Module {
    pub folder: PathBuf,
    pub go: String,
    versions: BTreeMap<String, String>,
    /// go.mod and go.sum as they are, for keys.
    pub pins: Vec<u8>,
}

impl Module {
    pub fn read(folder: &Path) -> Result<Module, Error> {
        let path = folder.join("go.mod");
        let text = fs::read_to_string(&path).at(&path)?;
        let sums = folder.join("go.sum");
        let mut pins = text.clone().into_bytes();
        pins.extend(fs::read(&sums).at(&sums)?);
        let go = text.lines().find_map(|line| line.strip_prefix("go ")).ok_or_else(|| Error::content(&path, "no `go` line"))?;
        Ok(Module { folder: folder.to_owned(), go: go.trim().to_owned(), versions: requirements(&text), pins })
    }

    /// The version of `module` that is pinned here.
    pub fn version(&self, module: &str) -> Option<&str> {
        self.versions.get(module).map(String::as_str)
    }
}

fn requirements(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut in_require = false;
    for line in text.lines().map(str::trim) {
        let requirement = match line.strip_prefix("require ") {
            Some("(") => {
                in_require = true;
                continue;
            }
            Some(single) => single,
            None if line == ")" => {
                in_require = false;
                continue;
            }
            None if in_require => line,
            None => continue,
        };
        let mut words = requirement.split_whitespace();
        if let (Some(module), Some(version)) = (words.next(), words.next()) {
            found.insert(module.to_owned(), version.to_owned());
        }
    }
    found
}

/// A Go toolchain that is new enough.
pub struct Go {
    program: PathBuf,
    /// Release and platform, as in `go1.26.8 linux amd64`.
    pub version: String,
}

impl Go {
    /// Asks `program` in the module's folder, where go itself may choose a newer toolchain.
    pub async fn find(program: &Path, module: &Module) -> Result<Go, Error> {
        let wanted = module.go.clone();
        let asked = command(program, &module.folder, ["env", "GOVERSION", "GOOS", "GOARCH"]).output().await;
        let output = asked.map_err(|error| Error::NoGo { wanted: wanted.clone(), reason: format!("`{}`: {error}", program.display()) })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            // What go says where it is older than go.mod wants and may not fetch a newer self.
            let too_old = said.contains("requires go >=");
            return Err(if too_old { Error::OldGo { wanted, found: said } } else { Error::NoGo { wanted, reason: said } });
        }
        let version = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        if release(&version) < release(&wanted) {
            return Err(Error::OldGo { wanted, found: version });
        }
        Ok(Go { program: program.to_owned(), version })
    }

    pub fn command<A: AsRef<OsStr>>(&self, folder: &Path, arguments: impl IntoIterator<Item = A>) -> Command {
        command(&self.program, folder, arguments)
    }
}

fn command<A: AsRef<OsStr>>(program: &Path, folder: &Path, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("GOFLAGS", GOFLAGS).env("GOWORK", "off").env("CGO_ENABLED", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// The numbers of `go1.26.8 linux amd64` or `1.26`: (1, 26, 8), (1, 26, 0).
fn release(version: &str) -> (u32, u32, u32) {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut numbers = digits.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    // "1.26rc1" and "1.26 linux" have no third number of their own.
    let patch = digits.split_whitespace().next().is_some_and(|word| word.matches('.').count() >= 2);
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0), if patch { numbers.next().unwrap_or(0) } else { 0 })
}

/// How go tells of a proxy or a network that may well answer the next time.
const HICCUPS: [&str; 13] = [
    "dial tcp",
    "i/o timeout",
    "connection reset",
    "connection refused",
    "no such host",
    "TLS handshake timeout",
    "unexpected EOF",
    "context deadline exceeded",
    "stream error",
    "429 Too Many Requests",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "504 Gateway Timeout",
];

pub fn is_hiccup(said: &str) -> bool {
    HICCUPS.iter().any(|hiccup| said.contains(hiccup))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_every_form_of_requirement() {
        let text = "module m\n\ngo 1.26.0\n\nrequire a.io/one v1.2.3\n\nrequire (\n\tb.io/two/v2 v2.0.0 // indirect\n)\nreplace (\n\tc.io/x => c.io/x v9.9.9\n)\n";
        let found = requirements(text);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("a.io/one".into(), "v1.2.3".into()), ("b.io/two/v2".into(), "v2.0.0".into())]);
    }

    #[test]
    fn releases_compare_as_numbers() {
        assert_eq!(release("go1.26.8 linux amd64"), (1, 26, 8));
        assert_eq!(release("go1.26rc1 linux amd64"), (1, 26, 0));
        assert_eq!(release("devel go1.27-abc123 linux arm64"), (1, 27, 0));
        assert!(release("go1.9.7") < release("1.26.0"));
    }

    #[test]
    fn a_compile_error_is_no_hiccup() {
        assert!(is_hiccup("go: k8s.io/api@v0.34.4: Get \"https://proxy\": dial tcp: lookup proxy: no such host"));
        assert!(!is_hiccup("./main.go:3:2: undefined: dial"));
    }
}
