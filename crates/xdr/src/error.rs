use std::fmt;

/// The reason why bytes cannot be decoded. The sender is always at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The record ended before the value did.
    Truncated {
        /// Bytes the value needs next.
        wanted: usize,
        /// Bytes that were left.
        left: usize,
    },
    /// A length or count exceeds the bound of the protocol or of this server.
    TooLong {
        /// The length announced.
        length: u32,
        /// The most that is allowed.
        limit: u32,
    },
    /// A boolean that is neither 0 nor 1 (RFC 4506, 4.4).
    Boolean(u32),
    /// A discriminant that names no arm of its enumeration or union.
    Discriminant {
        /// The type that was read.
        of: &'static str,
        /// The value found.
        found: u32,
    },
    /// Padding bytes that are not zero (RFC 4506, 3).
    Padding,
    /// Bytes were left over after the last argument.
    Leftover(usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { wanted, left } => {
                write!(f, "record ends early: {wanted} bytes wanted, {left} left")
            }
            Self::TooLong { length, limit } => {
                write!(f, "length {length} is above the limit of {limit}")
            }
            Self::Boolean(found) => write!(f, "boolean is {found}, neither 0 nor 1"),
            Self::Discriminant { of, found } => write!(f, "{found} names no {of}"),
            Self::Padding => f.write_str("padding is not zero"),
            Self::Leftover(bytes) => write!(f, "{bytes} bytes left over after the arguments"),
        }
    }
}

impl std::error::Error for Malformed {}
