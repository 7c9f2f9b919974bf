//! Runs a [`crate::machine::Machine`]: it has the threads, the sockets, the clock and the log.
//!
//! Callers submit requests on their own threads and park until the outcome arrives. Each
//! connection has a thread that connects and reads; any thread that adds a record sends it. One
//! more thread is the timer. The thread that holds the lock of a state machine carries out the
//! machine's outputs.

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
