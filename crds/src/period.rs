//! A span of time as users write it: `90s`, `5m`, `1h30m`.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A span of time that keeps the words it was written in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Period {
    text: String,
    duration: Duration,
}

/// The text is no span of time.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a span of time: write hours, minutes and seconds in that order, such as 90s, 5m or 1h30m")]
pub struct NotAPeriod(String);

impl Period {
    /// How long it is.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    pub(crate) fn minutes(minutes: u64) -> Self {
        Self { text: format!("{minutes}m"), duration: Duration::from_secs(minutes * 60) }
    }
}

impl TryFrom<String> for Period {
    type Error = NotAPeriod;

    fn try_from(text: String) -> Result<Self, NotAPeriod> {
        match seconds(&text) {
            Some(seconds) => Ok(Self { text, duration: Duration::from_secs(seconds) }),
            None => Err(NotAPeriod(text)),
        }
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.text
    }
}

fn seconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum: u64 = 0;
    for (unit, length) in [('h', 3600), ('m', 60), ('s', 1)] {
        if let Some((number, after)) = rest.split_once(unit) {
            // parse() alone would take a plus sign.
            let digits = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            sum = sum.checked_add(digits?.parse::<u64>().ok()?.checked_mul(length)?)?;
            rest = after;
        }
    }
    (rest.is_empty() && !text.is_empty()).then_some(sum)
}

impl JsonSchema for Period {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Period".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 2, "maxLength": 12, "pattern": "^([0-9]{1,3}h)?([0-9]{1,4}m)?([0-9]{1,5}s)?$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_minutes_and_seconds_add_up_and_keep_their_words() {
        for (text, seconds) in [("90s", 90), ("5m", 300), ("1h30m", 5400), ("1h0m5s", 3605), ("0s", 0)] {
            let period = Period::try_from(text.to_owned()).unwrap();
            assert_eq!(period.duration(), Duration::from_secs(seconds), "{text}");
            assert_eq!(String::from(period), text);
        }
        assert_eq!(Period::minutes(5), Period::try_from("5m".to_owned()).unwrap());
    }

    #[test]
    fn anything_else_is_refused_with_examples() {
        for text in ["", "5", "m", "5 m", "-5m", "+5m", "5m1h", "1.5h", "5ms", "99999999999999999999h", "99999999999999999h"] {
            let error = Period::try_from(text.to_owned()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} is not a span of time")), "{error}");
        }
    }
}
