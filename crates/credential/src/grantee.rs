use std::net::IpAddr;
use std::sync::Arc;

use comity_keys::PublicKey;

/// A key that acts by what was granted to it, or by the account that it is bound to. State that a
/// client gets by such calls rests on these grants, or on the account, and ends with them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grantee {
    /// The key.
    pub key: PublicKey,
    /// The address that its calls come from; grants may hold for some addresses only.
    pub address: IpAddr,
    /// The number of the export at which it acts.
    pub export: u32,
    /// The user of its account; `None` if it acts by grants.
    pub user: Option<Arc<str>>,
}
