//! COMPOUNDs as bytes: how a request is encoded, and how its reply is decoded.

mod call;
mod open;
mod owner;
mod reply;

pub(crate) use call::{
    CompoundCall, CompoundRequest, StatePlace, StatePurpose, StateUse, lone_operation,
};
pub(crate) use open::{OpenArguments, OpenResult, read_open, share_bits};
pub(crate) use owner::OpenOwner;
pub(crate) use reply::{CompoundReply, OpFailure, OpResults};
