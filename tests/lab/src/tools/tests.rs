//! The builder as a whole, with a go that gives the answers each promise is about (testdata/go).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::progress::tests::Told;
use super::*;

/// A checkout with a small module of its own and an empty cache.
struct Ground {
    folder: TempDir,
    settings: Settings,
    told: Told,
}

const GO_MOD: &str = "module hack/tools\n\ngo 1.26.0\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.6.4\n\tk8s.io/kubernetes v1.34.4\n)\n";

/// Collects one manifest of a generation and one that all share.
const COLLECTOR: &str = "#!/bin/sh
mkdir -p $2/4.21/crds $2/any/crds
echo 'kind: CustomResourceDefinition' >$2/4.21/crds/dns.yaml
echo 'kind: CustomResourceDefinition' >$2/any/crds/claims.yaml
";

impl Ground {
    fn new() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        let settings = Settings {
            ready: None,
            assets: None,
            cache: Some(folder.path().join("cache")),
            source,
            go: Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/testdata/go"),
            pauses: vec![Duration::ZERO; 2],
        };
        let ground = Ground { folder, settings, told: Told::default() };
        ground.put("go.mod", GO_MOD);
        ground.put("go.sum", "a.io/api v0.1.0 h1:sum");
        ground.put("version", "go1.26.8\nlinux\namd64\n");
        ground.put("vcsim/main.go", "package main");
        ground.put("manifests/main.go", COLLECTOR);
        ground
    }

    fn put(&self, path: &str, text: &str) {
        let file = self.settings.source.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    async fn prepare(&self) -> Result<Tools, Error> {
        let wanted = table::tools(&self.settings.source)?;
        Tools::prepare_with(&self.settings, wanted, true, &mut Progress::to(self.told.clone(), false)).await
    }

    /// The packages of each `go build` so far.
    fn builds(&self) -> Vec<Vec<String>> {
        let calls = fs::read_to_string(self.settings.source.join("calls")).unwrap_or_default();
        let packages = |call: &str| call.split_whitespace().skip(4).filter(|word| word.starts_with("./")).map(str::to_owned).collect();
        calls.lines().filter(|call| call.starts_with("build ")).map(packages).collect()
    }

    fn made_by(origin: Origin, tools: &Tools) -> Vec<&str> {
        tools.places().iter().filter(|place| place.origin == origin).map(|place| place.tool.name.as_str()).collect()
    }
}

#[tokio::test]
async fn all_that_is_missing_is_built_at_once_and_only_once() {
    let ground = Ground::new();
    let first = ground.prepare().await.unwrap();
    assert_eq!(Ground::made_by(Origin::Built, &first).len(), 13);
    let etcd = first.path("etcd").unwrap();
    assert_eq!(etcd.file_name().unwrap(), "etcd");
    assert_eq!(fs::read_to_string(etcd).unwrap(), "go.etcd.io/etcd/server/v3\n");
    assert_eq!(first.version("kubectl").unwrap(), "v1.34.4");
    let second = ground.prepare().await.unwrap();
    assert_eq!(Ground::made_by(Origin::Cache, &second).len(), 13);
    assert_eq!(ground.builds().len(), 1);
    assert_eq!(second.path("etcd").unwrap(), etcd);
}

#[tokio::test]
async fn after_a_change_of_our_own_program_only_that_one_is_built() {
    let ground = Ground::new();
    ground.put("gates/main.go", "package main");
    ground.prepare().await.unwrap();
    ground.put("vcsim/main.go", "package main // changed");
    let tools = ground.prepare().await.unwrap();
    assert_eq!(Ground::made_by(Origin::Built, &tools), ["vcsim"]);
    assert_eq!(ground.builds()[1], ["./vcsim"]);
}

#[tokio::test]
async fn progress_counts_the_programs_and_tells_the_time() {
    let ground = Ground::new();
    ground.prepare().await.unwrap();
    let told = ground.told.text();
    assert!(told.starts_with("building 13 programs with go1.26.8 linux amd64"), "{told}");
    assert!(told.contains("[1/13] etcd built, "), "{told}");
    assert!(told.contains("[13/13] vcsim built, "), "{told}");
    assert!(!told.contains('\r'), "{told}");
}

