//! Places where nodes and volumes may be without being on the source, each a region and its zone.

use serde_json::Value;

/// Those of the failure domains to come, and those of vCenters in the spec of Infrastructure that are no source and so stay.
pub fn off_the_source<'a>(
    infrastructure: &'a Value,
    sources: &[String],
    to_come: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<(&'a str, &'a str)> {
    let listed = infrastructure["platformSpec"]["vsphere"]["failureDomains"].as_array().into_iter().flatten();
    let stays = |domain: &&Value| domain["server"].as_str().is_some_and(|server| sources.iter().all(|source| source != server));
    let staying = listed.filter(stays).filter_map(|domain| domain["region"].as_str().zip(domain["zone"].as_str()));
    to_come.into_iter().chain(staying).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_on_a_vcenter_that_stays_is_not_on_the_source() {
        let domain = |letter: &str| json!({"server": letter, "region": format!("region-{letter}"), "zone": format!("zone-{letter}")});
        let spec = json!({"platformSpec": {"vsphere": {"failureDomains": [domain("a"), domain("c")]}}});
        let places = off_the_source(&spec, &["a".to_owned()], [("region-b", "zone-b")]);
        assert_eq!(places, [("region-b", "zone-b"), ("region-c", "zone-c")]);
        assert_eq!(off_the_source(&json!({}), &["a".to_owned()], [("region-b", "zone-b")]), [("region-b", "zone-b")]);
    }
}
