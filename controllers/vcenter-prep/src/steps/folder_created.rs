//! Step 6: the folders for the target's machines, marked as the cluster's own.

use std::time::Duration;

use vmi_crds::graph::StepName;
use vmi_kit::Stop;
use vmi_site::vcenter;
use vmi_steps::{Migration, Seen, Step, Writer};
use vsphere::{Client, Fault, Ref, Tag};

use super::{came_with_the_cluster, folder_undo, undone};
use crate::look::Look;
use crate::memory::Memory;
use crate::record::{self, FoldersMade};
use crate::wanted::Wanted;
use crate::{domains, failures, missing};

/// The key under which what is made in a vCenter is saved.
pub const SAVED: &str = "folder";
const DELETION: Duration = Duration::from_secs(120);

/// Step 6.
pub struct FolderCreated<'a> {
    pub memory: &'a Memory,
}

/// One thing to do in one vCenter.
pub struct Act {
    server: String,
    what: What,
}

enum What {
    Save(FoldersMade),
    Make(Box<Wanted>, FoldersMade),
    Detach(Tag, Vec<Ref>),
    Delete(String, Ref),
}

impl Step for FolderCreated<'_> {
    const NAME: StepName = StepName::FolderCreated;
    type Act = Act;

    async fn observe(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        if came_with_the_cluster(m, SAVED)? {
            return Ok(Seen::done(
                "AlreadyThere",
                "Infrastructure has the target already, field by field; its folders are left as they are",
            ));
        }
        let mut changes = Vec::new();
        let mut first = None;
        let mut folders = Vec::new();
        for wanted in domains::targets(m)? {
            let look = self.memory.look(m, Self::NAME, &wanted).await?;
            let missing = missing::folders(&wanted, &look).inspect_err(|_| self.memory.blame(&wanted.server))?;
            let words = missing.words(&wanted.server, &wanted.owner.tag);
            folders.extend(wanted.folders.iter().map(|path| format!("{path} in {}", wanted.server)));
            if !words.is_empty() && first.is_none() {
                let saved = m.saved(&record::key(SAVED, &wanted.server)).is_some();
                let server = wanted.server.clone();
                let what = if saved { What::Make(Box::new(wanted), missing) } else { What::Save(missing) };
                first = Some(Act { server, what });
            }
            changes.extend(words);
        }
        Ok(match first {
            Some(act) => Seen::Todo { act, changes },
            None => Seen::done("Created", format!("there is, with the cluster's tag, {}", folders.join(" and "))),
        })
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        let mut left = Vec::new();
        for server in m.targets() {
            self.memory.forget(server);
            let Some(made) = record::read::<FoldersMade>(m, &record::key(SAVED, server))? else { continue };
            let owner = m.infrastructure_id().ok_or_else(|| Stop::again("Infrastructure cluster has no status.infrastructureName"))?;
            let (client, login) = vcenter::client(m, server).await?;
            let seen = folder_undo::look(&client, &made, &owner).await;
            let seen = seen.map_err(|error| login.stop("look at the folders to be taken back", &error))?;
            let back = folder_undo::decide(&made, &seen);
            let changes = back.words(server);
            let what = match (back.detach, back.delete) {
                (Some((tag, folders)), _) => What::Detach(tag, folders),
                (None, Some((path, folder))) => What::Delete(path, folder),
                (None, None) => {
                    left.extend(back.left.into_iter().map(|what| format!("{server}: {what}")));
                    continue;
                }
            };
            return Ok(Seen::Todo { act: Act { server: server.to_owned(), what }, changes });
        }
        Ok(undone(&left, "the folders"))
    }

    async fn act(&self, m: &Migration, act: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
        let server = &act.server;
        if let What::Save(made) = &act.what {
            let made = serde_json::to_value(made).map_err(Stop::again)?;
            return writer.save(&record::key(SAVED, server), &made).await;
        }
        let (client, login) = vcenter::client(m, server).await?;
        let stop = |what: &str, error: &vsphere::Error| login.stop(what, error);
        let outcome = match act.what {
            What::Save(_) => Ok(()),
            What::Make(wanted, missing) => {
                let look = self.memory.look(m, Self::NAME, &wanted).await?;
                let what = format!("{server}: {}", next(&missing, &wanted));
                if missing.folders.is_empty() && look.tag(&wanted.owner.category, &wanted.owner.tag).is_none() {
                    return Err(failures::no_owner(server, &wanted.owner.tag).into());
                }
                let made = writer.vcenter(&what, stop, make(&client, &wanted, &missing, look)).await;
                made.map(|made| self.memory.changed(server, |look| *look = made))
            }
            What::Detach(tag, folders) => {
                let what = format!("{server}: detach tag {} from {} folders", tag.name, folders.len());
                writer.vcenter(&what, stop, client.tags().detach(std::slice::from_ref(&tag), &folders)).await
            }
            What::Delete(path, folder) => {
                let delete = async {
                    match client.delete_folder(&folder, DELETION).await {
                        // Gone is gone, and what has been put into it a moment ago is seen by the next look.
                        Err(error) if matches!(error.fault(), Fault::NotFound { .. } | Fault::NotEmpty { .. }) => Ok(()),
                        outcome => outcome,
                    }
                };
                writer.vcenter(&format!("{server}: delete folder {path}"), stop, delete).await
            }
        };
        if outcome.is_err() {
            // Who knows how much of it was done.
            self.memory.forget(server);
        }
        outcome
    }
}

/// What comes first of what is missing, in words.
fn next(missing: &FoldersMade, wanted: &Wanted) -> String {
    if !missing.folders.is_empty() {
        return format!("make the folders {}", missing.folders.join(", "));
    }
    format!("attach tag {} to {}", wanted.owner.tag, missing.tagged.join(", "))
}

/// Makes what comes first of what is missing, and returns the vCenter as it is then.
async fn make(client: &Client, wanted: &Wanted, missing: &FoldersMade, mut look: Look) -> vsphere::Result<Look> {
    if !missing.folders.is_empty() {
        for path in &missing.folders {
            let Some((parent, name)) = path.rsplit_once('/') else { continue };
            let Some(parent) = look.folders.get(parent) else { continue };
            let made = client.ensure_folder(parent, name).await?;
            look.folders.insert(path.clone(), made.folder);
        }
        return Ok(look);
    }
    let (Some(category), Some(tag)) = (look.category(&wanted.owner.category), look.tag(&wanted.owner.category, &wanted.owner.tag)) else {
        return Ok(look);
    };
    let folders: Vec<Ref> = missing.tagged.iter().filter_map(|path| look.folders.get(path).cloned()).collect();
    client.tags().attach_to_untagged(category, tag, &folders).await?;
    let tag = tag.id.clone();
    for folder in folders {
        look.attached.entry(folder).or_default().push(tag.clone());
    }
    Ok(look)
}
