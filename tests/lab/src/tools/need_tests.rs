//! hack/need on machines that have some of what is wanted (testdata/machine).

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What hack/need says and ends with, where only `programs` are on the PATH.
fn need(programs: &[&str], environment: &[(&str, &str)]) -> (String, Option<i32>) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = tempfile::tempdir().unwrap();
    for program in programs {
        symlink(package.join("src/tools/testdata/machine").join(program), path.path().join(program)).unwrap();
    }
    for program in ["bash", "dirname"] {
        symlink(on_this_machine(program), path.path().join(program)).unwrap();
    }
    let mut command = Command::new(path.path().join("bash"));
    command.arg(package.join("../../hack/need")).env("PATH", path.path()).env_remove("VMI_TOOLS").envs(environment.iter().copied());
    let output = command.output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

fn on_this_machine(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()).unwrap()
}

#[test]
fn a_machine_with_everything_hears_nothing() {
    assert_eq!(need(&["cargo", "cc", "go"], &[]), (String::new(), Some(0)));
}

#[test]
fn what_is_missing_is_named_in_one_line() {
    for (programs, wanted) in
        [(&["cc", "go"], "wanted: cargo "), (&["cargo", "go"], "wanted: a C compiler named cc"), (&["cargo", "cc"], "wanted: go ")]
    {
        let (said, code) = need(programs, &[]);
        assert!(said.starts_with(wanted) && said.contains("there is none on the PATH") && said.lines().count() == 1, "{said}");
        assert_eq!(code, Some(2));
    }
}

#[test]
fn what_is_too_old_is_named_with_its_version() {
    for (old, wanted, found) in [
        (("CARGO_RELEASE", "1.9.99"), "wanted: cargo 1.", "this is cargo 1.9.99"),
        (("CC_RELEASE", "4.4.7"), "wanted: a C compiler named cc that knows C11", "this is cc (GCC) 4.4.7 ("),
        (("GO_RELEASE", "1.9.7"), "wanted: go 1.", "this is go1.9.7"),
    ] {
        let (said, code) = need(&["cargo", "cc", "go"], &[old]);
        assert!(said.starts_with(wanted) && said.contains(found) && said.lines().count() == 1, "{said}");
        assert_eq!(code, Some(2));
    }
}

#[test]
fn ready_programs_take_the_place_of_go() {
    assert_eq!(need(&["cargo", "cc"], &[("VMI_TOOLS", "/ready")]), (String::new(), Some(0)));
}

#[test]
fn the_compiler_of_this_machine_is_asked_in_words_that_it_knows() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("bash").arg(package.join("../../hack/need")).env("VMI_TOOLS", "/ready").output().unwrap();
    assert_eq!((String::from_utf8(output.stderr).unwrap(), output.status.code()), (String::new(), Some(0)));
}
