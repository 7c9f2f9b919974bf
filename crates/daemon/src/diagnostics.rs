//! Findings about a configuration, as JSON.

use comity_export::{Diagnostic, Severity};
use serde_json::{Value, json};

/// Returns a finding as JSON.
#[must_use]
pub fn diagnostic_json(finding: &Diagnostic) -> Value {
    json!({
        "file": &*finding.place.file,
        "line": finding.place.line,
        "column": finding.place.column,
        "severity": match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "text": finding.text,
        "shown": finding.to_string(),
    })
}
