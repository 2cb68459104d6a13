//! The cloud configuration before and after: other vCenters, and nothing else.

use serde_json::Value;

use crate::kubernetes::CONFIG_MAP;
use crate::migration::dump::Dump;
use crate::yaml;

const MAP: &str = "openshift-config/cloud-provider-config";
/// What says where machines are; categories of zones come with a second failure domain.
const OF_VCENTERS: [&str; 2] = ["vcenter", "labels"];

/// Whether all other sections are as they were, such as `nodes`. One in INI is turned to YAML on the way and has no like.
pub fn rest(before: &Dump, after: &Dump) -> Result<(), String> {
    let read = |dump: &Dump| -> Option<Value> {
        let (_, map) = dump.of(CONFIG_MAP).find(|(name, _)| *name == MAP)?;
        let mut parsed = yaml::parse(map["data"]["config"].as_str()?).ok()?;
        let sections = parsed.as_object_mut()?;
        sections.retain(|section, _| !OF_VCENTERS.contains(&section.as_str()));
        Some(parsed)
    };
    let Some(old) = read(before) else { return Ok(()) };
    let new = read(after).ok_or_else(|| format!("{MAP} cannot be read"))?;
    if old == new { Ok(()) } else { Err(format!("it was {old} and is {new}")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dump(text: &str) -> Dump {
        let mut dump = Dump::default();
        dump.insert(CONFIG_MAP, MAP, json!({"data": {"config": text}}));
        dump
    }

    #[test]
    fn a_section_that_is_not_about_vcenters_may_not_be_lost_or_changed() {
        let config =
            |server: &str, rest: &str| dump(&format!("global:\n  insecureFlag: true\nvcenter:\n  {server}:\n    server: {server}\n{rest}"));
        let nodes = "nodes:\n  internalNetworkSubnetCidr: 192.0.2.0/24\n";
        let before = config("a", nodes);
        assert_eq!(rest(&before, &config("b", &format!("labels:\n  zone: z\n{nodes}"))), Ok(()));
        for lost in ["", "nodes: {}\n", "nodes:\n  internalNetworkSubnetCidr: 198.51.100.0/24\n"] {
            assert!(rest(&before, &config("b", lost)).is_err_and(|why| why.contains("192.0.2.0/24")), "{lost:?}");
        }
        assert!(rest(&before, &Dump::default()).is_err());
        assert_eq!(rest(&dump("[Global]\nuser = x\n"), &config("b", "")), Ok(()), "INI becomes YAML");
    }
}
