//! The steps, each with its way back.

pub mod folder_created;
mod folder_undo;
pub mod tags_attached;
mod tags_undo;

use vmi_kit::Stop;
use vmi_steps::{Migration, Seen};

use crate::domains;
use crate::record;

/// The reason of a step that found nothing to take back, or has taken back all it could.
fn undone<A>(left: &[String], what: &str) -> Seen<A> {
    if left.is_empty() {
        return Seen::done("Undone", format!("{what} of this migration are gone"));
    }
    Seen::done("UndoneWithConflict", format!("left, because others use it: {}", left.join("; ")))
}

/// Whether the target was in Infrastructure before this migration did anything about it.
fn came_with_the_cluster(m: &Migration, what: &str) -> Result<bool, Stop> {
    let begun = m.sources().iter().map(String::as_str).chain(m.targets()).any(|server| m.saved(&record::key(what, server)).is_some());
    Ok(!begun && domains::already_there(m))
}
