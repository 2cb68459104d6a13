mod facts;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::*;
use crate::workloads::WORKLOADS;

impl Catalogue {
    /// Compiled once for all tests.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::new(&[]).unwrap());
        &BUILT_IN
    }

    /// Tries every pattern on its own line.
    pub fn compile_all(&self) {
        for (pattern, rule) in self.patterns.iter().zip(&self.rules) {
            assert!(pattern.fits(rule.line.as_bytes()), "{}", rule.id);
        }
    }
}

fn pattern(component: &str, pattern: &str, verdict: Verdict) -> LogPattern {
    LogPattern { component: component.to_owned(), pattern: pattern.to_owned(), verdict }
}

fn decided(component: &str, line: &str) -> Option<&'static Rule> {
    match Catalogue::built_in().judge(Some(component), line.as_bytes()) {
        Judged::Known(rule) => Some(rule),
        Judged::UnknownError => Some(Catalogue::built_in().unknown()),
        Judged::Nothing => None,
    }
}

fn id(component: &str, line: &str) -> &'static str {
    decided(component, line).map_or("nothing", |rule| rule.id.as_str())
}

/// The component itself, or all of them.
fn components(rule: &Rule) -> BTreeSet<&'static str> {
    WORKLOADS.iter().map(|workload| workload.component).filter(|component| rule.is_about(Some(component))).collect()
}

fn all() -> impl Iterator<Item = &'static Rule> {
    Catalogue::built_in().rules().iter().chain([Catalogue::built_in().unknown()])
}

/// What a line says, without the format it says it in.
fn message(line: &str) -> String {
    if let Ok(object) = serde_json::from_str::<serde_json::Value>(line) {
        return object["msg"].as_str().unwrap().to_owned();
    }
    line.split_once("] ").filter(|(head, _)| head.contains(".go:")).map_or(line, |(_, message)| message).to_owned()
}

