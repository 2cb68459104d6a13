//! What of an earlier migration's list still holds.

/// How the block of a vCenter begins; its server follows, and `;`.
pub const IN_VCENTER: &str = "# in vCenter ";
/// How the block of the cluster begins.
pub const IN_CLUSTER: &str = "# in the cluster";
/// How what is said of a volume begins; its commands follow.
pub const CLAIM: &str = "# claim ";
/// Stands between the list of a migration and that of the one before.
const EARLIER: &str = "# from an earlier migration";

/// The list, and after it what an earlier one says that still holds, now that the cluster is on these servers.
pub fn followed_by(list: &str, earlier: Option<&str>, servers: &[&str]) -> String {
    let lines: Vec<&str> = earlier.unwrap_or_default().lines().filter(|line| !line.is_empty()).collect();
    let left = lines.split(|line| *line == EARLIER).filter_map(|lines| still_left(lines, servers));
    std::iter::once(list.to_owned()).chain(left).collect::<Vec<_>>().join(&format!("\n{EARLIER}\n"))
}

/// What is left of the list of one migration; none where the cluster is back on all it was about.
fn still_left(lines: &[&str], servers: &[&str]) -> Option<String> {
    let blocks = parts(lines, |line| line.starts_with(IN_VCENTER) || line == IN_CLUSTER);
    let server = |block: &[&str]| Some(block.first()?.strip_prefix(IN_VCENTER)?.split_once(';')?.0.to_owned());
    let back = |block: &&[&str]| server(block).is_some_and(|server| servers.contains(&server.as_str()));
    let any = blocks.iter().any(&back);
    if any && !blocks.iter().any(|block| server(block).is_some() && !back(block)) {
        return None;
    }
    let mut left: Vec<&str> = Vec::new();
    for block in blocks.into_iter().filter(|block| !back(block)) {
        // A claim does not say on which of the vCenters its data are. Those that are not in use again are listed anew.
        let told = parts(block, |line| line.starts_with('#'));
        left.extend(told.into_iter().filter(|part| !(any && part.first().is_some_and(|line| line.starts_with(CLAIM)))).flatten());
    }
    (!left.is_empty()).then(|| left.join("\n") + "\n")
}

/// The lines in parts, each of which begins with such a line.
fn parts<'a, 'b>(lines: &'a [&'b str], begins: impl Fn(&str) -> bool) -> Vec<&'a [&'b str]> {
    let mut starts: Vec<usize> = (1..lines.len()).filter(|at| begins(lines[*at])).collect();
    starts.insert(0, 0);
    starts.push(lines.len());
    starts.windows(2).map(|pair| &lines[pair[0]..pair[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "\
# in vCenter old.example.com; with GOVC_URL
govc object.destroy /dc/vm/old
# in vCenter b.example.com; with GOVC_URL
govc object.destroy /dc/vm/b
# in the cluster
# claim shop/orders, whose data are on the source
oc delete pv pv-1
# metadata of both vCenters
oc -n ns delete secret vmi-m-metadata
";

    #[test]
    fn of_an_earlier_list_only_what_is_about_a_vcenter_in_use_again_is_dropped() {
        assert_eq!(followed_by("now\n", None, &["a"]), "now\n");
        assert_eq!(followed_by("now\n", Some(OLD), &["a"]), format!("now\n\n{EARLIER}\n{OLD}"));
        let apart = followed_by("now\n", Some(OLD), &["example.com", "b.example.co", "dc"]);
        assert_eq!(apart, format!("now\n\n{EARLIER}\n{OLD}"), "a name within another, or in a command, is another server's");
        let back = followed_by("now\n", Some(OLD), &["b.example.com"]);
        for (line, stays) in [
            ("govc object.destroy /dc/vm/old", true),
            ("govc object.destroy /dc/vm/b", false),
            ("oc delete pv pv-1", false),
            ("oc -n ns delete secret vmi-m-metadata", true),
        ] {
            assert_eq!(back.lines().any(|other| other == line), stays, "{line}: {back}");
        }
        assert_eq!(followed_by("now\n", Some(OLD), &["b.example.com", "old.example.com"]), "now\n", "the cluster is back on all of it");
    }

    #[test]
    fn each_of_several_earlier_lists_is_looked_at_by_itself() {
        let first = "# in vCenter a; with\ngovc x\n# in the cluster\noc y\n";
        let second = "# in vCenter b; with\ngovc z\n# in the cluster\noc y\n";
        let both = followed_by(second, Some(first), &["c"]);
        assert_eq!(followed_by("now\n", Some(&both), &["a"]), format!("now\n\n{EARLIER}\n{second}"));
        assert_eq!(followed_by("now\n", Some(&both), &["b"]), format!("now\n\n{EARLIER}\n{first}"));
    }
}
