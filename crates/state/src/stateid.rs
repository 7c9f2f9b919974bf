use crate::{ClientId, Error, Result};

/// A stateid (RFC 8881, 8.2): it names a state, and counts its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stateid {
    /// Number of changes of the state, from one.
    pub seqid: u32,
    /// The clientid, which nobody can guess, and the number of the state in four bytes.
    pub other: [u8; 12],
}

/// The part of a stateid that never changes: it names a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateName {
    /// The client that has the state.
    pub client: ClientId,
    /// The number of the state.
    pub number: u32,
}

impl StateName {
    /// Returns the stateid of the state after this number of changes.
    pub(crate) fn at(self, seqid: u32) -> Stateid {
        let mut other = [0; 12];
        let (client, state) = other.split_at_mut(8);
        client.copy_from_slice(&self.client.0.to_be_bytes());
        state.copy_from_slice(&self.number.to_be_bytes());
        Stateid { seqid, other }
    }
}

/// The meaning of a special stateid, which names no state (RFC 8881, 8.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// The anonymous stateid, of all zeros: an access without an open.
    Anonymous,
    /// The READ bypass stateid, of all ones: an access without an open, which ignores deny modes
    /// against reading.
    ReadBypass,
    /// The current stateid: the one that the previous operation of the COMPOUND returned.
    Current,
    /// The invalid stateid.
    Invalid,
}

impl Stateid {
    /// The anonymous stateid.
    pub const ANONYMOUS: Self = Self { seqid: 0, other: [0; 12] };
    /// The READ bypass stateid.
    pub const READ_BYPASS: Self = Self { seqid: u32::MAX, other: [0xff; 12] };
    /// The stateid that stands for the current one.
    pub const CURRENT: Self = Self { seqid: 1, other: [0; 12] };
    /// The invalid stateid.
    pub const INVALID: Self = Self { seqid: u32::MAX, other: [0; 12] };

    /// Returns the meaning of a special stateid; none if it names a state.
    #[must_use]
    pub fn special(&self) -> Option<Special> {
        match *self {
            Self::ANONYMOUS => Some(Special::Anonymous),
            Self::READ_BYPASS => Some(Special::ReadBypass),
            Self::CURRENT => Some(Special::Current),
            Self::INVALID => Some(Special::Invalid),
            _ => None,
        }
    }

    /// Returns whether it names a state of this client.
    #[must_use]
    pub fn is_of(&self, client: ClientId) -> bool {
        self.other.first_chunk::<8>() == Some(&client.0.to_be_bytes())
    }

    pub(crate) fn new(client: ClientId, number: u32, seqid: u32) -> Self {
        StateName { client, number }.at(seqid)
    }

    /// Returns the name of the state.
    ///
    /// # Errors
    /// [`Error::BadStateid`]: it is a special stateid.
    pub(crate) fn name(&self) -> Result<StateName> {
        if self.other == [0; 12] || self.other == [0xff; 12] {
            return Err(Error::BadStateid);
        }
        let (client, state) = self.other.split_first_chunk::<8>().ok_or(Error::BadStateid)?;
        let number = state.first_chunk::<4>().ok_or(Error::BadStateid)?;
        let client = ClientId(u64::from_be_bytes(*client));
        Ok(StateName { client, number: u32::from_be_bytes(*number) })
    }
}
