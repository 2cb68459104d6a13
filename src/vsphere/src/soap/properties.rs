//! The property collector: what to ask for, and one page of its answer.

use crate::{
    error::{Fault, Trouble},
    groups::HostGroup,
    reference::Ref,
    soap::{element, fault, reference, response},
    xml::Xml,
};

/// Which properties of which type.
pub(crate) type Wanted<'a> = (&'a str, &'a [&'a str]);

/// The specification of a `RetrievePropertiesEx`.
pub(crate) fn specification(wanted: &[Wanted<'_>], object_set: &str) -> String {
    let mut arguments = String::from("<specSet>");
    for (kind, paths) in wanted {
        arguments.push_str("<propSet>");
        arguments.push_str(&element("type", kind));
        paths.iter().for_each(|path| arguments.push_str(&element("pathSet", path)));
        arguments.push_str("</propSet>");
    }
    arguments.push_str(object_set);
    arguments.push_str("</specSet>");
    arguments
}

/// Asks for exactly these objects.
pub(crate) fn objects<'a>(these: impl IntoIterator<Item = &'a Ref>) -> String {
    these.into_iter().map(|object| format!("<objectSet>{}</objectSet>", reference("obj", object))).collect()
}

/// One object of a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    pub(crate) reference: Ref,
    pub(crate) properties: Vec<(String, Value)>,
    pub(crate) missing: Vec<(String, Fault)>,
}

impl Object {
    /// Takes a property out; absence is no error, the collector omits what is unset.
    pub(crate) fn take(&mut self, path: &str) -> Option<Value> {
        let at = self.properties.iter().position(|(name, _)| name == path)?;
        Some(self.properties.swap_remove(at).1)
    }

    pub(crate) fn text(&mut self, path: &str) -> Option<String> {
        match self.take(path)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    pub(crate) fn flag(&mut self, path: &str) -> Option<bool> {
        self.text(path).map(|text| text == "true" || text == "1")
    }

    pub(crate) fn object(&mut self, path: &str) -> Option<Ref> {
        match self.take(path)? {
            Value::Ref(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn objects(&mut self, path: &str) -> Vec<Ref> {
        match self.take(path) {
            Some(Value::Refs(objects)) => objects,
            _ => Vec::new(),
        }
    }
}

/// A property's value, in the shapes this crate asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Texts(Vec<String>),
    Ref(Ref),
    Refs(Vec<Ref>),
    HostGroups(Vec<HostGroup>),
    Fault(Box<Trouble>),
}

/// One page, and the token of the next one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Object>,
    pub(crate) token: Option<String>,
}

impl Page {
    /// Reads the answer of `RetrievePropertiesEx` or its continuation.
    ///
    /// A lost session shows here as missing properties in a successful answer; that is an error too.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Fault> {
        let mut xml = response(body)?;
        let mut page = Self::default();
        while let Some(top) = xml.child()? {
            if top.name() != "returnval" {
                xml.skip()?;
                continue;
            }
            while let Some(item) = xml.child()? {
                match item.name() {
                    "token" => page.token = Some(xml.text()?),
                    "objects" => page.objects.push(object(&mut xml)?),
                    _ => xml.skip()?,
                }
            }
        }
        Ok(page)
    }
}

fn object(xml: &mut Xml<'_>) -> Result<Object, Fault> {
    let mut found = None;
    let mut properties = Vec::new();
    let mut missing = Vec::new();
    while let Some(item) = xml.child()? {
        match item.name() {
            "obj" => found = Some(xml.reference(&item)?),
            "propSet" => properties.extend(property(xml)?),
            "missingSet" => match absent(xml)? {
                (_, Fault::NotAuthenticated) => return Err(Fault::NotAuthenticated),
                other => missing.push(other),
            },
            _ => xml.skip()?,
        }
    }
    let reference = found.ok_or_else(|| Fault::Malformed("an object without its reference".into()))?;
    Ok(Object { reference, properties, missing })
}

fn property(xml: &mut Xml<'_>) -> Result<Option<(String, Value)>, Fault> {
    let (mut name, mut value) = (None, None);
    while let Some(item) = xml.child()? {
        match item.name() {
            "name" => name = Some(xml.text()?),
            "val" => {
                let kind = xml.xsi_type(&item).unwrap_or_default();
                value = Some(match kind.as_str() {
                    "ManagedObjectReference" => Value::Ref(xml.reference(&item)?),
                    "ArrayOfManagedObjectReference" => Value::Refs(references(xml)?),
                    "LocalizedMethodFault" => Value::Fault(Box::new(fault::localized(xml)?)),
                    "ArrayOfString" => Value::Texts(texts(xml)?),
                    "ArrayOfClusterGroupInfo" => Value::HostGroups(host_groups(xml)?),
                    "ArrayOfAuthorizationPrivilege" => Value::Texts(privileges(xml)?),
                    _ => Value::Text(xml.text()?),
                });
            }
            _ => xml.skip()?,
        }
    }
    Ok(name.zip(value))
}

fn absent(xml: &mut Xml<'_>) -> Result<(String, Fault), Fault> {
    let (mut path, mut fault) = (String::new(), Fault::default());
    while let Some(item) = xml.child()? {
        match item.name() {
            "path" => path = xml.text()?,
            "fault" => fault = fault::localized(xml)?.fault,
            _ => xml.skip()?,
        }
    }
    Ok((path, fault))
}

fn references(xml: &mut Xml<'_>) -> Result<Vec<Ref>, Fault> {
    let mut found = Vec::new();
    while let Some(item) = xml.child()? {
        found.push(xml.reference(&item)?);
    }
    Ok(found)
}

fn texts(xml: &mut Xml<'_>) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    while xml.child()?.is_some() {
        found.push(xml.text()?);
    }
    Ok(found)
}

