//! Shows a running migration: on a terminal a table that is drawn again and again, elsewhere a line for each change of a step.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};
use std::time::Instant;

use jiff::Timestamp;
use vmi_crds::VSphereMigrationInfra;
use vmi_crds::graph::{Request, STEPS};
use vmi_crds::status::{StepState, StepStatus};

/// A step as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub number: &'static str,
    pub name: &'static str,
    pub state: StepState,
    /// How long it took, or takes by now.
    pub seconds: Option<f64>,
    /// What is waited for, or how it ended.
    pub message: String,
}

/// The steps that the vmi asks for, in their order.
pub fn rows(vmi: &VSphereMigrationInfra, now: Timestamp) -> Vec<Row> {
    let reported = |name: &str| vmi.status.iter().flat_map(|status| &status.steps).find(|step| step.name == name);
    let asked = Request::of(&vmi.spec);
    STEPS
        .iter()
        .filter(|step| asked.asks_for(step))
        .map(|step| {
            let status = reported(step.name.as_str());
            Row {
                number: step.number,
                name: step.name.as_str(),
                state: status.map_or(StepState::Waiting, |status| status.state),
                seconds: status.and_then(|status| seconds(status, now)),
                message: status.map(|status| first_line(&status.message)).unwrap_or_default(),
            }
        })
        .collect()
}

/// How many machines are in which vCenter, by role and phase; empty where nobody counts them.
pub fn machines(vmi: &VSphereMigrationInfra) -> String {
    let mut by: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in vmi.status.iter().flat_map(|status| &status.machines).filter(|entry| entry.count > 0) {
        by.entry(entry.vcenter.as_str()).or_default().push(format!("{} {} {}", entry.count, entry.role, entry.phase));
    }
    by.into_iter().map(|(vcenter, all)| format!("{vcenter}: {}", all.join(", "))).collect::<Vec<_>>().join("   ")
}

/// What holds the migration; empty where nothing does.
pub fn hold(vmi: &VSphereMigrationInfra) -> String {
    let held = vmi.condition("Held").filter(|held| held.status == "True");
    held.map(|held| format!("{}: {}", held.reason, first_line(&held.message))).unwrap_or_default()
}

fn seconds(step: &StepStatus, now: Timestamp) -> Option<f64> {
    let begun = step.started_at.as_ref()?.0;
    let ended = step.finished_at.as_ref().map(|time| time.0).filter(|ended| *ended >= begun);
    let until = ended.or((step.state == StepState::Active).then_some(now))?;
    Some(until.duration_since(begun).as_secs_f64())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn word(state: StepState) -> &'static str {
    match state {
        StepState::Waiting => "waiting",
        StepState::Active => "active",
        StepState::Done => "done",
        StepState::Failed => "FAILED",
        StepState::Undone => "undone",
        StepState::NotRequested => "not asked for",
    }
}

fn line(row: &Row) -> String {
    let time = row.seconds.map_or_else(String::new, |seconds| format!("{seconds:.1} s"));
    format!("{:>4}  {:<24} {:<8} {time:>8}  {}", row.number, row.name, word(row.state), row.message).trim_end().to_owned()
}

/// A line that is not about a step.
fn beside(what: &str, text: &str) -> String {
    format!("      {what}  {text}")
}

/// Where a migration is shown.
pub struct View {
    out: Box<dyn Write + Send>,
    terminal: bool,
    began: Instant,
    drawn: usize,
    told: BTreeMap<&'static str, StepState>,
    /// What was said last of machines and of what holds the migration.
    said: BTreeMap<&'static str, String>,
}

/// Without wrapping: a line that is too long for the terminal would shift all that is drawn over it later.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const ERASE_BELOW: &str = "\x1b[J";

impl View {
    pub fn stderr() -> View {
        let stderr = std::io::stderr();
        let terminal = stderr.is_terminal();
        View::to(stderr, terminal)
    }

    pub fn to(out: impl Write + Send + 'static, terminal: bool) -> View {
        View { out: Box::new(out), terminal, began: Instant::now(), drawn: 0, told: BTreeMap::new(), said: BTreeMap::new() }
    }

    /// Whether what is shown has to be drawn again as time passes.
    pub fn is_live(&self) -> bool {
        self.terminal
    }

    /// A line that stays.
    pub fn say(&mut self, text: &str) {
        self.drawn = 0;
        self.write(&format!("{text}\n"));
    }

    /// The migration as it is now.
    pub fn show(&mut self, vmi: &VSphereMigrationInfra, now: Timestamp) {
        let rows = rows(vmi, now);
        let besides = [("machines", machines(vmi)), ("held by", hold(vmi))];
        if self.terminal {
            let up = if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\r{ERASE_BELOW}", self.drawn) };
            let mut table: String = rows.iter().map(|row| line(row) + "\n").collect();
            table.extend(besides.iter().map(|(what, text)| beside(what, text) + "\n"));
            self.drawn = rows.len() + besides.len();
            self.write(&format!("{up}{NO_WRAP}{table}{WRAP}"));
            return;
        }
        for row in rows {
            let before = self.told.insert(row.name, row.state).unwrap_or(StepState::Waiting);
            if before != row.state {
                let elapsed = self.began.elapsed().as_secs_f64();
                self.write(&format!("{elapsed:6.1} s {}\n", line(&row)));
            }
        }
        for (what, text) in besides {
            let before = self.said.insert(what, text.clone()).unwrap_or_default();
            if before != text {
                let elapsed = self.began.elapsed().as_secs_f64();
                let text = if text.is_empty() { "nothing" } else { &text };
                self.write(&format!("{elapsed:6.1} s {}\n", beside(what, text)));
            }
        }
    }

