//! Standard output.

use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes text. A closed pipe is not an error: the rest is dropped.
///
/// # Errors
/// If it cannot be written for another reason.
pub(crate) fn say(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        said => said.context("cannot write to standard output"),
    }
}