fn host_groups(xml: &mut Xml<'_>) -> Result<Vec<HostGroup>, Fault> {
    let mut found = Vec::new();
    while let Some(item) = xml.child()? {
        let of_hosts = xml.xsi_type(&item).is_some_and(|kind| kind == "ClusterHostGroup");
        let (mut name, mut hosts) = (String::new(), Vec::new());
        while let Some(field) = xml.child()? {
            match field.name() {
                "name" => name = xml.text()?,
                "host" => hosts.push(xml.reference(&field)?),
                _ => xml.skip()?,
            }
        }
        if of_hosts {
            found.push(HostGroup { name, hosts });
        }
    }
    Ok(found)
}

fn privileges(xml: &mut Xml<'_>) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    while xml.child()?.is_some() {
        while let Some(field) = xml.child()? {
            if field.name() == "privId" { found.push(xml.text()?) } else { xml.skip()? }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(inner: &str) -> Result<Page, Fault> {
        Page::parse(
            format!(
                r#"<E:Envelope xmlns:E="e" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><E:Body>
                <RetrievePropertiesExResponse xmlns="urn:vim25"><returnval>{inner}</returnval></RetrievePropertiesExResponse></E:Body></E:Envelope>"#
            )
            .as_bytes(),
        )
    }

    #[test]
    fn of_the_groups_of_a_cluster_those_of_hosts_are_read() {
        let mut read = page(
            r#"<objects><obj type="ClusterComputeResource">domain-c1</obj><propSet><name>configurationEx.group</name>
            <val xsi:type="ArrayOfClusterGroupInfo">
            <ClusterGroupInfo xsi:type="ClusterVmGroup"><name>vms</name><vm type="VirtualMachine">vm-1</vm></ClusterGroupInfo>
            <ClusterGroupInfo xsi:type="ClusterHostGroup"><name>zone-1</name><userCreated>true</userCreated>
            <host type="HostSystem">host-1</host><host type="HostSystem">host-2</host></ClusterGroupInfo></val></propSet></objects>"#,
        )
        .unwrap();
        let hosts = ["host-1", "host-2"].map(|id| Ref::new("HostSystem", id)).to_vec();
        let wanted = Value::HostGroups(vec![HostGroup { name: "zone-1".into(), hosts }]);
        assert_eq!(read.objects[0].take("configurationEx.group"), Some(wanted));
    }

    #[test]
    fn a_page_gives_texts_references_lists_and_the_token() {
        let mut read = page(
            r#"<token>7</token><objects><obj type="HostSystem">host-1</obj>
            <propSet><name>name</name><val xsi:type="xsd:string">esx &amp; co</val></propSet>
            <propSet><name>parent</name><val type="ClusterComputeResource" xsi:type="ManagedObjectReference">domain-c1</val></propSet>
            <propSet><name>network</name><val xsi:type="ArrayOfManagedObjectReference"><ManagedObjectReference type="Network">network-7</ManagedObjectReference></val></propSet>
            <propSet><name>summary.hardware.numCpuCores</name><val xsi:type="xsd:short">16</val></propSet></objects>"#,
        )
        .unwrap();
        let host = &mut read.objects[0];
        assert_eq!(host.text("name").unwrap(), "esx & co");
        assert_eq!(host.object("parent").unwrap(), Ref::new("ClusterComputeResource", "domain-c1"));
        assert_eq!(host.objects("network"), [Ref::new("Network", "network-7")]);
        assert_eq!(host.number::<u32>("summary.hardware.numCpuCores"), Some(16));
        assert_eq!(host.text("unset"), None);
        assert_eq!(read.token.as_deref(), Some("7"));
    }

    #[test]
    fn a_lost_session_in_a_successful_answer_is_seen() {
        let missing = |kind: &str| {
            page(&format!(
                r#"<objects><obj type="Folder">group-d1</obj><missingSet><path>name</path>
                <fault><fault xsi:type="{kind}"><object type="Folder">group-d1</object><privilegeId>System.View</privilegeId></fault></fault></missingSet></objects>"#
            ))
        };
        assert_eq!(missing("NotAuthenticated").unwrap_err(), Fault::NotAuthenticated);
        let denied = missing("NoPermission").unwrap();
        assert!(matches!(&denied.objects[0].missing[0], (path, Fault::NoPermission { .. }) if path == "name"));
    }
}