#[tokio::test]
async fn a_proxy_that_answers_at_last_is_good_enough() {
    let ground = Ground::new();
    ground.put("hiccups", "2");
    ground.prepare().await.unwrap();
    assert_eq!(ground.builds().len(), 3);
    assert!(
        ground.told.text().contains("the Go module proxy did not answer, trying again in 0 s: go: a.io/b@v1"),
        "{}",
        ground.told.text()
    );
}

#[tokio::test]
async fn a_proxy_that_never_answers_is_named_with_where_to_look() {
    let ground = Ground::new();
    ground.put("hiccups", "9");
    let error = ground.prepare().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("tried 3 times") && text.contains("GOPROXY") && text.contains("i/o timeout"), "{text}");
    assert_eq!(error.exit_code(), 1);
}

#[tokio::test]
async fn a_compile_error_is_shown_at_once_and_leaves_nothing_half_built() {
    let ground = Ground::new();
    ground.put("broken", "./main.go:3:2: undefined: x");
    let text = ground.prepare().await.unwrap_err().to_string();
    assert!(text.starts_with("`go build` failed in ") && text.ends_with("./main.go:3:2: undefined: x"), "{text}");
    assert_eq!(ground.builds().len(), 1);
    fs::remove_file(ground.settings.source.join("broken")).unwrap();
    assert_eq!(Ground::made_by(Origin::Built, &ground.prepare().await.unwrap()).len(), 13);
}

#[tokio::test]
async fn two_builders_at_once_build_once() {
    let ground = Ground::new();
    let (first, second) = tokio::join!(ground.prepare(), ground.prepare());
    assert_eq!(first.unwrap().path("etcd").unwrap(), second.unwrap().path("etcd").unwrap());
    assert_eq!(ground.builds().len(), 1);
}

#[tokio::test]
async fn without_go_one_line_says_what_is_wanted() {
    let mut ground = Ground::new();
    ground.settings.go = PathBuf::from("no-such-go");
    let error = ground.prepare().await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("go 1.26.0 or newer is wanted") && text.contains("VMI_TOOLS") && !text.contains('\n'), "{text}");
    assert_eq!(error.exit_code(), 2);
}

