//! What is shown of a vmi, case by case: golden/status/CASE.yaml is the vmi, CASE.txt what a reader sees.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::spec::State;

use super::view::{Assessment, View};
use super::{graver, lines, text};
use crate::commands::Exit;

const CASES: [(&str, Exit); 9] = [
    ("abandoned", Exit::Ok),
    ("blocked", Exit::Blocked),
    ("completed", Exit::Ok),
    ("failed", Exit::Failed),
    ("held", Exit::Ok),
    ("new", Exit::Ok),
    ("planned", Exit::ChangesPending),
    ("rolling-back", Exit::Ok),
    ("running", Exit::Ok),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/status")
}

fn vmi(case: &str) -> VSphereMigrationInfra {
    let text = std::fs::read_to_string(folder().join(format!("{case}.yaml"))).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{case}: {error}"))
}

fn now() -> Timestamp {
    "2026-01-02T04:00:00Z".parse().unwrap()
}

fn view(case: &str) -> View {
    View::of(&vmi(case), now())
}

#[test]
fn every_case_reads_as_its_golden_text_and_exits_as_documented() {
    let mut there: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".yaml")?.to_owned()))
        .collect();
    there.sort();
    assert_eq!(there, CASES.map(|(case, _)| case), "every case has an exit code");
    for (case, exit) in CASES {
        let view = view(case);
        assert_eq!(view.exit(), exit, "{case}");
        let shown = text::one(&view, false);
        let file = folder().join(format!("{case}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &shown).unwrap();
        }
        let wanted = std::fs::read_to_string(&file).unwrap();
        assert_eq!(shown, wanted, "{case}: if the new text is right run UPDATE_GOLDEN=1 cargo test -p vmi");
    }
}

#[test]
fn colour_only_repeats_what_the_words_say() {
    for (case, _) in CASES {
        let coloured = text::one(&view(case), true);
        let mut plain = coloured.clone();
        for code in ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, text::one(&view(case), false), "{case}");
    }
    assert!(text::one(&view("failed"), true).contains("\x1b[31m10  PodsHealthy"), "the failed step is not red");
}

#[test]
fn of_several_migrations_the_gravest_decides_the_exit_code() {
    let exit = |cases: &[&str]| graver(&cases.iter().map(|case| view(case)).collect::<Vec<_>>());
    assert_eq!(exit(&[]), Exit::Ok);
    assert_eq!(exit(&["completed", "planned"]), Exit::ChangesPending);
    assert_eq!(exit(&["blocked", "planned", "running"]), Exit::Blocked);
    assert_eq!(exit(&["failed", "blocked"]), Exit::Failed);
}

#[test]
fn json_says_what_the_text_says() {
    let json = serde_json::to_value(view("failed")).unwrap();
    assert_eq!((&json["assessment"], &json["state"]), (&"Failed".into(), &"Running".into()));
    assert_eq!(json["failure"]["rule"], "CCM-002");
    assert_eq!(json["failure"]["step"], "10 PodsHealthy");
    assert_eq!(json["steps"][10]["state"], "Failed");
    assert_eq!(json["steps"][9]["seconds"], 75.5);
    assert_eq!(json["safeToStop"], true);
}

#[test]
fn a_first_look_tells_what_is_not_simply_waiting_and_a_second_only_what_is_new() {
    let before = view("running");
    let first = lines::changes(None, &before);
    assert_eq!(first[0], text::header(&before));
    let named = |lines: &[String], word: &str| lines.iter().filter(|line| line.contains(word)).count();
    assert_eq!((named(&first, " Waiting"), named(&first, " Done after"), named(&first, " Active")), (0, 7, 1), "{first:#?}");
    assert_eq!(lines::changes(Some(&before), &before), [""; 0]);

    let mut later = before.clone();
    later.steps[8].seconds = Some(99.0);
    assert_eq!(lines::changes(Some(&before), &later), [""; 0], "time going by is no change");
    later.steps[7].message = "waits for something else".to_owned();
    assert_eq!(
        lines::changes(Some(&before), &later),
        ["openshift-vsphere-migration/moving: 7 InfrastructureExtended Active: waits for something else"]
    );
    let mut paused = before.clone();
    (paused.state, paused.assessment) = (State::Paused, Assessment::Paused);
    assert_eq!(lines::changes(Some(&before), &paused), [text::header(&paused)]);
}

#[test]
fn a_new_failure_is_told_once_with_what_to_do_next() {
    let failed = view("failed");
    let mut before = failed.clone();
    before.failure = None;
    let news = lines::changes(Some(&before), &failed);
    assert_eq!(news.len(), 1);
    assert!(news[0].contains("failure CCM-002: ") && news[0].contains("; next: "), "{news:?}");
    assert_eq!(lines::changes(Some(&failed), &failed), [""; 0]);
}

#[test]
fn durations_read_as_people_say_them() {
    let table = [(0.0, "0.0s"), (0.24, "0.2s"), (9.96, "10s"), (59.6, "1m00s"), (190.0, "3m10s"), (3720.0, "1h02m"), (90_000.0, "25h00m")];
    for (seconds, wanted) in table {
        assert_eq!(text::duration(seconds), wanted);
    }
}
