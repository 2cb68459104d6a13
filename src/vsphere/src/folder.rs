//! Folders: made where missing, deleted only when empty.

use std::time::Duration;

use crate::{
    client::Client,
    error::{Fault, Result},
    reference::{Kind, Ref},
    soap::{
        Method, element,
        properties::{objects, specification},
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
    /// ```no_run
    /// # async fn make(client: vsphere::Client) -> vsphere::Result<()> {
    /// let parent = client.find_by_path("/dc-a/vm").await?.expect("every datacenter has it");
    /// let made = client.ensure_folder(&parent, "mycluster-x7k2p").await?;
    /// println!("{} {}", made.folder, made.created);
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
    /// and so is the root folder of a datacenter.
    ///
    /// # Errors
    /// [`Fault::NotEmpty`]; [`Fault::NotFound`] if it is gone already.
    pub async fn delete_folder(&self, folder: &Ref, deadline: Duration) -> Result<()> {
        let arguments = specification(&[("Folder", &["childEntity", "parent"])], &objects([folder]));
        let (mut children, mut parent) = (0, None);
        self.core()
            .retrieve(&arguments, |found, _| {
                for mut object in found {
                    children = object.objects("childEntity").len();
                    parent = object.object("parent");
                }
                true
            })
            .await?;
        if children > 0 {
            return Err(self.core().error("Destroy_Task", Some(folder), Fault::NotEmpty { children }));
        }
        if folder.kind != Kind::Folder || parent.is_none_or(|parent| parent.kind != Kind::Folder) {
            let fault = Fault::Settings("this is no ordinary folder but the root of something, and is not deleted".into());
            return Err(self.core().error("Destroy_Task", Some(folder), fault));
        }
        let method = Method::once("Destroy_Task", folder, String::new());
        let Some(task) = self.core().soap(&method, returned_reference).await? else {
            return Err(self.core().error("Destroy_Task", Some(folder), Fault::Malformed("the answer names no task".into())));
        };
        self.wait(&task, deadline, |_| {}).await.map(|_| ())
    }
}
