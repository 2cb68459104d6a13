//! The page of rules, for docs/rules.md.

use std::fmt::Write as _;

use vmi_crds::spec::Verdict;

use super::{BadRules, Catalogue, Rule};

const HEAD: &str = "# Rules

<!-- Generated; UPDATE_GOLDEN=1 cargo test -p vmi-pod-health-watch rewrites it. -->

From the restart of pods on, every line of the watched logs is judged, and so is what pods, operators and the cluster version say of
themselves. The first rule that fits a line decides; `vmi explain` judges any log in the same way. Patterns of `spec.health.patterns`
come first, and are called USR-001, USR-002 and so on.

- A fatal rule holds the migration (condition Held, reason its id) once its line has come as often and lasted as long as is said
  below, and until it has not come for the time to clear.
- A transient one breaks the quiet that PodsHealthy waits for, but holds nothing.
- A benign one means nothing.

An id in `spec.health.accept` lets the migration go on in spite of it.
";

const OTHERS_HEAD: &str = "
## Pods, operators, and signs of work

These are not told by a log.

| id | means that |
|---|---|
";

/// Rules that are told by the state of objects, or by what is missing.
const OTHERS: &[(&str, &str)] = &[
    ("POD-001", "a workload wants pods and has none"),
    ("POD-002", "a container ends again and again"),
    ("POD-003", "a container's image cannot be had"),
    ("POD-004", "a pod has not been Ready for 5 minutes"),
    ("POD-005", "a container was ended because it took more memory than it may"),
    ("OPR-001", "an operator is degraded, and was not at the start"),
    ("OPR-002", "an operator is not available, and was at the start"),
    ("OPR-003", "a MachineConfigPool is degraded, and was not at the start"),
    ("OPR-004", "a condition of the CSI driver is degraded or not available, and was not at the start"),
    ("UPG-001", "an update of the cluster was begun or asked for while the migration runs"),
    ("EVD-001", "a log was not read yet"),
    ("EVD-002", "no new pod holds a lease that shows that it works"),
    ("EVD-003", "the cloud controller manager has not reached a vCenter yet"),
    ("EVD-004", "the problem detector has not finished a round yet"),
    ("EVD-005", "an operator, a pool or the CSI driver is worse than at the start"),
    ("EVD-006", "the new pods were not Ready long enough"),
];

/// The page.
pub fn page() -> Result<String, BadRules> {
    let catalogue = Catalogue::new(&[])?;
    let mut page = HEAD.to_owned();
    let mut components: Vec<&str> = Vec::new();
    for rule in catalogue.rules().iter().chain([catalogue.unknown()]) {
        if !components.contains(&rule.component.as_str()) {
            components.push(&rule.component);
        }
    }
    for component in components {
        let title = if component == super::ANY { "All components" } else { component };
        // Writing to a String cannot fail.
        let _ = writeln!(page, "\n## {title}");
        for rule in catalogue.rules().iter().chain([catalogue.unknown()]).filter(|rule| rule.component == component) {
            let _ = write!(page, "\n{}", section(rule));
        }
    }
    page.push_str(OTHERS_HEAD);
    for (id, meaning) in OTHERS {
        let _ = writeln!(page, "| {id} | {meaning} |");
    }
    Ok(page)
}

fn section(rule: &Rule) -> String {
    let mut text = format!("### {}\n\n{}: {}", rule.id, weight(rule), rule.meaning);
    for (name, part) in [("Cause", &rule.cause), ("Remedy", &rule.remedy)] {
        if !part.is_empty() {
            let _ = write!(text, ". {name}: {part}");
        }
    }
    let _ = write!(text, ".\n\n```text\n{}\n```\n", rule.line);
    text
}

/// A span of time as users write it.
pub(crate) fn seconds(duration: std::time::Duration) -> String {
    match duration.as_secs() {
        whole if whole % 60 == 0 => format!("{}m", whole / 60),
        seconds => format!("{seconds}s"),
    }
}

/// How often and for how long it has to come.
pub(super) fn threshold(rule: &Rule) -> String {
    let times = match rule.times() {
        1 => "once".to_owned(),
        times => format!("{times} times, each within {}", seconds(rule.within())),
    };
    let lasting = if rule.lasting().is_zero() { String::new() } else { format!(", for {}", seconds(rule.lasting())) };
    format!("{times}{lasting}")
}

fn weight(rule: &Rule) -> String {
    let threshold = threshold(rule);
    let node = match (rule.node, rule.nameless) {
        (true, true) => "; not while a node is not vSphere's",
        (true, false) => "; not about nodes that are not vSphere's",
        _ => "",
    };
    match rule.verdict {
        Verdict::Benign => "Benign".to_owned(),
        Verdict::Transient => format!("Transient ({threshold}{node})"),
        Verdict::Fatal => format!("Fatal ({threshold}; clear after {}{node})", seconds(rule.clear())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_of_rules_is_what_the_rules_say() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
        let page = page().unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(stored == page, "docs/rules.md is not what rules.yaml says: run UPDATE_GOLDEN=1 cargo test -p vmi-pod-health-watch");
    }

    #[test]
    fn every_id_that_no_log_tells_is_on_the_page() {
        let sources =
            [include_str!("../trouble.rs"), include_str!("../health.rs"), include_str!("../cluster.rs"), include_str!("../restart.rs")];
        let ids = regex::Regex::new("\"((?:POD|OPR|UPG|EVD)-[0-9]{3})\"").unwrap();
        let used: BTreeSet<&str> =
            sources.iter().flat_map(|source| ids.captures_iter(source)).map(|found| found.extract::<1>().1[0]).collect();
        assert_eq!(OTHERS.iter().map(|(id, _)| *id).collect::<BTreeSet<_>>(), used);
    }
}