/// The same, as others write it, about other servers and nodes.
fn retold(line: &str) -> Vec<String> {
    let message = message(line);
    let other = message
        .replace("vc.example.com", "10.20.30.40")
        .replace("vc-b.example.com", "vcsa07.corp.internal")
        .replace("worker-1", "acme-x9-infra-zz2k4");
    let mut lines = Vec::new();
    for text in [message, other] {
        let quoted = serde_json::to_string(&text).unwrap();
        lines.push(format!("E0203 01:02:03.000004       7 other.go:12] {text}"));
        lines.push(format!(
            r#"2026-02-03T01:02:03.000000004Z E0203 01:02:03.000004       7 other.go:12] "Reconciler error" err={quoted} controller="x""#
        ));
        lines.push(format!(
            r#"{{"level":"error","ts":1770000000.1,"logger":"x","caller":"other.go:12","msg":{quoted},"stacktrace":"a\nb"}}"#
        ));
        lines.push(format!(r#"{{"level":"error","msg":"Reconciler error","error":{quoted}}}"#));
        lines.push(format!(r#"time="2026-02-03T01:02:03Z" level=error msg={quoted} controller=x"#));
        lines.push(format!("2026/02/03 01:02:03 ERROR {text}"));
        lines.push(text);
    }
    lines
}

#[test]
fn every_rule_decides_its_own_line_and_not_the_one_that_is_much_like_it() {
    let mut wrong = Vec::new();
    for rule in all() {
        for component in components(rule) {
            let judged = id(component, &rule.line);
            // A rule for all may leave a component to a narrower one.
            if !(judged == rule.id || (rule.component == ANY && judged != "nothing")) {
                wrong.push(format!("{} on its line in {component}: {judged}", rule.id));
            }
            if id(component, &rule.near) == rule.id {
                wrong.push(format!("{} on the line that is much like its own in {component}", rule.id));
            }
        }
        let other = id("of-nobody", &rule.line);
        if (other == rule.id) != (rule.component == ANY) {
            wrong.push(format!("{} in the log of another component: {other}", rule.id));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_rule_knows_its_line_in_other_formats_and_about_other_servers_and_nodes() {
    // What a line calls itself, and in which file it was made, is lost on the way.
    let by_format = ["NOISE-001", "UNK-001"];
    let mut wrong = Vec::new();
    for rule in all().filter(|rule| !by_format.contains(&rule.id.as_str())) {
        let component = if rule.component == ANY { "of-nobody" } else { &rule.component };
        let told = |line: &String| format!("{} is {} in {line}", rule.id, id(component, line));
        wrong.extend(retold(&rule.line).iter().filter(|line| id(component, line) != rule.id).map(told));
        wrong.extend(retold(&rule.near).iter().filter(|line| id(component, line) == rule.id).map(told));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn there_are_at_least_eighty_rules_and_no_line_is_looked_at_closely_without_a_word_of_theirs() {
    assert!(all().count() >= 80);
    for rule in Catalogue::built_in().rules() {
        assert!(words::needed(&rule.pattern).is_some(), "{}: {}", rule.id, rule.pattern);
    }
}

#[test]
fn grep_understands_every_pattern() {
    for rule in Catalogue::built_in().rules() {
        for alien in ["(?", r"\d", "*?", "+?"] {
            assert!(!rule.pattern.contains(alien), "{}: {alien}", rule.id);
        }
    }
}

#[test]
fn an_error_that_no_rule_knows_is_told_from_other_lines_and_holds_only_as_a_burst() {
    let catalogue = Catalogue::built_in();
    assert!(matches!(catalogue.judge(Some("machine-api"), b"E1116 19:49:46.3 1 a.go:1] out of tune"), Judged::UnknownError));
    assert!(matches!(catalogue.judge(Some("machine-api"), b"I1116 19:49:46.3 1 a.go:1] in tune"), Judged::Nothing));
    let rule = catalogue.rule("UNK-001").unwrap();
    assert!(rule.times() >= 100 && rule.within() <= Duration::from_secs(1) && rule.lasting() >= Duration::from_secs(30));
}

#[test]
fn a_log_of_unknown_origin_is_judged_by_all_rules() {
    let catalogue = Catalogue::built_in();
    for rule in catalogue.rules() {
        assert!(matches!(catalogue.judge(None, rule.line.as_bytes()), Judged::Known(_)), "{}", rule.id);
    }
}

#[test]
fn every_rule_has_an_id_of_its_own_and_tells_the_reader_what_to_do() {
    let form = regex::Regex::new("^[A-Z]{2,5}-[0-9]{3}$").unwrap();
    let components: BTreeSet<&str> = WORKLOADS.iter().map(|workload| workload.component).chain([ANY]).collect();
    let mut seen = BTreeSet::new();
    for rule in all() {
        assert!(form.is_match(&rule.id), "{}", rule.id);
        assert!(seen.insert(&rule.id), "{} twice", rule.id);
        assert!(components.contains(rule.component.as_str()), "{}: component {}", rule.id, rule.component);
        assert!(!rule.meaning.is_empty() && !rule.line.is_empty() && !rule.near.is_empty(), "{}", rule.id);
        assert!(rule.verdict == Verdict::Benign || !(rule.cause.is_empty() || rule.remedy.is_empty()), "{}", rule.id);
        assert!(rule.times() > 0 && rule.clear() >= Duration::from_secs(60), "{}", rule.id);
    }
}

#[test]
fn what_may_be_over_in_a_minute_has_to_last_longer_before_it_holds_anything() {
    for line in [
        r#"E1116 19:49:46.3 1 connectionmanager.go:147] Cannot connect to vCenter with err: Post "https://vc:443/sdk": 503 Service Unavailable"#,
        r#"E1116 19:49:46.3 1 a.go:1] Post "https://vc:443/sdk": dial tcp 10.0.0.9:443: connect: connection refused"#,
        r#"E1116 19:49:46.3 1 a.go:1] dial tcp: lookup vc.example.com: no such host"#,
        r#"E1116 19:49:46.3 1 controller.go:341] worker-1: failed to check if machine exists: worker-1: failed to create scope for machine: failed to create vSphere session: error setting up new vSphere SOAP client: Post "https://vc/sdk": tls: failed to verify certificate: x509: certificate signed by unknown authority"#,
        r#"E1116 19:49:46.3 1 a.go:1] worker-1: failed to create scope for machine: failed to create vSphere session: unable to login to vCenter: Post "https://vc/sdk": 503 Service Unavailable"#,
        r#"E1116 19:49:46.3 1 a.go:1] failed to run checks: failed to connect to vc: Post "https://vc:443/sdk": dial tcp 10.0.0.9:443: i/o timeout"#,
        r#"{"level":"error","msg":"failed to login to vc. err: Post \"https://vc:443/sdk\": 503 Service Unavailable"}"#,
        r#"E1116 19:49:46.3 1 a.go:1] worker-1: failed to create scope for machine: failed to create vSphere session: unable to login to vCenter: Post "https://vc/sdk": EOF"#,
        r#"E1116 19:49:46.3 1 a.go:1] failed to run checks: failed to connect to vc: Post "https://vc:443/sdk": unexpected EOF"#,
    ] {
        for component in ["cloud-controller-manager", "machine-api", "problem-detector", "csi-driver", "csi-driver-operator"] {
            let rule = decided(component, line).unwrap();
            assert!(rule.lasting() > Duration::from_secs(60), "{} on {line}", rule.id);
        }
    }
}

#[test]
fn a_users_pattern_comes_first_and_a_broken_one_is_told_and_left_out() {
    let line = b"E1116 19:49:46.391891   27517 credentialmanager.go:75] credentials not found for server vc-old";
    let ccm = "cloud-controller-manager";
    let patterns = [pattern(ccm, "([", Verdict::Fatal), pattern(ccm, "server vc-old$", Verdict::Benign)];
    let catalogue = Catalogue::new(&patterns).unwrap();
    let Judged::Known(rule) = catalogue.judge(Some(ccm), line) else { panic!("no rule fits") };
    assert_eq!((rule.id.as_str(), rule.verdict), ("USR-002", Verdict::Benign));
    assert_eq!(catalogue.unusable.len(), 1);
    assert!(catalogue.unusable[0].starts_with("spec.health.patterns[0] is no regular expression"), "{:?}", catalogue.unusable);
    assert!(!matches!(catalogue.judge(Some("machine-api"), line), Judged::Known(_)), "it is about one component");
    let shouting = line.to_ascii_uppercase();
    assert!(
        matches!(catalogue.judge(Some(ccm), &shouting), Judged::Known(rule) if rule.id == "CCM-001"),
        "a user's letters are meant as they are"
    );
}

#[test]
fn a_line_that_is_no_text_is_judged_all_the_same() {
    let line = b"\xff\xfe Unknown secret key \xff";
    assert!(matches!(Catalogue::built_in().judge(Some("cloud-controller-manager"), line), Judged::Known(rule) if rule.id == "CCM-003"));
    assert!(Catalogue::built_in().quote(line).contains("Unknown secret key"));
}

#[test]
fn a_quoted_line_is_short_and_holds_no_secret() {
    let catalogue = Catalogue::built_in();
    for line in [
        "login failed: password=hunter2hunter2, user=joe",
        r#"{"msg":"login","password":"hunter2hunter2","user":"joe"}"#,
        r#"err="{\"Password\": \"hunter2hunter2\"}""#,
        "Authorization: Bearer hunter2hunter2",
        "POST https://joe:hunter2hunter2@vc.example.com/sdk",
        "Cookie: vmware_soap_session=hunter2hunter2",
        "cookie vmware_soap_session=\"hunter2hunter2\"; Path=/",
        "token: hunter2hunter2",
    ] {
        let quoted = catalogue.quote(line.as_bytes());
        assert!(!quoted.contains("hunter2"), "{quoted}");
        assert!(quoted.contains("***"), "{quoted}");
    }
    let plain = "ServerFaultCode: Cannot complete login due to an incorrect user name or password.";
    assert_eq!(catalogue.quote(plain.as_bytes()), plain);
    for long in ["x", "ü"] {
        let quoted = catalogue.quote(format!("speaker] {}: cause", long.repeat(5000)).as_bytes());
        assert!(quoted.len() <= 300 && quoted.starts_with("speaker] ") && quoted.ends_with(": cause"), "{quoted}");
    }
}
