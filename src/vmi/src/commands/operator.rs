//! `vmi operator`: carries out the vmis of a namespace.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use vmi_kit::leader::Timing;

use super::{Exit, Failure};
use crate::operator::{self, Options};
use crate::{client, logging};

/// Carries out the vmis of a namespace, for ever
#[derive(Args)]
pub(crate) struct Operator {
    /// The namespace with the vmis
    #[arg(long, default_value = "openshift-vsphere-migration")]
    namespace: String,
    /// Where health and metrics are served
    #[arg(long, default_value = "0.0.0.0:8443")]
    admin: SocketAddr,
    /// The folder with tls.crt and tls.key for them; without it they are served without TLS
    #[arg(long)]
    certificate: Option<PathBuf>,
    /// Seconds that leadership lasts, is tried to be renewed, and between two tries
    #[arg(long, default_value = "137,107,26")]
    lease: Timing,
}

impl Operator {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        logging::start("info")?;
        // It waits for others nearly all the time: one thread is enough, and each more keeps memory of its own.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let client = client::connect("vmi-operator").await?;
            let options = Options {
                namespace: self.namespace,
                admin: self.admin,
                certificate: self.certificate,
                lease: self.lease,
                identity: identity(),
            };
            operator::run(client, options).await?;
            Ok(Exit::Ok)
        })
    }
}

/// The pod's name, which the Deployment hands down; elsewhere the process's number.
fn identity() -> String {
    std::env::var("VMI_IDENTITY").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| format!("vmi-{}", std::process::id()))
}
