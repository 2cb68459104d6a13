//! Step 5: every failure domain's region and zone, and the cluster's own name, as tags in every vCenter.

use futures::future::try_join_all;
use vmi_crds::graph::StepName;
use vmi_kit::Stop;
use vmi_site::vcenter;
use vmi_steps::{Migration, Seen, Step, Writer};
use vsphere::{Category, Client, Fault, Ref, Tag};

use super::{came_with_the_cluster, tags_undo, undone};
use crate::domains;
use crate::look::Look;
use crate::memory::Memory;
use crate::missing::{self, MissingAttachment, MissingTags};
use crate::record::{self, TagName, TagsMade};

/// The key under which what is made in a vCenter is saved.
pub const SAVED: &str = "tags";

/// Step 5.
pub struct TagsAttached<'a> {
    pub memory: &'a Memory,
}

/// One thing to do in one vCenter.
pub struct Act {
    server: String,
    what: What,
}

enum What {
    Save(TagsMade),
    Make(MissingTags),
    Detach(Vec<(Tag, Ref)>),
    Delete(Vec<Tag>),
    DeleteCategories(Vec<Category>),
}

impl Step for TagsAttached<'_> {
    const NAME: StepName = StepName::TagsAttached;
    type Act = Act;

    async fn observe(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        if came_with_the_cluster(m, SAVED)? {
            return Ok(Seen::done("AlreadyThere", "Infrastructure has the target already, field by field; its tags are left as they are"));
        }
        let everywhere = domains::everywhere(m)?;
        let mut changes = Vec::new();
        let mut first = None;
        for wanted in &everywhere {
            let look = self.memory.look(m, Self::NAME, wanted).await?;
            let missing = missing::tags(wanted, &look).inspect_err(|_| self.memory.blame(&wanted.server))?;
            let words = missing.words(&wanted.server);
            if !words.is_empty() && first.is_none() {
                let saved = m.saved(&record::key(SAVED, &wanted.server)).is_some();
                let what = if saved { What::Make(missing) } else { What::Save(missing.record()) };
                first = Some(Act { server: wanted.server.clone(), what });
            }
            changes.extend(words);
        }
        let servers: Vec<&str> = everywhere.iter().map(|wanted| wanted.server.as_str()).collect();
        Ok(match first {
            Some(act) => Seen::Todo { act, changes },
            None => Seen::done("Attached", format!("the tags of every failure domain are attached in {}", servers.join(" and "))),
        })
    }

    async fn observe_undo(&self, m: &Migration) -> Result<Seen<Act>, Stop> {
        let mut left = Vec::new();
        let sources = m.sources();
        for server in sources.iter().map(String::as_str).chain(m.targets()) {
            self.memory.forget(server);
            let Some(made) = record::read::<TagsMade>(m, &record::key(SAVED, server))? else { continue };
            if tags_undo::stay(&m.vmi) && sources.iter().any(|source| source == server) {
                left.push(format!("{server}: the tags by which Infrastructure goes on describing the source"));
                continue;
            }
            let (client, login) = vcenter::client(m, server).await?;
            let seen = tags_undo::look(&client, &made).await;
            let seen = seen.map_err(|error| login.stop("look at the tags to be taken back", &error))?;
            let back = tags_undo::decide(&made, &seen);
            let changes = back.words(server);
            let what = if !back.detach.is_empty() {
                What::Detach(back.detach)
            } else if !back.tags.is_empty() {
                What::Delete(back.tags)
            } else if !back.categories.is_empty() {
                What::DeleteCategories(back.categories)
            } else {
                left.extend(back.left.into_iter().map(|what| format!("{server}: {what}")));
                continue;
            };
            return Ok(Seen::Todo { act: Act { server: server.to_owned(), what }, changes });
        }
        Ok(undone(&left, "the tags"))
    }

    async fn act(&self, m: &Migration, act: Act, writer: &mut Writer<'_>) -> Result<(), Stop> {
        let server = &act.server;
        let (client, login) = match act.what {
            What::Save(made) => {
                let made = serde_json::to_value(&made).map_err(Stop::again)?;
                return writer.save(&record::key(SAVED, server), &made).await;
            }
            _ => vcenter::client(m, server).await?,
        };
        let stop = |what: &str, error: &vsphere::Error| login.stop(what, error);
        let tags = client.tags();
        let outcome = match act.what {
            What::Save(_) => Ok(()),
            What::Make(missing) => {
                let look = self.memory.look(m, Self::NAME, &self.wanted(m, server)?).await?;
                let what = format!("{server}: {}", next(&missing));
                let made = writer.vcenter(&what, stop, make(&client, missing, look)).await;
                made.map(|made| self.memory.changed(server, |look| *look = made))
            }
            What::Detach(pairs) => {
                let what = format!("{server}: detach {} tags", pairs.len());
                let each = pairs.iter().map(|(tag, object)| tags.detach(std::slice::from_ref(tag), std::slice::from_ref(object)));
                writer.vcenter(&what, stop, try_join_all(each)).await.map(drop)
            }
            What::Delete(these) => {
                let names: Vec<&str> = these.iter().map(|tag| tag.name.as_str()).collect();
                let what = format!("{server}: delete the tags {}", names.join(", "));
                writer.vcenter(&what, stop, gone(these.iter().map(|tag| tags.delete(tag)))).await
            }
            What::DeleteCategories(these) => {
                let names: Vec<&str> = these.iter().map(|category| category.name.as_str()).collect();
                let what = format!("{server}: delete the tag categories {}", names.join(", "));
                writer.vcenter(&what, stop, gone(these.iter().map(|category| tags.delete_category(category)))).await
            }
        };
        if outcome.is_err() {
            // Who knows how much of it was done.
            self.memory.forget(server);
        }
        outcome
    }
}

