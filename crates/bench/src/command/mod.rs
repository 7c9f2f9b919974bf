//! The command line of `comity bench`.

mod agent;
mod list;
mod run;
mod signals;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::selfscale::predict;
use crate::{compare, consume, dirsim, report, workload};

pub use agent::AgentOptions;
pub use run::Run;

/// The subcommands of `comity bench`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the workloads, with what each does and needs
    List,
    /// Measure file systems and NFS servers
    ///
    /// Give a workload and one or more targets: a directory on any file system, an NFS server as
    /// nfs://host:port/export, or a server that is started for the run: peer:comity, peer:ganesha.
    /// Several targets are measured in turn, round by round, so that a noisy machine affects all
    /// alike. `all` runs every workload. Data read back is checked; wrong data ends the run.
    ///
    /// The result goes into a directory: result.json contains every sample. It is kept when the run
    /// is interrupted or fails, and the same command with --resume continues. Files made on the
    /// targets are removed afterwards.
    ///
    /// Exits with 0 when all was measured, with 1 if something failed, with 2 if the arguments make
    /// no sense.
    Run(Run),
    /// Predict the throughput of a workload that was never run
    ///
    /// From a result of `comity bench run selfscale`.
    Predict(predict::Options),
    /// Compare two results, figure by figure
    ///
    /// The page says how many times better B is than A, with the 95 % interval (Welch's t over the
    /// rounds), and whether the samples differ significantly. If both results contain selfscale,
    /// each is also predicted on the other's focal workload.
    ///
    /// Exits with 1 if --fail-over is given and a figure is worse by more.
    Compare(compare::Options),
    /// Predict the calls that directory delegations would save on a trace
    ///
    /// Replays look-ups, listings and changes of directories against policies of a server and cache
    /// sizes of clients, and counts the calls that are saved and caused. The trace is a file in the
    /// project's own text format, of strace, fatrace or nfsdump, or a classic pattern that is made
    /// here. No file system is mounted, and no server is called.
    Dirsim(dirsim::Options),
    /// Keep one resource of this machine busy for a part of the time
    ///
    /// The model of a server's load predicts how long calls take meanwhile. `cargo xtask bench
    /// --load` compares the prediction with the times.
    #[command(arg_required_else_help = false)]
    Consume(consume::ConsumeOptions),
    /// Make the report of a result again: report.html and plots, which `run` made at its end
    Report(report::Options),
    /// Empty this machine's caches when a client that measures asks for it
    ///
    /// An RPC program over TCP, for servers. It answers only the addresses given with --allow; it
    /// runs the commands given with --flush, or has the kernel write back and drop its caches,
    /// which takes root. Clients use `comity bench run ... --agent HOST:PORT`.
    Agent(AgentOptions),
}

/// Runs the subcommand.
///
/// # Errors
/// The first failure, in a line.
pub fn perform(command: &Command) -> Result<ExitCode> {
    match command {
        Command::List => {
            list::show()?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(options) => run::perform(options),
        Command::Predict(options) => predict::command(options),
        Command::Compare(options) => compare::command(options),
        Command::Report(options) => report::command(options, &workload::all()),
        Command::Dirsim(options) => dirsim::command(options),
        Command::Consume(options) => consume::command(options),
        Command::Agent(options) => agent::perform(options),
    }
}
