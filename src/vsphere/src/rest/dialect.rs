//! The two spellings of the same REST API: `/rest`, which every vCenter up to 9.0 speaks, and `/api`, its successor since 7.0.2.
//!
//! They differ in paths, in the envelope around bodies and answers, and in how they name errors. All of that is here.
//! `/api` is written from <https://developer.broadcom.com/xapis/vsphere-automation-api/latest/cis-tagging>.

use reqwest::{Method as Verb, StatusCode};
use serde_json::{Value, json};

use super::{DELETE, GET, POST, by_status};
use crate::{
    about::version,
    error::{Fault, Trouble},
    reference::Ref,
    secret::Secret,
};

/// Which spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Rest,
    Api,
}

/// A request, before it is bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    base: String,
    /// The one thing it is about, with the dialect's mark before it.
    id: Option<(&'static str, String)>,
    about: Option<String>,
    query: String,
    /// JSON, already text: a list of thousands of objects would be many times larger as a tree.
    pub(crate) body: Option<String>,
    pub(crate) idempotent: bool,
}

impl Request {
    /// What is asked for on the wire.
    pub(crate) fn path(&self) -> String {
        let id = self.id.as_ref().map_or_else(String::new, |(mark, id)| format!("/{mark}{}", encoded(id)));
        format!("{}{id}{}", self.base, self.query)
    }

    /// The same for all things of a kind, fit for logs.
    pub(crate) fn label(&self) -> String {
        format!("{} {}{}{}", self.verb, self.base, if self.id.is_some() { "/{id}" } else { "" }, self.query)
    }

    pub(crate) fn object(&self) -> Option<String> {
        self.about.clone().or_else(|| self.id.as_ref().map(|(_, id)| id.clone()))
    }

    /// The same request, with what it is about where its path does not tell.
    pub(crate) fn about(self, object: &Ref) -> Self {
        Self { about: Some(object.to_string()), ..self }
    }
}

