use std::fmt;
use std::str::FromStr;

use comity_ranges::Range;

/// The id of a file that an entry compares: its owner or its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owned {
    /// Its owner.
    ByUser,
    /// Its group.
    ByGroup,
}

/// A cloak entry: files whose owner or group lies in a range are hidden from all callers but
/// those whom the mask admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CloakEntry {
    /// The id that is looked at.
    pub owned: Owned,
    /// Server ids.
    pub ids: Range,
    /// The callers that see the files although they are cloaked.
    pub mask: Mask,
}

/// The quantifier of a mask: any of its bits, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// `+`: any.
    Any,
    /// `-`: all, and at least one must be named.
    All,
}

/// A sign and three octal digits for owner, group and others, as in a file's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mask {
    /// Any or all.
    pub sign: Sign,
    /// Nine bits.
    pub bits: u16,
}

/// The text is no mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a mask is + or - and three octal digits, like +070")]
pub struct BadMask;

impl Mask {
    /// Returns whether a caller of a class with these bits of a mode sees a file of this mode.
    #[inline]
    pub(crate) fn shows(self, mode: u32, class: u32) -> bool {
        let named = u32::from(self.bits) & class;
        let met = mode & named;
        met != 0 && (self.sign == Sign::Any || met == named)
    }

    /// Returns the mask as one number, which is never [`u32::MAX`].
    pub(crate) fn to_word(self) -> u32 {
        u32::from(self.bits) << 1 | u32::from(self.sign == Sign::Any)
    }

    /// Restores a mask from the number of [`Mask::to_word`].
    #[inline]
    pub(crate) const fn from_word(word: u32) -> Self {
        let sign = if word & 1 == 1 { Sign::Any } else { Sign::All };
        Self { sign, bits: (word >> 1) as u16 }
    }
}

impl FromStr for Mask {
    type Err = BadMask;

    fn from_str(text: &str) -> Result<Self, BadMask> {
        let (sign, digits) = match text.split_at_checked(1) {
            Some(("+", digits)) => (Sign::Any, digits),
            Some(("-", digits)) => (Sign::All, digits),
            _ => return Err(BadMask),
        };
        if digits.len() != 3 || !digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')) {
            return Err(BadMask);
        }
        u16::from_str_radix(digits, 8).map(|bits| Self { sign, bits }).map_err(|_| BadMask)
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.sign == Sign::Any { '+' } else { '-' };
        write!(f, "{sign}{:03o}", self.bits)
    }
}
