//! The kubelet's crash-loop back-off: the first restart is free, then 10 s doubling to 5 min, forgotten after 10 quiet minutes.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct Backoff {
    last: Option<Grant>,
}

struct Grant {
    delay: Duration,
    at: Instant,
}

impl Backoff {
    /// The delay, and the moment it is over, for a container that ended at `finished`; nothing if it may start now.
    pub fn pending(&self, finished: Instant, now: Instant) -> Option<(Duration, Instant)> {
        let grant = self.remembered(finished)?;
        let over = finished + grant.delay;
        (now < over).then_some((grant.delay, over))
    }

    /// Notes that a container that ended at `finished` was started again.
    pub fn grant(&mut self, finished: Instant, now: Instant) {
        let delay = self.remembered(finished).map_or(FIRST, |grant| (grant.delay * 2).min(LONGEST));
        self.last = Some(Grant { delay, at: now });
    }

    fn remembered(&self, finished: Instant) -> Option<&Grant> {
        self.last.as_ref().filter(|grant| finished.saturating_duration_since(grant.at) <= FORGOTTEN_AFTER)
    }
}

/// Whole seconds as Go prints a duration, which is how the kubelet's messages read: `40s`, `2m40s`.
pub(super) fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a container again as soon as it may, `times` over, each life ending at once; returns the delays it had to wait.
    fn delays(times: usize) -> Vec<String> {
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        let mut waited = Vec::new();
        for _ in 0..times {
            let finished = now;
            if let Some((delay, over)) = backoff.pending(finished, now) {
                waited.push(go_duration(delay));
                assert!(backoff.pending(finished, over).is_none(), "a delay that is over must let the container start");
                now = over;
            }
            backoff.grant(finished, now);
        }
        waited
    }

    #[test]
    fn a_crash_loop_waits_ten_seconds_doubling_to_five_minutes_after_one_free_restart() {
        assert_eq!(delays(8), ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
    }

    #[test]
    fn ten_quiet_minutes_forget_the_crash_loop() {
        let mut backoff = Backoff::default();
        let start = Instant::now();
        backoff.grant(start, start);
        backoff.grant(start, start);
        let late = start + FORGOTTEN_AFTER + Duration::from_secs(1);
        assert!(backoff.pending(late, late).is_none());
        backoff.grant(late, late);
        assert_eq!(backoff.pending(late, late).map(|(delay, _)| delay), Some(FIRST));
    }
}
