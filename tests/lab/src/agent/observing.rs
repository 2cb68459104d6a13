//! What a pod's task sees: its object and its node, and what follows from them.

use std::time::Duration;

use kube::api::DynamicObject;
use tokio::time::Instant;

use super::BOOTS;
use super::pod::PodTask;
use crate::kubernetes::{self, NODE, POD};

#[derive(Default)]
pub(super) struct NodeView {
    seen: bool,
    pub ready: bool,
    boots: Option<String>,
    pub address: Option<String>,
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
        let boots = node.metadata.annotations.as_ref().and_then(|annotations| annotations.get(BOOTS)).cloned();
        if self.node.boots.is_some() && boots.is_some() && self.node.boots != boots {
            for container in self.containers.iter_mut().filter(|container| container.life.is_some()) {
                (container.again, container.at_once) = (true, true);
            }
            self.stop_all(Instant::now());
        }
        let addresses = node.data["status"]["addresses"].as_array().cloned().unwrap_or_default();
        let internal = addresses.iter().find(|address| address["type"] == "InternalIP").and_then(|address| address["address"].as_str());
        self.node = NodeView {
            seen: true,
            ready: kubernetes::condition(node, "Ready") == "True",
            boots: boots.or(self.node.boots.take()),
            address: internal.map(str::to_owned),
        };
    }
}
