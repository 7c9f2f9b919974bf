//! Calls to RPC programs over TCP, one at a time.

mod caller;
mod dial;
mod receive;

pub use caller::{CALLER, Caller, RESULTS_AT, call_header, caller_ids, record_before, results};
pub(crate) use caller::{XID, encoded, record};
pub use dial::dial;
pub use receive::receive;
