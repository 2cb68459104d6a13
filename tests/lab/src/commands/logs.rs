//! `logs COMPONENT`: a program of the control plane or a container of any pod, under the same verb.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, LogParams};
use kube::{Client, ResourceExt as _};

use super::{Failure, kubeconfig};
use crate::home::{self, Record};
use crate::{control_plane, output};

pub async fn logs(record: &Record, component: &str) -> Result<(), Failure> {
    let file = home::of(&record.name).join("logs").join(format!("{component}.log"));
    if !component.contains('/') && file.exists() {
        output::raw(&std::fs::read(file)?);
        return Ok(());
    }
    let client = control_plane::client(&kubeconfig(record)).await?;
    let containers = containers(&client).await?;
    let found: Vec<_> = containers.iter().filter(|(_, pod, container)| container == component || pod.starts_with(component)).collect();
    if found.is_empty() {
        let mut known: Vec<&str> = containers.iter().map(|(_, _, container)| container.as_str()).collect();
        known.extend(["audit", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "vcsim"]);
        known.sort_unstable();
        known.dedup();
        return Err(Failure { message: format!("there is no component {component:?}; there are: {}", known.join(", ")), code: 2 });
    }
    for (namespace, pod, container) in found {
        output::line(format_args!("==> {namespace}/{pod} {container}"));
        let options = LogParams { container: Some(container.clone()), ..LogParams::default() };
        let text = Api::<Pod>::namespaced(client.clone(), namespace)
            .logs(pod, &options)
            .await
            .map_err(|error| Failure { message: format!("cannot read the log of {pod}: {error}"), code: 1 })?;
        output::raw(text.as_bytes());
    }
    Ok(())
}

/// Namespace, pod and container of everything that runs in pods.
async fn containers(client: &Client) -> Result<Vec<(String, String, String)>, Failure> {
    let pods = Api::<Pod>::all(client.clone())
        .list(&ListParams::default())
        .await
        .map_err(|error| Failure { message: format!("cannot list the pods: {error}"), code: 1 })?;
    let mut all = Vec::new();
    for pod in pods {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        for container in pod.spec.into_iter().flat_map(|spec| spec.containers) {
            all.push((namespace.clone(), name.clone(), container.name));
        }
    }
    Ok(all)
}
