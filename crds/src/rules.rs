//! The rules between fields, in CEL. An apiserver refuses what breaks one, and names the field and the reason.

use serde_json::{Value, json};

/// Fields that stay as they are once the migration has started.
pub const FIXED_ONCE_STARTED: [&str; 8] =
    ["vcenters", "failureDomains", "nodeNetworking", "source", "machineSets", "controlPlane", "sourceRetirement", "freeze"];

const STARTED: &str = "has(self.status) && has(self.status.startedAt)";
const ROLLING_BACK: &str = "has(self.status) && has(self.status.rollingBackAt)";
const ONE_WAY: &str = "has(self.status) && has(self.status.oneWayAt)";
const STATE: &str = ".spec.state";

fn rule(field: &str, rule: &str, message: &str) -> Value {
    json!({"fieldPath": field, "rule": rule, "message": message})
}

fn unplaced(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

/// Not `self.?field == oldSelf.?field`: an apiserver does not know how large an optional value can be, and expects the worst.
fn same(field: &str) -> String {
    format!("(has(self.{field}) ? has(oldSelf.{field}) && self.{field} == oldSelf.{field} : !has(oldSelf.{field}))")
}

fn condition(name: &str) -> String {
    format!("has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == '{name}' && c.status == 'True')")
}

/// Between spec, status and what both were before.
pub fn of_the_vmi() -> Vec<Value> {
    let mut rules = transitions();
    rules.extend(FIXED_ONCE_STARTED.map(|field| {
        let same = format!("!({STARTED}) || {}", same(&format!("spec.{field}")));
        rule(&format!(".spec.{field}"), &same, "cannot change once the migration has started")
    }));
    let volumes = format!("!({STARTED}) || self.spec.volumes == oldSelf.spec.volumes || self.spec.volumes == 'Ignore'");
    rules.push(rule(".spec.volumes", &volumes, "can only change to Ignore once the migration has started"));
    // Objects of the migration are called after it, with up to 50 letters of their own.
    rules.push(unplaced("size(self.metadata.name) <= 200", "metadata.name can have up to 200 characters"));
    rules
}

/// Which state leads to which.
fn transitions() -> Vec<Value> {
    let leads = |from: &str, to: &str| format!("oldSelf.spec.state != '{from}' || self.spec.state in [{to}]");
    let comes = |to: &str, only: &str| format!("self.spec.state != '{to}' || oldSelf.spec.state == '{to}' || {only}");
    let over = |name: &str| format!("self.spec.state == oldSelf.spec.state || !({})", condition(name));
    let held = condition("Held");
    let mut first = rule(
        STATE,
        "oldSelf.hasValue() || self.spec.state in ['Pending', 'Running']",
        "a migration begins as Pending or Running; there is nothing yet to pause, roll back or abandon",
    );
    first["optionalOldSelf"] = json!(true);
    vec![
        first,
        rule(STATE, &leads("Pending", "'Pending', 'Running', 'Abandoned'"), "Pending leads to Running only"),
        rule(STATE, &comes("Pending", "false"), "nothing leads back to Pending: use Paused to stop"),
        rule(STATE, &leads("RollingBack", "'RollingBack', 'Paused', 'Abandoned'"), "a rollback can be paused, but not turned round"),
        rule(
            STATE,
            &format!("!({ROLLING_BACK}) || {}", leads("Paused", "'Paused', 'RollingBack', 'Abandoned'")),
            "a paused rollback leads to RollingBack or Abandoned only",
        ),
        rule(
            STATE,
            &comes("RollingBack", &format!("!({ONE_WAY})")),
            "there is no way back since status.oneWayAt: let it finish, or pause it and set Abandoned",
        ),
        rule(
            STATE,
            &comes("Abandoned", &format!("oldSelf.spec.state == 'Paused' || ({held})")),
            "only a migration that is Paused or Held can be abandoned: set Paused first",
        ),
        rule(STATE, &leads("Abandoned", "'Abandoned'"), "an abandoned migration stays so: create another one"),
        rule(STATE, &over("Completed"), "the migration is completed: create another one"),
        rule(STATE, &over("RolledBack"), "the migration is rolled back: create another one"),
    ]
}

/// Between fields of the spec.
pub fn of_the_spec() -> Vec<Value> {
    let listed = "self.failureDomains.exists(d, d.name == n)";
    vec![
        rule(
            ".failureDomains",
            "self.failureDomains.all(d, self.vcenters.exists(v, v.server == d.server))",
            "the server of every failure domain must be among spec.vcenters, spelled the same",
        ),
        rule(
            ".failureDomains",
            "self.failureDomains.all(d, self.failureDomains.exists_one(e, e.region == d.region && e.zone == d.zone))",
            "no two failure domains may have the same region and zone",
        ),
        rule(
            ".machineSets",
            &format!("!has(self.machineSets) || self.machineSets.all(s, !has(s.failureDomains) || s.failureDomains.all(n, {listed}))"),
            "every failure domain of a machine set must be the name of one in spec.failureDomains",
        ),
        rule(
            ".controlPlane.failureDomains",
            &format!("!has(self.controlPlane) || self.controlPlane.failureDomains.all(n, {listed})"),
            "every failure domain of the control plane must be the name of one in spec.failureDomains",
        ),
        rule(
            ".source.servers",
            "!has(self.source) || self.source.servers.all(s, !self.vcenters.exists(v, v.server == s))",
            "a source cannot be among spec.vcenters, which are the targets",
        ),
        rule(
            ".source.servers",
            "!has(self.source) || size(self.source.servers) + size(self.vcenters) <= 3",
            "a cluster can have at most 3 vCenters, sources and targets together",
        ),
    ]
}

/// As Infrastructure has them.
pub fn of_a_failure_domain() -> Vec<Value> {
    let zone = |kind: &str| format!("!has(self.zoneAffinity) || self.zoneAffinity.type != '{kind}'");
    let region = |kind: &str| format!("has(self.regionAffinity) && self.regionAffinity.type == '{kind}'");
    vec![
        rule(
            ".regionAffinity",
            &format!("{} || ({})", zone("HostGroup"), region("ComputeCluster")),
            "must be ComputeCluster when the type of zoneAffinity is HostGroup",
        ),
        rule(
            ".regionAffinity",
            &format!("{} || ({})", zone("ComputeCluster"), region("Datacenter")),
            "must be Datacenter when the type of zoneAffinity is ComputeCluster",
        ),
    ]
}

/// As Infrastructure has them.
pub fn of_a_zone_affinity() -> Vec<Value> {
    vec![rule(
        ".hostGroup",
        "(self.type == 'HostGroup') == has(self.hostGroup)",
        "is required when the type is HostGroup, and forbidden otherwise",
    )]
}

/// A deadline that ends before the quiet period could never be met.
pub fn of_health() -> Vec<Value> {
    vec![
        rule(".deadline", "duration(self.quietPeriod) < duration(self.deadline)", "must be longer than quietPeriod"),
        rule(".deadline", "duration(self.deadline) <= duration('24h')", "can be up to 24h"),
    ]
}

/// What a status never loses.
pub fn of_the_status() -> Vec<Value> {
    let written_once = ["startedAt", "oneWayAt", "rollingBackAt"].map(|field| {
        let kept = format!("!has(oldSelf.{field}) || {}", same(field));
        rule(&format!(".{field}"), &kept, "is written once and stays")
    });
    let pinned = ["source", "baseline"].map(|field| {
        let kept = format!("!has(oldSelf.startedAt) || !has(oldSelf.{field}) || {}", same(field));
        rule(&format!(".{field}"), &kept, "stays as it was when the migration started")
    });
    written_once.into_iter().chain(pinned).collect()
}
