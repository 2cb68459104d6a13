//! `fault`: breaks something in a running lab, lists what is broken, and lifts it again.

use clap::Subcommand;

use super::Failure;
use crate::faults::{Fault, Faults, Listed};
use crate::home::Record;
use crate::output;

#[derive(Subcommand)]
pub enum Verb {
    /// List what is broken
    List,
    /// Break something
    Add {
        #[command(subcommand)]
        fault: Fault,
    },
    /// Lift a fault by the id that `add` printed
    Lift {
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Every fault of the lab
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

pub async fn fault(record: &Record, verb: &Verb) -> Result<(), Failure> {
    let faults = Faults::of(record).await?;
    match verb {
        Verb::List => lines(&faults.list().await?).iter().for_each(|line| output::line(format_args!("{line}"))),
        Verb::Add { fault } => output::line(format_args!("{}", faults.add(fault).await?)),
        Verb::Lift { id: Some(id), .. } => faults.lift(id).await?,
        Verb::Lift { id: None, .. } => faults.lift_all().await?,
    }
    Ok(())
}

/// A line for each: its id, what it is, and how often it has struck.
pub fn lines(faults: &[Listed]) -> Vec<String> {
    let line = |fault: &Listed| {
        let hits = fault.hits.map_or_else(String::new, |hits| format!(", {hits} hits"));
        format!("{:<10} {}{hits}", fault.id, fault.about)
    };
    faults.iter().map(line).collect()
}
