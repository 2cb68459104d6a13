//! What was last seen of each vCenter. The vmi changes often, and a vCenter is not asked each time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vmi_crds::graph::StepName;
use vmi_crds::status::Failure;
use vmi_crds::turn::{Turn, turn};
use vmi_kit::Stop;
use vmi_site::vcenter;
use vmi_steps::Migration;

use crate::look::{Look, Unseen, look};
use crate::wanted::Wanted;

/// While nothing is acted on: for the plan, or after a failure.
const IDLE: Duration = Duration::from_secs(300);
/// While acting: own changes are carried along, and one step's end is the next one's beginning.
const ACTING: Duration = Duration::from_secs(30);
/// A tag as good as always keeps its name: what was read of it less than this ago is not read again.
const NAMES: Duration = Duration::from_secs(600);

/// What was last seen of each vCenter.
#[derive(Default)]
pub struct Memory(Mutex<BTreeMap<String, Remembered>>);

struct Remembered {
    about: About,
    /// The vmi's when it was seen.
    generation: Option<i64>,
    /// A step failed for it: whoever changes the vmi after that wants another look.
    blamed: bool,
    at: Instant,
    seen: Result<Look, Box<Failure>>,
}

/// What a look depends on; if any of it changes, another is due.
#[derive(Clone, Debug, PartialEq)]
struct About {
    vmi: String,
    credentials: String,
    wanted: Wanted,
}

impl Memory {
    /// What the vCenter has, for this step: as remembered, or by another look.
    pub async fn look(&self, m: &Migration, step: StepName, wanted: &Wanted) -> Result<Look, Stop> {
        let server = &wanted.server;
        let (client, login) = vcenter::client(m, server).await?;
        let about =
            About { vmi: m.uid(), credentials: format!("{} {}", login.which.uid, login.which.resource_version), wanted: wanted.clone() };
        let generation = m.vmi.metadata.generation;
        let enough = if turn(&m.vmi, step) == Turn::Forward { ACTING } else { IDLE };
        if let Some(seen) = self.recall(server, &about, generation, enough) {
            return seen.map_err(Stop::Failed);
        }
        let seen = match look(&client, wanted, &self.names(server)).await {
            Ok(look) => Ok(look),
            Err(Unseen::Failed(failure)) => Err(failure),
            Err(Unseen::Vcenter(error)) => match login.stop("look at tags and folders", &error) {
                Stop::Failed(failure) => Err(failure),
                // What may get better in a moment is asked again, and a refused password is remembered elsewhere.
                stop => return Err(stop),
            },
        };
        let remembered = Remembered { about, generation, blamed: seen.is_err(), at: Instant::now(), seen: seen.clone() };
        self.lock().insert(server.clone(), remembered);
        seen.map_err(Stop::Failed)
    }

    /// Carries a change of our own into what is remembered.
    pub fn changed(&self, server: &str, change: impl FnOnce(&mut Look)) {
        if let Some(Remembered { seen: Ok(look), .. }) = self.lock().get_mut(server) {
            change(look);
        }
    }

    /// What was seen makes a step fail.
    pub fn blame(&self, server: &str) {
        if let Some(known) = self.lock().get_mut(server) {
            known.blamed = true;
        }
    }

    /// The next one looks again.
    pub fn forget(&self, server: &str) {
        self.lock().remove(server);
    }

    fn recall(&self, server: &str, about: &About, generation: Option<i64>, enough: Duration) -> Option<Result<Look, Box<Failure>>> {
        let all = self.lock();
        let known = all.get(server)?;
        let asked_again = known.blamed && known.generation != generation;
        (known.about == *about && !asked_again && known.at.elapsed() < enough).then(|| known.seen.clone())
    }

    fn names(&self, server: &str) -> Look {
        let all = self.lock();
        let recent = all.get(server).filter(|known| known.at.elapsed() < NAMES);
        recent.and_then(|known| known.seen.clone().ok()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
