//! The project's own tools: `cargo xtask tidy | comments | test | soak | mutants | kernel |
//! conformance | bench | deb | image`.
//!
//! They build on the workspace and are no part of what a user runs.

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
    /// Check the sources: floors, lengths, leftovers, dead files, doors, cycles, words.
    Tidy(tidy::Options),
    /// Print comments drawn by chance, for a reviewer to judge.
    Comments(tidy::comments::Options),
    /// Run every check and test there is, and add them up; at most 25 minutes on two processors.
    Test(test::Options),
    /// Run the long campaigns: all trials with kernel clients, ten minutes of each fuzz target.
    Soak(test::SoakOptions),
    /// Break the code in small ways, and see whether a test notices (cargo-mutants).
    Mutants(mutants::Options),
    /// Measure the server beside others, and count what a call costs.
    Bench(bench::Options),
    /// Make a Debian package of the program, and try it.
    Deb(deb::Options),
    /// Try the container file in an empty root, by chroot.
    Image(image::Options),
    /// NFSv4 as pynfs judges it, held against docs/conformance.toml.
    Conformance(conformance::Options),
    /// Tests with a Linux kernel NFS client, in User-Mode Linux.
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

/// The top folder of the checkout this program was built from.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
