//! Puts a datacenter into a region, as OpenShift wants it:
//!
//! `VCENTER_USER=... VCENTER_PASSWORD=... cargo run --example tag -- HOST:PORT CA_FILE DATACENTER REGION`

use std::error::Error;

use vsphere::{Cardinality, CategorySpec, Client, Credentials, Endpoint, Kind, Pool, Settings, Trust, Want, only_one};

async fn tag(client: &Client, datacenter: &str, region: &str) -> Result<(), Box<dyn Error>> {
    let inventory = client.inventory(Want::Infrastructure).await?;
    let datacenter = &only_one(&inventory.datacenters, datacenter)?.node;
    let spec = CategorySpec {
        name: "openshift-region".into(),
        description: "Region of a failure domain".into(),
        cardinality: Cardinality::Single,
        types: vec![Kind::Datacenter],
    };
    let tags = client.tags();
    let category = tags.ensure_category(&spec).await?;
    let made = tags.ensure(&category, &[region]).await?;
    tags.attach(&category, &made, std::slice::from_ref(&datacenter.reference)).await?;
    println!("{} is in {region}", datacenter.path);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, ca, datacenter, region] = arguments.as_slice() else {
        return Err("usage: tag HOST:PORT CA_FILE DATACENTER REGION".into());
    };
    let (server, port) = address.rsplit_once(':').ok_or("the address wants a port")?;
    let endpoint = Endpoint { server: server.to_owned(), port: port.parse()? };
    let credentials = Credentials::new(std::env::var("VCENTER_USER")?, std::env::var("VCENTER_PASSWORD")?);

    let pool = Pool::new();
    let client = pool.client(Settings::new(endpoint, credentials, Trust::Bundle(std::fs::read(ca)?))).await?;
    let done = tag(&client, datacenter, region).await;
    // Whatever came of it, the sessions are ended before the program is.
    pool.close().await?;
    done
}
