//! The pairs `<server>.username` and `<server>.password` in vSphere secrets. A foreign key or half a pair makes the cloud controller
//! manager refuse a whole secret, so pairs come and go together and nothing else is ever written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// As in a Secret, decoded.
pub type Data = BTreeMap<String, Vec<u8>>;

const USERNAME: &str = ".username";
const PASSWORD: &str = ".password";

/// One vCenter's credentials; no way of printing shows them.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    username: String,
    password: String,
}

impl Pair {
    pub fn new(server: &str, username: &str, password: &str) -> Result<Self, Refused> {
        for (key, value) in [(USERNAME, username), (PASSWORD, password)] {
            let key = format!("{server}{key}");
            if value.is_empty() {
                return Err(Refused::Empty { key });
            }
            if value.contains(['\n', '\r']) {
                return Err(Refused::Newline { key });
            }
        }
        Ok(Self { username: username.to_owned(), password: password.to_owned() })
    }

    pub fn username(&self) -> &str {
        &self.username
    }

    pub fn password(&self) -> &str {
        &self.password
    }

    /// The CSI driver takes `user@domain` and `DOMAIN\user` only.
    pub fn names_domain(&self) -> bool {
        let user = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
        let domain = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter));
        let split = |mark| self.username.split_once(mark);
        split('@').is_some_and(|(name, home)| user(name) && domain(home))
            || split('\\').is_some_and(|(home, name)| user(name) && domain(home))
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Pair(hidden)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("key {key} is missing; a user name and a password belong together")]
    Half { key: String },
    #[error("key {key} is empty")]
    Empty { key: String },
    #[error("key {key} holds a line break; write it again without one (printf, not echo)")]
    Newline { key: String },
    #[error("key {key} is not UTF-8 text")]
    NotText { key: String },
    #[error("key {key} belongs to no vCenter; with it the cloud controller manager refuses the whole secret")]
    Foreign { key: String },
}

#[derive(Clone, PartialEq, Eq)]
pub enum Outcome {
    AlreadyThere,
    Changed(Data),
}

impl fmt::Debug for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyThere => out.write_str("AlreadyThere"),
            Self::Changed(data) => out.debug_tuple("Changed").field(&data.keys().collect::<Vec<_>>()).finish(),
        }
    }
}

/// The pair of a server, if there is one.
pub fn pair(data: &Data, server: &str) -> Result<Option<Pair>, Refused> {
    let value = |key: &str| {
        let key = format!("{server}{key}");
        match data.get(&key).map(|value| std::str::from_utf8(value)) {
            None => Ok(Err(key)),
            Some(Ok(text)) => Ok(Ok(text)),
            Some(Err(_)) => Err(Refused::NotText { key }),
        }
    };
    match (value(USERNAME)?, value(PASSWORD)?) {
        (Err(_), Err(_)) => Ok(None),
        (Err(key), Ok(_)) | (Ok(_), Err(key)) => Err(Refused::Half { key }),
        (Ok(username), Ok(password)) => Pair::new(server, username, password).map(Some),
    }
}

/// Writes the pair and leaves the others alone; refused if the secret is one the cloud controller manager would not read even then.
pub fn merge(data: &Data, server: &str, pair: &Pair) -> Result<Outcome, Refused> {
    let mut merged = data.clone();
    merged.insert(format!("{server}{USERNAME}"), pair.username.clone().into_bytes());
    merged.insert(format!("{server}{PASSWORD}"), pair.password.clone().into_bytes());
    servers(&merged)?;
    Ok(if merged == *data { Outcome::AlreadyThere } else { Outcome::Changed(merged) })
}

/// Takes both halves, or the one that is there.
pub fn remove(data: &Data, server: &str) -> Outcome {
    let mut rest = data.clone();
    rest.remove(&format!("{server}{USERNAME}"));
    rest.remove(&format!("{server}{PASSWORD}"));
    if rest == *data { Outcome::AlreadyThere } else { Outcome::Changed(rest) }
}

/// The servers with a whole pair each; the keys `server_x`, `username_x`, `password_x` of IPv6 addresses are known and left alone.
pub fn servers(data: &Data) -> Result<BTreeSet<String>, Refused> {
    let mut servers = BTreeSet::new();
    for key in data.keys() {
        if let Some(server) = key.strip_suffix(USERNAME).or_else(|| key.strip_suffix(PASSWORD)) {
            servers.insert(server.to_owned());
        } else if !["server_", "username_", "password_"].iter().any(|prefix| key.starts_with(prefix)) {
            return Err(Refused::Foreign { key: key.clone() });
        }
    }
    for server in &servers {
        for half in [USERNAME, PASSWORD] {
            let key = format!("{server}{half}");
            if !data.contains_key(&key) {
                return Err(Refused::Half { key });
            }
        }
    }
    Ok(servers)
}
