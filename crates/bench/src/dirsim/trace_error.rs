use crate::limits::TRACE_EVENTS_MAX;

/// Why a trace cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// The number of the line, from 1 on.
    pub line: usize,
    /// The reason.
    pub why: String,
}

impl TraceError {
    /// The error of a line in which `expected` was missing.
    #[must_use]
    pub fn new(line: usize, expected: &str) -> Self {
        Self { line, why: format!("expected {expected}") }
    }

    /// The error of a trace that has too many events.
    #[must_use]
    pub fn too_long(line: usize) -> Self {
        Self { line, why: format!("a trace has at most {TRACE_EVENTS_MAX} events: split it") }
    }
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for TraceError {}
