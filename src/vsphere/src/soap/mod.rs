//! The SOAP side of vSphere (`urn:vim25`): envelopes, faults, and the property collector.

pub(crate) mod arriving;
pub(crate) mod fault;
pub(crate) mod properties;

use crate::{
    error::{Fault, Trouble},
    reference::Ref,
    xml::{Xml, escaped},
};

/// Older versions are always served, newer ones than the server are refused, an empty one is refused since 7.0.
pub(crate) const VERSION: &str = "urn:vim25/7.0";

/// One method call on one object.
#[derive(Debug, Clone)]
pub(crate) struct Method<'a> {
    pub(crate) name: &'static str,
    pub(crate) object: &'a Ref,
    /// The arguments as XML in the order of the WSDL; real servers insist on it.
    pub(crate) arguments: String,
    /// Whether sending it twice does no harm.
    pub(crate) idempotent: bool,
    /// Whether it makes sense in another session than the one it was made for.
    pub(crate) replay: bool,
}

impl<'a> Method<'a> {
    /// A call that may be sent again without harm.
    pub(crate) fn repeatable(name: &'static str, object: &'a Ref, arguments: String) -> Self {
        Self { name, object, arguments, idempotent: true, replay: true }
    }

    /// A call that changes something and must not be sent twice.
    pub(crate) fn once(name: &'static str, object: &'a Ref, arguments: String) -> Self {
        Self { name, object, arguments, idempotent: false, replay: true }
    }

    /// The whole request; the operation id makes it findable in vCenter's own log.
    pub(crate) fn envelope(&self, operation: &str) -> String {
        let Self { name, object, arguments, .. } = self;
        format!(
            concat!(
                r#"<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" "#,
                r#"xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">"#,
                r#"<soapenv:Header><operationID xmlns="urn:vim25">{operation}</operationID></soapenv:Header>"#,
                r#"<soapenv:Body><{name} xmlns="urn:vim25">{this}{arguments}</{name}></soapenv:Body></soapenv:Envelope>"#
            ),
            operation = operation,
            name = name,
            this = reference("_this", object),
            arguments = arguments,
        )
    }
}

/// How the bytes of an answer become a value. A function reads all of them at once, [`arriving::Arriving`] those that are there.
pub(crate) trait Reading: Clone + Send {
    type Value;

    /// Called when bytes have come; takes those off the front that it has read.
    fn arrived(&mut self, _waiting: &mut Vec<u8>) -> Result<(), Fault> {
        Ok(())
    }

    /// Reads the rest, once all has come.
    fn end(self, rest: &[u8]) -> Result<Self::Value, Fault>;
}

impl<T, F: Fn(&[u8]) -> Result<T, Fault> + Clone + Send> Reading for F {
    type Value = T;

    fn end(self, whole: &[u8]) -> Result<T, Fault> {
        self(whole)
    }
}

/// An element with text.
pub(crate) fn element(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>", escaped(text))
}

/// An element that refers to an object.
pub(crate) fn reference(name: &str, object: &Ref) -> String {
    format!(r#"<{name} type="{}">{}</{name}>"#, escaped(object.kind.as_str()), escaped(&object.id))
}

/// Opens an answer and stops inside the method's response element.
pub(crate) fn response(body: &[u8]) -> Result<Xml<'_>, Fault> {
    let mut xml = Xml::new(body)?;
    xml.descend("Envelope")?;
    xml.descend("Body")?;
    match xml.child()? {
        Some(element) if element.name() == "Fault" => Err(Fault::Malformed("a fault in an answer that claims success".into())),
        Some(_) => Ok(xml),
        None => Err(Fault::Malformed("the SOAP body is empty".into())),
    }
}

/// The answer's `returnval` as a reference; `None` where the method has nothing to return.
pub(crate) fn returned_reference(body: &[u8]) -> Result<Option<Ref>, Fault> {
    Ok(returned_references(body)?.into_iter().next())
}

/// All of the answer's `returnval` references.
pub(crate) fn returned_references(body: &[u8]) -> Result<Vec<Ref>, Fault> {
    let mut xml = response(body)?;
    let mut found = Vec::new();
    while let Some(element) = xml.child()? {
        if element.name() == "returnval" { found.push(xml.reference(&element)?) } else { xml.skip()? }
    }
    Ok(found)
}

/// An answer without content.
pub(crate) fn nothing(body: &[u8]) -> Result<(), Fault> {
    response(body).map(|_| ())
}

/// Reads the body of an HTTP 500 answer.
pub(crate) fn refusal(body: &[u8]) -> Trouble {
    fault::parse(body).unwrap_or_else(Trouble::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_carries_the_operation_id_and_escapes_what_users_write() {
        let folder = Ref::new("Folder", "group-v3");
        let method = Method::once("CreateFolder", &folder, element("name", "a & <b>"));
        let envelope = method.envelope("op-1");
        assert!(envelope.contains(r#"<operationID xmlns="urn:vim25">op-1</operationID>"#));
        assert!(envelope.contains(
            r#"<CreateFolder xmlns="urn:vim25"><_this type="Folder">group-v3</_this><name>a &amp; &lt;b&gt;</name></CreateFolder>"#
        ));
    }

    #[test]
    fn an_answer_without_returnval_is_nothing_found() {
        let body = br#"<e:Envelope xmlns:e="x"><e:Body><FindByInventoryPathResponse xmlns="urn:vim25"/></e:Body></e:Envelope>"#;
        assert_eq!(returned_reference(body).unwrap(), None);
    }
}