    fn write(&mut self, text: &str) {
        // A view that nobody can read any more must not end what it shows.
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
pub mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    struct Shown(Arc<Mutex<Vec<u8>>>);

    impl Shown {
        fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
        }
    }

    impl Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A vmi that grows a cluster, with this status.
    pub fn vmi(status: &Value) -> VSphereMigrationInfra {
        serde_json::from_value(json!({
            "apiVersion": "config.openshift.io/v1alpha1", "kind": "VSphereMigrationInfra", "metadata": {"name": "growth"},
            "spec": {
                "vcenters": [{"server": "b", "datacenters": ["dc"]}],
                "failureDomains": [{"name": "fd", "region": "r", "zone": "z", "server": "b", "topology": {
                    "datacenter": "dc", "computeCluster": "/dc/host/c", "networks": ["n"], "datastore": "/dc/datastore/d"}}],
                "credentialsSecret": {"name": "c"}, "sourceRetirement": "Keep",
            },
            "status": status,
        }))
        .unwrap()
    }

    pub fn step(name: &str, state: &str, message: &str) -> Value {
        json!({"name": name, "number": "1", "controller": "x", "state": state, "message": message})
    }

    fn at(second: u8) -> String {
        format!("2026-01-02T03:04:{second:02}.500000Z")
    }

    #[test]
    fn only_the_steps_that_are_asked_for_are_shown() {
        let names: Vec<&str> = rows(&vmi(&json!({})), Timestamp::UNIX_EPOCH).iter().map(|row| row.name).collect();
        assert_eq!(names.first(), Some(&"PreflightPassed"));
        assert_eq!(names.last(), Some(&"ClusterThawed"));
        assert!(!names.contains(&"WorkersReady") && !names.contains(&"SourceDetached"), "{names:?}");
    }

    #[test]
    fn a_step_shows_how_long_it_took_or_takes_by_now() {
        let mut done = step("PreflightPassed", "Done", "12 checks passed\nmore");
        done["startedAt"] = json!(at(1));
        done["finishedAt"] = json!(at(3));
        let mut active = step("ClusterVersionFrozen", "Active", "");
        active["startedAt"] = json!(at(3));
        let rows = rows(&vmi(&json!({"steps": [done, active]})), at(8).parse().unwrap());
        assert_eq!((rows[0].seconds, rows[0].message.as_str()), (Some(2.0), "12 checks passed"));
        assert_eq!((rows[1].seconds, rows[2].seconds), (Some(5.0), None));
    }

    #[test]
    fn a_log_gets_a_line_for_each_change_of_a_step_and_none_for_the_rest() {
        let shown = Shown::default();
        let mut view = View::to(shown.clone(), false);
        view.show(&vmi(&json!({})), Timestamp::UNIX_EPOCH);
        assert_eq!(shown.take(), "");
        let active = vmi(&json!({"steps": [step("TagsAttached", "Active", "waits for vCenter b")]}));
        view.show(&active, Timestamp::UNIX_EPOCH);
        view.show(&active, Timestamp::UNIX_EPOCH);
        let text = shown.take();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("TagsAttached") && text.contains("active") && text.contains("waits for vCenter b"), "{text}");
    }

    #[test]
    fn machines_are_shown_by_vcenter_whenever_one_has_moved() {
        let shown = Shown::default();
        let mut view = View::to(shown.clone(), false);
        let count = |vcenter: &str, count: u8| json!({"role": "worker", "vcenter": vcenter, "phase": "Running", "count": count});
        let moving = |a, b| vmi(&json!({"machines": [count("a", a), count("b", b)]}));
        for vmi in [moving(3, 0), moving(3, 0), moving(2, 1)] {
            view.show(&vmi, Timestamp::UNIX_EPOCH);
        }
        let text = shown.take();
        let lines: Vec<&str> = text.lines().map(|line| line.split_once("machines  ").unwrap().1).collect();
        assert_eq!(lines, ["a: 3 worker Running", "a: 2 worker Running   b: 1 worker Running"]);
    }

    #[test]
    fn what_holds_a_migration_is_said_when_it_begins_and_when_it_is_over() {
        let shown = Shown::default();
        let mut view = View::to(shown.clone(), false);
        let held = |status: &str| {
            let condition = json!({"type": "Held", "status": status, "reason": "POD-002", "message": "ns/pod crashes\nagain",
                "lastTransitionTime": at(1), "observedGeneration": 1});
            vmi(&json!({"conditions": [condition]}))
        };
        for vmi in [held("False"), held("True"), held("True"), held("False")] {
            view.show(&vmi, Timestamp::UNIX_EPOCH);
        }
        let text = shown.take();
        let lines: Vec<&str> = text.lines().map(|line| line.split_once("held by  ").unwrap().1).collect();
        assert_eq!(lines, ["POD-002: ns/pod crashes", "nothing"]);
    }

    #[test]
    fn on_a_terminal_the_table_is_drawn_over_itself() {
        let shown = Shown::default();
        let mut view = View::to(shown.clone(), true);
        view.show(&vmi(&json!({})), Timestamp::UNIX_EPOCH);
        let first = shown.take();
        assert!(!first.contains(ERASE_BELOW), "{first:?}");
        view.show(&vmi(&json!({})), Timestamp::UNIX_EPOCH);
        assert!(shown.take().starts_with(&format!("\x1b[{}A\r{ERASE_BELOW}", first.lines().count() - 1)));
    }
}
