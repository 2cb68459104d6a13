//! The verdict on a way back: the cluster and its vCenters are as before. Where Infrastructure did not describe the source and the API
//! does not let that description go again, everything has to agree with it and the rest is as before.

use super::dump::Dump;
use super::verdict::{self, Check, Expected, control_plane, none};
use super::{Error, Site};
use crate::kubernetes::INFRASTRUCTURE;
use crate::shape::{Generation, Shape};

/// What follows from a description of the source.
const DESCRIBED: &[&str] = &["Infrastructure", "ControllerConfig", "ControlPlaneMachineSet", "ConfigMap", "vCenter"];

/// Whether the cluster is where it began; `before` is how it was.
pub async fn verdict(site: &Site, before: &Dump) -> Result<Vec<Check>, Error> {
    let mut checks = verdict::healthy(site).await;
    let after = Dump::take(site).await?;
    if !keeps_its_source(&site.shape, before, &after) {
        let difference = before.difference(&after);
        checks.push(Check::new("the cluster and both vCenters are as before", none(&difference)));
        return Ok(checks);
    }
    let expected = Expected { there: vec![&site.source], gone: site.targets() };
    checks.extend(verdict::configured(site, &expected, "the source alone").await?);
    checks.push(Check::new("the control plane stays where it is", control_plane::stays(site, before, &after)));
    checks.push(Check::new("but for that the cluster and both vCenters are as before", none(&besides(site, before, &after))));
    Ok(checks)
}

/// Whether there is a description of the source that was not there and may stay: the API of the shape's generation does not let one go
/// again. Of older ones the rule that forbids it is put aside meanwhile.
fn keeps_its_source(shape: &Shape, before: &Dump, after: &Dump) -> bool {
    let described = |dump: &Dump| dump.of(INFRASTRUCTURE).any(|(_, object)| !object["spec"]["platformSpec"]["vsphere"].is_null());
    shape.generation == Generation::Next && !described(before) && described(after)
}

/// What differs and does not follow from the description: the tags of the source do, and copies of the cloud configuration.
fn besides(site: &Site, before: &Dump, after: &Dump) -> Vec<String> {
    let mut lines = before.difference_of(after, |kind| !DESCRIBED.contains(&kind));
    let rest = before.difference_of(after, |kind| ["ConfigMap", "vCenter"].contains(&kind));
    let tags = ["tags.", "categories."].map(|list| format!("vCenter {}: {list}", site.source.name));
    let follows = |line: &String| is_of_a_copy(line) || tags.iter().any(|tags| line.starts_with(tags));
    lines.extend(rest.into_iter().filter(|line| !follows(line)));
    lines
}

fn is_of_a_copy(line: &str) -> bool {
    line.starts_with("ConfigMap ") && !line.starts_with("ConfigMap openshift-config/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_where_the_api_keeps_it_may_a_source_be_described_that_was_not() {
        let infrastructure = |platform: serde_json::Value| {
            Dump::with(INFRASTRUCTURE, &[json!({"metadata": {"name": "cluster"}, "spec": {"platformSpec": platform}})])
        };
        let (described, not) = (infrastructure(json!({"vsphere": {"vcenters": []}})), infrastructure(json!({"type": "VSphere"})));
        let keeps = |shape: &str, before: &Dump, after: &Dump| keeps_its_source(&Shape::named(shape).unwrap(), before, after);
        assert!(keeps("unlisted", &not, &described));
        assert!(!keeps("unlisted", &not, &not), "it was turned back before it was described");
        assert!(!keeps("ancient", &not, &described) && !keeps("native", &described, &described));
    }

    #[test]
    fn copies_of_the_cloud_configuration_are_told_from_the_users_own() {
        assert!(is_of_a_copy("ConfigMap openshift-config-managed/kube-cloud-config: data.cloud.conf: a -> b"));
        assert!(is_of_a_copy("ConfigMap openshift-cloud-controller-manager/cloud-conf: gone"));
        assert!(!is_of_a_copy("ConfigMap openshift-config/cloud-provider-config: data.config: a -> b"));
        assert!(!is_of_a_copy("Secret kube-system/vsphere-creds: gone"));
    }
}
