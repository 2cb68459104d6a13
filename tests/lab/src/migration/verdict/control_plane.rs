//! The control plane machine set of a cluster that grew. Where there was none, its operator makes one of the source that Infrastructure
//! now describes, and that one does nothing until a user activates it.

use serde_json::Value;

use super::none;
use crate::kubernetes::CONTROL_PLANE_MACHINE_SET;
use crate::migration::Site;
use crate::migration::dump::Dump;

/// Whether the control plane machine set is as before, or waits on the source where there was none.
pub fn stays(site: &Site, before: &Dump, after: &Dump) -> Result<(), String> {
    match (before.of(CONTROL_PLANE_MACHINE_SET).next(), after.of(CONTROL_PLANE_MACHINE_SET).next()) {
        (None, Some((_, made))) => waits_elsewhere(made, &site.target_domains()),
        _ => none(&before.difference_of(after, |kind| kind == CONTROL_PLANE_MACHINE_SET.kind)),
    }
}

fn waits_elsewhere(made: &Value, domains: &[String]) -> Result<(), String> {
    let template = &made["spec"]["template"]["machines_v1beta1_machine_openshift_io"];
    let named = template["failureDomains"]["vsphere"].as_array().into_iter().flatten().filter_map(|domain| domain["name"].as_str());
    let on_the_target: Vec<String> = named.filter(|name| domains.iter().any(|domain| domain == name)).map(str::to_owned).collect();
    none(&on_the_target).map_err(|names| format!("the control plane machine set that was made names {names}"))?;
    match &made["spec"]["state"] {
        state if state == "Inactive" => Ok(()),
        state => Err(format!("the control plane machine set that was made is {state}, not Inactive")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_control_plane_machine_set_that_a_growth_brings_waits_on_the_source() {
        let made = |state: &str, domain: &str| {
            let template = json!({"failureDomains": {"platform": "VSphere", "vsphere": [{"name": domain}]}});
            json!({"spec": {"state": state, "template": {"machines_v1beta1_machine_openshift_io": template}}})
        };
        let judged = |made: &Value| waits_elsewhere(made, &["fd-b".to_owned()]);
        assert_eq!(judged(&made("Inactive", "fd-a")), Ok(()));
        assert_eq!(
            judged(&made("Active", "fd-a")),
            Err("the control plane machine set that was made is \"Active\", not Inactive".to_owned())
        );
        assert_eq!(judged(&made("Inactive", "fd-b")), Err("the control plane machine set that was made names fd-b".to_owned()));
    }
}
