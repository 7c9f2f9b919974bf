//! The shell around a [`crate::machine::Machine`]: threads, sockets, clock, log.
//!
//! Callers submit requests on their own threads and park until they end. Each connection has a
//! thread that makes it and reads from it; writing is done by whichever caller comes first. One
//! more thread keeps time. The thread that holds a state machine does what the machine asks for.

mod aftermath;
mod alarm;
mod events;
mod link_thread;
mod requester;
mod send_queue;
mod shared;
mod waiter;

pub(crate) use aftermath::{Aftermath, FollowUp};
pub(crate) use requester::{ClientEngine, StartFailure, Unanswered};
