//! Prints a vCenter's inventory as a tree:
//!
//! `VCENTER_USER=... VCENTER_PASSWORD=... cargo run --example tree -- vcenter.example.com [--vms] [--ca FILE | --insecure]`

use std::{error::Error, process::ExitCode};

use vsphere::{Client, Credentials, Endpoint, Inventory, Settings, Trust, Want};

struct Arguments {
    endpoint: Endpoint,
    trust: Trust,
    want: Want,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let (mut server, mut trust, mut want) = (None, Trust::System, Want::Folders);
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--vms" => want = Want::Vms,
            "--insecure" => trust = Trust::Insecure,
            "--ca" => trust = Trust::Bundle(std::fs::read(given.next().ok_or("--ca needs a file")?)?),
            _ => server = Some(argument),
        }
    }
    let server = server.ok_or("name the vCenter, as host or host:port")?;
    let endpoint = match server.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => Endpoint { server: host.to_owned(), port: port.parse()? },
        _ => Endpoint::from(server.as_str()),
    };
    Ok(Arguments { endpoint, trust, want })
}

fn details(inventory: &Inventory, path: &str) -> String {
    let host = inventory.hosts.iter().find(|host| host.node.path == path);
    let datastore = inventory.datastores.iter().find(|datastore| datastore.node.path == path);
    match (host, datastore) {
        (Some(host), _) => format!("  ESXi {}, {} cores, {} GiB", host.version, host.cpu_cores, host.memory_mib >> 10),
        (_, Some(datastore)) => format!("  {}, {} of {} GiB free", datastore.kind, datastore.free >> 30, datastore.capacity >> 30),
        _ => String::new(),
    }
}

fn print(inventory: &Inventory) {
    let mut nodes: Vec<_> = inventory.nodes().filter(|node| node.path != "/").collect();
    nodes.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
    for node in nodes {
        let depth = node.path.matches('/').count() - 1;
        println!("{}{} ({}){}", "  ".repeat(depth), node.name, node.reference.kind.as_str(), details(inventory, &node.path));
    }
    for gap in &inventory.unreadable {
        println!("cannot read {} of {}: {}", gap.property, gap.object, gap.fault);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tree: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let Arguments { endpoint, trust, want } = arguments()?;
    let credentials = Credentials::new(std::env::var("VCENTER_USER")?, std::env::var("VCENTER_PASSWORD")?);
    let client = Client::new(Settings::new(endpoint, credentials, trust))?;
    println!("{}", client.about().await?.full_name);
    let inventory = client.inventory(want).await;
    // Whatever the read brought, the session is ended before the program is.
    client.logout().await?;
    print(&inventory?);
    Ok(())
}
