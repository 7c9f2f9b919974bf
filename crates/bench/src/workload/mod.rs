//! The workloads of the suite, a file each, with the parameters of the original works.

mod andrew;
mod badros;
mod bonnie;
mod compile;
mod discfs;
mod grep;
mod list_recursive;
mod locks;
mod nfsstone;
mod postmark;
mod rpc;
mod tool;
mod tree;

use std::sync::Arc;

use crate::selfscale::Selfscale;
use crate::suite::Workload;

/// All workloads, in the order in which `all` runs them.
#[must_use]
pub fn all() -> Vec<Arc<dyn Workload>> {
    vec![
        Arc::new(nfsstone::Nfsstone),
        Arc::new(list_recursive::ListRecursive),
        Arc::new(postmark::Postmark),
        Arc::new(grep::Grep),
        Arc::new(compile::Compile),
        Arc::new(andrew::Andrew),
        Arc::new(badros::Badros),
        Arc::new(bonnie::Bonnie),
        Arc::new(discfs::Discfs),
        Arc::new(locks::Locks),
        Arc::new(rpc::Rpc),
        Arc::new(Selfscale),
    ]
}
