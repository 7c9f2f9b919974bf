//! What is said on standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::exit;

/// Says a line.
pub(crate) fn say(line: impl Display) {
    show(format!("{line}\n").as_bytes());
}

/// Writes text. Who has closed the pipe has seen enough, which is no failure: what is left is
/// written to nobody. What cannot be written for another reason ends the program.
pub(crate) fn show(text: &[u8]) {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("comity: cannot write to standard output: {error}");
            exit(1);
        }
        _ => {}
    }
}
