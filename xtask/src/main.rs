//! The project's own tools: `cargo xtask tidy | comments | test | soak | mutants | kernel |
//! conformance | bench | deb | image`.
//!
//! The tools depend on the workspace; users do not need them.

mod bench;
mod conformance;
mod deb;
mod image;
mod kernel;
mod mutants;
#[cfg(test)]
mod questions;
mod test;
mod tidy;
mod tools;
mod work_off;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own tools.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Subcommand)]
enum Tool {
    /// Check the sources: floors, lengths, leftovers, unused files, doors, cycles, words.
    Tidy(tidy::Options),
    /// Print randomly chosen comments for a reviewer.
    Comments(tidy::comments::Options),
    /// Run all checks and tests and print the sum; at most 25 minutes on two processors.
    Test(test::Options),
    /// Run the long campaigns: all trials with kernel clients, and ten minutes of each fuzz target.
    Soak(test::SoakOptions),
    /// Change the code in small ways, and see whether a test notices (cargo-mutants).
    Mutants(mutants::Options),
    /// Measure the server next to others, and count the cost of a call.
    Bench(bench::Options),
    /// Make a Debian package of the program, and try it.
    Deb(deb::Options),
    /// Try the container file in an empty root, by chroot.
    Image(image::Options),
    /// Run pynfs against the server, and compare the results with docs/conformance.toml.
    Conformance(conformance::Options),
    /// Run tests with a Linux kernel NFS client, in User-Mode Linux.
    #[command(subcommand)]
    Kernel(kernel::Command),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().tool {
        Tool::Tidy(options) => tidy::command(&root(), &options),
        Tool::Comments(options) => tidy::comments::command(&root(), &options),
        Tool::Test(options) => test::command(&root(), &options),
        Tool::Soak(options) => test::soak(&root(), &options),
        Tool::Mutants(options) => mutants::command(&root(), &options),
        Tool::Bench(options) => bench::command(&root(), &options),
        Tool::Deb(options) => deb::command(&root(), &options),
        Tool::Image(options) => image::command(&root(), &options),
        Tool::Conformance(options) => conformance::command(&root(), &options),
        Tool::Kernel(command) => kernel::command(&root(), &command),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

/// The top folder of the checkout from which this program was built.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
