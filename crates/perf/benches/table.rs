//! `cargo bench`: the same as `cargo xtask bench`, which builds what is measured.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let status = Command::new(env!("CARGO")).args(["xtask", "bench"]).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
