//! What a pod's task tells the apiserver: the pod's status, and in the end that it is gone.

use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::pod::{FIRST_RETRY, LONGEST_REQUEST, PodTask};
use super::record::Container;
use super::status::{self, Facts};
use crate::kubernetes::POD;

impl PodTask {
    /// Ends the containers, shows that, and then deletes the object for good. The task goes on until the object is gone.
    pub async fn end(&mut self, deadline: Instant) {
        self.over = true;
        self.stop_all(deadline);
        self.write_status().await;
        if self.is_alive() || self.delete_accepted {
            return;
        }
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: self.pod.metadata.uid.clone(), resource_version: None }),
            ..DeleteParams::default()
        };
        let api = POD.api(&self.shared.settings.client, self.namespace());
        match tokio::time::timeout(LONGEST_REQUEST, api.delete(self.name(), &parameters)).await {
            Ok(Ok(_)) => self.delete_accepted = true,
            // Gone, or replaced by another of the same name: the watch will tell.
            Ok(Err(kube::Error::Api(answer))) if answer.code == 404 || answer.code == 409 => self.delete_accepted = true,
            Ok(Err(error)) => {
                tracing::warn!(pod = self.name(), %error, "a pod that has ended cannot be deleted yet");
                self.try_again();
            }
            Err(_) => self.try_again(),
        }
    }

    pub fn statuses(&self) -> (Vec<ContainerStatus>, Vec<ContainerStatus>) {
        let of = |init: bool| {
            self.containers.iter().filter(|container| container.init == init).map(|container| container.status.clone()).collect()
        };
        (of(true), of(false))
    }

    pub async fn write_status(&mut self) {
        if self.over && self.containers.iter().all(Container::is_new) {
            // It ended in an agent before this one, or never began: there is nothing new to say.
            return;
        }
        let (init, containers) = self.statuses();
        let pod_address = self.pod_address();
        let facts = Facts {
            init,
            containers,
            pod_address: &pod_address,
            host_address: self.node.address.as_deref(),
            started: &self.started,
            ended: self.pod.metadata.deletion_timestamp.is_some() && !self.is_alive(),
            before: &self.conditions,
        };
        let status = status::status(&self.pod, &self.spec, &facts);
        let version = version(self.pod.metadata.resource_version.as_deref());
        let stands = self.written.as_ref().is_some_and(|(written, at)| {
            let overwritten = self.node.ready && version > *at && !status::shows(&self.pod, &status);
            *written == status && !overwritten
        });
        if stands {
            return;
        }
        let patch = json!({"metadata": {"uid": self.uid()}, "status": with_gaps(&status)});
        let api = POD.api(&self.shared.settings.client, self.namespace());
        let parameters = PatchParams::default();
        let patch = Patch::Strategic(&patch);
        let request = api.patch_status(self.name(), &parameters, &patch);
        match tokio::time::timeout(LONGEST_REQUEST, request).await {
            Ok(Ok(answer)) => {
                self.conditions = status.conditions.clone().unwrap_or_default();
                self.written = Some((status, self::version(answer.metadata.resource_version.as_deref())));
                self.retry = FIRST_RETRY;
            }
            Ok(Err(kube::Error::Api(answer))) if answer.code == 404 || answer.code == 409 => {}
            Ok(Err(error)) => {
                tracing::warn!(pod = self.name(), %error, "a pod's status cannot be written yet");
                self.try_again();
            }
            Err(_) => self.try_again(),
        }
    }

    fn pod_address(&mut self) -> String {
        if self.spec.host_network == Some(true)
            && let Some(address) = &self.node.address
        {
            return address.clone();
        }
        self.address.get_or_insert_with(|| self.shared.pod_address()).clone()
    }
}

fn version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The status with explicit nulls, so that a strategic merge takes away what an earlier one put in.
fn with_gaps(status: &PodStatus) -> Value {
    let mut value = json!(status);
    for condition in value["conditions"].as_array_mut().into_iter().flatten() {
        for field in ["reason", "message"] {
            if condition.get(field).is_none() {
                condition[field] = Value::Null;
            }
        }
    }
    value
}
