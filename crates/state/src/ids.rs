//! The identifiers of clients, sessions, principals and connections.

use std::fmt;

use comity_credential::{Flavor, Origin};
use siphasher::sip::SipHasher24;

/// A clientid: the boot of the server in which it was given out, and a number (RFC 8881, 2.4). A
/// keyed permutation maps serial numbers to these numbers, and a keyed function of the number masks
/// the boot. None of the 64 bits can be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

impl ClientId {
    pub(crate) fn new(secret: &Secret, boot: u32, number: u32) -> Self {
        let mask = secret.word(b"clientid", number.into()) as u32;
        Self(u64::from(boot ^ mask) << 32 | u64::from(number))
    }

    /// Returns whether it was given out in this boot of the server.
    pub(crate) fn is_of(self, secret: &Secret, boot: u32) -> bool {
        self == Self::new(secret, boot, self.number())
    }

    /// Returns its number, which is unique within this boot of the server.
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

/// Number of rounds. Four rounds make a pseudorandom permutation for an observer who has seen few
/// of its values; a server gives out thousands, so there are more.
const FEISTEL_ROUNDS: u64 = 8;

/// A secret of the server, which no log shows.
#[derive(Clone, Copy)]
pub struct Secret(pub [u8; 16]);

impl Secret {
    /// Returns the secret of one boot of the server. Values that were derived in one boot tell
    /// nothing about those of another.
    pub(crate) fn of_life(&self, boot: u32) -> Self {
        let half = |half: u64| self.word(b"life", u64::from(boot) << 1 | half);
        Self((u128::from(half(0)) << 64 | u128::from(half(1))).to_be_bytes())
    }

    /// Maps each number to another one, by a keyed Feistel network.
    pub(crate) fn permuted(&self, number: u32) -> u32 {
        let (mut left, mut right) = ((number >> 16) as u16, number as u16);
        for round in 0..FEISTEL_ROUNDS {
            let word = self.word(b"number", round << 16 | u64::from(right));
            (left, right) = (right, left ^ word as u16);
        }
        u32::from(left) << 16 | u32::from(right)
    }

    /// Returns the number that [`Secret::permuted`] maps to this one.
    pub(crate) fn restored(&self, number: u32) -> u32 {
        let (mut left, mut right) = ((number >> 16) as u16, number as u16);
        for round in (0..FEISTEL_ROUNDS).rev() {
            let word = self.word(b"number", round << 16 | u64::from(left));
            (left, right) = (right ^ word as u16, left);
        }
        u32::from(left) << 16 | u32::from(right)
    }

    /// Returns a word that nobody can guess. It differs for each purpose and each number.
    pub(crate) fn word(&self, purpose: &[u8], number: u64) -> u64 {
        SipHasher24::new_with_key(&self.0).hash(&[purpose, &number.to_be_bytes()].concat())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A sessionid (RFC 8881, 2.10.3.2): the clientid, and a MAC over it and the client's own number
/// for the session. Only a client that received it can name the session. A collision of two
/// sessions of a client is as unlikely as a right guess.
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

/// Eight opaque bytes that only their creator interprets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Verifier(pub [u8; 8]);

/// The name that a client presents: `nfs_client_id4` or `client_owner4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOwner {
    /// The instance of the client: it changes at each restart of the client.
    pub verifier: Verifier,
    /// The client's identity, which stays the same after a restart.
    pub id: Box<[u8]>,
}

/// The principal of a call, as an opaque number that is only compared. The state of a client
/// belongs to one principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Principal(pub u64);

impl Principal {
    /// The system user (root) of a machine, as AUTH_SYS names it.
    pub const SYSTEM: Self = Self::new(Flavor::SYS.0, 0);

    /// Returns the principal of a user in a credential of this flavor.
    #[must_use]
    pub const fn new(flavor: u32, user: u32) -> Self {
        Self((flavor as u64) << 32 | user as u64)
    }
}

/// The principal and the origin of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caller {
    /// The principal.
    pub principal: Principal,
    /// The origin.
    pub origin: Origin,
}

/// A connection, by a number that is unique among open connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// The protocol by which a client introduces itself. The same id in two protocols is two clients
/// (RFC 8881, 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientProtocol {
    /// SETCLIENTID: minor version 0.
    Setclientid,
    /// EXCHANGE_ID and sessions: minor versions 1 and 2.
    ExchangeId,
    /// The lock manager of NFSv3, which identifies hosts by their names.
    Nlm,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_only_with_the_secret() {
        let name = |secret, client, number| {
            let secret = Secret([secret; 16]);
            SessionId::new(&secret, ClientId(client), number)
        };
        let it = name(1, 2, 3);
        assert_eq!(it, name(1, 2, 3));
        let half = |id: SessionId| <[u8; 8]>::try_from(&id.0[8..]).unwrap();
        for other in [name(9, 2, 3), name(1, 9, 3), name(1, 2, 9)] {
            assert_ne!(half(it), half(other));
        }
        assert!(!format!("{:?}", Secret([77; 16])).contains("77"));
    }

    #[test]
    fn a_permuted_number_is_restored() {
        let secret = Secret([7; 16]);
        for number in [0, 1, 2, 0x1234_5678, u32::MAX] {
            assert_eq!(secret.restored(secret.permuted(number)), number);
        }
        assert_ne!(secret.permuted(1).wrapping_add(1), secret.permuted(2));
    }

    #[test]
    fn only_the_server_reads_the_life_of_a_clientid() {
        let (secret, other) = (Secret([7; 16]), Secret([8; 16]));
        let id = ClientId::new(&secret, 3, 0x1234_5678);
        assert_eq!(id.number(), 0x1234_5678);
        assert!(id.is_of(&secret, 3));
        assert!(!id.is_of(&secret, 4) && !id.is_of(&other, 3));
        assert!(!ClientId(3 << 32 | 0x1234_5678).is_of(&secret, 3));
    }
}
