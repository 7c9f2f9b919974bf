//! Several heads serve the exports of one shared file system, each export by one head at a time.
//! etcd decides which.
//!
//! A head has a lease in etcd. Its key, and the keys of the exports that it serves, end with the
//! lease. A head that cannot renew its lease ends its process before the lease is over, so that an
//! export never has two heads. Another head then takes the export over: it reads which clients had
//! state at the failed head and lets them reclaim it, in a grace period of this export only.
//!
//! An export moves to a chosen head with the state of its clients. The two heads send the state as
//! in a migration, and one transaction in etcd makes the other head that of the export.
//!
//! A head with a mark in etcd is drained: it moves its exports to others, and takes none.

mod addresses;
mod drained_heads;
mod endpoint;
#[cfg(test)]
#[path = "../../../store/tests/common/etcd.rs"]
mod etcd_server;
mod export_arrivals;
mod export_move;
mod export_table;
mod export_watch;
mod failed_moves;
mod head;
mod head_drain;
mod keys;
mod leftover_runs;
mod move_notes;
mod moves;
mod status;
mod suitable;
mod takeover;
mod view_reader;

pub(crate) use export_arrivals::ExportArrivals;
pub(crate) use export_table::ExportTable;
pub(crate) use export_watch::{ClusterParts, ExportWatch, HeadPlace};
pub(crate) use head::Head;
pub(crate) use head_drain::HeadDrain;
pub(crate) use moves::ClusterMoves;
pub(crate) use status::append_cluster;
pub(crate) use suitable::check_all;
