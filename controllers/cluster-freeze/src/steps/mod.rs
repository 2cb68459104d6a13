//! The steps, one file each, and what they have in common.

pub mod control_plane_set_saved;
pub mod frozen;
pub mod thawed;
pub mod unlocked;

use vmi_crds::status::Path;
use vmi_steps::{Migration, Seen};

/// The path, or what a step says while it is not chosen.
fn path<A>(m: &Migration) -> Result<Path, Seen<A>> {
    m.path().ok_or_else(|| Seen::waiting(vmi_steps::migration::WAITS_FOR_PATH))
}

/// Whether the migration has not started: then a step says what it would change, as if all before it were done.
fn planning(m: &Migration) -> bool {
    m.vmi.seen().started_at.is_none()
}
