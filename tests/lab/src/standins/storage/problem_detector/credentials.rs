//! The form of a user and password, which is looked at before and after a login.

use super::metrics::Metrics;
use super::say;

/// Why a pair that was refused could never be good.
fn flaw(user: &str, password: &str) -> Option<&'static str> {
    match (user.contains('\n'), password.contains('\n')) {
        (true, _) => Some("username"),
        (false, true) => Some("password"),
        (false, false) => None,
    }
}

/// Whether the user is written `domain\user` or `user@domain`.
fn has_domain(user: &str) -> bool {
    let made_of = |text: &str, more: &str| !text.is_empty() && text.chars().all(|one| one.is_ascii_alphanumeric() || more.contains(one));
    let (domain, name) = match (user.split_once('\\'), user.split_once('@')) {
        (Some((domain, name)), _) | (None, Some((name, domain))) => (domain, name),
        (None, None) => return false,
    };
    made_of(domain, ".-") && made_of(name, "._-")
}

/// What is wrong after an attempt to log in; the metrics tell the same.
pub fn judged<T>(server: &str, (user, password): (&str, &str), outcome: Result<T, String>, metrics: &Metrics) -> Result<T, String> {
    let set = |reason: &str, bad: bool| metrics.gauge("vsphere_sync_errors", &[("reason", reason)], f64::from(u8::from(bad)));
    if outcome.is_err() {
        let flaw = flaw(user, password);
        set("UsernameWithNewLine", flaw == Some("username"));
        if flaw != Some("username") {
            set("PasswordWithNewLine", flaw.is_some());
        }
        if let Some(part) = flaw {
            return Err(format!("failed to connect to {server}: {part} in credentials contains new line"));
        }
    }
    set("InvalidCredentials", outcome.is_err());
    if outcome.is_ok() {
        set("UsernameWithoutDomain", !has_domain(user));
        if !has_domain(user) {
            let advice = "please consider using username with full domain name";
            say('W', "vsphere_check.go:163", &format!("vCenter username for {server} is without domain, {advice}"));
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(user: &str, password: &str, outcome: Result<(), String>) -> (Result<(), String>, String) {
        let metrics = Metrics::default();
        let outcome = judged("vc", (user, password), outcome, &metrics);
        (outcome, metrics.text().replace("vsphere_sync_errors{reason=", "").replace('}', ""))
    }

    #[test]
    fn a_line_break_is_blamed_for_a_refused_login_and_else_the_pair() {
        let refused = || Err("failed to connect to vc: no".to_owned());
        let said = |part: &str| Err(format!("failed to connect to vc: {part} in credentials contains new line"));
        assert_eq!(after("u@d\n", "p\n", refused()), (said("username"), "\"UsernameWithNewLine\" 1\n".to_owned()));
        let password = "\"PasswordWithNewLine\" 1\n\"UsernameWithNewLine\" 0\n";
        assert_eq!(after("u@d", "p\n", refused()), (said("password"), password.to_owned()));
        let pair = "\"InvalidCredentials\" 1\n\"PasswordWithNewLine\" 0\n\"UsernameWithNewLine\" 0\n";
        assert_eq!(after("u@d", "p", refused()), (refused(), pair.to_owned()));
    }

    #[test]
    fn a_user_without_a_domain_is_let_in_and_told_of() {
        assert_eq!(after("u", "p", Ok(())), (Ok(()), "\"InvalidCredentials\" 0\n\"UsernameWithoutDomain\" 1\n".to_owned()));
        for (user, has) in [("u@d.local", true), (r"D.local\u_1", true), ("u", false), ("u@", false), ("u u@d", false), ("u@d@e", false)] {
            assert_eq!(has_domain(user), has, "{user}");
        }
    }
}
