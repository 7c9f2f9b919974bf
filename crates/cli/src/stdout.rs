//! Writes to standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::exit;

/// Writes a line.
pub(crate) fn say(line: impl Display) {
    show(format!("{line}\n").as_bytes());
}

/// Writes text. A closed pipe is not an error: the rest is dropped. Any other error ends the
/// program.
pub(crate) fn show(text: &[u8]) {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("comity: cannot write to standard output: {error}");
            exit(1);
        }
        _ => {}
    }
}
