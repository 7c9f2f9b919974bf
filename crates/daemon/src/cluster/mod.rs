//! Several heads serve the exports of one shared file system, each export by one head at a time.
//! etcd decides which.
//!
//! A head has a lease in etcd. Its key, and the keys of the exports that it serves, end with the
//! lease. A head that cannot renew its lease ends its process before the lease is over, so that an
//! export never has two heads. Another head then takes the export over: it reads which clients had
//! state at the failed head and lets them reclaim it, in a grace period of this export only.

mod export_table;
mod export_watch;
mod head;
mod head_lease;
mod keys;
mod status;
mod suitable;
mod takeover;

pub(crate) use export_table::ExportTable;
pub(crate) use export_watch::{ClusterParts, ExportWatch};
pub(crate) use head::Head;
pub(crate) use head_lease::HeadLease;
pub(crate) use status::append_cluster;
pub(crate) use suitable::check_all;