impl TagsAttached<'_> {
    fn wanted(&self, m: &Migration, server: &str) -> Result<crate::wanted::Wanted, Stop> {
        let all = domains::everywhere(m)?;
        all.into_iter().find(|wanted| wanted.server == server).ok_or_else(|| Stop::again(format!("{server} is no longer asked for")))
    }
}

/// What comes first of what is missing, in words.
fn next(missing: &MissingTags) -> String {
    let listed = |names: Vec<&str>| names.join(", ");
    if !missing.categories.is_empty() {
        return format!("make the tag categories {}", listed(missing.categories.iter().map(|spec| spec.name.as_str()).collect()));
    }
    if !missing.tags.is_empty() {
        return format!("make the tags {}", listed(missing.tags.iter().map(|tag| tag.name.as_str()).collect()));
    }
    format!("attach the tags {}", listed(missing.attachments.iter().map(|one| one.tag.as_str()).collect()))
}

/// Makes what comes first of what is missing, and returns the vCenter as it is then.
async fn make(client: &Client, missing: MissingTags, mut look: Look) -> vsphere::Result<Look> {
    let tags = client.tags();
    if !missing.categories.is_empty() {
        look.categories.extend(try_join_all(missing.categories.iter().map(|spec| tags.create_category(spec))).await?);
        return Ok(look);
    }
    if !missing.tags.is_empty() {
        let known = |tag: &TagName| look.category(&tag.category).cloned().map(|category| (category, tag.name.clone()));
        let these: Vec<(Category, String)> = missing.tags.iter().filter_map(known).collect();
        look.tags.extend(try_join_all(these.iter().map(|(category, name)| tags.create(category, name))).await?);
        return Ok(look);
    }
    let resolved = |one: &MissingAttachment| {
        let (category, tag) = (look.category(&one.category)?.clone(), look.tag(&one.category, &one.tag)?.clone());
        let objects: Vec<Ref> = one.spots.iter().map(|spot| spot.object.clone()).collect();
        Some((category, tag, objects))
    };
    let these: Vec<(Category, Tag, Vec<Ref>)> = missing.attachments.iter().filter_map(resolved).collect();
    try_join_all(these.iter().map(|(category, tag, objects)| tags.attach_to_untagged(category, tag, objects))).await?;
    for (_, tag, objects) in these {
        for object in objects {
            look.attached.entry(object).or_default().push(tag.id.clone());
        }
    }
    Ok(look)
}

/// All of these; one that is gone already is as good.
async fn gone(each: impl Iterator<Item = impl Future<Output = vsphere::Result<()>>>) -> vsphere::Result<()> {
    let deleted = each.map(|delete| async move {
        match delete.await {
            Err(error) if matches!(error.fault(), Fault::NotFound { .. }) => Ok(()),
            outcome => outcome,
        }
    });
    try_join_all(deleted).await.map(drop)
}
