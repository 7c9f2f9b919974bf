//! The arguments of `comity load`.

use clap::{Args, Subcommand};

use crate::common_arguments::{Json, State};

/// See [`crate::arguments::Command::Load`].
#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    /// Show what clients would gain or lose if exports moved to other servers, and move nothing
    ///
    /// The server of the state folder asks its peers for their load, and predicts for each group of
    /// exports that can move together what happens to the calls of its clients, to those of the
    /// clients that stay, and to those of the clients of the peer. A move is advised if the calls
    /// that move, or all together, get shorter by a quarter or more, and all together get no
    /// longer; `comity migrate` carries it out.
    ///
    /// Each line assumes that only this move is made: ask again after it, and a minute later, as
    /// loads are averages over a minute. A peer that does not answer within five seconds is left
    /// out.
    ///
    /// The part of the calls that an export has is known if the server runs with --metrics, or if
    /// all its exports can only move together.
    ///
    /// With --auto the command looks once a minute, and makes a move that has paid at five looks
    /// running, if nothing speaks against it and there is no doubt. Exports stay for a while where
    /// they came to, and only so many move in an hour. Both servers may run it.
    ///
    /// Exits with 0 if there is an answer, whatever it is, with 1 if no peer has answered, with 2
    /// if the arguments are wrong.
    Advise(AdviseArguments),
}

/// See [`LoadCommand::Advise`].
#[derive(Debug, Clone, Args)]
pub(crate) struct AdviseArguments {
    /// The name of a `[[peer]]`; all peers if none is named
    #[arg(long, value_name = "PEER")]
    pub(crate) with: Vec<String>,
    /// Make the moves that pay, until the command is ended
    #[arg(long)]
    pub(crate) auto: bool,
    /// Move only if the calls that move, or all, get shorter by so many percent (with --auto)
    #[arg(long, value_name = "PERCENT", requires = "auto", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u8).range(10..=90))]
    pub(crate) least_gain: u8,
    /// Leave exports where they came to for so many minutes (with --auto)
    #[arg(long, value_name = "MINUTES", requires = "auto", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rest: u32,
    /// Make at most so many moves in an hour (with --auto)
    #[arg(long, value_name = "MOVES", requires = "auto", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) hourly: u32,
    /// Forward the calls of clients of NFSv3 for so many seconds after a move (with --auto)
    #[arg(long, value_name = "SECONDS", requires = "auto")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) proxy_for: Option<u64>,
    #[command(flatten)]
    pub(crate) state: State,
    #[command(flatten)]
    pub(crate) json: Json,
}
