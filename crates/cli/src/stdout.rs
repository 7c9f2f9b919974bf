//! Writes to standard output.

use std::fmt::Display;
use std::process::exit;

/// Writes a line.
pub(crate) fn say(line: impl Display) {
    show(format!("{line}\n").as_bytes());
}

/// Writes text. A closed pipe is not an error: the rest is dropped. Any other error ends the
/// program.
pub(crate) fn show(text: &[u8]) {
    if let Err(error) = comity_bench::stdout::write(text) {
        eprintln!("comity: {error:#}");
        exit(1);
    }
}
