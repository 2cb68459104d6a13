//! Groups of hosts in a cluster, which rules for placing virtual machines are made of.

use crate::{
    client::Client,
    error::Result,
    reference::Ref,
    soap::properties::{Value, objects, specification},
};

/// A group of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGroup {
    /// Its name, unique in its cluster.
    pub name: String,
    /// Its hosts.
    pub hosts: Vec<Ref>,
}

impl Client {
    /// The groups of hosts of a cluster; its groups of virtual machines are left out.
    ///
    /// # Errors
    /// As for every call.
    pub async fn host_groups(&self, cluster: &Ref) -> Result<Vec<HostGroup>> {
        const PROPERTY: &str = "configurationEx.group";
        let arguments = specification(&[("ClusterComputeResource", &[PROPERTY])], &objects([cluster]));
        let mut groups = Vec::new();
        let mut unread = None;
        self.core()
            .retrieve(&arguments, |found, begins| {
                if begins {
                    groups.clear();
                    unread = None;
                }
                for mut object in found {
                    if let Some(Value::HostGroups(read)) = object.take(PROPERTY) {
                        groups.extend(read);
                    }
                    unread = unread.take().or(object.missing.pop().map(|(_, fault)| fault));
                }
                true
            })
            .await?;
        match unread {
            Some(fault) => Err(self.core().error("RetrievePropertiesEx", Some(cluster), fault)),
            None => Ok(groups),
        }
    }
}
