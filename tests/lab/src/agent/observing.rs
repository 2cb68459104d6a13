//! What a pod's task sees: its object and its node, and what follows from them.

use std::time::Duration;

use kube::api::DynamicObject;
use tokio::time::Instant;

use super::pod::PodTask;
use super::{BOOTS, REBOOTS};
use crate::kubernetes::{self, NODE, POD};

#[derive(Default)]
pub(super) struct NodeView {
    seen: bool,
    pub ready: bool,
    boots: Boots,
    pub address: Option<String>,
}

/// How often a node has started, by each of those who count it.
#[derive(Default)]
struct Boots {
    /// Of the machine; not known before the node has first reported.
    machine: Option<String>,
    /// By the machine config operator, which writes nothing before the first.
    operator: u64,
}

impl Boots {
    fn of(node: &DynamicObject) -> Boots {
        let annotation = |key: &str| node.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
        Boots {
            machine: annotation(BOOTS).cloned(),
            operator: annotation(REBOOTS).and_then(|count| count.parse().ok()).unwrap_or_default(),
        }
    }

    /// Whether the node has started again since these were `before`.
    fn follow(&self, before: &Boots) -> bool {
        let machine = before.machine.is_some() && self.machine.is_some() && before.machine != self.machine;
        machine || self.operator > before.operator
    }
}

pub(super) enum Wish {
    Run,
    /// To be ended by then, and its object deleted.
    End(Instant),
    /// Its node is not known yet.
    Wait,
    /// The object is gone.
    Gone,
}

impl PodTask {
    /// Looks at the pod and its node as they are now.
    pub fn observe(&mut self) -> Wish {
        let object = self.shared.cache.get(POD, self.namespace(), self.name());
        let Some(object) = object.filter(|object| object.metadata.uid == self.pod.metadata.uid) else { return Wish::Gone };
        if object.metadata.resource_version != self.pod.metadata.resource_version {
            match (*object).clone().try_parse() {
                Ok(pod) => self.pod = pod,
                Err(error) => tracing::error!(pod = self.name(), %error, "a change of a pod cannot be read"),
            }
        }
        let Some(node) = self.shared.cache.get(NODE, "", self.spec.node_name.as_deref().unwrap_or_default()) else {
            // A node that was here and is not any more took its pods along; one never seen may only be late.
            let lost = self.node.seen || self.pod.metadata.deletion_timestamp.is_some();
            return if lost { Wish::End(Instant::now()) } else { Wish::Wait };
        };
        self.see_node(&node);
        if self.pod.metadata.deletion_timestamp.is_some() {
            let grace = self.pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
            return Wish::End(Instant::now() + Duration::from_secs(u64::try_from(grace).unwrap_or(0)));
        }
        Wish::Run
    }

    fn see_node(&mut self, node: &DynamicObject) {
        let mut boots = Boots::of(node);
        if self.node.seen && boots.follow(&self.node.boots) {
            for container in self.containers.iter_mut().filter(|container| container.life.is_some()) {
                (container.again, container.at_once) = (true, true);
            }
            self.stop_all(Instant::now());
        }
        boots.machine = boots.machine.or(self.node.boots.machine.take());
        let addresses = node.data["status"]["addresses"].as_array().cloned().unwrap_or_default();
        let internal = addresses.iter().find(|address| address["type"] == "InternalIP").and_then(|address| address["address"].as_str());
        self.node =
            NodeView { seen: true, ready: kubernetes::condition(node, "Ready") == "True", boots, address: internal.map(str::to_owned) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_node_has_started_again_when_either_of_those_who_count_says_so() {
        let boots = |annotations: &Value| {
            let node = json!({"metadata": {"name": "n", "annotations": annotations}});
            Boots::of(&serde_json::from_value(node).unwrap())
        };
        for (before, now, expected) in [
            (json!({}), json!({BOOTS: "1"}), false),
            (json!({BOOTS: "1"}), json!({BOOTS: "1"}), false),
            (json!({BOOTS: "1"}), json!({BOOTS: "2"}), true),
            (json!({BOOTS: "1"}), json!({BOOTS: "1", REBOOTS: "1"}), true),
            (json!({BOOTS: "1", REBOOTS: "1"}), json!({BOOTS: "1", REBOOTS: "2"}), true),
            // The guest's own count, told again after a reboot that it did not notice.
            (json!({BOOTS: "1", REBOOTS: "1"}), json!({BOOTS: "1", REBOOTS: "1"}), false),
            (json!({BOOTS: "1", REBOOTS: "1"}), json!({BOOTS: "2", REBOOTS: "1"}), true),
            (json!({BOOTS: "1", REBOOTS: "1"}), json!({BOOTS: "1"}), false),
        ] {
            assert_eq!(boots(&now).follow(&boots(&before)), expected, "{before} {now}");
        }
    }
}
