//! SOAP faults and the faults inside task results and missing properties: told apart by `xsi:type`,
//! because element names differ from server to server.

use crate::{
    error::{Fault, Trouble},
    reference::Ref,
    xml::{Element, Xml},
};

/// The fields of a fault that mean something to anybody.
#[derive(Default)]
struct Fields {
    privilege: Option<String>,
    object: Option<Ref>,
    name: Option<String>,
    property: Option<String>,
}

/// Reads a whole fault answer.
pub(crate) fn parse(body: &[u8]) -> Result<Trouble, Fault> {
    let mut xml = Xml::new(body)?;
    xml.descend("Envelope")?;
    xml.descend("Body")?;
    xml.descend("Fault")?;
    let (mut words, mut code, mut fault) = (String::new(), String::new(), None);
    while let Some(element) = xml.child()? {
        match element.name() {
            "faultcode" => code = xml.text()?,
            "faultstring" => words = xml.text()?,
            "detail" => fault = detail(&mut xml)?,
            _ => xml.skip()?,
        }
    }
    let fault = fault.unwrap_or_else(|| Fault::Other { kind: code.rsplit(':').next().unwrap_or_default().to_owned() });
    Ok(Trouble { fault, words })
}

fn detail(xml: &mut Xml<'_>) -> Result<Option<Fault>, Fault> {
    let mut fault = None;
    while let Some(element) = xml.child()? {
        if fault.is_none() { fault = Some(typed(xml, &element)?) } else { xml.skip()? }
    }
    Ok(fault)
}

/// Reads one fault element, of which only the start has been read.
pub(crate) fn typed(xml: &mut Xml<'_>, element: &Element<'_>) -> Result<Fault, Fault> {
    // Without a schema type the element's name is all there is; its ending is a habit of the WSDL.
    let kind = xml.xsi_type(element).unwrap_or_else(|| element.name().strip_suffix("Fault").unwrap_or(element.name()).to_owned());
    let mut fields = Fields::default();
    while let Some(field) = xml.child()? {
        match field.name() {
            "privilegeId" => fields.privilege = Some(xml.text()?),
            "object" | "obj" => fields.object = Some(xml.reference(&field)?),
            "name" => fields.name = Some(xml.text()?),
            "invalidProperty" => fields.property = Some(xml.text()?),
            _ => xml.skip()?,
        }
    }
    Ok(classify(kind, fields))
}

/// A `LocalizedMethodFault`: the fault and the words beside it.
pub(crate) fn localized(xml: &mut Xml<'_>) -> Result<Trouble, Fault> {
    let mut trouble = Trouble::from(Fault::default());
    while let Some(element) = xml.child()? {
        match element.name() {
            "fault" => trouble.fault = typed(xml, &element)?,
            "localizedMessage" => trouble.words = xml.text()?,
            _ => xml.skip()?,
        }
    }
    Ok(trouble)
}

fn classify(kind: String, fields: Fields) -> Fault {
    match kind.as_str() {
        "InvalidLogin" | "PasswordExpired" => Fault::InvalidLogin,
        "NotAuthenticated" => Fault::NotAuthenticated,
        "NoPermission" => Fault::NoPermission { privilege: fields.privilege.unwrap_or_default(), object: fields.object },
        "ManagedObjectNotFound" | "NotFound" => Fault::NotFound { object: fields.object },
        "DuplicateName" => Fault::DuplicateName { name: fields.name.unwrap_or_default(), object: fields.object },
        "AlreadyExists" => Fault::AlreadyExists,
        "InUse" | "ResourceInUse" => Fault::InUse,
        "InvalidArgument" => Fault::InvalidArgument { property: fields.property.unwrap_or_default() },
        "InvalidProperty" => Fault::InvalidArgument { property: fields.name.unwrap_or_default() },
        _ => Fault::Other { kind },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(detail: &str) -> Trouble {
        let body = format!(
            r#"<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:i="http://www.w3.org/2001/XMLSchema-instance">
            <soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>Words.</faultstring><detail>{detail}</detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>"#
        );
        parse(body.as_bytes()).unwrap()
    }

    #[test]
    fn a_fault_is_known_by_its_schema_type_and_not_by_its_element() {
        let trouble = fault(
            r#"<XyzFault xmlns="urn:vim25" i:type="NoPermission"><object type="Folder">group-v3</object><privilegeId>Folder.Create</privilegeId></XyzFault>"#,
        );
        let object = Some(Ref::new("Folder", "group-v3"));
        assert_eq!(trouble.fault, Fault::NoPermission { privilege: "Folder.Create".into(), object });
        assert_eq!(trouble.words, "Words.");
    }

    #[test]
    fn without_a_schema_type_the_element_names_the_fault() {
        assert_eq!(fault("<InvalidLoginFault/>").fault, Fault::InvalidLogin);
    }

    #[test]
    fn an_unknown_fault_keeps_its_type_name_and_one_without_detail_its_code() {
        assert_eq!(fault(r#"<F i:type="TooManyTuples"/>"#).fault, Fault::Other { kind: "TooManyTuples".into() });
        assert_eq!(fault("").fault, Fault::Other { kind: "ServerFaultCode".into() });
    }

    #[test]
    fn a_taken_name_says_who_has_it() {
        let trouble = fault(r#"<F i:type="DuplicateName"><name>x7k2p</name><object type="Folder">group-74</object></F>"#);
        assert_eq!(trouble.fault, Fault::DuplicateName { name: "x7k2p".into(), object: Some(Ref::new("Folder", "group-74")) });
    }
}
