//! A client of NFS 4.1 and 4.2 as plain data: session, slots, recovery, back channel.
//!
//! The methods of [`ClientMachine`] come in families: `submit` and `forsake` are for callers;
//! `handle_*` takes in what happens outside; `poll_*` returns what is to be done next.

mod backoff;
mod control;
mod job;
mod machine;
mod pending;
mod phase;
mod sequence;
mod settings;
mod slots;

pub(crate) use machine::ClientMachine;
pub use settings::ClientIdentity;
pub(crate) use settings::{MachineSettings, Persistence};
