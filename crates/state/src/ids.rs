//! The names of what is remembered.

use std::fmt;

use comity_vfs::Handle;

/// A clientid: the server's life it was given out in, and a number (RFC 8881, 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

impl ClientId {
    pub(crate) const fn new(boot: u32, number: u32) -> Self {
        Self((boot as u64) << 32 | number as u64)
    }

    pub(crate) const fn boot(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Its number within this life of the server.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A sessionid (RFC 8881, 2.10.3.2): clientid, and a number of the client's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub [u8; 16]);

impl SessionId {
    pub(crate) fn new(client: ClientId, number: u64) -> Self {
        let mut bytes = [0; 16];
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&client.0.to_be_bytes());
        low.copy_from_slice(&number.to_be_bytes());
        Self(bytes)
    }
}

/// Eight bytes that mean something to whoever made them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Verifier(pub [u8; 8]);

/// Who a client says it is: `nfs_client_id4` or `client_owner4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOwner {
    /// Another in each life of the client.
    pub verifier: Verifier,
    /// The same in all of them.
    pub id: Box<[u8]>,
}

/// Who calls, as far as it matters to whom a client's state belongs: compared, never looked into.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(pub Box<[u8]>);

/// A connection, by a number that no other has at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// A file of an export, by what its backend calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// The export's number.
    pub export: u32,
    /// The backend's handle.
    pub handle: Handle,
}

/// Which front desk a client came to. One id at both is two clients (RFC 8881, 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Desk {
    /// SETCLIENTID: minor version 0.
    Setclientid,
    /// EXCHANGE_ID and sessions: minor versions 1 and 2.
    ExchangeId,
    /// The lock manager of NFSv3, which knows hosts by their names.
    Nlm,
}
