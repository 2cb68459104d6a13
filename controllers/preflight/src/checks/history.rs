//! What came before: other migrations, and the backup one hopes not to need.

use jiff::{SignedDuration, Timestamp};

use super::{Check, Finding, Weight, wrong_or};
use crate::facts::Facts;

/// When etcd was backed up, noted by the user at the vmi.
pub const BACKUP: &str = "config.openshift.io/etcd-backup-at";

pub const CHECKS: &[Check] = &[
    Check { id: "SAV-001", about: "no other migration's saved originals are still needed", weight: Weight::Blocks, judge: saved },
    Check {
        id: "ABD-001",
        about: "no abandoned migration has left holds on the cluster",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: abandoned,
    },
    Check {
        id: "ETC-001",
        about: "etcd was backed up within the last 24 hours, as the annotation `config.openshift.io/etcd-backup-at` (RFC 3339) of the vmi says",
        weight: Weight::BlocksUnlessAcknowledged,
        judge: backup,
    },
];

fn saved(facts: &Facts) -> Finding {
    let lines = facts.cluster.unfinished.iter().map(|one| {
        let (secret, owner) = (&one.secret, &one.owner);
        format!("Secret {secret}: it holds the originals of another migration (UID {owner}) that is not over; finish or roll that one back, or look at what it holds and delete it")
    });
    wrong_or(lines.collect(), "none")
}

fn abandoned(facts: &Facts) -> Finding {
    let lines = facts
        .cluster
        .abandoned
        .iter()
        .map(|(name, left)| format!("vmi {name} was abandoned: {left}; release what it left, then delete it"));
    wrong_or(lines.collect(), "none")
}

fn backup(facts: &Facts) -> Finding {
    let how = "back etcd up (cluster-backup.sh on a control plane node) and note the time there, or acknowledge ETC-001";
    let at = format!("metadata.annotations[{BACKUP}]");
    let Some(text) = facts.annotations.get(BACKUP) else { return Finding::Wrong(vec![format!("{at}: not set; {how}")]) };
    let Ok(time) = text.parse::<Timestamp>() else {
        return Finding::Wrong(vec![format!("{at}: {text:?} is no time such as 2026-01-31T12:00:00Z; {how}")]);
    };
    let age = facts.now.duration_since(time);
    if age > SignedDuration::from_hours(24) {
        return Finding::Wrong(vec![format!("{at}: {text} is more than 24 hours ago; {how}")]);
    }
    // A clock that is a little behind is no lie.
    if age < SignedDuration::from_mins(-5) {
        return Finding::Wrong(vec![format!("{at}: {text} is in the future; {how}")]);
    }
    Finding::Passed(format!("backed up at {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{self, says};
    use crate::facts::Unfinished;

    #[test]
    fn what_other_migrations_left_is_told() {
        let facts = sample::changed(|cluster| {
            cluster.unfinished = vec![Unfinished { secret: "vmi-old-saved".to_owned(), owner: "u-1".to_owned() }];
            cluster.abandoned = vec![("old".to_owned(), "CVO is at 0".to_owned())];
        });
        says(&saved(&facts), &["Secret vmi-old-saved", "UID u-1"]);
        says(&abandoned(&facts), &["vmi old was abandoned: CVO is at 0"]);
    }

    #[test]
    fn a_backup_counts_for_a_day() {
        for (at, passes) in [
            (Some("2026-01-31T11:00:00Z"), true),
            (Some("2026-01-30T12:00:01Z"), true),
            (Some("2026-01-30T11:59:59Z"), false),
            (Some("2026-01-31T12:04:00Z"), true),
            (Some("2026-02-01T12:00:00Z"), false),
            (Some("yesterday"), false),
            (None, false),
        ] {
            let mut facts = sample::good();
            facts.annotations.remove(BACKUP);
            facts.annotations.extend(at.map(|at| (BACKUP.to_owned(), at.to_owned())));
            let found = backup(&facts);
            assert_eq!(matches!(found, Finding::Passed(_)), passes, "{at:?}: {found:?}");
            if let Finding::Wrong(lines) = found {
                assert!(lines[0].starts_with("metadata.annotations[config.openshift.io/etcd-backup-at]: "), "{lines:?}");
            }
        }
    }
}
