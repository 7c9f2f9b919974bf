//! Sets of rights, the compliance values of the server.

use std::fmt;
use std::str::FromStr;

/// A set of rights to a file or folder. Its text consists of their letters, `rwxcda` in any order,
/// or is `none`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Rights(u8);

impl Rights {
    /// No right.
    pub const NONE: Self = Self(0);
    /// `r`: read a file, list a folder.
    pub const READ: Self = Self(1);
    /// `w`: change a file.
    pub const WRITE: Self = Self(2);
    /// `x`: execute a file, search a folder.
    pub const EXECUTE: Self = Self(4);
    /// `c`: create in a folder.
    pub const CREATE: Self = Self(8);
    /// `d`: delete from a folder.
    pub const DELETE: Self = Self(16);
    /// `a`: change attributes.
    pub const ATTRIBUTES: Self = Self(32);
    /// All rights.
    pub const ALL: Self = Self(63);

    /// Each right and its letter, in the order in which they are written.
    pub const LETTERS: [(char, Self); 6] = [
        ('r', Self::READ),
        ('w', Self::WRITE),
        ('x', Self::EXECUTE),
        ('c', Self::CREATE),
        ('d', Self::DELETE),
        ('a', Self::ATTRIBUTES),
    ];

    /// The rights of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether each right of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The set as a number below 64, with a bit for each right in the order of the letters.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set for a number; unknown bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The rights that at least this many of the sets contain.
    #[must_use]
    pub(crate) fn of_at_least(count: u32, sets: &[Self]) -> Self {
        let held = |right: Self| sets.iter().filter(|set| set.contains(right)).count();
        let rights = Self::LETTERS.map(|(_, right)| right).into_iter();
        rights.filter(|right| held(*right) >= count as usize).fold(Self::NONE, Self::union)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return out.write_str("none");
        }
        let letters = Self::LETTERS.iter().filter(|(_, right)| self.contains(*right));
        letters.map(|(letter, _)| *letter).try_for_each(|letter| write!(out, "{letter}"))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The error for a text that is not a set of rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rights are the letters r, w, x, c, d and a, or `none`")]
pub struct UnknownRights;

impl FromStr for Rights {
    type Err = UnknownRights;

    fn from_str(text: &str) -> Result<Self, UnknownRights> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        let right = |letter| Self::LETTERS.iter().find(|(known, _)| *known == letter);
        let add = |set: Self, letter| right(letter).map(|(_, right)| set.union(*right));
        let set = text.chars().try_fold(Self::NONE, add).ok_or(UnknownRights)?;
        if set.is_none() { Err(UnknownRights) } else { Ok(set) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_in_any_order_and_written_in_one() {
        let read = |text: &str| text.parse::<Rights>();
        assert_eq!(read("xwr").unwrap().to_string(), "rwx");
        assert_eq!(read("adcxwr"), Ok(Rights::ALL));
        assert_eq!(read("none"), Ok(Rights::NONE));
        assert_eq!(Rights::NONE.to_string(), "none");
        for wrong in ["", "rz", "RWX", "r w", "nonenone", "rnone", "7", "true"] {
            assert_eq!(read(wrong), Err(UnknownRights), "{wrong}");
        }
        for bits in 0..64 {
            let rights = Rights::from_bits(bits);
            assert_eq!(read(&rights.to_string()), Ok(rights));
            assert_eq!(Rights::from_bits(bits | 0xc0).bits(), bits);
        }
    }

    #[test]
    fn a_threshold_gives_the_union_over_all_choices() {
        let sets: Vec<Rights> = ["rw", "rx", "wx", "c"].map(|text| text.parse().unwrap()).into();
        for count in 1..=4_u32 {
            let mut expected = Rights::NONE;
            for choice in 0..1_u32 << sets.len() {
                if choice.count_ones() == count {
                    let chosen = sets.iter().zip(0..).filter(|(_, at)| choice >> at & 1 == 1);
                    let common = chosen.fold(Rights::ALL, |all, (set, _)| all.intersection(*set));
                    expected = expected.union(common);
                }
            }
            assert_eq!(Rights::of_at_least(count, &sets), expected, "{count}");
        }
    }
}
