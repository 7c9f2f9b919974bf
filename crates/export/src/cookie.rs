//! Cookies of directory listings on the wire, for NFSv3 and NFSv4. A backend may use all numbers
//! but 0, on ext4 hashes of 63 bits; `.` and `..`, which backends do not list, need two numbers
//! that no backend uses. NFSv4 does not list these two, and reserves the cookies 1 and 2.

/// The cookies after `.` and after `..`; those of a backend are shifted above them.
const DOT: u64 = 1;
const DOT_DOT: u64 = 2;

/// The cookie that ext4 returns after a directory's last entry: the largest signed number. It is
/// passed on unchanged, since Linux clients show cookies to programs as signed offsets.
const LARGEST_OFFSET: u64 = i64::MAX as u64;

/// The position at which a listing goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The listing begins at the start.
    Start,
    /// The listing continues after `.`.
    Dot,
    /// The listing continues after `..`.
    DotDot,
    /// The listing continues after the entry to which the backend gave this cookie.
    Entry(u64),
}

impl Position {
    /// Reads a cookie.
    #[must_use]
    pub const fn from_wire(cookie: u64) -> Self {
        match cookie {
            0 => Self::Start,
            DOT => Self::Dot,
            DOT_DOT => Self::DotDot,
            LARGEST_OFFSET => Self::Entry(LARGEST_OFFSET),
            // The two numbers below this one were shifted above it.
            _ if cookie > LARGEST_OFFSET && cookie <= LARGEST_OFFSET + DOT_DOT => {
                Self::Entry(cookie - DOT_DOT - 1)
            }
            _ => Self::Entry(cookie - DOT_DOT),
        }
    }

    /// Returns the cookie of this position on the wire. The sum does not overflow: no file system
    /// uses the two largest 64-bit numbers as cookies.
    #[must_use]
    pub const fn to_wire(self) -> u64 {
        match self {
            Self::Start => 0,
            Self::Dot => DOT,
            Self::DotDot => DOT_DOT,
            Self::Entry(LARGEST_OFFSET) => LARGEST_OFFSET,
            Self::Entry(cookie) => match cookie.saturating_add(DOT_DOT) {
                shifted if cookie < LARGEST_OFFSET && shifted >= LARGEST_OFFSET => shifted + 1,
                shifted => shifted,
            },
        }
    }

    /// Returns the backend's cookie after which the listing continues.
    #[must_use]
    pub const fn behind(self) -> u64 {
        match self {
            Self::Entry(cookie) => cookie,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded_and_decoded(cookie: u64) {
        let position = Position::Entry(cookie);
        assert_eq!(Position::from_wire(position.to_wire()), position, "{cookie:#x}");
    }

    #[test]
    fn numbers_near_the_edges_come_back() {
        for position in [Position::Start, Position::Dot, Position::DotDot] {
            assert_eq!(Position::from_wire(position.to_wire()), position);
        }
        (1..5).for_each(encoded_and_decoded);
        (LARGEST_OFFSET - 5..LARGEST_OFFSET + 5).for_each(encoded_and_decoded);
        encoded_and_decoded(u64::MAX - 2);
    }

    #[test]
    fn the_end_of_ext4_stays_a_signed_offset() {
        assert_eq!(Position::Entry(LARGEST_OFFSET).to_wire(), LARGEST_OFFSET);
        // The largest hash that ext4 returns before the end of a directory.
        assert!(Position::Entry(0x7fff_fffe_ffff_ffff).to_wire() < LARGEST_OFFSET);
    }

    proptest! {
        #[test]
        fn every_cookie_comes_back(cookie in 1..u64::MAX - 1) {
            encoded_and_decoded(cookie);
        }

        #[test]
        fn every_number_from_the_wire_is_a_position(cookie in any::<u64>()) {
            let _ = Position::from_wire(cookie).behind();
        }
    }
}
