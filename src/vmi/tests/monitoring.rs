//! The alerts of deploy/monitoring, beside what the operator measures and what the runbooks say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::path::PathBuf;

use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn alerts() -> Vec<Value> {
    let rule: Value = serde_saphyr::from_str(&read("deploy/monitoring/prometheus_rule.yaml")).unwrap();
    rule["spec"]["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn every_alert_says_how_grave_it_is_what_it_means_and_has_a_runbook() {
    let names: Vec<String> = alerts().iter().map(|alert| alert["alert"].as_str().unwrap().to_owned()).collect();
    let expected = ["Degraded", "Stalled", "ClusterVersionFrozenTooLong", "LogFailures", "ControlPlaneAtRisk"];
    assert_eq!(names, expected.map(|name| format!("VSphereMigration{name}")));
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}");
        for annotation in ["summary", "description", "runbook_url"] {
            assert!(alert["annotations"][annotation].as_str().is_some_and(|text| text.len() > 20), "{name}: {annotation}");
        }
        let runbook = alert["annotations"]["runbook_url"].as_str().unwrap();
        assert_eq!(runbook, format!("docs/runbooks/{name}.md"));
        let text = read(runbook);
        assert!(text.starts_with(&format!("# {name}\n")) && text.contains(&format!("Severity: {severity}.")), "{runbook}");
        for part in ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation"] {
            assert!(text.contains(part), "{runbook}: {part}");
        }
        assert!(read("tests/alerts.yaml").contains(&format!("alertname: {name}\n")), "{name} is not tried");
    }
}

#[test]
fn every_alert_asks_for_what_is_measured() {
    let measured = read("src/kit/src/metrics.rs");
    for alert in alerts() {
        let expression = alert["expr"].as_str().unwrap();
        let words = expression.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let names: Vec<&str> = words.filter(|word| word.starts_with("vmi_")).collect();
        assert!(!names.is_empty(), "{expression}");
        for name in names {
            assert!(measured.contains(&format!("\"{name}\"")), "{name} is not measured");
        }
    }
}

#[test]
fn every_metric_is_documented() {
    let (measured, documented) = (read("src/kit/src/metrics.rs"), read("docs/commands.md"));
    let names: Vec<&str> = measured.split('"').filter(|text| text.starts_with("vmi_") && !text.contains(' ')).collect();
    assert!(names.len() >= 11, "{names:?}");
    for name in names {
        assert!(documented.contains(&format!("| `{name}` |")), "{name}");
    }
}
