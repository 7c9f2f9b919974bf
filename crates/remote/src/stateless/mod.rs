//! A client of RPC programs without sessions: NFSv3, MOUNT, NLM and the portmapper.

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
