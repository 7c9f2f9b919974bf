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
    /// that move, or all together, get shorter by a tenth or more, and all together get no longer;
    /// `comity migrate` carries it out.
    ///
    /// Each line assumes that only this move is made: ask again after it, and a minute later, as
    /// loads are averages over a minute. A peer that does not answer within five seconds is left
    /// out.
    ///
    /// The part of the calls that an export has is known if the server runs with --metrics, or if
    /// all its exports can only move together.
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
    #[command(flatten)]
    pub(crate) state: State,
    #[command(flatten)]
    pub(crate) json: Json,
}
