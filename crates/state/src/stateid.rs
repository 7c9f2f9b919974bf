use crate::{ClientId, Error, Result};

/// A stateid (RFC 8881, 8.2): a state, and the number of its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stateid {
    /// Counts the changes, from one.
    pub seqid: u32,
    /// The clientid, which nobody can guess, and the number of the state in four bytes.
    pub other: [u8; 12],
}

/// A stateid that stands for no state (RFC 8881, 8.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Zeros: without an open.
    Anonymous,
    /// Ones: without an open, and no deny mode hinders reading.
    ReadBypass,
    /// The one the last operation of the COMPOUND left.
    Current,
    /// None at all.
    Invalid,
}

impl Stateid {
    /// Zeros.
    pub const ANONYMOUS: Self = Self { seqid: 0, other: [0; 12] };
    /// Ones.
    pub const READ_BYPASS: Self = Self { seqid: u32::MAX, other: [0xff; 12] };
    /// The one the last operation of the COMPOUND left.
    pub const CURRENT: Self = Self { seqid: 1, other: [0; 12] };
    /// None at all.
    pub const INVALID: Self = Self { seqid: u32::MAX, other: [0; 12] };

    /// Returns its meaning if it names no state.
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

    /// Returns whether it is of a state of this client.
    #[must_use]
    pub fn is_of(&self, client: ClientId) -> bool {
        self.other.first_chunk::<8>() == Some(&client.0.to_be_bytes())
    }

    pub(crate) fn new(client: ClientId, number: u32, seqid: u32) -> Self {
        let mut other = [0; 12];
        let (life, state) = other.split_at_mut(8);
        life.copy_from_slice(&client.0.to_be_bytes());
        state.copy_from_slice(&number.to_be_bytes());
        Self { seqid, other }
    }

    /// Returns the client and the number of the state that it names.
    pub(crate) fn place(&self) -> Result<(ClientId, u32)> {
        if self.other == [0; 12] || self.other == [0xff; 12] {
            return Err(Error::BadStateid);
        }
        let (client, state) = self.other.split_first_chunk::<8>().ok_or(Error::BadStateid)?;
        let number = state.first_chunk::<4>().ok_or(Error::BadStateid)?;
        Ok((ClientId(u64::from_be_bytes(*client)), u32::from_be_bytes(*number)))
    }
}