/// Ids are URNs; colons may stand in a path as they are, anything unexpected may not.
fn encoded(id: &str) -> String {
    id.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b':' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

impl Dialect {
    /// `/rest` is what everything else around a vCenter uses up to 8; from 9 on its removal is announced.
    pub(crate) fn for_version(api_version: &str) -> Self {
        if version(api_version) >= [9, 0, 0] { Self::Api } else { Self::Rest }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Rest => Self::Api,
            Self::Api => Self::Rest,
        }
    }

    fn request(self, verb: Verb, what: &str, idempotent: bool) -> Request {
        let base = match self {
            Self::Rest => format!("/rest/com/vmware/cis/{what}"),
            Self::Api => format!("/api/cis/{what}"),
        };
        Request { verb, base, id: None, about: None, query: String::new(), body: None, idempotent }
    }

    fn with_id(self, request: Request, id: &str) -> Request {
        let mark = if self == Self::Rest { "id:" } else { "" };
        Request { id: Some((mark, id.to_owned())), ..request }
    }

    fn action(self, request: Request, action: &str, body: String) -> Request {
        let mark = if self == Self::Rest { "~" } else { "" };
        Request { query: format!("?{mark}action={action}"), body: Some(body), ..request }
    }

    pub(crate) fn login(self) -> Request {
        self.session(POST, false)
    }

    pub(crate) fn logout(self) -> Request {
        self.session(DELETE, true)
    }

    /// Asks what the server knows of the session. As any call in it, this counts as using it, and no other is as cheap.
    pub(crate) fn this_session(self) -> Request {
        match self {
            Self::Rest => Request { query: "?~action=get".into(), ..self.session(POST, true) },
            Self::Api => self.session(GET, true),
        }
    }

    fn session(self, verb: Verb, idempotent: bool) -> Request {
        let mut request = self.request(verb, "session", idempotent);
        if self == Self::Api {
            request.base = "/api/session".into();
        }
        request
    }

    /// All ids of `category` or `tag`.
    pub(crate) fn list(self, what: &str) -> Request {
        self.request(GET, &format!("tagging/{what}"), true)
    }

    pub(crate) fn get(self, what: &str, id: &str) -> Request {
        self.with_id(self.request(GET, &format!("tagging/{what}"), true), id)
    }

    pub(crate) fn delete(self, what: &str, id: &str) -> Request {
        self.with_id(self.request(DELETE, &format!("tagging/{what}"), false), id)
    }

    pub(crate) fn create(self, what: &str, spec: Value) -> Request {
        let body = if self == Self::Rest { json!({ "create_spec": spec }) } else { spec };
        Request { body: Some(body.to_string()), ..self.request(POST, &format!("tagging/{what}"), false) }
    }

    pub(crate) fn tags_of_category(self, category: &str) -> Request {
        let request = self.request(POST, "tagging/tag", true);
        match self {
            Self::Rest => self.action(self.with_id(request, category), "list-tags-for-category", "{}".into()),
            Self::Api => self.action(request, "list-tags-for-category", json!({ "category_id": category }).to_string()),
        }
    }

    /// An action on associations; all of them may be repeated without harm.
    pub(crate) fn association(self, tag: Option<&str>, action: &str, body: &str) -> Request {
        let mut request = self.request(POST, "tagging/tag-association", true);
        if let Some(tag) = tag {
            request = self.with_id(request, tag);
        }
        self.action(request, action, body.to_owned())
    }

    /// Takes the value out of an answer. An empty answer is no value, and so is `null`.
    pub(crate) fn unwrap(self, body: &[u8]) -> Result<Value, Fault> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        let value: Value = serde_json::from_slice(body).map_err(|error| Fault::Malformed(format!("not JSON: {error}")))?;
        match (self, value) {
            (Self::Rest, Value::Object(mut object)) => Ok(object.remove("value").unwrap_or(Value::Null)),
            (Self::Rest, _) => Err(Fault::Malformed("the answer has no value".into())),
            (Self::Api, value) => Ok(value),
        }
    }

    /// The session's id in an answer to a login that may have been cut off behind it.
    pub(crate) fn session_in(self, body: &[u8]) -> Option<Secret> {
        let text = std::str::from_utf8(body).ok()?;
        let text = if self == Self::Rest { text.split_once("\"value\"")?.1.trim_start().strip_prefix(':')? } else { text };
        let (id, _) = text.trim_start().strip_prefix('"')?.split_once('"')?;
        (!id.is_empty()).then(|| Secret::from(id))
    }

    /// Reads an error: by its type where the body names one, by its status otherwise; never by its content type, which lies.
    pub(crate) fn refusal(self, status: StatusCode, body: &[u8]) -> Trouble {
        let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let (kind, detail) = match self {
            Self::Rest => (value["type"].as_str().and_then(|kind| kind.rsplit('.').next()), &value["value"]),
            Self::Api => (value["error_type"].as_str(), &value),
        };
        let words: Vec<&str> =
            detail["messages"].as_array().into_iter().flatten().filter_map(|one| one["default_message"].as_str()).collect();
        let fault = match kind.unwrap_or_default().to_ascii_lowercase().as_str() {
            "already_exists" => Fault::AlreadyExists,
            "not_found" => Fault::NotFound { object: None },
            "unauthenticated" => Fault::NotAuthenticated,
            "unauthorized" => Fault::NoPermission { privilege: String::new(), object: None },
            "invalid_argument" => Fault::InvalidArgument { property: String::new() },
            "resource_in_use" => Fault::InUse,
            "" => by_status(status),
            _ => Fault::Other { kind: kind.unwrap_or_default().to_owned() },
        };
        Trouble { fault, words: words.join(" ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_gets_the_dialect_it_is_known_to_speak() {
        for (version, dialect) in
            [("7.0.2.0", Dialect::Rest), ("8.0.3.0", Dialect::Rest), ("9.0.0.0", Dialect::Api), ("10.1", Dialect::Api)]
        {
            assert_eq!(Dialect::for_version(version), dialect, "{version}");
        }
    }

    #[test]
    fn both_dialects_name_the_same_things_their_own_way() {
        let urn = "urn:vmomi:InventoryServiceTag:1:GLOBAL";
        let paths = |dialect: Dialect| {
            [dialect.login(), dialect.this_session(), dialect.get("tag", urn), dialect.tags_of_category("c")].map(|request| request.path())
        };
        assert_eq!(
            paths(Dialect::Rest),
            [
                "/rest/com/vmware/cis/session".to_owned(),
                "/rest/com/vmware/cis/session?~action=get".to_owned(),
                format!("/rest/com/vmware/cis/tagging/tag/id:{urn}"),
                "/rest/com/vmware/cis/tagging/tag/id:c?~action=list-tags-for-category".to_owned(),
            ]
        );
        assert_eq!(
            paths(Dialect::Api),
            [
                "/api/session".to_owned(),
                "/api/session".to_owned(),
                format!("/api/cis/tagging/tag/{urn}"),
                "/api/cis/tagging/tag?action=list-tags-for-category".to_owned()
            ]
        );
        assert_eq!(Dialect::Rest.get("tag", "a/b c").path(), "/rest/com/vmware/cis/tagging/tag/id:a%2Fb%20c");
        assert_eq!(Dialect::Rest.get("tag", urn).label(), "GET /rest/com/vmware/cis/tagging/tag/{id}");
    }

    #[test]
    fn the_id_of_a_session_is_found_in_an_answer_cut_off_behind_it_and_not_in_one_cut_off_before() {
        let found = |dialect: Dialect, body: &str| dialect.session_in(body.as_bytes()).map(|id| id.reveal().to_owned());
        assert_eq!(found(Dialect::Api, "\"abc\""), Some("abc".into()));
        assert_eq!(found(Dialect::Rest, "{\"value\": \"abc\""), Some("abc".into()));
        for (dialect, body) in [(Dialect::Api, "\"ab"), (Dialect::Rest, "{\"value\":\"ab"), (Dialect::Rest, "{\"va"), (Dialect::Api, "")] {
            assert_eq!(found(dialect, body), None, "{body}");
        }
    }

    #[test]
    fn errors_are_known_by_type_first_and_by_status_otherwise() {
        let rest = br#"{"type":"com.vmware.vapi.std.errors.already_exists","value":{"messages":[{"default_message":"Taken."}]}}"#;
        let trouble = Dialect::Rest.refusal(StatusCode::BAD_REQUEST, rest);
        assert_eq!((trouble.fault, trouble.words.as_str()), (Fault::AlreadyExists, "Taken."));
        let api = br#"{"error_type":"RESOURCE_IN_USE","messages":[]}"#;
        assert_eq!(Dialect::Api.refusal(StatusCode::BAD_REQUEST, api).fault, Fault::InUse);
        assert_eq!(Dialect::Rest.refusal(StatusCode::UNAUTHORIZED, b"").fault, Fault::NotAuthenticated);
        assert_eq!(Dialect::Rest.refusal(StatusCode::NOT_FOUND, b"404 page not found").fault, Fault::NotFound { object: None });
        let odd = Dialect::Rest.refusal(StatusCode::BAD_REQUEST, br#"{"type":"com.vmware.vapi.std.errors.too_blue"}"#);
        assert_eq!(odd.fault, Fault::Other { kind: "too_blue".into() });
    }
}
