//! What a vCenter says about itself before anybody has logged in, and its clock.

use std::sync::Arc;

use crate::{
    client::Client,
    error::{Fault, Result},
    reference::Ref,
    session::{Core, SoapSession},
    soap::{Method, response},
    xml::Xml,
};

/// The vCenter's product, version and identity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct About {
    /// `VMware vCenter Server`.
    pub name: String,
    /// Name, version and build in one line.
    pub full_name: String,
    /// Such as `8.0.3`.
    pub version: String,
    /// The build number.
    pub build: String,
    /// `VirtualCenter`; an ESXi host says `HostAgent`.
    pub api_type: String,
    /// Such as `8.0.3.0`.
    pub api_version: String,
    /// The same vCenter under another name has the same one.
    pub instance_uuid: String,
}

impl About {
    /// Whether the version is at least this one; a part the server leaves out counts as zero.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulated = vcsim::Vcsim::start();
    /// # let client = simulated.client();
    /// assert!(client.about().await?.at_least([7, 0, 2]), "too old");
    /// # client.logout().await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn at_least(&self, floor: [u32; 3]) -> bool {
        version(&self.version) >= floor
    }
}

/// The first three numbers of a version.
pub(crate) fn version(text: &str) -> [u32; 3] {
    let mut parts = text.split('.').map(|part| part.trim().parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

/// The managers and roots of one vCenter; their ids differ from server to server and are never assumed.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) about: About,
    pub(crate) root_folder: Ref,
    pub(crate) property_collector: Ref,
    pub(crate) session_manager: Ref,
    pub(crate) search_index: Ref,
    pub(crate) authorization_manager: Ref,
    /// No step of a migration needs it, so a server without it is a vCenter all the same.
    pub(crate) task_manager: Option<Ref>,
}

impl Content {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Fault> {
        let mut xml = response(body)?;
        xml.descend("returnval")?;
        let mut about = About::default();
        let [mut root, mut collector, mut sessions, mut search, mut authorization, mut tasks] = [const { None }; 6];
        while let Some(field) = xml.child()? {
            let place = match field.name() {
                "about" => {
                    about = read_about(&mut xml)?;
                    continue;
                }
                "rootFolder" => &mut root,
                "propertyCollector" => &mut collector,
                "sessionManager" => &mut sessions,
                "searchIndex" => &mut search,
                "authorizationManager" => &mut authorization,
                "taskManager" => &mut tasks,
                _ => {
                    xml.skip()?;
                    continue;
                }
            };
            *place = Some(xml.reference(&field)?);
        }
        if about.api_type != "VirtualCenter" {
            return Err(Fault::NotVirtualCenter(about.full_name));
        }
        let present = |found: Option<Ref>, name: &str| found.ok_or_else(|| Fault::Malformed(format!("the service content has no {name}")));
        Ok(Self {
            about,
            root_folder: present(root, "rootFolder")?,
            property_collector: present(collector, "propertyCollector")?,
            session_manager: present(sessions, "sessionManager")?,
            search_index: present(search, "searchIndex")?,
            authorization_manager: present(authorization, "authorizationManager")?,
            task_manager: tasks,
        })
    }
}

fn read_about(xml: &mut Xml<'_>) -> Result<About, Fault> {
    let mut about = About::default();
    while let Some(field) = xml.child()? {
        let place = match field.name() {
            "name" => &mut about.name,
            "fullName" => &mut about.full_name,
            "version" => &mut about.version,
            "build" => &mut about.build,
            "apiType" => &mut about.api_type,
            "apiVersion" => &mut about.api_version,
            "instanceUuid" => &mut about.instance_uuid,
            _ => {
                xml.skip()?;
                continue;
            }
        };
        *place = xml.text()?;
    }
    Ok(about)
}

/// The two clocks, compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The vCenter's time.
    pub server: jiff::Timestamp,
    /// How far it is ahead of ours; negative when behind. Half of the round trip is taken off.
    pub ahead: jiff::SignedDuration,
}

impl Client {
    /// Product, version and instance id; needs no login and is asked once.
    ///
    /// # Errors
    /// The server cannot be reached, is not trusted, or is not a vCenter.
    pub async fn about(&self) -> Result<About> {
        Ok(self.core().content().await?.about.clone())
    }

    /// The vCenter's clock. Also the cheapest proof that the session lives.
    ///
    /// # Errors
    /// As for every call.
    pub async fn clock(&self) -> Result<Clock> {
        self.core().clock().await
    }
}

impl Core {
    pub(crate) async fn clock(self: &Arc<Self>) -> Result<Clock> {
        let instance = Ref::new("ServiceInstance", "ServiceInstance");
        let before = jiff::Timestamp::now();
        let server = self.soap(&Method::repeatable("CurrentTime", &instance, String::new()), current_time).await?;
        let after = jiff::Timestamp::now();
        let middle = before + after.duration_since(before) / 2;
        Ok(Clock { server, ahead: server.duration_since(middle) })
    }

    /// Asks the clock in exactly this session, only to use it.
    pub(crate) async fn clock_in(&self, session: &SoapSession) -> Result<()> {
        let instance = Ref::new("ServiceInstance", "ServiceInstance");
        self.soap_once(&Method::repeatable("CurrentTime", &instance, String::new()), &session.cookie, current_time).await.map(|_| ())
    }
}

pub(crate) fn current_time(body: &[u8]) -> Result<jiff::Timestamp, Fault> {
    let mut xml = response(body)?;
    xml.descend("returnval")?;
    let text = xml.text()?;
    text.trim().parse().map_err(|error| Fault::Malformed(format!("{text:?} is not a time: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_and_not_by_text() {
        let about = |version: &str| About { version: version.into(), ..About::default() };
        assert!(about("10.0").at_least([7, 0, 2]));
        assert!(about("7.0.2").at_least([7, 0, 2]));
        assert!(!about("7.0.1").at_least([7, 0, 2]));
        assert!(!about("").at_least([7, 0, 2]));
    }
}
