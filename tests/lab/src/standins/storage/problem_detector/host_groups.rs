//! CheckHostGroups: zones that are groups of hosts have hosts, and these carry the zone's tag. Groups of virtual machines and the
//! rules that bind both are not looked at.

use serde_json::Value;
use vsphere::{HostGroup, Ref};

use super::super::View;
use super::vcenter::Vcenter;

pub async fn check(view: &View, vcenters: &[Vcenter]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for domain in view.vsphere("failureDomains").filter(|domain| domain["zoneAffinity"]["type"] == "HostGroup") {
        let server = domain["server"].as_str().unwrap_or_default();
        let vcenter = Vcenter::of(vcenters, server).ok_or_else(|| format!("vCenter {server} not defined"))?;
        let (groups, tagged) = looked(vcenter, domain).await?;
        wrong.extend(judged(domain, &groups, &tagged));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(";")) }
}

/// The groups of the failure domain's cluster, and everything that carries the tag of its zone.
async fn looked(vcenter: &Vcenter, domain: &Value) -> Result<(Vec<HostGroup>, Vec<Ref>), String> {
    let (server, tags) = (&vcenter.server, vcenter.session.tags());
    let topology = |key: &str| domain["topology"][key].as_str().unwrap_or_default();
    // Like the real one it does not say why.
    let category = tags.category("openshift-zone").await.ok().flatten();
    let category = category.ok_or_else(|| format!("unable to get zone tag category from vCenter {server}"))?;
    let (datacenter, path) = (topology("datacenter"), topology("computeCluster"));
    vcenter.datacenter(datacenter).map_err(|why| format!("unable to get datacenter: {datacenter} in {server}: {why}"))?;
    let cluster = vcenter.inventory.by_path(path);
    let cluster = cluster.ok_or_else(|| format!("unable to get compute cluster: {path} in {server}: cluster '{path}' not found"))?;
    let groups = vcenter.session.host_groups(&cluster.reference).await;
    let groups = groups.map_err(|error| format!("unable to get compute cluster configuration: {path} in {server}: {error}"))?;
    let untold = |error: vsphere::Error| {
        let group = domain["zoneAffinity"]["hostGroup"]["hostGroup"].as_str().unwrap_or_default();
        format!("unable to get tags for hosts in host group {group} {error}")
    };
    let all = tags.of(&category).await.map_err(untold)?;
    let own: Vec<_> = all.into_iter().filter(|tag| domain["zone"] == tag.name.as_str()).collect();
    let tagged = tags.objects(&own).await.map_err(untold)?.concat();
    Ok((groups, tagged))
}

fn judged(domain: &Value, groups: &[HostGroup], tagged: &[Ref]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, zone, group) = (text(&domain["name"]), text(&domain["zone"]), text(&domain["zoneAffinity"]["hostGroup"]["hostGroup"]));
    match groups.iter().find(|known| known.name == group) {
        None => vec![format!("{name} refers to host group {group} which is not found")],
        Some(found) if found.hosts.is_empty() => vec![format!("{name} does not have any hosts in host group {group}")],
        Some(found) => {
            let bare = found.hosts.iter().filter(|host| !tagged.contains(host));
            bare.map(|host| format!("host {} in host group {group} does not have an openshift-zone tag with value {zone}", host.id))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_zone_of_hosts_needs_its_group_hosts_in_it_and_the_tag_on_each() {
        let domain = json!({"name": "fd", "zone": "z1", "zoneAffinity": {"type": "HostGroup", "hostGroup": {"hostGroup": "rack-1"}}});
        let hosts = ["host-1", "host-2"].map(|id| Ref::new("HostSystem", id)).to_vec();
        let group = |name: &str, hosts: &[Ref]| [HostGroup { name: name.to_owned(), hosts: hosts.to_vec() }];
        assert_eq!(judged(&domain, &group("rack-2", &hosts), &hosts), ["fd refers to host group rack-1 which is not found"]);
        assert_eq!(judged(&domain, &group("rack-1", &[]), &hosts), ["fd does not have any hosts in host group rack-1"]);
        let bare = "host host-2 in host group rack-1 does not have an openshift-zone tag with value z1";
        assert_eq!(judged(&domain, &group("rack-1", &hosts), &hosts[..1]), [bare]);
        assert!(judged(&domain, &group("rack-1", &hosts), &hosts).is_empty());
    }
}
