//! Looks at every vCenter with as few requests as can be, whatever the number of virtual machines in it.

use std::collections::{BTreeMap, BTreeSet};

use tokio::task::JoinSet;
use vmi_crds::graph::StepName;
use vmi_crds::spec::FailureDomain;
use vmi_intent::cloud_config::{REGION_CATEGORY, ZONE_CATEGORY};
use vmi_intent::secret;
use vmi_kit::Stop;
use vmi_kit::kind::SECRET;
use vmi_site::source::Source;
use vmi_site::vcenter::{self, secret_data};
use vmi_steps::{Migration, Report, step};
use vsphere::{Client, Inventory, Ref, Want};

use super::privileges;
use crate::facts::{Carried, Cause, Lack, Place, Places, Reach, Trouble, Vcenter, Vcenters};

/// Older ones lack what the storage driver needs.
const OLDEST: [u32; 3] = [7, 0, 2];

/// Looks at every vCenter. What one refuses is written down at once; the others go on meanwhile, as tasks of their own.
pub async fn look(m: &Migration, report: &mut Report) -> Result<Vcenters, Stop> {
    let targets = m.targets().into_iter().map(str::to_owned);
    let servers: BTreeSet<String> = targets.chain(m.sources()).collect();
    let mut answers = JoinSet::new();
    for server in servers {
        let m = m.clone();
        answers.spawn(async move { (look_at(&m, &server).await, server) });
    }
    let mut found = BTreeMap::new();
    while let Some(answered) = answers.join_next().await {
        let (answer, server) = answered.map_err(Stop::again)?;
        if let Err(Stop::Refused(which, _)) = &answer {
            step::remember(m, report, StepName::PreflightPassed, which.clone()).await?;
        }
        let is_target = m.targets().contains(&server.as_str());
        let seen = answer.map_err(|stop| trouble(&server, is_target, &stop));
        found.insert(server, seen);
    }
    Ok(found)
}

async fn look_at(m: &Migration, server: &str) -> Result<Vcenter, Stop> {
    let is_target = m.targets().contains(&server);
    if is_target {
        usable(m, server)?;
    }
    let (client, login) = vcenter::client(m, server).await?;
    let seen = async {
        let about = client.about().await?;
        let clock = client.clock().await?;
        let mut vcenter = Vcenter {
            new_enough: about.at_least(OLDEST),
            full_name: about.full_name,
            instance_uuid: about.instance_uuid,
            ahead: clock.ahead,
            ..Vcenter::default()
        };
        if is_target {
            inside(m, server, &client, &mut vcenter).await?;
        } else {
            tagging(m, server, &client, &mut vcenter).await?;
        }
        Ok(vcenter)
    };
    let outcome: vsphere::Result<Vcenter> = seen.await;
    outcome.map_err(|error| login.stop("look at vCenter", &error))
}

/// A password with a line break would be refused, and a refusal brings the account nearer to being locked.
fn usable(m: &Migration, server: &str) -> Result<(), Stop> {
    let name = &m.spec().credentials_secret.name;
    let data = m.get(SECRET, &m.cx.namespace, name).map(|secret| secret_data(&secret)).unwrap_or_default();
    match secret::pair(&data, server) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(vmi_kit::failure("CRD-002", format!("Secret {name} has no pair for {server}"), "see CRD-002").into()),
        Err(refused) => Err(vmi_kit::failure("CRD-002", format!("Secret {name}: {refused}"), "see CRD-003").into()),
    }
}

fn trouble(server: &str, is_target: bool, stop: &Stop) -> Trouble {
    let (cause, text) = match stop {
        Stop::Refused(_, failure) => (Cause::Refused, format!("{}; {}", failure.message, failure.next)),
        Stop::Failed(failure) => {
            let cause = match failure.rule.as_str() {
                "CRD-002" => Cause::Credentials,
                "TLS-001" | "TLS-002" | "VCT-003" => Cause::Certificate,
                _ => Cause::Answer,
            };
            (cause, format!("{}; {}", failure.message, failure.next))
        }
        Stop::Again(why) => (Cause::Connection, format!("{why}; look at its address and port, at name resolution and firewalls")),
        Stop::Fenced(why) => (Cause::Connection, why.clone()),
    };
    let field = match cause {
        _ if !is_target => format!("source {server}"),
        Cause::Refused | Cause::Credentials => "spec.credentialsSecret.name".to_owned(),
        Cause::Certificate => "spec.trust".to_owned(),
        Cause::Connection | Cause::Answer => format!("spec.vcenters[{server}]"),
    };
    Trouble { cause, text: format!("{field}: {text}") }
}

/// What is in a target, and what the user may do there.
async fn inside(m: &Migration, server: &str, client: &Client, vcenter: &mut Vcenter) -> vsphere::Result<()> {
    let domains: Vec<&FailureDomain> = m.spec().failure_domains.iter().filter(|domain| domain.server == server).collect();
    let inventory = client.inventory(Want::Folders).await?;
    vcenter.places = places(&inventory, &domains);
    vcenter.places.templates = templates(client, &domains).await?;
    if domains.iter().filter_map(|domain| domain.topology.template.as_ref()).any(|path| !vcenter.places.templates.contains_key(path)) {
        let others = client.inventory(Want::Templates).await?.templates;
        vcenter.places.other_templates = others.into_iter().map(|template| template.node.path).collect();
    }
    let wanted = privileges::wanted(client.root_folder().await?, &inventory, &domains, &m.infrastructure_id().unwrap_or_default());
    vcenter.lacks = lacks(client, &inventory, &wanted).await?;
    vcenter.tags = tags(client, &inventory, &domains).await?;
    Ok(())
}

