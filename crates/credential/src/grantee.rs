use std::net::IpAddr;
use std::sync::Arc;

use comity_keys::PublicKey;

/// A key that acts by grants, or by the account that is bound to it. State that a client gets by
/// such calls depends on these grants or the account, and ends with them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grantee {
    /// The key.
    pub key: PublicKey,
    /// The address from which it calls; grants may be limited to addresses.
    pub address: IpAddr,
    /// The number of the export in which it acts.
    pub export: u32,
    /// The user of its account; `None` if it acts by grants.
    pub user: Option<Arc<str>>,
}
