//! The state machine of a client of NFS 4.1 and 4.2: session, slots, recovery, backchannel.
//!
//! The methods of [`ClientMachine`] form three groups: callers use `submit` and `forsake`;
//! `handle_*` receives events from outside; `poll_*` returns the next actions.

mod callback;
mod control;
mod delegations;
mod directories;
mod faults;
mod file_states;
mod job;
mod leave;
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
