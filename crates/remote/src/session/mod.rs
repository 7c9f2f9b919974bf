//! A client of NFS 4.1 and 4.2 as plain data: session, slots, recovery, back channel.
//!
//! The methods of [`ClientMachine`] come in families: `submit` and `forsake` are for callers;
//! `handle_*` takes in what happens outside; `poll_*` returns what is to be done next.

mod callback;
mod control;
mod delegations;
mod directories;
mod faults;
mod file_states;
mod job;
mod lock_states;
mod locks;
mod machine;
mod notices;
mod opens;
mod pending;
mod phase;
mod prepare;
mod reclaim;
mod request;
mod sequence;
mod settings;
#[cfg(test)]
mod sim;
mod slots;

pub(crate) use job::{DirectoryTask, OpenTask, TaskClaim};
pub(crate) use machine::ClientMachine;
pub(crate) use notices::{KINDS, OF_DIRECTORY, OF_ENTRY, ServerChange, ServerNotice, ServerObject};
#[cfg(test)]
pub(crate) use request::SessionOutcome;
pub(crate) use request::{OpenAnswer, SessionAnswer, SessionRequest};
pub use settings::ClientIdentity;
pub(crate) use settings::{MachineSettings, Persistence};
