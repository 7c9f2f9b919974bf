//! The load generator and the measurements as a program, which `cargo xtask bench` builds and runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    comity_perf::command::main()
}