/// Whether the user may make tags in a source, and put them on what gets one.
async fn tagging(m: &Migration, server: &str, client: &Client, vcenter: &mut Vcenter) -> vsphere::Result<()> {
    let inventory = client.inventory(Want::Infrastructure).await?;
    let wanted = privileges::of_a_source(client.root_folder().await?, &inventory, &domains_of_source(m, server));
    vcenter.lacks = lacks(client, &inventory, &wanted).await?;
    Ok(())
}

/// The failure domains of a source, as Infrastructure has them or will have them.
fn domains_of_source(m: &Migration, server: &str) -> Vec<FailureDomain> {
    let Some(infrastructure) = m.infrastructure() else { return Vec::new() };
    let spec = &infrastructure.data["spec"];
    let mut listed = spec["platformSpec"]["vsphere"]["failureDomains"].as_array().cloned().unwrap_or_default();
    // What no machine tells is told by other checks.
    listed.extend(Source::lacking(m, spec).map(|source| source.failure_domains).unwrap_or_default());
    let parsed = listed.into_iter().filter_map(|domain| serde_json::from_value::<FailureDomain>(domain).ok());
    parsed.filter(|domain| domain.server == server).collect()
}

async fn lacks(client: &Client, inventory: &Inventory, wanted: &[(Ref, Vec<&str>)]) -> vsphere::Result<Vec<Lack>> {
    let path = |object: &Ref| inventory.by_reference(object).map_or_else(|| object.to_string(), |node| node.path.clone());
    let missing = client.missing_privileges(wanted).await?;
    Ok(missing.into_iter().map(|lack| Lack { path: path(&lack.object), privileges: lack.privileges }).collect())
}

fn places(inventory: &Inventory, domains: &[&FailureDomain]) -> Places {
    fn all<T: AsRef<vsphere::Node>>(things: &[T]) -> Vec<Place> {
        things.iter().map(|thing| Place { name: thing.as_ref().name.clone(), path: thing.as_ref().path.clone() }).collect()
    }
    let path = |object: &Ref| inventory.by_reference(object).map(|node| node.path.clone()).unwrap_or_default();
    let seen = |list: Vec<vsphere::Seen>| {
        let name = |host: &Ref| inventory.by_reference(host).map_or_else(|| host.to_string(), |node| node.name.clone());
        list.iter().map(|one| (path(&one.object), one.not_by.iter().map(name).collect())).collect()
    };
    let used =
        inventory.clusters.iter().filter(|cluster| domains.iter().any(|domain| domain.topology.compute_cluster == cluster.node.path));
    let reach = used.map(|cluster| {
        let found = inventory.reach(&cluster.node.reference);
        (cluster.node.path.clone(), Reach { hosts: found.hosts.len(), networks: seen(found.networks), datastores: seen(found.datastores) })
    });
    Places {
        datacenters: all(&inventory.datacenters),
        clusters: all(&inventory.clusters),
        datastores: all(&inventory.datastores),
        networks: all(&inventory.networks),
        pools: all(&inventory.resource_pools),
        reach: reach.collect(),
        templates: BTreeMap::new(),
        other_templates: Vec::new(),
    }
}

/// Each by its path: to find templates in the inventory a vCenter has to read every virtual machine, so that is only done to say what
/// is there instead of one that is not.
async fn templates(client: &Client, domains: &[&FailureDomain]) -> vsphere::Result<BTreeMap<String, Option<String>>> {
    let paths: BTreeSet<&String> = domains.iter().filter_map(|domain| domain.topology.template.as_ref()).collect();
    let mut found = BTreeMap::new();
    for path in paths {
        if let Some(vm) = client.find_by_path(path).await? {
            found.insert(path.clone(), vm);
        }
    }
    let machines: Vec<Ref> = found.values().filter(|object| object.kind == vsphere::Kind::VirtualMachine).cloned().collect();
    let details = client.vm_details(&machines).await?;
    let hardware =
        |vm: &Ref| details.iter().find(|one| one.vm == *vm).map(|one| one.hardware.clone()).filter(|version| !version.is_empty());
    Ok(found.into_iter().map(|(path, vm)| (path, hardware(&vm))).collect())
}

/// Tags of regions and zones on what is to get one. Categories are read one by one, so only where some tag is there at all.
async fn tags(client: &Client, inventory: &Inventory, domains: &[&FailureDomain]) -> vsphere::Result<Vec<Carried>> {
    let mut objects: BTreeMap<Ref, String> = BTreeMap::new();
    for topology in domains.iter().map(|domain| &domain.topology) {
        let datacenter = inventory
            .datacenters
            .iter()
            .map(|one| &one.node)
            .find(|node| node.name == topology.datacenter || node.path == topology.datacenter);
        let cluster = inventory.by_path(&topology.compute_cluster);
        objects.extend(datacenter.into_iter().chain(cluster).map(|node| (node.reference.clone(), node.path.clone())));
    }
    let references: Vec<Ref> = objects.keys().cloned().collect();
    let service = client.tags();
    let attached = service.attached(&references).await?;
    if attached.iter().all(|(_, ids)| ids.is_empty()) {
        return Ok(Vec::new());
    }
    let mut carried = Vec::new();
    let categories = service.categories().await?;
    for category in categories.iter().filter(|category| [REGION_CATEGORY, ZONE_CATEGORY].contains(&category.name.as_str())) {
        for tag in service.of(category).await? {
            let bearers = attached.iter().filter(|(_, ids)| ids.contains(&tag.id)).filter_map(|(object, _)| objects.get(object));
            carried.extend(bearers.map(|path| Carried { path: path.clone(), category: category.name.clone(), tag: tag.name.clone() }));
        }
    }
    Ok(carried)
}
