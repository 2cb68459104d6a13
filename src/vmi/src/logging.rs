//! What the program says about its own work, on standard error. `VMI_LOG` chooses what (`debug`, `warn,kube=info`),
//! `VMI_LOG_FORMAT=json` makes each line an object.

use tracing_subscriber::EnvFilter;

/// Why nothing can be logged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable of the environment makes no sense.
    #[error("{name}={value:?}: {reason}")]
    Variable {
        /// Of the variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
}

fn variable(name: &'static str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

fn filter(wanted: Option<String>, usual: &str) -> Result<EnvFilter, Error> {
    let Some(value) = wanted else { return Ok(EnvFilter::new(usual)) };
    EnvFilter::try_new(&value).map_err(|error| {
        let reason = format!("{error}; write a level, or TARGET=LEVEL with commas between, such as info,kube=debug");
        Error::Variable { name: "VMI_LOG", value, reason }
    })
}

fn json(wanted: Option<&str>) -> Result<bool, Error> {
    match wanted {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => Err(Error::Variable { name: "VMI_LOG_FORMAT", value: other.to_owned(), reason: "write text or json".to_owned() }),
    }
}

/// Logs what `VMI_LOG` asks for, or else what is `usual` for the command at hand.
pub fn start(usual: &str) -> Result<(), Error> {
    let filter = filter(variable("VMI_LOG"), usual)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Only the first to start in a process decides; that is enough for one command.
    let _ = if json(variable("VMI_LOG_FORMAT").as_deref())? { lines.json().try_init() } else { lines.with_ansi(false).try_init() };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_makes_no_sense_is_refused_with_what_it_was() {
        let refused = filter(Some("kube=loud".to_owned()), "warn").unwrap_err().to_string();
        assert!(refused.starts_with("VMI_LOG=\"kube=loud\": ") && refused.contains("info,kube=debug"), "{refused}");
        assert_eq!(filter(None, "warn").unwrap().to_string(), "warn");
        assert_eq!(filter(Some("debug".to_owned()), "warn").unwrap().to_string(), "debug");
    }

    #[test]
    fn lines_are_text_unless_json_is_asked_for() {
        assert!(!json(None).unwrap());
        assert!(json(Some("json")).unwrap());
        assert_eq!(json(Some("xml")).unwrap_err().to_string(), "VMI_LOG_FORMAT=\"xml\": write text or json");
    }
}
