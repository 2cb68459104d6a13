//! What a round's checks came to: a line in the log each, an Event for each check, and the error of the whole round.

use std::collections::BTreeMap;

use kube::Client;
use serde_json::json;

use super::super::STORAGE;
use super::metrics::Metrics;
use super::say;
use crate::kubernetes::{self, EVENT};
use crate::standins::{operator_status, requests};

/// The Deployment that Events are about, as library-go's recorder has it.
const DEPLOYMENT: &str = "vsphere-problem-detector-operator";

/// Of many only the first are told; like the real one it promises five and tells four.
pub fn joined(wrong: &[String]) -> String {
    match wrong {
        few if few.len() < 5 => few.join(";\n"),
        many => format!("{} errors found, listing first 5:\n{}", many.len(), many[..4].join(";\n")),
    }
}

pub struct Results {
    metrics: Metrics,
    /// Of each check, what was wrong: once for the cluster, or once for a node.
    checks: BTreeMap<&'static str, Vec<String>>,
}

impl Results {
    pub fn new(metrics: Metrics) -> Results {
        Results { metrics, checks: BTreeMap::new() }
    }

    /// A check of the whole cluster.
    pub fn cluster(&mut self, name: &'static str, wrong: &[String]) {
        let labels = [("check", name)];
        self.metrics.count("vsphere_cluster_check_total", &labels);
        self.metrics.gauge("vsphere_cluster_check_errors", &labels, f64::from(u8::from(!wrong.is_empty())));
        if wrong.is_empty() {
            say('I', "vsphere_check.go:302", &format!("{name} passed"));
            self.add(name, None);
        } else {
            let wrong = wrong.join(";\n");
            say('I', "vsphere_check.go:299", &format!("{name} failed: {wrong}"));
            self.add(name, Some(wrong));
        }
    }

    /// A check of one node.
    pub fn node(&mut self, name: &'static str, node: &str, wrong: Option<String>) {
        let labels = [("check", name), ("node", node)];
        self.metrics.count("vsphere_node_check_total", &labels);
        self.metrics.gauge("vsphere_node_check_errors", &labels, f64::from(u8::from(wrong.is_some())));
        match &wrong {
            Some(wrong) => say('I', "vsphere_check.go:318", &format!("{name}:{node} failed: {wrong}")),
            None => say('I', "vsphere_check.go:321", &format!("{name}:{node} passed")),
        }
        self.add(name, wrong);
    }

    /// A node whose virtual machine was not found fails every check, without a line of its own.
    pub fn lost(&mut self, checks: &[&'static str], wrong: &str) {
        for name in checks {
            self.add(name, Some(wrong.to_owned()));
        }
    }

    fn add(&mut self, name: &'static str, wrong: Option<String>) {
        self.checks.entry(name).or_default().extend(wrong);
    }

    /// Everything that was wrong, each once, as Go joins errors.
    pub fn failure(&self) -> Option<String> {
        let mut all: Vec<&str> = Vec::new();
        for wrong in self.checks.values().flatten() {
            if !all.contains(&wrong.as_str()) {
                all.push(wrong);
            }
        }
        match all.as_slice() {
            [] => None,
            [one] => Some((*one).to_owned()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }

    /// What the Event of each check says: its type, reason and message.
    fn events(&self) -> Vec<(&'static str, String, String)> {
        let event = |(name, wrong): (&&'static str, &Vec<String>)| match wrong.as_slice() {
            [] => ("Normal", format!("SucceededVSphere{name}"), "Check succeeded".to_owned()),
            wrong => ("Warning", format!("FailedVSphere{name}"), joined(wrong)),
        };
        self.checks.iter().map(event).collect()
    }

    /// Writes the Events.
    pub async fn tell(&self, client: &Client) -> Result<(), kubernetes::Error> {
        for (kind, reason, message) in self.events() {
            let now = operator_status::now();
            let name = format!("{DEPLOYMENT}.{:x}.{}", jiff::Timestamp::now().as_nanosecond(), reason.to_lowercase());
            let event = json!({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": STORAGE},
                "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": STORAGE, "name": DEPLOYMENT},
                "type": kind, "reason": reason, "message": message, "count": 1, "firstTimestamp": now, "lastTimestamp": now,
                "source": {"component": "vsphere-problem-detector-operator-vsphereproblemdetectorcontroller"},
            });
            requests::create(client, EVENT, &event).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_fails_of_everything_that_is_wrong_each_once() {
        let mut results = Results::new(Metrics::default());
        results.cluster("CheckInfraConfig", &[]);
        assert_eq!(results.failure(), None);
        results.lost(&["CheckNodeProviderID", "CollectNodeHWVersion"], "VMUUID is not set for node bare");
        assert_eq!(results.failure().unwrap(), "VMUUID is not set for node bare", "once, though two checks failed of it");
        results.cluster("CheckZoneTags", &["Multi-Zone support: no".to_owned()]);
        assert_eq!(results.failure().unwrap(), "[VMUUID is not set for node bare, Multi-Zone support: no]");
    }

    #[test]
    fn of_many_errors_the_first_are_told() {
        let wrong: Vec<String> = (0..5).map(|number| number.to_string()).collect();
        assert_eq!(joined(&wrong[..4]), "0;\n1;\n2;\n3");
        assert_eq!(joined(&wrong), "5 errors found, listing first 5:\n0;\n1;\n2;\n3");
    }

    #[test]
    fn every_check_has_an_event_however_many_nodes_it_looked_at() {
        let mut results = Results::new(Metrics::default());
        results.cluster("CheckInfraConfig", &[]);
        results.node("CheckNodeProviderID", "a", None);
        results.node("CheckNodeProviderID", "b", Some("it has none".to_owned()));
        let events = results.events();
        let says = |index: usize| (events[index].0, events[index].1.as_str(), events[index].2.as_str());
        assert_eq!(events.len(), 2);
        assert_eq!(says(0), ("Normal", "SucceededVSphereCheckInfraConfig", "Check succeeded"));
        assert_eq!(says(1), ("Warning", "FailedVSphereCheckNodeProviderID", "it has none"));
    }
}
