//! The storage driver's own configuration, which its operator writes from everything else. It holds passwords: only names are told.

use super::{Expected, none, object};
use crate::kubernetes::SECRET;
use crate::migration::{Error, Site};

const PLACE: (&str, &str) = ("openshift-cluster-csi-drivers", "vsphere-csi-config-secret");
/// With a second failure domain volumes are bound to zones, and stay so when one is left.
const CATEGORIES: &str = "topology-categories = openshift-zone,openshift-region";

/// Whether it has the expected vCenters and no other, and the categories of zones.
pub async fn judged(site: &Site, expected: &Expected<'_>) -> Result<Result<(), String>, Error> {
    use base64::Engine as _;
    let secret = object(site, SECRET, PLACE.0, PLACE.1).await?;
    let encoded = secret.data["data"]["cloud.conf"].as_str().unwrap_or_default();
    let text = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
    let (there, gone) = (servers(&expected.there), servers(&expected.gone));
    Ok(none(&wrong(&String::from_utf8_lossy(&text), &there, &gone)))
}

fn servers<'a>(vcenters: &[&'a crate::vcenter::Vcenter]) -> Vec<&'a str> {
    vcenters.iter().map(|vcenter| vcenter.server.as_str()).collect()
}

fn wrong(text: &str, there: &[&str], gone: &[&str]) -> Vec<String> {
    let has = |wanted: &str| text.lines().any(|line| line.trim() == wanted);
    let missing = there.iter().filter(|server| !has(&format!("[VirtualCenter \"{server}\"]")));
    let mut wrong: Vec<String> = missing.map(|server| format!("{} has no section for {server}", PLACE.1)).collect();
    wrong.extend(gone.iter().filter(|server| text.contains(*server)).map(|server| format!("{} still names {server}", PLACE.1)));
    if !has(CATEGORIES) {
        wrong.push(format!("{} names no categories of zones", PLACE.1));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_knows_the_expected_vcenters_no_other_and_its_zones() {
        let text = |rest: &str| format!("[Global]\ncluster-id = \"x\"\n\n[VirtualCenter \"b.example\"]\npassword = \"hush\"\n{rest}");
        let labels = "\n[Labels]\ntopology-categories = openshift-zone,openshift-region\n";
        let judged = |rest: &str| wrong(&text(rest), &["b.example"], &["a.example"]);
        assert!(judged(labels).is_empty());
        assert_eq!(judged(""), ["vsphere-csi-config-secret names no categories of zones"]);
        assert_eq!(judged(&format!("[VirtualCenter \"a.example\"]\n{labels}")), ["vsphere-csi-config-secret still names a.example"]);
        assert_eq!(wrong("", &["b.example"], &[]).len(), 2);
        assert!(!wrong(&text(""), &["c.example"], &["b.example"]).join("").contains("hush"));
    }
}
