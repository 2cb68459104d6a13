//! What can go wrong, as types.

use std::time::Duration;

use crate::{
    certificate::Certificate,
    reference::{Kind, Ref},
    secret::Masker,
};

/// The kinds of failure. Faults this crate has no variant for keep their type name in [`Fault::Other`].
///
/// ```
/// use vsphere::Fault;
///
/// fn advice(fault: &Fault) -> String {
///     match fault {
///         Fault::NoPermission { privilege, .. } => format!("grant {privilege}"),
///         Fault::InvalidLogin => "correct the password in the secret".into(),
///         Fault::Timeout { .. } | Fault::Unavailable { .. } => "try again later".into(),
///         other => other.to_string(),
///     }
/// }
///
/// assert_eq!(advice(&Fault::NoPermission { privilege: "Folder.Create".into(), object: None }), "grant Folder.Create");
/// assert_eq!(advice(&Fault::Other { kind: "TooManyTuples".into() }), "vCenter refused with TooManyTuples");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The user name or the password is wrong, or the account is locked. It is not tried again until it changes.
    #[error("user name or password refused; it is not sent again until it changes, because vCenter locks accounts")]
    InvalidLogin,
    /// The session is gone and a new one did not help.
    #[error("vCenter does not know the session, also not after a new login")]
    NotAuthenticated,
    /// The user lacks a privilege.
    #[error("the user lacks {}{}; grant it and try again", lacking(privilege), on(object.as_ref()))]
    NoPermission {
        /// The privilege's id, such as `Folder.Create`; empty where the server does not say.
        privilege: String,
        /// Where it is missing.
        object: Option<Ref>,
    },
    /// What was asked for is not there.
    #[error("not found{}", on(object.as_ref()))]
    NotFound {
        /// The missing object where the server names it.
        object: Option<Ref>,
    },
    /// Something of that name is there already.
    #[error("the name {name:?} is taken{}", on(object.as_ref()))]
    DuplicateName {
        /// The taken name.
        name: String,
        /// Who has it, where the server tells.
        object: Option<Ref>,
    },
    /// The REST twin of [`Fault::DuplicateName`].
    #[error("it exists already")]
    AlreadyExists,
    /// The object is used by something.
    #[error("the object is in use")]
    InUse,
    /// The request as such is refused.
    #[error("the server refuses the argument {property:?}")]
    InvalidArgument {
        /// The offending argument, empty where the server does not say.
        property: String,
    },
    /// A deadline passed. What was asked may still be happening on the server.
    #[error("no answer within {after:?}; it may still be happening on the server")]
    Timeout {
        /// The deadline.
        after: Duration,
    },
    /// The server's certificate was refused.
    #[error("the certificate was refused: {reason}; presented was {presented}")]
    Tls {
        /// Why.
        reason: String,
        /// What the server showed.
        presented: Box<Certificate>,
    },
    /// No connection; nothing was sent.
    #[error("cannot reach the server: {0}")]
    Connect(String),
    /// The connection was lost before the whole answer had come. What was asked may have been done.
    #[error("the connection was lost before the whole answer had come, and it may have been done all the same: {0}")]
    Dropped(String),
    /// The server, or a proxy before it, says it cannot serve now.
    #[error("the server cannot serve now (HTTP {status})")]
    Unavailable {
        /// The HTTP status.
        status: u16,
    },
    /// An HTTP status nobody expects here.
    #[error("unexpected answer, HTTP {status}")]
    Http {
        /// The HTTP status.
        status: u16,
    },
    /// The answer is larger than this client accepts.
    #[error("the answer is larger than {limit} bytes and was not read")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// A read that does not end, or is larger than anybody needs.
    #[error("the read has more than {limit} objects and was given up; ask for less, or raise the limit if this vCenter is really so large")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The answer is not what the protocol says: cut off, nested too deeply, not XML, not JSON.
    #[error("the answer cannot be understood: {0}")]
    Malformed(String),
    /// The server is not a vCenter.
    #[error("this is not a vCenter but {0:?}; give the address of the vCenter, not of an ESXi host")]
    NotVirtualCenter(String),
    /// More than one thing has the name.
    #[error("{count} objects are named {name:?}; use the full inventory path")]
    Ambiguous {
        /// The name.
        name: String,
        /// How many have it.
        count: usize,
    },
    /// A folder that holds something is not deleted: vCenter would destroy the content with it.
    #[error("the folder holds {children} objects and is not deleted; vCenter would destroy them too")]
    NotEmpty {
        /// How many objects are directly in it.
        children: usize,
    },
    /// An existing tag category cannot be used and is not ours to change.
    #[error("the tag category {category:?} exists but {difference}; change it in vCenter or choose another name")]
    CategoryMismatch {
        /// Its name.
        category: String,
        /// What is different.
        difference: String,
    },
    /// The object already has another tag of a category that allows one.
    #[error("{object} already has another tag of category {category:?}, which allows only one per object")]
    SecondTag {
        /// The category's name.
        category: String,
        /// The object.
        object: Ref,
    },
    /// A setting of this client makes no sense.
    #[error("{0}")]
    Settings(String),
    /// A fault without a variant of its own.
    #[error("vCenter refused with {kind}")]
    Other {
        /// vSphere's name for it.
        kind: String,
    },
}

impl Default for Fault {
    fn default() -> Self {
        Self::Other { kind: String::new() }
    }
}

