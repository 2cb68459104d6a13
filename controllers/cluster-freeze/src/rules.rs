//! The rules of a CRD that stand against another vCenter, found by what they say and not by where they stand.

use kube::api::DynamicObject;
use serde_json::{Map, Value, json};
use vmi_kit::kind::CRD;

use crate::held::Held;

/// The two CRDs with the schema of Infrastructure, and where in a version's schema its spec begins.
pub const LOCKED: &[(&str, &str)] = &[
    ("infrastructures.config.openshift.io", "/properties/spec"),
    ("controllerconfigs.machineconfiguration.openshift.io", "/properties/spec/properties/infra/properties/spec"),
];

/// What the rule says that lets no vCenter come or go.
const FIXED_COUNT: &str = "vcenters cannot be added or removed once set";
const FIXED_COUNT_TEXT: &str = "size(self) != size(oldSelf)";
/// What the rules say that let only one vCenter come where there was no list.
const ONE_AT_FIRST: &str = "vcenters can have at most 1 item when configured post-install";
/// How an apiserver begins to say that a list is too long.
const TOO_LONG: &str = "must have at most";

/// What the writes to come need of a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// How many vCenters will be listed.
    pub vcenters: usize,
    /// What is not in Infrastructure yet.
    pub missing: Missing,
}

/// What is not in Infrastructure yet, and comes with several vCenters at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Not even `platformSpec.vsphere`.
    Vsphere,
    /// The list of vCenters.
    Vcenters,
    /// The list is there.
    Nothing,
}

impl Need {
    /// What adding these servers to the spec of Infrastructure needs.
    pub fn of(infrastructure: &Value, servers: &[&str]) -> Self {
        let vsphere = infrastructure.pointer("/platformSpec/vsphere").filter(|vsphere| !vsphere.is_null());
        let listed = vsphere.and_then(|vsphere| vsphere.get("vcenters")).and_then(Value::as_array);
        let missing = match (vsphere, listed) {
            (None, _) => Missing::Vsphere,
            (Some(_), None) => Missing::Vcenters,
            (Some(_), Some(_)) => Missing::Nothing,
        };
        let listed: Vec<&Value> = listed.into_iter().flatten().collect();
        let new = servers.iter().filter(|server| !listed.iter().any(|vcenter| vcenter["server"] == **server)).count();
        // Where none is listed the source will be, too.
        Self { vcenters: listed.len().max(1) + new, missing }
    }
}

/// Everything in the CRD that stands against it.
pub fn against(crd: &DynamicObject, spec: &str, need: Need) -> Vec<Held> {
    let versions = crd.data["spec"]["versions"].as_array().map(Vec::len).unwrap_or_default();
    (0..versions).flat_map(|version| in_version(crd, &format!("/spec/versions/{version}/schema/openAPIV3Schema{spec}"), need)).collect()
}

fn in_version(crd: &DynamicObject, spec: &str, need: Need) -> Vec<Held> {
    let platform = format!("{spec}/properties/platformSpec");
    let vsphere = format!("{platform}/properties/vsphere");
    let vcenters = format!("{vsphere}/properties/vcenters");
    let at_first = |rule: &Value| rule["message"] == ONE_AT_FIRST;
    let fixed = |rule: &Value| rule["message"] == FIXED_COUNT || rule["rule"].as_str().is_some_and(|text| text.contains(FIXED_COUNT_TEXT));
    let mut all = match need.missing {
        Missing::Vsphere => rules(crd, &platform, at_first),
        Missing::Vcenters => rules(crd, &vsphere, at_first),
        Missing::Nothing => Vec::new(),
    };
    all.extend(rules(crd, &vcenters, fixed));
    let most = format!("{vcenters}/maxItems");
    if crd.data.pointer(&most).and_then(Value::as_u64).is_some_and(|most| most < need.vcenters as u64) {
        all.extend(Held::field(CRD, crd, &most, Some(json!(need.vcenters))));
    }
    all
}

fn rules(crd: &DynamicObject, schema: &str, is: impl Fn(&Value) -> bool) -> Vec<Held> {
    let list = format!("{schema}/x-kubernetes-validations");
    let rules = crd.data.pointer(&list).and_then(Value::as_array);
    let name = |rule: &Value| {
        let key = if rule.get("message").is_some() { "message" } else { "rule" };
        Map::from_iter([(key.to_owned(), rule[key].clone())])
    };
    rules.into_iter().flatten().filter(|rule| is(rule)).filter_map(|rule| Held::entry(CRD, crd, &list, name(rule), None)).collect()
}

