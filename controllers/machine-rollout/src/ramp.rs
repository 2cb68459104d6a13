//! How sets grow: first one machine in each failure domain, and only when all of these serve, the others in batches. Pure.

use std::time::Duration;

/// For each batch: a template may have to be copied to every host first.
const A_BATCH: Duration = Duration::from_secs(1800);

/// How long sets may take to get so many machines in all: one machine in each failure domain, and then batch by batch.
pub fn patience(machines: i64, batch: i64) -> Duration {
    A_BATCH * u32::try_from(machines / batch.max(1) + 2).unwrap_or(2)
}

/// A set on its way to as many machines as it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growing<'a> {
    /// The failure domain it is in.
    pub place: &'a str,
    /// How many machines it is to have.
    pub wanted: i64,
    /// How many it was told to have.
    pub asked: i64,
    /// How many of them serve.
    pub up: i64,
}

/// Which set is to be told next to have how many machines; none while those on their way have to come first, or all are there.
pub fn next(sets: &[Growing<'_>], batch: i64, canary: bool) -> Option<(usize, i64)> {
    let open = |set: &Growing<'_>| set.asked < set.wanted;
    if canary {
        let untried = |place: &str| sets.iter().filter(|set| set.place == place).all(|set| set.asked == 0);
        let proven = |place: &str| sets.iter().any(|set| set.place == place && set.up > 0);
        if let Some(first) = sets.iter().position(|set| open(set) && untried(set.place)) {
            return Some((first, 1));
        }
        if sets.iter().any(|set| set.wanted > 0 && !proven(set.place)) {
            return None;
        }
    }
    let coming: i64 = sets.iter().map(|set| (set.asked - set.up).max(0)).sum();
    let room = batch - coming;
    let (at, set) = sets.iter().enumerate().find(|(_, set)| open(set))?;
    (room > 0).then(|| (at, set.wanted.min(set.asked + room)))
}

/// Whether all serve that are to.
pub fn done(sets: &[Growing<'_>]) -> bool {
    sets.iter().all(|set| set.asked >= set.wanted && set.up >= set.wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(place: &'static str, wanted: i64, asked: i64, up: i64) -> Growing<'static> {
        Growing { place, wanted, asked, up }
    }

    #[test]
    fn one_machine_in_each_failure_domain_comes_first_and_the_others_wait_for_all_of_them() {
        for (sets, next_is) in [
            (vec![set("x", 3, 0, 0), set("x", 2, 0, 0), set("y", 2, 0, 0)], Some((0, 1))),
            (vec![set("x", 3, 1, 0), set("x", 2, 0, 0), set("y", 2, 0, 0)], Some((2, 1))),
            (vec![set("x", 3, 1, 1), set("x", 2, 0, 0), set("y", 2, 1, 0)], None),
            (vec![set("x", 3, 1, 1), set("x", 2, 0, 0), set("y", 2, 1, 1)], Some((0, 3))),
        ] {
            assert_eq!(next(&sets, 10, true), next_is, "{sets:?}");
        }
        assert_eq!(next(&[set("x", 3, 0, 0)], 10, false), Some((0, 3)), "where the place is known no machine has to prove it");
    }

    #[test]
    fn never_more_than_a_batch_is_on_its_way() {
        for (sets, next_is) in [
            (vec![set("x", 9, 1, 1)], Some((0, 4))),
            (vec![set("x", 9, 4, 1)], None),
            (vec![set("x", 9, 4, 2)], Some((0, 5))),
            (vec![set("x", 4, 4, 2), set("x", 5, 0, 0)], Some((1, 1))),
            (vec![set("x", 4, 4, 4), set("x", 5, 5, 4)], None),
        ] {
            assert_eq!(next(&sets, 3, true), next_is, "{sets:?}");
        }
    }

    #[test]
    fn there_is_time_for_every_batch_of_all_machines_together() {
        for (machines, batch, batches) in [(0, 3, 2), (2, 3, 2), (9, 3, 5), (100, 1, 102), (5, 0, 7)] {
            assert_eq!(patience(machines, batch), A_BATCH * batches, "{machines} by {batch}");
        }
    }

    #[test]
    fn a_set_of_none_stays_so_and_one_that_others_made_larger_too() {
        let sets = [set("x", 0, 0, 0), set("y", 1, 2, 2)];
        assert_eq!((next(&sets, 10, true), done(&sets)), (None, true));
        assert!(!done(&[set("x", 2, 2, 1)]) && !done(&[set("x", 2, 1, 1)]));
    }

    #[test]
    fn machines_are_all_made_in_the_end_whatever_the_batch() {
        for batch in 1..5 {
            let mut sets = vec![set("x", 3, 0, 0), set("y", 0, 0, 0), set("y", 5, 0, 0)];
            let mut rounds = 0;
            while !done(&sets) {
                while let Some((at, to)) = next(&sets, batch, true) {
                    assert!(to > sets[at].asked && to <= sets[at].wanted);
                    sets[at].asked = to;
                }
                assert!(sets.iter().map(|set| set.asked - set.up).sum::<i64>() <= batch.max(2));
                sets.iter_mut().for_each(|set| set.up = set.asked);
                rounds += 1;
                assert!(rounds < 20, "it ends");
            }
        }
    }
}
