//! The long-running server: services, clients' state, control, log, sockets.
//!
//! **Answers:** how the crates become one running server, which threads maintain clients' state and
//! handle other hosts and local programs, and what the control socket answers. Only this crate
//! knows which backend serves an export.
//!
//! **May not know:** what a user typed, bytes on the wire, what a verb does.

mod check_state;
mod client_admin;
mod clocks;
mod cluster;
mod configuration;
mod control_handler;
mod copier;
mod copy_queue;
mod data_server_link;
mod device_rates;
mod diagnostics;
mod explanation;
mod fencer;
mod grant_admin;
mod grant_service;
mod head_lease;
mod host_queue;
mod lease_break_watcher;
mod limits;
mod load;
mod local_locks;
pub mod logging;
mod metrics;
mod metrics_page;
mod migration;
mod mirror_watch;
mod nlm_replies;
mod options;
mod origin_shares;
mod placement;
mod placement_add;
mod placement_admin;
mod placement_change;
mod placement_compare;
mod placement_moves;
mod placement_rebuild;
mod portmap;
mod program_gate;
mod rights_watch;
mod run;
mod service;
mod silent_files;
mod size_watch;
mod sockets;
mod startup_banner;
mod statd;
mod state_folder;
mod state_service;
mod status_names;
mod storage;
mod systemd;
mod tls;
mod user_ids;
mod versions;
mod visible_exports;
mod web;
mod web_token;

pub use check_state::check_state;
pub use configuration::{Configuration, Loaded, server_settings};
pub use device_rates::{DeviceRates, RecordedDisk, is_sampled_disk};
pub use diagnostics::diagnostic_json;
pub use explanation::explanation_json;
pub use limits::REPLY_CACHE_BYTES_MIN;
pub use options::{ClusterOptions, GivenExport, Listen, Options, Portmap};
pub use run::{Ended, run};
pub use state_folder::{control_socket, default_state_folder};
pub use tls::{TlsKey, TlsOptions, check_tls};
pub use versions::Spoken;
pub use visible_exports::visible_exports_json;
