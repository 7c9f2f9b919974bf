//! Errors of an ssh-agent.

use std::io;
use std::time::Duration;

/// The reason why a call to an agent failed.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No agent listens at the socket.
    #[error("no agent answers at {path}: {cause}; start ssh-agent and set SSH_AUTH_SOCK")]
    Connect {
        /// The path of the socket.
        path: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// The connection failed.
    #[error("the connection to ssh-agent failed: {0}")]
    Io(#[from] io::Error),
    /// The agent took too long.
    #[error("ssh-agent gave no answer for {} seconds", .0.as_secs())]
    TimedOut(Duration),
    /// The agent refused.
    #[error("ssh-agent refused: the key is not in it, it is locked, or its user said no")]
    Refused,
    /// The agent's reply is malformed or too long.
    #[error("ssh-agent gave a malformed answer: expected {0}")]
    Malformed(&'static str),
}
