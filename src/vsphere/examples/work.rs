//! A measured piece of work, for `hack/bench`: does it once against a vCenter and prints how long it took and how much memory
//! the process held at most.
//!
//! `VCENTER_USER=... VCENTER_PASSWORD=... work inventory|inventory-vms|uuids|tags|calls HOST:PORT CA_FILE [LIST_FILE]`

use std::error::Error;
use std::time::Instant;

use vsphere::{Calls, Cardinality, CategorySpec, Client, Credentials, Endpoint, Identity, Proxy, Ref, Settings, Trust, Uuid, Want};

const TAGS: usize = 20;
const CALLS: usize = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, address, ca, rest @ ..] = arguments.as_slice() else { return Err("usage: work NAME HOST:PORT CA_FILE [LIST_FILE]".into()) };
    let (server, port) = address.rsplit_once(':').ok_or("the address wants a port")?;
    let endpoint = Endpoint { server: server.to_owned(), port: port.parse()? };
    let credentials = Credentials::new(std::env::var("VCENTER_USER")?, std::env::var("VCENTER_PASSWORD")?);
    let list = match rest.first() {
        Some(file) => std::fs::read_to_string(file)?,
        None => String::new(),
    };
    let began = Instant::now();
    let mut settings = Settings::new(endpoint, credentials, Trust::Bundle(std::fs::read(ca)?));
    settings.user_agent = "vmi-bench".to_owned();
    settings.calls = Calls::new(64);
    settings.proxy = Proxy::none();
    let client = Client::new(settings)?;
    let done = run(&client, work, &list).await;
    client.logout().await?;
    done?;
    println!("{{\"seconds\": {}, \"peakMb\": {}}}", began.elapsed().as_secs_f64(), peak_mb()?);
    Ok(())
}

async fn run(client: &Client, work: &str, list: &str) -> Result<(), Box<dyn Error>> {
    match work {
        "inventory" => drop(client.inventory(Want::Folders).await?),
        "inventory-vms" => drop(client.inventory(Want::Vms).await?),
        "uuids" => {
            let uuids = list.lines().map(str::parse).collect::<Result<Vec<Uuid>, _>>()?;
            let found = client.find_vms(&uuids, Identity::Bios).await?;
            if found.iter().any(Vec::is_empty) {
                return Err("a virtual machine was not found".into());
            }
        }
        "tags" => {
            let objects = list.lines().map(str::parse).collect::<Result<Vec<Ref>, _>>()?;
            let tags = client.tags();
            let spec = CategorySpec {
                name: "vmi-bench".to_owned(),
                description: String::new(),
                cardinality: Cardinality::Multiple,
                types: Vec::new(),
            };
            let category = tags.ensure_category(&spec).await?;
            let names: Vec<String> = (0..TAGS).map(|index| format!("tag-{index:02}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let ensured = tags.ensure(&category, &names).await?;
            tags.attach(&category, &ensured, &objects).await?;
        }
        "calls" => {
            for _ in 0..CALLS {
                client.clock().await?;
            }
        }
        other => return Err(format!("there is no work {other:?}").into()),
    }
    Ok(())
}

fn peak_mb() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("the kernel tells no peak")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1_024.0)
}
