//! A pull reader for SOAP answers: no tree is built, nesting is bounded, and `xsi:type` is known by its namespace.
//!
//! Servers choose their prefixes freely, and references carry a second, plain `type` attribute on the same
//! element, so neither prefixes nor local names can tell the two apart.

use std::borrow::Cow;

use quick_xml::{
    NsReader, XmlVersion,
    escape::resolve_xml_entity,
    events::{BytesStart, Event},
    name::{Namespace, ResolveResult},
};

use crate::{error::Fault, reference::Ref};

const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// Real answers stay below twenty; a deeper one is an attack or a bug, and not followed.
const DEEPEST: usize = 64;

/// An element whose start has been read; its content is next.
pub(crate) struct Element<'a>(BytesStart<'a>);

impl Element<'_> {
    /// The name without prefix.
    pub(crate) fn name(&self) -> &str {
        self.0.name().local_name().into_inner()
    }
}

/// Reads one document. After [`Xml::child`] has returned an element, its content must be consumed by
/// [`Xml::text`], [`Xml::skip`] or [`Xml::child`] until `None`.
pub(crate) struct Xml<'a> {
    reader: NsReader<&'a [u8]>,
    depth: usize,
}

impl<'a> Xml<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(body).map_err(|error| Fault::Malformed(format!("not UTF-8: {error}")))?;
        let mut reader = NsReader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Ok(Self { reader, depth: 0 })
    }

    /// The next element inside the current one; `None` once the current one ends.
    pub(crate) fn child(&mut self) -> Result<Option<Element<'a>>, Fault> {
        loop {
            match self.reader.read_event().map_err(malformed)? {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Err(Fault::Malformed(format!("nested deeper than {DEEPEST} elements")));
                    }
                    return Ok(Some(Element(start)));
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(None);
                }
                Event::Eof if self.depth == 0 => return Ok(None),
                Event::Eof => return Err(Fault::Malformed("cut off in the middle".into())),
                Event::DocType(_) => return Err(Fault::Malformed("a document type declaration has no place in SOAP".into())),
                _ => {}
            }
        }
    }

    /// Finds the child of that name, skipping others.
    pub(crate) fn descend(&mut self, name: &str) -> Result<Element<'a>, Fault> {
        while let Some(element) = self.child()? {
            if element.name() == name {
                return Ok(element);
            }
            self.skip()?;
        }
        Err(Fault::Malformed(format!("element {name} is missing")))
    }

    /// The current element's text; elements inside it are passed over.
    pub(crate) fn text(&mut self) -> Result<String, Fault> {
        let mut text = String::new();
        loop {
            match self.reader.read_event().map_err(malformed)? {
                Event::Text(part) => text.push_str(&part.xml10_content()),
                Event::CData(part) => text.push_str(&part.xml10_content()),
                Event::GeneralRef(entity) => match entity.resolve_char_ref().map_err(malformed)? {
                    Some(character) => text.push(character),
                    None => text.push_str(
                        resolve_xml_entity(&entity.xml10_content()).ok_or_else(|| Fault::Malformed("an undeclared entity".into()))?,
                    ),
                },
                Event::Start(_) => {
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Err(Fault::Malformed(format!("nested deeper than {DEEPEST} elements")));
                    }
                    self.skip()?;
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(text);
                }
                Event::Eof => return Err(Fault::Malformed("cut off in the middle".into())),
                _ => {}
            }
        }
    }

    /// Passes over the rest of the current element.
    pub(crate) fn skip(&mut self) -> Result<(), Fault> {
        let floor = self.depth;
        loop {
            if self.child()?.is_none() && self.depth < floor {
                return Ok(());
            }
        }
    }

    /// The local part of the element's `xsi:type`; ask before its content is read.
    pub(crate) fn xsi_type(&self, element: &Element<'_>) -> Option<String> {
        element.0.attributes().flatten().find_map(|attribute| {
            let (namespace, local) = self.reader.resolver().resolve_attribute(attribute.key);
            let ours = matches!(namespace, ResolveResult::Bound(Namespace(SCHEMA_INSTANCE))) && local.into_inner() == "type";
            ours.then(|| attribute.value.rsplit(':').next().unwrap_or_default().to_owned())
        })
    }

    /// Reads the element as a managed object reference.
    pub(crate) fn reference(&mut self, element: &Element<'_>) -> Result<Ref, Fault> {
        let kind = element
            .0
            .attributes()
            .flatten()
            .find(|attribute| attribute.key.as_ref() == "type")
            .and_then(|attribute| attribute.normalized_value(XmlVersion::Explicit1_0).ok().map(Cow::into_owned))
            .ok_or_else(|| Fault::Malformed(format!("{} is a reference without a type", element.name())))?;
        let id = self.text()?;
        if id.is_empty() {
            return Err(Fault::Malformed(format!("{} is an empty reference", element.name())));
        }
        Ok(Ref::new(&kind, &id))
    }
}

fn malformed(error: impl std::fmt::Display) -> Fault {
    Fault::Malformed(format!("not XML: {error}"))
}

/// Text made fit for an element's content or an attribute.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    quick_xml::escape::escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_type_is_known_by_namespace_and_not_by_prefix() {
        let text =
            br#"<val type="Folder" xmlns:_X="http://www.w3.org/2001/XMLSchema-instance" _X:type="ManagedObjectReference">group-2</val>"#;
        let mut xml = Xml::new(text).unwrap();
        let val = xml.child().unwrap().unwrap();
        assert_eq!(xml.xsi_type(&val).unwrap(), "ManagedObjectReference");
        assert_eq!(xml.reference(&val).unwrap(), Ref::new("Folder", "group-2"));
    }

    #[test]
    fn text_keeps_entities_character_references_and_cdata() {
        let mut xml = Xml::new(b"<a>x &amp; y&#x2f;<!-- no --><![CDATA[<z>]]></a>").unwrap();
        xml.child().unwrap().unwrap();
        assert_eq!(xml.text().unwrap(), "x & y/<z>");
    }

    #[test]
    fn truncated_deep_and_foreign_input_is_refused_with_words() {
        let read = |body: &[u8]| -> Result<(), Fault> {
            let mut xml = Xml::new(body)?;
            xml.descend("a")?;
            xml.skip()
        };
        let words = |body: &[u8]| read(body).unwrap_err().to_string();
        assert!(words(b"<a><b>").contains("cut off"), "{}", words(b"<a><b>"));
        assert!(words("<a>".repeat(100_000).as_bytes()).contains("nested deeper"));
        assert!(words(b"{\"json\":true}").contains("missing"));
        assert!(words(b"\xff\xfe").contains("UTF-8"));
        assert!(words(b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>").contains("document type"));
        assert!(words(b"<a></b>").contains("not XML"));
    }

    #[test]
    fn skipping_ends_exactly_at_the_end_of_the_element() {
        let mut xml = Xml::new(b"<r><a><b><c/></b><d/></a><e>here</e></r>").unwrap();
        xml.descend("r").unwrap();
        let a = xml.child().unwrap().unwrap();
        assert_eq!(a.name(), "a");
        xml.skip().unwrap();
        xml.descend("e").unwrap();
        assert_eq!(xml.text().unwrap(), "here");
        assert!(xml.child().unwrap().is_none());
    }
}
