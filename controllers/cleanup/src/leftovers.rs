//! What is left on purpose, and the commands that remove it: in vCenter nobody can tell whether others use it, and in the cluster it
//! may still be wanted.

use serde_json::Value;

/// The ConfigMap's name.
pub fn map_name(vmi: &str) -> String {
    format!("vmi-{vmi}-leftovers")
}

/// The key in it.
pub const FILE: &str = "leftovers.txt";

/// What the list is about.
pub struct About<'a> {
    /// The vmi's namespace and name.
    pub vmi: (&'a str, &'a str),
    /// What the installer called the cluster in vSphere.
    pub infra_id: &'a str,
    /// The source's vCenters, as Infrastructure listed them.
    pub vcenters: &'a [Value],
    /// The source's failure domains, as Infrastructure listed them.
    pub domains: &'a [Value],
    /// Whether the CSI driver was told which categories name zones.
    pub categories_named: bool,
}

/// The list, for people.
pub fn text(about: &About<'_>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for vcenter in about.vcenters {
        let server = vcenter["server"].as_str().unwrap_or_default();
        lines.push(format!("# in vCenter {server}; with GOVC_URL, GOVC_USERNAME and GOVC_PASSWORD of it"));
        lines.extend(in_vcenter(about, server));
    }
    let (namespace, name) = about.vmi;
    lines.push("# in the cluster".to_owned());
    lines.push(format!(
        "# metadata of both vCenters, for `openshift-install destroy cluster`: keep it until the whole cluster is destroyed
oc -n {namespace} delete secret {}
# what the migration saved before it changed anything
oc -n {namespace} delete secret {}",
        crate::metadata::secret_name(name),
        vmi_kit::saved::secret_name(name),
    ));
    if about.categories_named {
        lines.push(format!(
            "# zones of volumes, which a single failure domain does not imply: once no PersistentVolume has a node affinity for them
oc patch clustercsidriver {} --type json -p '[{{\"op\": \"remove\", \"path\": \"/spec/driverConfig/vSphere/topologyCategories\"}}]'",
            crate::topology::DRIVER
        ));
    }
    lines.push(
        "# ConfigMap kube-system/cluster-config-v1 keeps what was asked for at installation; nothing reads a vCenter from it".to_owned(),
    );
    lines.join("\n") + "\n"
}

fn in_vcenter(about: &About<'_>, server: &str) -> Vec<String> {
    let id = about.infra_id;
    let mut lines = vec!["# volumes that were left there, if any: look before the rest goes\ngovc volume.ls -l".to_owned()];
    let mut folders: Vec<String> = Vec::new();
    let domains = about.domains.iter().filter(|domain| domain["server"] == server);
    for domain in domains.clone() {
        let topology = &domain["topology"];
        let datacenter = topology["datacenter"].as_str().unwrap_or_default();
        let folder = topology["folder"].as_str().map_or_else(|| format!("/{datacenter}/vm/{id}"), str::to_owned);
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    lines.extend(folders.iter().map(|folder| format!("# the folder, with what is still in it\ngovc object.destroy {folder}")));
    lines.push(format!("govc storage.policy.rm openshift-storage-policy-{id}"));
    lines.push(format!("govc tags.category.rm -f openshift-{id}"));
    for domain in domains {
        let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (region, zone) = (part(&domain["region"]), part(&domain["zone"]));
        let (datacenter, cluster) = (part(&domain["topology"]["datacenter"]), part(&domain["topology"]["computeCluster"]));
        lines.push(format!(
            "# region and zone, unless another cluster goes by them
govc tags.detach -c openshift-region {region} /{datacenter}
govc tags.detach -c openshift-zone {zone} {cluster}"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_left_comes_with_the_command_that_removes_it() {
        let domain = json!({"name": "fd-a", "server": "a", "region": "r", "zone": "z",
            "topology": {"datacenter": "dc", "computeCluster": "/dc/host/c"}});
        let vcenters = [json!({"server": "a"})];
        let mut about = About { vmi: ("ns", "m"), infra_id: "prod-x", vcenters: &vcenters, domains: &[domain], categories_named: true };
        let told = text(&about);
        for command in [
            "govc object.destroy /dc/vm/prod-x\n",
            "govc storage.policy.rm openshift-storage-policy-prod-x\n",
            "govc tags.category.rm -f openshift-prod-x\n",
            "govc tags.detach -c openshift-region r /dc\n",
            "govc tags.detach -c openshift-zone z /dc/host/c\n",
            "oc -n ns delete secret vmi-m-metadata\n",
            "oc -n ns delete secret vmi-m-saved\n",
            "oc patch clustercsidriver csi.vsphere.vmware.com --type json -p '[{\"op\": \"remove\", ",
        ] {
            assert!(told.contains(command), "{command:?} is not in:\n{told}");
        }
        about.categories_named = false;
        assert!(!text(&about).contains("clustercsidriver"));
    }
}
