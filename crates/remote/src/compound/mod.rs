//! COMPOUNDs as bytes: how one is put together, and what a reply to one says.

mod call;
mod reply;

pub(crate) use call::{CompoundCall, CompoundRequest, StatePlace, StateUse, lone_operation};
pub(crate) use reply::{CompoundReply, OpFailure, OpResults};
