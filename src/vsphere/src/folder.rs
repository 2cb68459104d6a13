//! Folders: made where missing, deleted only when empty.

use std::time::Duration;

use crate::{
    client::Client,
    error::{Fault, Result},
    reference::{Kind, Ref},
    soap::{
        Method, element,
        properties::{Object, Value, objects, specification},
        returned_reference,
    },
};

/// A folder that is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsuredFolder {
    /// The folder.
    pub folder: Ref,
    /// Whether it was made just now; `false` if it was there before.
    pub created: bool,
}

impl Client {
    /// Makes a folder in another, or takes the one that is there already. The name is taken as written: `a/b` is one folder.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulated = vcsim::Vcsim::start();
    /// # let client = simulated.client();
    /// let parent = client.find_by_path("/dc-a/vm").await?.expect("every datacenter has it");
    /// let made = client.ensure_folder(&parent, "mycluster-x7k2p").await?;
    /// assert!(made.created);
    /// assert_eq!(client.ensure_folder(&parent, "mycluster-x7k2p").await?.folder, made.folder);
    /// # client.logout().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Fault::DuplicateName`] if the name belongs to something that is no folder.
    pub async fn ensure_folder(&self, parent: &Ref, name: &str) -> Result<EnsuredFolder> {
        // Some servers accept an empty name and hang ever after.
        if name.trim().is_empty() || name.chars().count() > 80 {
            let fault = Fault::Settings(format!("{name:?} is no name for a folder: it must have 1 to 80 characters"));
            return Err(self.core().error("CreateFolder", Some(parent), fault));
        }
        let method = Method::once("CreateFolder", parent, element("name", name));
        match self.core().soap(&method, returned_reference).await {
            Ok(Some(folder)) => Ok(EnsuredFolder { folder, created: true }),
            Ok(None) => Err(self.core().error("CreateFolder", Some(parent), Fault::Malformed("the answer names no folder".into()))),
            Err(error) => match error.fault() {
                Fault::DuplicateName { object: Some(folder), .. } if folder.kind == Kind::Folder => {
                    Ok(EnsuredFolder { folder: folder.clone(), created: false })
                }
                _ => Err(error),
            },
        }
    }

    /// Deletes an empty folder. vCenter itself would destroy whatever is in it; so one that holds anything is refused,
    /// and so are one whose content cannot be read and the root folder of a datacenter.
    ///
    /// # Errors
    /// [`Fault::NotEmpty`]; [`Fault::NotFound`] if it is gone already; why its content cannot be read.
    pub async fn delete_folder(&self, folder: &Ref, deadline: Duration) -> Result<()> {
        let read = self.content(folder).await?;
        deletable(folder, read).map_err(|fault| self.core().error("Destroy_Task", Some(folder), fault))?;
        let method = Method::once("Destroy_Task", folder, String::new());
        let (Some(task), operation) = self.core().soap_as(&method, returned_reference).await? else {
            return Err(self.core().error("Destroy_Task", Some(folder), Fault::Malformed("the answer names no task".into())));
        };
        self.wait(&task, deadline, |_| {}).await.map(|_| ()).map_err(|error| error.within(&operation))
    }

    /// How many things lie directly in a folder.
    ///
    /// # Errors
    /// [`Fault::NotFound`] if it is gone; why its content cannot be read.
    pub async fn children(&self, folder: &Ref) -> Result<usize> {
        let read = self.content(folder).await?;
        children(read).map(|children| children.len()).map_err(|fault| self.core().error("childEntity", Some(folder), fault))
    }

    async fn content(&self, folder: &Ref) -> Result<Option<Object>> {
        let arguments = specification(&[("Folder", &["childEntity", "parent"])], &objects([folder]));
        let mut read = None;
        self.core()
            .retrieve(&arguments, |found, _| {
                read = found.into_iter().find(|object| object.reference == *folder).or(read.take());
                true
            })
            .await?;
        Ok(read)
    }
}

/// Only a folder that has told its content, and told that it is empty, may go: an unread one may hold a whole cluster.
fn deletable(folder: &Ref, mut read: Option<Object>) -> Result<(), Fault> {
    let parent = read.as_mut().and_then(|object| object.object("parent"));
    let children = children(read)?;
    if !children.is_empty() {
        return Err(Fault::NotEmpty { children: children.len() });
    }
    if folder.kind != Kind::Folder || parent.is_none_or(|parent| parent.kind != Kind::Folder) {
        return Err(Fault::Settings("this is no ordinary folder but the root of something, and is not deleted".into()));
    }
    Ok(())
}

fn children(read: Option<Object>) -> Result<Vec<Ref>, Fault> {
    let untold = || Fault::Malformed("the answer does not tell what the folder holds, so it is not deleted".into());
    let mut object = read.ok_or_else(untold)?;
    if let Some((_, fault)) = object.missing.pop() {
        return Err(fault);
    }
    match object.take("childEntity") {
        Some(Value::Refs(children)) => Ok(children),
        _ => Err(untold()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(children: Option<Value>) -> Object {
        let mut properties = vec![("parent".to_owned(), Value::Ref(Ref::new("Folder", "group-v3")))];
        properties.extend(children.map(|children| ("childEntity".to_owned(), children)));
        Object { reference: Ref::new("Folder", "group-v9"), properties, missing: Vec::new() }
    }

    #[test]
    fn a_folder_is_deleted_only_if_it_has_told_that_it_is_empty() {
        let folder = Ref::new("Folder", "group-v9");
        let empty = || read(Some(Value::Refs(Vec::new())));
        assert_eq!(deletable(&folder, Some(empty())), Ok(()));
        for silent in [None, Some(read(None)), Some(read(Some(Value::Text(String::new()))))] {
            assert!(matches!(deletable(&folder, silent), Err(Fault::Malformed(_))));
        }
        let denied = Fault::NoPermission { privilege: "System.Read".into(), object: Some(folder.clone()) };
        for path in ["childEntity", "parent"] {
            let mut unread = empty();
            unread.missing.push((path.into(), denied.clone()));
            assert_eq!(deletable(&folder, Some(unread)), Err(denied.clone()));
        }
        let full = read(Some(Value::Refs(vec![Ref::new("VirtualMachine", "vm-1")])));
        assert_eq!(deletable(&folder, Some(full)), Err(Fault::NotEmpty { children: 1 }));
    }
}
