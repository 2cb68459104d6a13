//! Infrastructure before and after: other vCenters and failure domains, and nothing else; of these each says what was asked for.

use serde_json::{Value, json};
use vmi_crds::spec::FailureDomain;

use super::none;
use crate::kubernetes::INFRASTRUCTURE;
use crate::migration::dump::{Dump, differences};

const LISTS: [&str; 2] = ["vcenters", "failureDomains"];

fn vsphere(dump: &Dump) -> Value {
    dump.of(INFRASTRUCTURE).next().map_or(Value::Null, |(_, object)| object["spec"]["platformSpec"]["vsphere"].clone())
}

/// Whether all that is in neither list is as it was.
pub fn rest(before: &Dump, after: &Dump) -> Result<(), String> {
    let without = |dump: &Dump| {
        let mut object = dump.of(INFRASTRUCTURE).next().map(|(_, object)| object.clone())?;
        if let Some(vsphere) = object.pointer_mut("/spec/platformSpec/vsphere").and_then(Value::as_object_mut) {
            vsphere.retain(|field, _| !LISTS.contains(&field.as_str()));
        }
        Some(object)
    };
    let (old, new) = (without(before).ok_or("there was none")?, without(after).ok_or("there is none")?);
    none(&differences("", &old, &new))
}

/// Whether every failure domain on these servers is one that was there before, unchanged, or one that was asked for, in every field
/// that was said; which of them have to be there is looked at by their servers. Where none was described before, those of the source are
/// told from its machines.
pub fn domains(before: &Dump, after: &Dump, servers: &[&str], asked: &[FailureDomain]) -> Result<(), String> {
    let listed = |dump: &Dump| vsphere(dump)["failureDomains"].as_array().cloned().unwrap_or_default();
    let (old, new) = (listed(before), listed(after));
    let mut wrong: Vec<String> = Vec::new();
    for domain in &new {
        let was = old.iter().find(|old| old["name"] == domain["name"]);
        let wanted = asked.iter().map(|asked| json!(asked)).find(|asked| asked["name"] == domain["name"]);
        match (was, wanted) {
            (Some(was), _) => wrong.extend(differences(&format!("{}: ", domain["name"]), was, domain)),
            (None, Some(wanted)) => wrong.extend(unlike("", &wanted, domain).map(|path| format!("{}: {path}", domain["name"]))),
            (None, None) if old.is_empty() => {}
            (None, None) => wrong.push(format!("nobody asked for {}", domain["name"])),
        }
    }
    let wanted = old.iter().cloned().chain(asked.iter().map(|asked| json!(asked)));
    let wanted = wanted.filter(|domain| domain["server"].as_str().is_some_and(|server| servers.contains(&server)));
    let lost = wanted.filter(|wanted| !new.iter().any(|domain| domain["name"] == wanted["name"]));
    wrong.extend(lost.map(|domain| format!("{} is not there", domain["name"])));
    none(&wrong)
}

/// The first field that was said and is another now.
fn unlike(path: &str, wanted: &Value, found: &Value) -> Option<String> {
    match wanted.as_object() {
        Some(fields) => fields.iter().find_map(|(field, wanted)| unlike(&format!("{path}.{field}"), wanted, &found[field])),
        None if wanted == found => None,
        None => Some(format!("{} is {found}, asked for was {wanted}", path.trim_start_matches('.'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(vcenters: &[&str], domains: &[Value], addresses: &str) -> Dump {
        let vcenters: Vec<Value> = vcenters.iter().map(|server| json!({"server": server})).collect();
        let vsphere = json!({"vcenters": vcenters, "failureDomains": domains, "apiServerInternalIPs": [addresses]});
        Dump::with(INFRASTRUCTURE, &[json!({"metadata": {"name": "cluster"}, "spec": {"platformSpec": {"vsphere": vsphere}}})])
    }

    fn domain(name: &str, server: &str, datastore: &str) -> Value {
        json!({"name": name, "region": "r", "zone": name, "server": server, "topology": {
            "datacenter": "dc", "computeCluster": "/dc/host/c", "networks": ["n"], "datastore": datastore}})
    }

    #[test]
    fn what_is_neither_a_vcenter_nor_a_failure_domain_stays() {
        let before = dump(&["a"], &[domain("fd-a", "a", "d")], "192.0.2.1");
        assert_eq!(rest(&before, &dump(&["b"], &[], "192.0.2.1")), Ok(()));
        assert!(rest(&before, &dump(&["b"], &[], "192.0.2.2")).unwrap_err().contains("192.0.2.2"));
        assert!(rest(&before, &Dump::default()).is_err());
    }

    #[test]
    fn failure_domains_are_as_they_were_or_as_they_were_asked_for() {
        let (source, target) = (domain("fd-a", "a", "d"), domain("fd-b", "b", "e"));
        let asked: Vec<FailureDomain> = vec![serde_json::from_value(target.clone()).unwrap()];
        let before = dump(&["a"], std::slice::from_ref(&source), "");
        let grown = |domains: &[Value]| super::domains(&before, &dump(&["a", "b"], domains, ""), &["a", "b"], &asked);
        let mut filled_in = target.clone();
        filled_in["topology"]["folder"] = json!("/dc/vm/lab");
        assert_eq!(grown(&[source.clone(), filled_in]), Ok(()));
        assert_eq!(
            grown(&[source.clone(), domain("fd-b", "b", "d")]),
            Err("\"fd-b\": topology.datastore is \"d\", asked for was \"e\"".to_owned())
        );
        assert_eq!(grown(&[domain("fd-a", "a", "e"), target.clone()]), Err("\"fd-a\": topology.datastore: \"d\" -> \"e\"".to_owned()));
        assert_eq!(grown(std::slice::from_ref(&source)), Err("\"fd-b\" is not there".to_owned()));
        assert_eq!(grown(&[source, target.clone(), domain("fd-c", "b", "e")]), Err("nobody asked for \"fd-c\"".to_owned()));
        let moved = super::domains(&before, &dump(&["b"], std::slice::from_ref(&target), ""), &["b"], &asked);
        assert_eq!(moved, Ok(()), "the source's is gone as it should be");
        let described = super::domains(&dump(&[], &[], ""), &dump(&["a", "b"], &[domain("x", "a", "d"), target], ""), &["a", "b"], &asked);
        assert_eq!(described, Ok(()), "the source was not described before");
    }
}
