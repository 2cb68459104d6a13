//! Who may know whom: crds <- intent <- site and crds <- kit <- steps <- site <- controllers <- vmi, and the vSphere client knows none of
//! them. And how much the ground of it all may be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Where the packages of a layer are, and the layers they may know; none may know another of its own layer.
const LAYERS: &[(&str, &[&str])] = &[
    ("crds", &[]),
    ("src/vsphere", &[]),
    ("src/intent", &["crds"]),
    ("src/kit", &["crds", "src/vsphere"]),
    ("src/steps", &["crds", "src/kit", "src/vsphere"]),
    ("src/site", &["crds", "src/intent", "src/kit", "src/steps", "src/vsphere"]),
    ("controllers", &["crds", "src/intent", "src/kit", "src/steps", "src/site", "src/vsphere"]),
    ("src/vmi", &["crds", "src/intent", "src/kit", "src/steps", "src/site", "src/vsphere", "controllers"]),
    // Tests may know what they test; nothing may know them.
    ("tests", &["crds", "src/intent", "src/kit", "src/steps", "src/site", "src/vsphere", "src/vmi", "controllers", "tests"]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn lines(folder: &Path) -> usize {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| if path.is_dir() { lines(&path) } else { fs::read_to_string(path).unwrap().lines().count() }).sum()
}

fn layer(folder: &str) -> &'static (&'static str, &'static [&'static str]) {
    let fits = |(layer, _): &&(&str, _)| folder == *layer || folder.starts_with(&format!("{layer}/"));
    LAYERS.iter().find(fits).unwrap_or_else(|| panic!("{folder} is in no layer: add it to LAYERS"))
}

/// What every controller stands on is read by everybody: what one of them needs, or how steps are taken, belongs elsewhere.
const GROUND: (&str, usize) = ("src/kit/src", 1500);

#[test]
fn no_package_knows_one_beside_or_above_it() {
    let root = root();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(&root)
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let relative = |path: &Value| {
        let path = PathBuf::from(path.as_str().unwrap());
        path.strip_prefix(&root).unwrap().to_str().unwrap().trim_end_matches("/Cargo.toml").to_owned()
    };
    // A dependency with a path is one of ours, in tests too.
    let known = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.map(|dependency| &dependency["path"]).filter(|path| !path.is_null()).map(relative).collect::<BTreeSet<String>>()
    };
    let packages: BTreeMap<String, BTreeSet<String>> =
        metadata["packages"].as_array().unwrap().iter().map(|package| (relative(&package["manifest_path"]), known(package))).collect();
    for (layer, _) in LAYERS {
        let there = packages.keys().filter(|folder| self::layer(folder).0 == *layer).count();
        assert!(there >= if *layer == "controllers" { 7 } else { 1 }, "only {there} packages in {layer}");
    }
    let mut wrong = Vec::new();
    for (folder, known) in &packages {
        let (_, allowed) = layer(folder);
        wrong.extend(known.iter().filter(|other| !allowed.contains(&layer(other).0)).map(|other| format!("{folder} knows {other}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_ground_stays_small() {
    let (folder, most) = GROUND;
    let there = lines(&root().join(folder));
    assert!(there > 0 && there <= most, "{folder} has {there} lines, tests included, and at most {most} are wanted");
}
