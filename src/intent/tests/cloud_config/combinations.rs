//! Every combination of what a configuration can say, in every style: the meaning before, plus the target, minus it again.

use vmi_intent::cloud_config::{add, remove};

use crate::loader::{full_target, plain_target, seen, with_target, without};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Style {
    Ini,
    Block,
    Flow,
}

#[derive(Debug, Clone, Copy)]
struct Choice {
    style: Style,
    global_server: Option<&'static str>,
    vcenters: usize,
    insecure: bool,
    port: bool,
    families: bool,
    labels: bool,
    crlf: bool,
}

const SERVERS: [&str; 2] = ["vc-a.example.com", "vc-b.example.com"];

fn choices() -> Vec<Choice> {
    let mut all = Vec::new();
    for style in [Style::Ini, Style::Block, Style::Flow] {
        for global_server in [None, Some(SERVERS[0]), Some("vc-old.example.com")] {
            for vcenters in 0..=2 {
                for bits in 0..16_u8 {
                    let bit = |place: u8| bits & (1 << place) != 0;
                    let (insecure, port, families, labels) = (bit(0), bit(1), bit(2), bit(3));
                    // Line ends matter to the edit alone, not in combination.
                    let crlf = bits.count_ones() == 1;
                    if vcenters > 0 || global_server.is_some() {
                        all.push(Choice { style, global_server, vcenters, insecure, port, families, labels, crlf });
                    }
                }
            }
        }
    }
    all
}

/// Names and values of one section, under both of its names.
type Section = (&'static str, Vec<(&'static str, &'static str, String)>);

fn text(choice: Choice) -> String {
    let quoted = |text: &str| format!("\"{text}\"");
    let mut global =
        vec![("secretName", "secret-name", quoted("vsphere-creds")), ("secretNamespace", "secret-namespace", quoted("kube-system"))];
    global.extend(choice.global_server.map(|server| ("server", "server", quoted(server))));
    global.extend(choice.insecure.then(|| ("insecureFlag", "insecure-flag", "true".to_owned())));
    global.extend(choice.port.then(|| ("port", "port", "8443".to_owned())));
    let family = if choice.style == Style::Ini { quoted("ipv6") } else { "[\"ipv6\"]".to_owned() };
    global.extend(choice.families.then_some(("ipFamily", "ip-family", family)));
    let labels = vec![("zone", "zone", quoted("openshift-zone")), ("region", "region", quoted("openshift-region"))];
    let mut sections: Vec<Section> = vec![("global", global)];
    sections.extend(choice.labels.then_some(("labels", labels)));
    let servers = &SERVERS[..choice.vcenters];
    let written = match choice.style {
        Style::Ini => {
            let blocks = servers.iter().map(|server| format!("[VirtualCenter \"{server}\"]\ndatacenters = \"dc of {server}\"\n"));
            let known = sections.iter().map(|(name, pairs)| {
                let pairs: String = pairs.iter().map(|(_, key, value)| format!("{key} = {value}\n")).collect();
                format!("[{name}]\n{pairs}")
            });
            known.chain(blocks).collect::<String>()
        }
        Style::Block => {
            let known = sections.iter().map(|(name, pairs)| {
                let pairs: String = pairs.iter().map(|(key, _, value)| format!("    {key}: {value}\n")).collect();
                format!("{name}:\n{pairs}")
            });
            let entries: String = servers
                .iter()
                .map(|server| {
                    format!("    {server}: # a vCenter\n        server: {server}\n        datacenters:\n        - dc of {server}\n")
                })
                .collect();
            let head = if servers.is_empty() { "" } else { "vcenter:\n" };
            known.chain([format!("{head}{entries}")]).collect()
        }
        Style::Flow => {
            let known = sections.iter().map(|(name, pairs)| {
                let pairs: Vec<_> = pairs.iter().map(|(key, _, value)| format!("\"{key}\": {value}")).collect();
                format!("\"{name}\": {{{}}}", pairs.join(", "))
            });
            let entry = |server: &&str| format!("\"{server}\": {{\"server\": \"{server}\", \"datacenters\": [\"dc of {server}\"]}}");
            let entries: Vec<_> = servers.iter().map(entry).collect();
            let vcenters = (!servers.is_empty()).then(|| format!("\"vcenter\": {{{}}}", entries.join(", ")));
            format!("{{{}}}\n", known.chain(vcenters).collect::<Vec<_>>().join(",\n "))
        }
    };
    if choice.crlf { written.replace('\n', "\r\n") } else { written }
}

#[test]
fn every_combination_keeps_its_meaning_plus_and_minus_the_target() {
    for (index, choice) in choices().into_iter().enumerate() {
        let text = text(choice);
        let before = seen(&text).unwrap_or_else(|said| panic!("{choice:?}: {said}\n{text}"));
        let (new, zones) = if index % 2 == 0 { (plain_target(), true) } else { (full_target(), false) };
        let edited = add(&text, &new, zones).unwrap_or_else(|refused| panic!("{choice:?}: {refused}\n{text}"));
        let wanted = with_target(&before, &new, if choice.families { &["ipv6"] } else { &["ipv4"] }, zones);
        assert_eq!(seen(&edited).as_ref(), Ok(&wanted), "{choice:?}\n{edited}");
        let back = remove(&edited, &new.server).unwrap_or_else(|refused| panic!("{choice:?}: {refused}\n{edited}"));
        assert_eq!(seen(&back).as_ref(), Ok(&without(&wanted, &new.server)), "{choice:?}\n{back}");
    }
}
