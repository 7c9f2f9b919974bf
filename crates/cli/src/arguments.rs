//! What the user typed: one definition that yields parser, help, man pages and completions.
//!
//! What it means is decided in [`crate::settings`], once it is known who runs the program.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use comity_export::Client;

use crate::journal;

/// Serve folders to NFS clients.
///
/// A file server in user space that speaks NFSv3 over TCP. It needs no kernel module, no portmapper
/// and, for an ordinary user's own files, no privilege.
#[derive(Debug, Parser)]
#[command(
    name = "comity",
    bin_name = "comity",
    version,
    arg_required_else_help = false,
    max_term_width = 100
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve folders until told to stop
    Serve(Serve),
    /// Read a configuration and report what is wrong with it
    Check(Check),
    /// Show what a client at an address would be offered
    Exports(Exports),
    /// Make a running server read its configuration again
    Reload(Running),
    /// Show what a running server serves and how busy it is
    Status(Running),
    /// Change how much a running server logs
    Log(Log),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print or write the manual pages
    Man(Man),
}

/// Serves folders to NFS clients until it is told to stop.
///
/// `comity serve DIR` lets in clients on this machine only, reading and writing, with the client's
/// root treated as nobody. Others come in by `--allow`, or by the lines of an exports(5) file.
/// SIGTERM and SIGINT end the server when the calls in hand are answered; SIGHUP, like `comity
/// reload`, makes it read its configuration again.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["dirs", "exports", "config"]).multiple(true).required(true))]
pub(crate) struct Serve {
    /// Folders to serve, each under its own path
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["exports", "config"])]
    pub(crate) dirs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) source: Source,

    /// Let these clients in too: an address, a network such as 192.0.2.0/24, a host name, or *
    #[arg(long, value_name = "CLIENT", value_parser = client,
          conflicts_with_all = ["exports", "config"])]
    pub(crate) allow: Vec<String>,

    /// Let nobody change anything, whatever the exports say
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Listen at this address; may be given more than once [default: loopback only for DIR without
    /// --allow, else all addresses]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Vec<IpAddr>,

    /// Listen at this port for both NFS and MOUNT; 0 takes any free one [default: 2049 as root,
    /// 20490 otherwise]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,

    /// Serve metrics for Prometheus at this address and port
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,

    /// Answer as portmapper too, at port 111 of the same addresses
    #[arg(long, conflicts_with = "no_register")]
    pub(crate) portmap: bool,

    /// Do not tell a portmapper that runs on this machine about the server
    #[arg(long)]
    pub(crate) no_register: bool,

    /// Threads that serve at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Seconds that calls in hand get when the server is told to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub(crate) drain_seconds: u32,

    /// Only check the configuration, as `comity check` does, and exit
    #[arg(long)]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) state: State,

    /// How much to log: off, error, warn, info, debug or trace, also for a part only, as in
    /// info,comity_server=debug [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) log: Option<String>,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Where the configuration is.
#[derive(Debug, Clone, Args)]
pub(crate) struct Source {
    /// Read exports from this file, in the form of exports(5)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) exports: Option<PathBuf>,

    /// Read exports from this file, in the form of comity.toml(5)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// Reads a configuration, opens what it names and reports what is wrong or doubtful, each with
/// file, line and column. Exits with 1 if `comity serve` would refuse it.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["exports", "config"]).multiple(true).required(true))]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Shows which exports a client would be offered and under which rules, as the server itself would
/// decide it.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["exports", "config"]).multiple(true).required(true))]
pub(crate) struct Exports {
    #[command(flatten)]
    pub(crate) source: Source,

    /// The client's address
    #[arg(long, value_name = "ADDR")]
    pub(crate) client: IpAddr,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Asks a running server.
#[derive(Debug, Args)]
pub(crate) struct Running {
    #[command(flatten)]
    pub(crate) state: State,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Changes how much a running server logs, until it is changed again or the server ends.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// off, error, warn, info, debug or trace, also for a part only, as in info,comity_server=debug
    #[arg(value_name = "LEVEL", value_parser = level)]
    pub(crate) level: String,
    #[command(flatten)]
    pub(crate) state: State,
}

/// Where a server keeps what outlives it.
#[derive(Debug, Clone, Args)]
pub(crate) struct State {
    /// Folder for the key of the handles, the lock and the control socket [default:
    /// /var/lib/comity as root, else $XDG_STATE_HOME/comity or ~/.local/state/comity]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) state_dir: Option<PathBuf>,
}

/// Who reads the output.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Json {
    /// Write JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints a completion script, to be put where the shell looks for it.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints one manual page, or writes all of them into a folder.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Which page, as in comity-serve.1
    #[arg(value_name = "PAGE", default_value = "comity.1")]
    pub(crate) page: String,

    /// Write all pages into this folder instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "page")]
    pub(crate) out: Option<PathBuf>,
}

fn level(text: &str) -> anyhow::Result<String> {
    journal::level(text)?;
    Ok(text.to_owned())
}

fn client(text: &str) -> Result<String, String> {
    Client::parse(text)?;
    Ok(text.to_owned())
}
