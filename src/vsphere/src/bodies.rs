//! Bodies in the log: of harmless methods only, at trace level, masked and cut.

use crate::secret::Masker;

/// Bodies of these are worth reading and hold no secrets; all others are never shown.
const SHOWN: [&str; 9] = [
    "ContinueRetrievePropertiesEx",
    "CreateFolder",
    "CurrentTime",
    "Destroy_Task",
    "FetchUserPrivilegeOnEntities",
    "FindAllByUuid",
    "FindByInventoryPath",
    "RetrievePropertiesEx",
    "RetrieveServiceContent",
];
/// The most bytes of a body that are shown.
const SHOWN_BYTES: usize = 4096;
/// Stands where the rest of a body would.
const CUT: &str = " ... (cut)";

/// Whether bodies of this method may be shown at all.
fn harmless(method: &str) -> bool {
    SHOWN.contains(&method) || method.contains("/tagging/")
}

/// Whether bodies of this method are shown now.
pub(crate) fn shows(method: &str) -> bool {
    harmless(method) && tracing::enabled!(target: "vsphere::body", tracing::Level::TRACE)
}

/// Shows a body at trace level, masked and cut, if its method is one of those that may be shown.
pub(crate) fn show(direction: &'static str, method: &str, operation: &str, body: &[u8], masker: &Masker) {
    if !shows(method) {
        return;
    }
    // Masked before it is cut, so that no secret escapes by lying across the cut.
    let shown = shortened(masker.mask(&String::from_utf8_lossy(body)));
    tracing::trace!(target: "vsphere::body", operation, method, direction, bytes = body.len(), body = shown, "vSphere body");
}

/// The beginning of a long text, and a mark that it is no more than that.
fn shortened(mut text: String) -> String {
    if text.len() > SHOWN_BYTES {
        text.truncate(text.floor_char_boundary(SHOWN_BYTES));
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_cut_by_bytes_and_never_through_a_letter() {
        assert_eq!(shortened("x".repeat(SHOWN_BYTES)), "x".repeat(SHOWN_BYTES), "what fits is whole");
        assert_eq!(shortened("x".repeat(SHOWN_BYTES + 1)), "x".repeat(SHOWN_BYTES) + CUT);
        assert_eq!(shortened("ü".repeat(SHOWN_BYTES)), "ü".repeat(SHOWN_BYTES / 2) + CUT);
        assert_eq!(shortened(format!("x{}", "€".repeat(SHOWN_BYTES))), format!("x{}{CUT}", "€".repeat((SHOWN_BYTES - 1) / 3)));
    }

    #[test]
    fn a_method_that_nobody_has_called_harmless_is_not_shown() {
        assert!(harmless("RetrievePropertiesEx") && harmless("GET /rest/com/vmware/cis/tagging/tag/{id}"));
        for method in ["Login", "Logout", "LoginByToken", "POST /rest/com/vmware/cis/session", "POST /api/session", "GET /api/session"] {
            assert!(!harmless(method), "{method}");
        }
    }
}
