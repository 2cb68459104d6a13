//! What the session's own user may do.

use std::collections::{HashMap, HashSet};

use crate::{
    client::Client,
    error::{Fault, Result},
    reference::Ref,
    soap::{
        Method, element,
        properties::{Value, objects, specification},
        reference, response,
    },
};

/// Privileges the user lacks on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The object.
    pub object: Ref,
    /// The privileges, in the order they were asked for; never empty.
    pub privileges: Vec<String>,
}

impl Client {
    /// Which of these privileges the user lacks, over many objects in one call; empty is good.
    ///
    /// Privileges this version of vCenter does not have at all are left out: nobody could grant them.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulated = vcsim::Vcsim::start();
    /// # let client = simulated.client();
    /// let folder = client.find_by_path("/dc-a/vm").await?.ok_or("every datacenter has it")?;
    /// for missing in client.missing_privileges(&[(folder, vec!["Folder.Create", "Folder.Delete"])]).await? {
    ///     println!("on {}: {}", missing.object, missing.privileges.join(", "));
    /// }
    /// # client.logout().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for every call.
    pub async fn missing_privileges(&self, wanted: &[(Ref, Vec<&str>)]) -> Result<Vec<Missing>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let session = self.core().soap_session().await?;
        // The user as the server spells it: another spelling of the domain is another user to it.
        let mut arguments: String = wanted.iter().map(|(object, _)| reference("entities", object)).collect();
        arguments.push_str(&element("userName", &session.user));
        let method = Method::repeatable("FetchUserPrivilegeOnEntities", &session.content.authorization_manager, arguments);
        let granted = self.core().soap(&method, granted).await?;
        let mut missing: Vec<Missing> = Vec::new();
        for (object, privileges) in wanted {
            let has = |privilege: &str| granted.get(object).is_some_and(|set| set.contains(privilege));
            let privileges: Vec<String> = privileges.iter().filter(|one| !has(one)).map(|one| (*one).to_owned()).collect();
            if !privileges.is_empty() {
                missing.push(Missing { object: object.clone(), privileges });
            }
        }
        if !missing.is_empty() {
            let known = self.known_privileges().await?;
            // An empty list is a server that does not tell, not one without privileges.
            if !known.is_empty() {
                missing.iter_mut().for_each(|one| one.privileges.retain(|privilege| known.contains(privilege)));
                missing.retain(|one| !one.privileges.is_empty());
            }
        }
        Ok(missing)
    }

    /// Every privilege this vCenter knows.
    async fn known_privileges(&self) -> Result<HashSet<String>> {
        let manager = self.core().soap_session().await?.content.authorization_manager.clone();
        let arguments = specification(&[("AuthorizationManager", &["privilegeList"])], &objects([&manager]));
        let mut known = HashSet::new();
        self.core()
            .retrieve(&arguments, |found, _| {
                for mut object in found {
                    if let Some(Value::Texts(names)) = object.take("privilegeList") {
                        known.extend(names);
                    }
                }
                true
            })
            .await?;
        Ok(known)
    }
}

/// Reads who may do what.
pub(crate) fn granted(body: &[u8]) -> Result<HashMap<Ref, HashSet<String>>, Fault> {
    let mut xml = response(body)?;
    let mut granted: HashMap<Ref, HashSet<String>> = HashMap::new();
    while let Some(element) = xml.child()? {
        if element.name() != "returnval" {
            xml.skip()?;
            continue;
        }
        let (mut entity, mut privileges) = (None, HashSet::new());
        while let Some(field) = xml.child()? {
            match field.name() {
                "entity" => entity = Some(xml.reference(&field)?),
                "privileges" => drop(privileges.insert(xml.text()?)),
                _ => xml.skip()?,
            }
        }
        if let Some(entity) = entity {
            granted.entry(entity).or_default().extend(privileges);
        }
    }
    Ok(granted)
}