/// The most bytes of a name a server gives to something.
const NAME: usize = 200;
/// The most bytes of any other text of a server.
const TEXT: usize = 1024;

/// The beginning of a text, without line breaks and the like, which would break tables and logs.
pub(crate) fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
    }
    if text.contains(char::is_control) { text.replace(char::is_control, " ") } else { text }
}

/// Views and collectors bear the session's key in their ids.
fn mask_reference(object: &mut Option<Ref>, masker: &Masker) {
    if let Some(object) = object {
        object.id = cut(masker.mask(&object.id), NAME).into();
        if let Kind::Other(kind) = &mut object.kind {
            *kind = cut(masker.mask(kind), NAME).into();
        }
    }
}

fn lacking(privilege: &str) -> String {
    if privilege.is_empty() { "a privilege the server does not name".to_owned() } else { format!("the privilege {privilege}") }
}

fn on(object: Option<&Ref>) -> String {
    object.map_or_else(String::new, |object| format!(" on {object}"))
}

impl Fault {
    /// Runs the masker over every text a server can have put in here, and cuts it to what anybody reads.
    pub(crate) fn masked(mut self, masker: &Masker) -> Self {
        let clean = |text: &mut String, bytes: usize| *text = cut(masker.mask(text), bytes);
        match &mut self {
            Self::NotFound { object } => mask_reference(object, masker),
            Self::NoPermission { privilege: name, object } | Self::DuplicateName { name, object } => {
                clean(name, NAME);
                mask_reference(object, masker);
            }
            Self::InvalidArgument { property: name }
            | Self::Other { kind: name }
            | Self::Ambiguous { name, .. }
            | Self::SecondTag { category: name, .. } => clean(name, NAME),
            Self::CategoryMismatch { category, difference } => {
                clean(category, NAME);
                clean(difference, TEXT);
            }
            Self::Connect(text)
            | Self::Dropped(text)
            | Self::Malformed(text)
            | Self::NotVirtualCenter(text)
            | Self::Settings(text)
            | Self::Tls { reason: text, .. } => clean(text, TEXT),
            _ => {}
        }
        self
    }

    /// A short name, fit for log fields: the variant, or vSphere's own type name for faults without one.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::InvalidLogin => "InvalidLogin",
            Self::NotAuthenticated => "NotAuthenticated",
            Self::NoPermission { .. } => "NoPermission",
            Self::NotFound { .. } => "NotFound",
            Self::DuplicateName { .. } => "DuplicateName",
            Self::AlreadyExists => "AlreadyExists",
            Self::InUse => "InUse",
            Self::InvalidArgument { .. } => "InvalidArgument",
            Self::Timeout { .. } => "Timeout",
            Self::Tls { .. } => "Tls",
            Self::Connect(_) => "Connect",
            Self::Dropped(_) => "Dropped",
            Self::Unavailable { .. } => "Unavailable",
            Self::Http { .. } => "Http",
            Self::TooLarge { .. } => "TooLarge",
            Self::TooMany { .. } => "TooMany",
            Self::Malformed(_) => "Malformed",
            Self::NotVirtualCenter(_) => "NotVirtualCenter",
            Self::Ambiguous { .. } => "Ambiguous",
            Self::NotEmpty { .. } => "NotEmpty",
            Self::CategoryMismatch { .. } => "CategoryMismatch",
            Self::SecondTag { .. } => "SecondTag",
            Self::Settings(_) => "Settings",
            Self::Other { kind } => kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_a_server_put_into_a_fault_is_cut_out_of_every_field() {
        let masker = Masker::default();
        masker.remember(&"marker-secret".into());
        let object = Some(Ref::new("ContainerView", "session[marker-key]52aa"));
        let text = || "it was marker-secret".to_owned();
        for fault in [
            Fault::NotFound { object: object.clone() },
            Fault::NoPermission { privilege: text(), object: object.clone() },
            Fault::CategoryMismatch { category: text(), difference: text() },
            Fault::Ambiguous { name: text(), count: 2 },
            Fault::DuplicateName { name: text(), object },
            Fault::InvalidArgument { property: text() },
            Fault::Connect(text()),
            Fault::Dropped(text()),
            Fault::Malformed(text()),
            Fault::NotVirtualCenter(text()),
            Fault::Settings(text()),
            Fault::Other { kind: text() },
        ] {
            let masked = fault.masked(&masker);
            let shown = format!("{masked} {masked:?} {}", masked.name());
            assert!(shown.contains("***") && !shown.contains("marker-"), "{shown}");
        }
    }
    #[test]
    fn a_missing_privilege_the_server_does_not_name_is_told_in_whole_words() {
        let told = |privilege: &str| Fault::NoPermission { privilege: privilege.into(), object: None }.to_string();
        assert_eq!(told(""), "the user lacks a privilege the server does not name; grant it and try again");
        assert_eq!(told("Folder.Create"), "the user lacks the privilege Folder.Create; grant it and try again");
    }

    #[test]
    fn long_text_of_a_server_is_cut_between_two_characters() {
        let masker = Masker::default();
        let Fault::Other { kind } = (Fault::Other { kind: format!("x{}", "ü".repeat(10_000)) }).masked(&masker) else { panic!() };
        assert_eq!(kind.len(), 199);
        let Fault::Malformed(text) = Fault::Malformed("y".repeat(10_000)).masked(&masker) else { panic!() };
        assert_eq!(text.len(), 1024);
    }
}
