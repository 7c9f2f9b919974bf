//! A client of RPC programs whose servers keep no state of their clients' calls: NFSv3, MOUNT, NLM
//! and the portmapper.

mod call;
mod lasting_call;
mod machine;
mod program_finder;

pub(crate) use call::{StatelessCall, StatelessReply};
pub(crate) use lasting_call::LastingCall;
pub(crate) use machine::{StatelessMachine, StatelessSettings};
pub(crate) use program_finder::ProgramFinder;

#[cfg(test)]
pub(crate) use machine::StatelessOutcome;
