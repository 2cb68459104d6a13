//! A failed call: which one, on what, with the server's own words and the way back to its log.

pub use crate::fault::Fault;
use crate::{fault::cut, secret::Masker};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed call: which one, on what, why, and the operation id under which vCenter logged it.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulated = vcsim::Vcsim::start();
/// # simulated.fault(&serde_json::json!({ "kind": "privileges", "missing": ["Folder.Create"], "object": "*" }));
/// # let client = simulated.client();
/// use vsphere::Fault;
/// let folder = client.find_by_path("/dc-a/vm").await?.ok_or("every datacenter has it")?;
/// let Err(error) = client.ensure_folder(&folder, "mycluster-x7k2p").await else { panic!("nobody was asked for a privilege") };
/// let advice = match error.fault() {
///     Fault::NoPermission { privilege, .. } => format!("grant {privilege}; vCenter logged it as {}", error.operation()),
///     Fault::InvalidLogin => "the password in the secret is wrong".to_owned(),
///     _ => error.to_string(),
/// };
/// assert!(advice.starts_with("grant Folder.Create; vCenter logged it as op-"));
/// # client.logout().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Error(Box<Failure>);

#[derive(Debug, Clone, Default)]
struct Failure {
    fault: Fault,
    words: String,
    server: String,
    method: String,
    object: Option<String>,
    operation: String,
}

impl Error {
    pub(crate) fn new(trouble: Trouble, server: &str, method: &str, object: Option<&str>, operation: &str) -> Self {
        Self(Box::new(Failure {
            fault: trouble.fault,
            words: trouble.words,
            server: server.to_owned(),
            method: method.to_owned(),
            object: object.map(str::to_owned),
            operation: operation.to_owned(),
        }))
    }

    /// The same as part of this operation, unless it has one of its own.
    pub(crate) fn within(mut self, operation: &str) -> Self {
        if self.0.operation.is_empty() {
            operation.clone_into(&mut self.0.operation);
        }
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// The server's own words, empty where it had none; secrets are cut out.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.0.words
    }

    /// The vCenter that was asked, as given by the caller.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.0.server
    }

    /// The SOAP method or the REST request.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// The object that was asked, where there is one.
    #[must_use]
    pub fn object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// The operation id sent with the call, or with the one that began the task that failed: search vCenter's vpxd.log for it.
    /// Empty where nothing was sent, and for a task that somebody else began.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.0.operation
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Failure { fault, words, server, method, object, operation } = &*self.0;
        write!(out, "{server}: {method}")?;
        if let Some(object) = object {
            write!(out, " on {object}")?;
        }
        write!(out, ": {fault}")?;
        if !words.is_empty() {
            write!(out, "; the server says: {words:?}")?;
        }
        if !operation.is_empty() {
            write!(out, " (operation id {operation})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// A fault with the server's words, before it is known which call it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trouble {
    pub(crate) fault: Fault,
    pub(crate) words: String,
}

/// The most bytes of a server's words that are kept.
const WORDS: usize = 1024;

impl Trouble {
    /// Without secrets and no longer than anybody reads.
    pub(crate) fn masked(self, masker: &Masker) -> Self {
        Self { fault: self.fault.masked(masker), words: cut(masker.mask(&self.words), WORDS) }
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self { fault, words: String::new() }
    }
}
