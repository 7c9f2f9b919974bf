//! Calls to RPC programs over TCP, one at a time.

mod caller;
mod dial;
mod message;
mod receive;

pub(crate) use caller::record;
pub use caller::{
    CALLER, Caller, Duplex, RESULTS_AT, call_error, call_header, caller_ids, record_before, results,
};
pub use dial::dial;
pub(crate) use message::{RecordKind, RpcRefusal, auth_sys, begin_call, kind, results_at, set_xid};
pub use receive::receive;
