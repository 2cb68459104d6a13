//! What a plain YAML scalar means to Go's yaml.v2, which both loaders stand on: YAML 1.1 with its octal numbers and many words
//! for yes and no.

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text,
}

pub fn meaning(text: &str) -> Meaning {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Meaning::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Meaning::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => return Meaning::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Meaning::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Meaning::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Meaning::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return Meaning::Text;
    }
    let plain = text.replace('_', "");
    if let Some(number) = integer(&plain) {
        return Meaning::Int(number);
    }
    match plain.parse() {
        Ok(number) if looks_like_a_float(&plain) => Meaning::Float(number),
        _ => Meaning::Text,
    }
}

/// A 64-bit integer with Go's prefixes, a leading zero alone meaning octal.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = sign * i128::from(u64::from_str_radix(digits, radix).ok()?);
    (number >= i128::from(i64::MIN)).then_some(number)
}

/// Digits with at most one dot, and perhaps an exponent: Rust would take `inf` and `1e` differently.
fn looks_like_a_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(mantissa, exponent)| (mantissa, Some(exponent)));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|part| !part.is_empty() && digits(part))
}
