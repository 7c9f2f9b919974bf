//! Writes to standard output.

use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes text. A closed pipe is not an error: the rest is dropped.
///
/// # Errors
/// If the text cannot be written for another reason.
pub fn write(text: &[u8]) -> Result<()> {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Writes text in UTF-8, as [`write()`] does.
///
/// # Errors
/// Those of [`write()`].
pub(crate) fn say(text: &str) -> Result<()> {
    write(text.as_bytes())
}
