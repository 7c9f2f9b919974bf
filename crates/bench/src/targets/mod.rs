//! The ways to reach targets: directories by system calls, servers by our own RPC client, peers
//! that are started for the run.

mod counters;
mod directory;
mod ganesha;
mod keyed;
mod mount;
mod namespace;
mod nfs;
mod nfs4;
mod null_target;
mod peer;
mod probe;
mod server;
mod spec;

pub use counters::{metrics_page, of_comity as calls_of_comity};
pub use directory::DirectoryTarget;
pub use ganesha::{
    Ganesha, GaneshaBackEnd, is_installed as is_ganesha_installed, start as start_ganesha,
    wait_for_export,
};
pub use namespace::{enter as enter_namespace, is_inside as is_inside_namespace};
pub use nfs::files_over;
pub use null_target::NullTarget;
pub use peer::{Peer, free_address, needs_namespace};
pub use probe::probe;
pub use server::NfsTarget;
pub use spec::{Options, Spec};
