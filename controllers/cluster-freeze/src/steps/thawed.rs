//! Step 15: every hold is released, the cluster version operator's last: from then on it puts right whatever is left.

use vmi_crds::graph::StepName;
use vmi_crds::status::Path;
use vmi_kit::Stop;
use vmi_steps::change::{self, Change};
use vmi_steps::{Migration, Seen, Step, Writer};

use super::{control_plane_set_saved, frozen, path, planning, unlocked};
use crate::ledger::Release;

/// Step 15.
pub struct ClusterThawed;

impl Step for ClusterThawed {
    const NAME: StepName = StepName::ClusterThawed;
    type Act = Change;

    async fn observe(&self, m: &Migration) -> Result<Seen<Change>, Stop> {
        if planning(m) {
            return plan(m);
        }
        // What is released cannot be undone: the vmi has to say first that there is no way back.
        if m.vmi.seen().one_way_at.is_none() {
            return Ok(Seen::Ready { message: "ready to release what is held; from then on there is no way back".to_owned() });
        }
        if let Some(rolling) = control_plane_set_saved::rolling(m)? {
            return Ok(rolling);
        }
        let releases = [unlocked::release(m)?, Release::of(m, control_plane_set_saved::KEYS.iter().copied())?, frozen::release(m)?];
        let mut all = Release::default();
        for release in releases {
            all.changes.extend(release.changes);
            all.conflicts.extend(release.conflicts);
        }
        if let Some(todo) = change::todo(std::mem::take(&mut all.changes)) {
            return Ok(todo);
        }
        Ok(frozen::unverified(m)?.unwrap_or_else(|| Seen::done("Thawed", all.told("everything that was held is released"))))
    }

    async fn observe_undo(&self, _m: &Migration) -> Result<Seen<Change>, Stop> {
        Ok(Seen::done("Undone", "nothing is undone: what is released stays so"))
    }

    async fn act(&self, _m: &Migration, act: Change, writer: &mut Writer<'_>) -> Result<(), Stop> {
        act.make(writer).await
    }
}

/// Whatever steps 1 to 3 would change is changed back, in the order of the release.
fn plan(m: &Migration) -> Result<Seen<Change>, Stop> {
    let legacy = match path(m) {
        Err(waits) => return Ok(waits),
        Ok(path) => path == Path::Legacy,
    };
    let mut held = if legacy { unlocked::changes(m)? } else { Vec::new() };
    held.extend(control_plane_set_saved::changes(m)?);
    if legacy {
        held.extend(frozen::changes(m)?);
    }
    let back = |change: Change| Change { words: change.words.iter().map(|words| format!("taken back: {words}")).collect(), ..change };
    let nothing = || Seen::done("Thawed", "nothing will be held, so nothing will be released");
    Ok(change::todo(held.into_iter().map(back).collect()).unwrap_or_else(nothing))
}
