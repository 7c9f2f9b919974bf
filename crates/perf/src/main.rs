//! The load generator and the measurements by themselves: `cargo xtask bench` builds and runs this.

use std::process::ExitCode;

fn main() -> ExitCode {
    comity_perf::command::main()
}
