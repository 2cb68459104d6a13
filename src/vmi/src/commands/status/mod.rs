//! `vmi status`: how migrations are going.

mod follow;
mod lines;
mod next;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::io::IsTerminal as _;

use clap::ValueEnum;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams};
use vmi_crds::VSphereMigrationInfra;

use self::view::View;
use super::{Exit, Failure, print};
use crate::{client, logging};

/// Show how migrations are going; exits with 0, with 2 if a plan waits to be started, 3 if one is blocked, 4 if a step has failed
#[derive(clap::Args)]
pub struct Status {
    /// One migration [default: all in the namespace]
    name: Option<String>,
    #[arg(short, long, default_value = "openshift-vsphere-migration")]
    namespace: String,
    /// Go on showing what changes, until the migration named is over
    #[arg(short, long)]
    watch: bool,
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    #[default]
    Text,
    /// With --watch an object a line
    Json,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "the apiserver at hand does not know vspheremigrationinfra.config.openshift.io: is it the right cluster? `vmi crd | oc apply -f -` \
         makes it known"
    )]
    NotInstalled,
    #[error("there is no vmi {name} in {namespace}; `vmi status -n {namespace}` shows those there are")]
    Unknown { name: String, namespace: String },
    #[error("the vmi {0} has been deleted meanwhile")]
    Gone(String),
    #[error("cannot read the vmis in {namespace}: {source}")]
    Unreadable { namespace: String, source: Box<kube::Error> },
}

impl Status {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        // The client logs as an error what is told here anyway.
        logging::start("warn,kube_client::client::builder=off")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let client = client::connect("vmi").await?;
            let vmis = self.read(&client).await?;
            if self.watch { follow::follow(&self, client).await } else { self.show(&vmis) }
        })
    }

    fn api(&self, client: Client) -> Api<VSphereMigrationInfra> {
        Api::namespaced(client, &self.namespace)
    }

    /// The name as a selector. A list tells a kind that is not installed from a vmi that is not there, which a get does not.
    fn selector(&self) -> Option<String> {
        self.name.as_ref().map(|name| format!("metadata.name={name}"))
    }

    async fn read(&self, client: &Client) -> Result<Vec<VSphereMigrationInfra>, Error> {
        let wanted = ListParams { field_selector: self.selector(), ..ListParams::default() };
        let mut found = match self.api(client.clone()).list(&wanted).await {
            Ok(list) => list.items,
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(Error::NotInstalled),
            Err(source) => return Err(Error::Unreadable { namespace: self.namespace.clone(), source: Box::new(source) }),
        };
        match &self.name {
            Some(name) if found.is_empty() => Err(Error::Unknown { name: name.clone(), namespace: self.namespace.clone() }),
            _ => {
                found.sort_by_key(kube::ResourceExt::name_any);
                Ok(found)
            }
        }
    }

    fn show(&self, vmis: &[VSphereMigrationInfra]) -> Result<Exit, Failure> {
        let views: Vec<View> = vmis.iter().map(|vmi| View::of(vmi, Timestamp::now())).collect();
        match (self.output, views.as_slice()) {
            (Output::Json, [only]) if self.name.is_some() => print(&format!("{}\n", serde_json::to_string_pretty(only)?))?,
            (Output::Json, all) => print(&format!("{}\n", serde_json::to_string_pretty(all)?))?,
            (Output::Text, []) => print(&format!("there is no vmi in {}\n", self.namespace))?,
            (Output::Text, all) => print(&text::all(all, std::io::stdout().is_terminal()))?,
        }
        Ok(graver(&views))
    }
}

/// The gravest of all.
fn graver<'a>(views: impl IntoIterator<Item = &'a View>) -> Exit {
    views.into_iter().map(View::exit).max().unwrap_or(Exit::Ok)
}
