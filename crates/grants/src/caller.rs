use std::net::IpAddr;

use comity_keys::PublicKey;

/// A key that calls from an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCaller {
    /// The key.
    pub key: PublicKey,
    /// The key as KeyNote names it.
    pub name: String,
    /// The address that its calls come from.
    pub address: IpAddr,
}

impl KeyCaller {
    /// A key at an address.
    #[must_use]
    pub fn new(key: PublicKey, address: IpAddr) -> Self {
        Self { name: key.to_keynote(), key, address }
    }
}
