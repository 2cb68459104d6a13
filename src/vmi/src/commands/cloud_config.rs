//! `vmi cloud-config`: the edits that a migration makes, by hand. Text comes from standard input and goes to standard output; where
//! an edit is refused nothing is printed but the reason.

use std::io::{self, Read as _};

use vmi_intent::cloud_config::{self, NewVcenter, Refused};

use super::{Exit, Failure, print};

/// Edit a cloud-provider-config, INI or YAML, from standard input to standard output
#[derive(clap::Args)]
pub struct CloudConfig {
    #[command(subcommand)]
    edit: Edit,
}

#[derive(clap::Subcommand)]
enum Edit {
    /// Add a vCenter; INI becomes YAML
    Add {
        /// The vCenter's name or address, as Infrastructure will have it
        #[arg(long)]
        server: String,
        /// [default: 443]
        #[arg(long)]
        port: Option<u16>,
        /// A datacenter of its failure domains; repeat it for more
        #[arg(long = "datacenter", required = true)]
        datacenters: Vec<String>,
    },
    /// Take a vCenter out
    Remove {
        #[arg(long)]
        server: String,
    },
    /// Turn INI into YAML of the same meaning
    Convert,
}

impl CloudConfig {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text)?;
        let edited = self.edit.of(&text).map_err(|refused| Failure::refused(&refused))?;
        print(&edited)?;
        Ok(Exit::Ok)
    }
}

impl Edit {
    fn of(self, text: &str) -> Result<String, Refused> {
        match self {
            Self::Add { server, port, datacenters } => {
                let new = NewVcenter { server, port, datacenters, ..NewVcenter::default() };
                cloud_config::add(text, &new, true)
            }
            Self::Remove { server } => cloud_config::remove(text, &server),
            Self::Convert => cloud_config::convert(text),
        }
    }
}