/// Whether an apiserver refuses for a rule that is taken out here: right after that it may still know the old rules.
pub fn is_refusal_by_these(message: &str) -> bool {
    [FIXED_COUNT, ONE_AT_FIRST, TOO_LONG].iter().any(|text| message.contains(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

    use super::*;

    const NONE: Missing = Missing::Nothing;

    fn crd(spec: &str, platform: &Value) -> DynamicObject {
        let mut schema = json!({"properties": {"platformSpec": platform}});
        for name in spec.split('/').rev().filter(|name| !name.is_empty()) {
            schema = json!({name: schema});
        }
        let versions = json!([{"name": "v1", "schema": {"openAPIV3Schema": schema}}]);
        serde_json::from_value(json!({"metadata": {"name": "crd"}, "spec": {"versions": versions}})).unwrap()
    }

    /// The rules of 4.18 to 4.22.
    fn legacy(most: u64) -> Value {
        let rule = |message: &str, rule: &str| json!({"message": message, "rule": rule});
        let kept = [rule("apiServerInternalIPs list is required once set", "x"), rule("ingressIPs list is required once set", "y")];
        json!({
            "x-kubernetes-validations": [rule(ONE_AT_FIRST, "!has(oldSelf.vsphere) && has(self.vsphere) ? size(self.vsphere.vcenters) < 2 : true")],
            "properties": {"vsphere": {
                "x-kubernetes-validations": [kept[0], kept[1], rule(ONE_AT_FIRST, "!has(oldSelf.vcenters) && has(self.vcenters) ? size(self.vcenters) < 2 : true")],
                "properties": {"vcenters": {
                    "maxItems": most,
                    "x-kubernetes-validations": [rule(FIXED_COUNT, "size(self) != size(oldSelf) ? size(oldSelf) == 0 && size(self) < 2 : true")],
                }},
            }},
        })
    }

    fn words(platform: &Value, need: Need) -> Vec<String> {
        LOCKED.iter().flat_map(|(_, spec)| against(&crd(spec, platform), spec, need)).map(|held| held.taking()).collect()
    }

    #[test]
    fn only_what_stands_against_the_write_or_a_later_removal_is_taken_out_of_both() {
        let fixed = format!("CustomResourceDefinition crd: {FIXED_COUNT:?} taken out");
        let first = format!("CustomResourceDefinition crd: {ONE_AT_FIRST:?} taken out");
        assert_eq!(words(&legacy(3), Need { vcenters: 2, missing: NONE }), [fixed.clone(), fixed.clone()]);
        for missing in [Missing::Vsphere, Missing::Vcenters] {
            let both = [first.clone(), fixed.clone(), first.clone(), fixed.clone()];
            assert_eq!(words(&legacy(3), Need { vcenters: 2, missing }), both, "{missing:?}");
        }
    }

    #[test]
    fn a_list_that_may_not_be_long_enough_may_be_longer_for_the_time() {
        let found = words(&legacy(1), Need { vcenters: 2, missing: NONE });
        assert!(found.iter().any(|words| words.ends_with("vcenters.maxItems from 1 to 2")), "{found:?}");
    }

    #[test]
    fn a_rule_is_known_by_its_text_too_and_newer_rules_stay() {
        let mut renamed = legacy(3);
        renamed["properties"]["vsphere"]["properties"]["vcenters"]["x-kubernetes-validations"][0]["message"] = json!("something else");
        assert_eq!(words(&renamed, Need { vcenters: 2, missing: NONE }).len(), 2);
        let mut newer = legacy(3);
        newer["properties"]["vsphere"]["properties"]["vcenters"]["x-kubernetes-validations"] = json!([
            {"message": "Cannot add and remove vCenters at the same time", "rule": "size(self) >= size(oldSelf) ? oldSelf.all(x, true) : true"},
            {"message": "vcenters must have unique server values", "rule": "self.all(x, self.exists_one(y, y.server == x.server))"},
        ]);
        assert_eq!(words(&newer, Need { vcenters: 2, missing: NONE }), [""; 0]);
    }

    #[test]
    fn what_is_needed_follows_from_infrastructure() {
        let need = |spec: Value| Need::of(&spec, &["b"]);
        let of = |vcenters, missing| Need { vcenters, missing };
        assert_eq!(need(json!({"platformSpec": {"type": "VSphere"}})), of(2, Missing::Vsphere));
        assert_eq!(need(json!({"platformSpec": {"vsphere": {}}})), of(2, Missing::Vcenters));
        assert_eq!(need(json!({"platformSpec": {"vsphere": {"vcenters": [{"server": "a"}]}}})), of(2, NONE));
        assert_eq!(need(json!({"platformSpec": {"vsphere": {"vcenters": [{"server": "a"}, {"server": "c"}]}}})), of(3, NONE));
        assert_eq!(need(json!({"platformSpec": {"vsphere": {"vcenters": [{"server": "a"}, {"server": "b"}]}}})), of(2, NONE));
    }
}
