//! The examples, run as the programs they are. `cargo test` builds them; `cargo test --test simulator` alone does not.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::json;
use vsphere::{Want, only_one};

use crate::{
    pki::Authority,
    vcsim::{PASSWORD, USER, Vcsim},
};

fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is not there: `cargo test -p vsphere` without `--test` builds it", path.display());
    path
}

/// Runs an example with this password and nothing of the machine's own proxies and certificates.
fn run(name: &str, arguments: &[&str], password: &str, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(example(name));
    command.args(arguments).env_clear().env("VCENTER_USER", USER).env("VCENTER_PASSWORD", password);
    command.envs(environment.iter().copied()).output().unwrap()
}

/// The authority's certificate as a file, and the vCenter as an argument.
fn known(sim: &Vcsim) -> (String, String) {
    let file = sim.dir.path().join("authority.pem");
    std::fs::write(&file, sim.authority.pem()).unwrap();
    (file.to_str().unwrap().to_owned(), sim.settings().endpoint.to_string())
}

#[tokio::test]
async fn the_tree_program_prints_the_whole_inventory_and_leaves_no_session() {
    let sim = Vcsim::start();
    let (ca, address) = known(&sim);
    let output = run("tree", &[&address, "--ca", &ca, "--vms"], PASSWORD, &[]);
    let (said, complaints) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && complaints.is_empty(), "{complaints}");
    assert_eq!((sim.sessions().soap, sim.sessions().rest), (0, 0));

    let client = sim.client();
    let inventory = client.inventory(Want::Vms).await.unwrap();
    let (title, tree) = said.split_once('\n').unwrap();
    assert_eq!(title, client.about().await.unwrap().full_name);
    // Each line has its parent above it, one step further left: together they are the path.
    let mut above: Vec<&str> = Vec::new();
    let mut shown: Vec<String> = Vec::new();
    for line in tree.lines() {
        let text = line.trim_start();
        let (name, rest) = text.split_once(" (").unwrap();
        above.truncate((line.len() - text.len()) / 2);
        above.push(name);
        shown.push(format!("/{} {}", above.join("/"), rest.split_once(')').unwrap().0));
    }
    let mut there: Vec<String> =
        inventory.nodes().filter(|node| node.path != "/").map(|node| format!("{} {}", node.path, node.reference.kind.as_str())).collect();
    shown.sort();
    there.sort();
    assert_eq!(shown, there);
    let datastore = &inventory.datastores[0];
    assert!(tree.contains(&format!("{} of {} GiB free", datastore.free >> 30, datastore.capacity >> 30)), "{tree}");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn the_system_s_authorities_are_believed_and_no_others() {
    let sim = Vcsim::start();
    let (ca, address) = known(&sim);
    let stranger = sim.dir.path().join("stranger.pem");
    std::fs::write(&stranger, Authority::new("somebody else").pem()).unwrap();
    let output = run("tree", &[&address], PASSWORD, &[("SSL_CERT_FILE", stranger.to_str().unwrap())]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for words in ["no trusted authority has signed it", "subject \"vcenter\"", "issuer \"test authority\"", "SHA-256 "] {
        assert!(complaint.contains(words), "{complaint}");
    }
    assert_eq!(sim.sessions().logins, 0);
    let output = run("tree", &[&address], PASSWORD, &[("SSL_CERT_FILE", &ca)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((sim.sessions().logins, sim.sessions().soap), (1, 0));
}

#[tokio::test]
async fn the_tag_program_tags_a_datacenter_twice_without_harm_and_leaves_no_session() {
    let sim = Vcsim::start();
    let (ca, address) = known(&sim);
    for _ in 0..2 {
        let output = run("tag", &[&address, &ca, "dc-a", "eu"], PASSWORD, &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "/dc-a is in eu\n");
    }
    assert_eq!((sim.sessions().soap, sim.sessions().rest), (0, 0));
    let client = sim.client();
    let inventory = client.inventory(Want::Infrastructure).await.unwrap();
    let datacenter = only_one(&inventory.datacenters, "dc-a").unwrap().node.reference.clone();
    let category = client.tags().category("openshift-region").await.unwrap().unwrap();
    let tags = client.tags().of(&category).await.unwrap();
    assert_eq!((tags.len(), tags[0].name.as_str()), (1, "eu"));
    assert_eq!(client.tags().objects(&tags).await.unwrap(), [[datacenter]]);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn every_measured_work_is_done_and_tells_its_time_and_its_memory() {
    let sim = Vcsim::with(&["a"], 30);
    let (ca, address) = known(&sim);
    let vms = sim.control("GET", "/vms", &json!(null));
    let vms: Vec<_> = vms.as_array().unwrap().iter().filter(|vm| vm["template"] != true).collect();
    let column =
        |field: &str, before: &str| -> String { vms.iter().map(|vm| format!("{before}{}\n", vm[field].as_str().unwrap())).collect() };
    let list = sim.dir.path().join("list");
    for (work, lines) in [
        ("inventory", None),
        ("inventory-vms", None),
        ("uuids", Some(column("uuid", ""))),
        ("tags", Some(column("reference", "VirtualMachine:"))),
        ("calls", None),
    ] {
        let mut arguments = vec![work, &address, &ca];
        if let Some(lines) = &lines {
            std::fs::write(&list, lines).unwrap();
            arguments.push(list.to_str().unwrap());
        }
        sim.reset_calls();
        let output = run("work", &arguments, PASSWORD, &[]);
        assert!(output.status.success(), "{work}: {}", String::from_utf8_lossy(&output.stderr));
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(said["seconds"].as_f64().unwrap() > 0.0 && said["peakMb"].as_f64().unwrap() > 0.0, "{work}: {said}");
        assert!(sim.traffic().0 >= 4, "{work} did less than log in, ask and log out");
    }
    assert_eq!((sim.sessions().soap, sim.sessions().rest), (0, 0));
}
