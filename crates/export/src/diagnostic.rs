use std::fmt;
use std::sync::Arc;

use crate::limits::DIAGNOSTICS_MAX;

/// A location in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file's name, or another name of the source.
    pub file: Arc<str>,
    /// The line, counted from 1; 0 means the file as a whole.
    pub line: u32,
    /// The byte within the line, counted from 1.
    pub column: u32,
}

impl Location {
    /// Returns the location of the file as a whole.
    #[must_use]
    pub fn file(name: &str) -> Self {
        Self { file: name.into(), line: 0, column: 0 }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{}:{}", self.file, line, self.column),
        }
    }
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration works, but perhaps not as intended.
    Warning,
    /// Nothing is served from this configuration.
    Error,
}

/// A message about the configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// The location in the configuration.
    pub place: Location,
    /// Its severity.
    pub severity: Severity,
    /// The problem, and what to do about it.
    pub text: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning: ",
            Severity::Error => "",
        };
        write!(f, "{}: {severity}{}", self.place, self.text)
    }
}

/// The diagnostics so far.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    pub(crate) fn error(&mut self, place: &Location, text: impl Into<String>) {
        self.push(place, Severity::Error, text.into());
    }

    pub(crate) fn warning(&mut self, place: &Location, text: impl Into<String>) {
        self.push(place, Severity::Warning, text.into());
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.0.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns all diagnostics by location, without duplicates.
    pub(crate) fn sorted(mut self) -> Vec<Diagnostic> {
        self.0.sort();
        self.0.dedup();
        self.0
    }

    /// An error is always added, even if there are too many warnings: the configuration must be
    /// refused.
    fn push(&mut self, place: &Location, severity: Severity, text: String) {
        let full = self.0.len() >= DIAGNOSTICS_MAX;
        if !full || severity == Severity::Error && !self.has_errors() {
            self.0.push(Diagnostic { place: place.clone(), severity, text });
        }
    }
}
