//! Keys that change exactly when a built program would.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::error::{At as _, Error};
use super::table::Tool;

/// A hash over pieces, each with its length, so that no two different lists of pieces read the same.
pub struct Key(Sha256);

impl Key {
    pub fn new() -> Key {
        Key(Sha256::new())
    }

    pub fn with(mut self, piece: impl AsRef<[u8]>) -> Key {
        let piece = piece.as_ref();
        self.0.update((piece.len() as u64).to_be_bytes());
        self.0.update(piece);
        self
    }

    pub fn done(self) -> String {
        self.0.finalize().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The key of `tool`: what it is built from, by what, and how. `ground` is all that every tool shares.
pub fn of(tool: &Tool, source: &Path, ground: &[&[u8]]) -> Result<String, Error> {
    let mut key = ground.iter().fold(Key::new(), Key::with).with(&tool.package);
    if tool.module.is_none() {
        for file in own_sources(&source.join(&tool.name), source)? {
            let path = file.strip_prefix(source).unwrap_or(&file).to_string_lossy().into_owned();
            key = key.with(path).with(fs::read(&file).at(&file)?);
        }
    }
    Ok(key.done())
}

/// What a program of ours is made of: its own folder and the folders that several programs share, which have no `main.go`.
/// A folder with a go.mod is another module and no part of any.
fn own_sources(folder: &Path, source: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    for entry in fs::read_dir(source).at(source)? {
        let shared = entry.at(source)?.path();
        if shared.is_dir() && !shared.join("main.go").exists() && !shared.join("go.mod").exists() {
            collect(&shared, &mut files)?;
        }
    }
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if !path.to_string_lossy().ends_with("_test.go") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUND: [&[u8]; 3] = [b"go.mod and go.sum", b"go1.26.8 linux amd64", b"-s -w"];

    fn checkout() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [("vcsim/main.go", "package main"), ("vcsim/main_test.go", "package main"), ("bench/main.go", "package main")] {
            put(folder.path(), path, text);
        }
        put(folder.path(), "wire/wire.go", "package wire");
        put(folder.path(), "nested/go.mod", "module nested");
        folder
    }

    fn put(folder: &Path, path: &str, text: &str) {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn own(name: &str) -> Tool {
        Tool { name: name.into(), package: format!("./{name}"), module: None, real: false }
    }

    fn real() -> Tool {
        Tool { name: "etcd".into(), package: "go.etcd.io/etcd/server/v3".into(), module: Some("go.etcd.io/etcd/server/v3"), real: true }
    }

    #[test]
    fn any_piece_of_the_ground_changes_the_key() {
        let checkout = checkout();
        let before = of(&real(), checkout.path(), &GROUND).unwrap();
        for changed in 0..GROUND.len() {
            let mut ground = GROUND;
            ground[changed] = b"something else";
            assert_ne!(of(&real(), checkout.path(), &ground).unwrap(), before, "piece {changed}");
        }
        assert_eq!(of(&real(), checkout.path(), &GROUND).unwrap(), before);
    }

    #[test]
    fn our_own_source_changes_only_the_program_it_belongs_to() {
        let checkout = checkout();
        let keys = || ["vcsim", "bench"].map(|name| of(&own(name), checkout.path(), &GROUND).unwrap());
        let [vcsim, bench] = keys();
        let etcd = of(&real(), checkout.path(), &GROUND).unwrap();
        put(checkout.path(), "vcsim/main.go", "package main // changed");
        assert_ne!(keys()[0], vcsim);
        assert_eq!(keys()[1], bench);
        assert_eq!(of(&real(), checkout.path(), &GROUND).unwrap(), etcd);
    }

    #[test]
    fn a_shared_folder_changes_all_our_programs() {
        let checkout = checkout();
        let before = of(&own("bench"), checkout.path(), &GROUND).unwrap();
        put(checkout.path(), "wire/wire.go", "package wire // changed");
        assert_ne!(of(&own("bench"), checkout.path(), &GROUND).unwrap(), before);
    }

    #[test]
    fn tests_and_other_modules_change_nothing() {
        let checkout = checkout();
        let before = of(&own("vcsim"), checkout.path(), &GROUND).unwrap();
        put(checkout.path(), "vcsim/main_test.go", "package main // changed");
        put(checkout.path(), "nested/go.mod", "module nested // changed");
        assert_eq!(of(&own("vcsim"), checkout.path(), &GROUND).unwrap(), before);
    }

    #[test]
    fn a_renamed_source_file_changes_the_key() {
        let checkout = checkout();
        put(checkout.path(), "vcsim/a.go", "package main");
        let before = of(&own("vcsim"), checkout.path(), &GROUND).unwrap();
        fs::rename(checkout.path().join("vcsim/a.go"), checkout.path().join("vcsim/b.go")).unwrap();
        assert_ne!(of(&own("vcsim"), checkout.path(), &GROUND).unwrap(), before);
    }

    #[test]
    fn pieces_do_not_run_into_each_other() {
        assert_ne!(Key::new().with("ab").with("c").done(), Key::new().with("a").with("bc").done());
    }
}
