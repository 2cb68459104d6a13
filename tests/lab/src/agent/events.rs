//! Kubernetes Events about pods, as `kubectl describe pod` shows them. What happens again is counted, not repeated.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::PostParams;
use serde_json::json;
use tokio::sync::mpsc;

use super::logs::stamp;
use super::status::now;
use crate::kubernetes::{self, EVENT};

#[derive(Clone)]
pub(super) struct Events(mpsc::UnboundedSender<Note>);

struct Note {
    namespace: String,
    pod: String,
    uid: String,
    node: String,
    kind: &'static str,
    reason: &'static str,
    message: String,
}

/// More than this many different notes are not remembered for counting.
const REMEMBERED: usize = 1000;

impl Events {
    /// The sender, and the task that writes what is sent.
    pub fn new(client: Client) -> (Events, impl Future<Output = ()>) {
        let (sender, notes) = mpsc::unbounded_channel();
        (Events(sender), write_all(client, notes))
    }

    pub fn normal(&self, pod: &Pod, reason: &'static str, message: impl Into<String>) {
        self.send(pod, "Normal", reason, message.into());
    }

    pub fn warning(&self, pod: &Pod, reason: &'static str, message: impl Into<String>) {
        self.send(pod, "Warning", reason, message.into());
    }

    fn send(&self, pod: &Pod, kind: &'static str, reason: &'static str, message: String) {
        let note = Note {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            pod: pod.metadata.name.clone().unwrap_or_default(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            kind,
            reason,
            message,
        };
        if self.0.send(note).is_err() {
            tracing::debug!(reason, "an event is not written, the agent is ending");
        }
    }
}

async fn write_all(client: Client, mut notes: mpsc::UnboundedReceiver<Note>) {
    let mut counts: HashMap<(String, &'static str, String), (String, u32)> = HashMap::new();
    while let Some(note) = notes.recv().await {
        if counts.len() >= REMEMBERED {
            counts.clear();
        }
        let key = (note.uid.clone(), note.reason, note.message.clone());
        let written = if let Some((name, count)) = counts.get_mut(&key) {
            *count += 1;
            let patch = json!({"count": count, "lastTimestamp": now()});
            kubernetes::merge(&client, EVENT, &note.namespace, name, &patch).await.map(|_| ()).map_err(|error| error.to_string())
        } else {
            let name = format!("{}.{}", note.pod, stamp(jiff::Timestamp::now()).replace([':', 'T', 'Z'], "-").trim_end_matches('-'));
            let created = create(&client, &note, &name).await;
            counts.insert(key, (name, 1));
            created
        };
        if let Err(error) = written {
            tracing::debug!(pod = note.pod, reason = note.reason, error, "an event could not be written");
        }
    }
}

async fn create(client: &Client, note: &Note, name: &str) -> Result<(), String> {
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": note.namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": note.namespace, "name": note.pod, "uid": note.uid},
        "type": note.kind, "reason": note.reason, "message": note.message, "count": 1,
        "firstTimestamp": now(), "lastTimestamp": now(),
        "source": {"component": "vmi-lab-node-agent", "host": note.node},
    });
    let event = serde_json::from_value(event).map_err(|error| error.to_string())?;
    let api = EVENT.api(client, &note.namespace);
    api.create(&PostParams::default(), &event).await.map(|_| ()).map_err(|error| error.to_string())
}
