use super::*;

fn written(seconds_ago: i64) -> Report {
    let spec = json!({"credentialsSecret": {"name": "target"}, "vcenters": [], "failureDomains": []});
    let vmi = VSphereMigrationInfra::new("m", serde_json::from_value(spec).unwrap());
    let mut report = Report::of(&vmi, Controller::VcenterPrep, &[]);
    report.condition("TagsAttached", "False", "Waiting", "waits");
    report.written = Some(report.status());
    report.last = Some((Timestamp::now() - SignedDuration::from_secs(seconds_ago), report.generation));
    report
}

#[test]
fn words_are_put_off_for_a_moment_after_others_and_nothing_else_is() {
    let says = |mut report: Report, status: &str, message: &str| {
        report.condition("TagsAttached", status, "Waiting", message);
        report.put_off().is_some()
    };
    assert!(says(written(0), "False", "waits for something else"));
    assert!(!says(written(0), "True", "waits"), "somebody may wait for that");
    assert!(!says(written(2), "False", "waits for something else"), "they were put off long enough");
    let newer = Report { generation: 7, ..written(0) };
    assert!(!says(newer, "False", "waits"), "the user changed something, and looks whether it was seen");
    assert!(!says(written(0), "False", "waits"), "nothing has changed");
}

#[test]
fn words_and_times_are_awaited_by_nobody_and_everything_else_is() {
    let status = json!({
        "conditions": [{"type": "Held", "status": "False", "reason": "Healthy", "message": "m", "observedGeneration": 1}],
        "steps": [{"name": "TagsAttached", "state": "Waiting", "message": "m", "log": [], "refusedCredentials": []}],
        "summary": {"progress": "1/20"},
        "startedAt": "now",
    });
    for (path, value, counts) in [
        ("/conditions/0/message", json!("other"), false),
        ("/conditions/0/reason", json!("Other"), false),
        ("/conditions/0/observedGeneration", json!(2), false),
        ("/steps/0/message", json!("other"), false),
        ("/steps/0/log", json!(["line"]), false),
        ("/summary/progress", json!("2/20"), false),
        ("/conditions/0/status", json!("True"), true),
        ("/steps/0/state", json!("Active"), true),
        ("/steps/0/refusedCredentials", json!([{"server": "b"}]), true),
        ("/startedAt", json!("then"), true),
    ] {
        let mut changed = status.clone();
        *changed.pointer_mut(path).unwrap() = value;
        assert_eq!(awaited(&changed) != awaited(&status), counts, "{path}");
    }
}
