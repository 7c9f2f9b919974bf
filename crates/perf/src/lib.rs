//! The project's own harness: it measures the cost of operations to the server and its clients.
//!
//! **Answers:** the cost of an operation to a server, in its own processor time and in the time
//! that a client waits. Other servers are measured in turn in the same run: a minimal one that
//! makes only the one system call that an operation needs ([`baseline_server`]), and nfs-ganesha if
//! it is installed. Also the instructions and system calls of single operations.
//!
//! **May not know:** how the server that is measured works inside. The delivered program does not
//! contain this crate.

pub mod advice_check;
pub mod baseline_server;
pub mod ceph_cost;
pub mod cluster_cost;
pub mod command;
pub mod cost_table;
pub mod directory_cost;
pub mod grants_cost;
pub mod idmap_cost;
pub mod instructions;
mod judged_figure;
pub mod limits;
pub mod load_model;
pub mod migration_cost;
pub mod pnfs_cost;
mod row_options;
pub mod server_process;
pub mod state_cost;
pub mod strangers;
pub mod syscalls;
pub mod tls_cost;
mod workload_run;
