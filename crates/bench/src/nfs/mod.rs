//! NFS version 3 as a client speaks it: one call at a time to learn handles and what replies look
//! like, and the scripts for the load generator.

mod blocking;
mod dial;
mod listing;
mod prober;
mod receive;

pub use blocking::Caller;
pub(crate) use blocking::{
    RESULTS_AT, call_header, caller_ids, fh, filename, record_before, results,
};
pub(crate) use dial::dial;
pub use listing::{Page, list};
pub use prober::Prober;
pub(crate) use prober::{SERIAL_NAME, serial_place};
pub(crate) use receive::receive;
