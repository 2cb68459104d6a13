//! What can go wrong, as types.

use std::time::Duration;

use crate::{certificate::Certificate, reference::Ref, secret::Masker};

/// The kinds of failure. Faults this crate has no variant for keep their type name in [`Fault::Other`].
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
    #[error("the user lacks the privilege {privilege}{}; grant it there and try again", on(object.as_ref()))]
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
    /// No connection, or none that lived long enough to carry an answer.
    #[error("cannot reach the server: {0}")]
    Connect(String),
    /// The connection was lost in the middle of the answer.
    #[error("the connection was lost in the middle of the answer: {0}")]
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

/// Views and collectors bear the session's key in their ids.
fn mask_reference(object: &mut Option<Ref>, masker: &Masker) {
    if let Some(object) = object {
        object.id = masker.mask(&object.id).into();
    }
}

fn on(object: Option<&Ref>) -> String {
    object.map_or_else(String::new, |object| format!(" on {object}"))
}

impl Fault {
    /// Runs the masker over every text a server can have put in here.
    pub(crate) fn masked(mut self, masker: &Masker) -> Self {
        match &mut self {
            Self::NoPermission { object, .. } | Self::NotFound { object } => mask_reference(object, masker),
            Self::DuplicateName { name, object } => {
                *name = masker.mask(name);
                mask_reference(object, masker);
            }
            Self::InvalidArgument { property: text }
            | Self::Connect(text)
            | Self::Dropped(text)
            | Self::Malformed(text)
            | Self::NotVirtualCenter(text)
            | Self::Settings(text)
            | Self::Other { kind: text } => *text = masker.mask(text),
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
            Fault::NoPermission { privilege: String::new(), object: object.clone() },
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
}
