//! The names of what is remembered.

use std::fmt;

use siphasher::sip::SipHasher24;

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

/// What nobody else knows, and no log shows.
#[derive(Clone, Copy)]
pub struct Secret(pub [u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A sessionid (RFC 8881, 2.10.3.2): clientid, and a MAC over it and a number of the client's own,
/// so that nobody can name a session that he was never told of. That one client has two of the same
/// is as likely as that somebody guesses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub [u8; 16]);

impl SessionId {
    pub(crate) fn new(secret: &Secret, client: ClientId, number: u64) -> Self {
        let client = client.0.to_be_bytes();
        let named = [&b"session"[..], &client, &number.to_be_bytes()].concat();
        let mac = SipHasher24::new_with_key(&secret.0).hash(&named);
        let mut bytes = [0; 16];
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&client);
        low.copy_from_slice(&mac.to_be_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_who_knows_the_secret() {
        let name = |secret, client, number| {
            SessionId::new(&Secret([secret; 16]), ClientId::new(1, client), number)
        };
        let it = name(1, 2, 3);
        assert_eq!(it, name(1, 2, 3));
        let half = |id: SessionId| <[u8; 8]>::try_from(&id.0[8..]).unwrap();
        for other in [name(9, 2, 3), name(1, 9, 3), name(1, 2, 9)] {
            assert_ne!(half(it), half(other));
        }
        assert!(!format!("{:?}", Secret([77; 16])).contains("77"));
    }
}