#[tokio::test]
async fn a_go_that_is_too_old_is_told_apart() {
    let ground = Ground::new();
    ground.put("version", "go1.25.9\nlinux\namd64\n");
    let text = ground.prepare().await.unwrap_err().to_string();
    assert!(text.starts_with("go 1.26.0 or newer is wanted") && text.contains("this is go1.25.9"), "{text}");
    ground.put("refusal", "go: go.mod requires go >= 1.26.0 (running go 1.24.1; GOTOOLCHAIN=local)\n");
    let error = ground.prepare().await.unwrap_err();
    assert!(error.to_string().contains("running go 1.24.1"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[tokio::test]
async fn an_exported_folder_needs_no_go() {
    let mut ground = Ground::new();
    let exported = ground.folder.path().join("exported");
    ground.prepare().await.unwrap().export(&exported).unwrap();
    ground.settings.go = PathBuf::from("no-such-go");
    ground.settings.cache = None;
    ground.settings.ready = Some(exported.clone());
    let tools = ground.prepare().await.unwrap();
    assert_eq!(Ground::made_by(Origin::Ready, &tools).len(), 13);
    assert_eq!(tools.path("etcd").unwrap(), exported.join("etcd"));
    assert_eq!(tools.version("etcd").unwrap(), "v3.6.4");
    assert_eq!(
        tools.crds("4.21").unwrap(),
        ["claims", "dns"].map(|name| exported.join(format!("openshift-manifests/4.21/crds/{name}.yaml")))
    );
}

#[tokio::test]
async fn a_ready_folder_that_lacks_something_is_named_with_the_remedy() {
    let mut ground = Ground::new();
    let exported = ground.folder.path().join("exported");
    ground.prepare().await.unwrap().export(&exported).unwrap();
    ground.settings.ready = Some(exported.clone());
    for missing in ["kubectl", "vcsim"] {
        fs::rename(exported.join(missing), exported.join("away")).unwrap();
        let error = ground.prepare().await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("{missing} is not there")) && text.contains("vmi-lab tools --export"), "{text}");
        assert_eq!(error.exit_code(), 2);
        fs::rename(exported.join("away"), exported.join(missing)).unwrap();
    }
    fs::remove_dir_all(exported.join("openshift-manifests")).unwrap();
    assert!(ground.prepare().await.unwrap_err().to_string().contains("openshift-manifests is not there"));
}

#[tokio::test]
async fn what_kubebuilder_has_is_not_built() {
    let mut ground = Ground::new();
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/testdata/assets");
    ground.settings.assets = Some(assets.clone());
    let tools = ground.prepare().await.unwrap();
    assert_eq!(Ground::made_by(Origin::Assets, &tools), ["etcd"]);
    assert_eq!(tools.path("etcd").unwrap(), assets.join("etcd"));
    assert_eq!(tools.version("etcd").unwrap(), "3.6.99");
    assert_eq!(Ground::made_by(Origin::Built, &tools).len(), 12);
}

#[tokio::test]
async fn what_kubebuilder_has_of_another_release_is_built_and_said_so() {
    let mut ground = Ground::new();
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/testdata/old-assets");
    ground.settings.assets = Some(assets.clone());
    let tools = ground.prepare().await.unwrap();
    assert_eq!(Ground::made_by(Origin::Built, &tools).len(), 13);
    assert_eq!(tools.version("etcd").unwrap(), "v3.6.4");
    let line =
        format!("{} is 3.5.99 and v3.6.4 is wanted: it is built rather than taken from KUBEBUILDER_ASSETS", assets.join("etcd").display());
    assert_eq!(ground.told.text().lines().filter(|told| *told == line).count(), 1, "{}", ground.told.text());
}

#[tokio::test]
async fn a_generation_has_its_own_manifests_and_the_shared_ones() {
    let ground = Ground::new();
    let tools = ground.prepare().await.unwrap();
    let folder = tools.manifests("4.21").unwrap();
    assert_eq!(tools.crds("4.21").unwrap(), [folder.join("crds/claims.yaml"), folder.join("crds/dns.yaml")]);
    assert!(tools.manifests("any").is_err());
    assert_eq!(ground.prepare().await.unwrap().manifests("4.21").unwrap(), folder);
}

#[tokio::test]
async fn manifests_that_cannot_be_collected_are_an_error_and_are_not_kept() {
    let ground = Ground::new();
    ground.put("manifests/main.go", "#!/bin/sh\nmkdir -p $2/4.21\necho 'another checksum' >&2\nexit 1\n");
    let text = ground.prepare().await.unwrap_err().to_string();
    assert!(text.starts_with("`manifests` failed in ") && text.ends_with("another checksum"), "{text}");
    ground.put("manifests/main.go", COLLECTOR);
    assert_eq!(ground.prepare().await.unwrap().crds("4.21").unwrap().len(), 2);
}

#[tokio::test]
async fn an_unknown_program_is_answered_with_the_known_ones() {
    let ground = Ground::new();
    let text = ground.prepare().await.unwrap().path("etdc").unwrap_err().to_string();
    assert!(text.starts_with("there is no program `etdc`; known are etcd, kube-apiserver, "), "{text}");
}

#[tokio::test]
async fn the_table_tells_name_version_and_origin() {
    let ground = Ground::new();
    let table = ground.prepare().await.unwrap().table();
    let etcd: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(etcd[..5], ["etcd", "v3.6.4", "real", "built", "now"], "{table}");
    assert!(table.lines().last().unwrap().contains("this checkout  own "), "{table}");
}
