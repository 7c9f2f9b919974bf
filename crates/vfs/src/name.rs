use std::fmt;

use crate::limits::NAME_BYTES_MAX;
use crate::{Result, Status};

/// One component of a path: bytes, not text. It is never empty, `.` or `..`, has no slash and no
/// zero byte, and at most 255 bytes. So a name cannot lead a backend out of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// Checks a name from outside.
    ///
    /// # Errors
    /// [`Status::NameTooLong`]; [`Status::Inval`] for everything else that is no name of an entry.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        match bytes {
            b"" | b"." | b".." => Err(Status::Inval),
            _ if bytes.len() > NAME_BYTES_MAX => Err(Status::NameTooLong),
            _ if bytes.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(Status::Inval),
            _ => Ok(Self(bytes)),
        }
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leaves_a_directory_is_no_name() {
        for bytes in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert_eq!(Name::new(bytes), Err(Status::Inval), "{bytes:?}");
        }
        assert_eq!(Name::new(&[b'x'; 256]), Err(Status::NameTooLong));
    }

    #[test]
    fn names_are_bytes() {
        for bytes in [&b"..."[..], b".a", b"\xff\xfe", b" ", &[b'x'; 255]] {
            assert_eq!(Name::new(bytes).map(Name::bytes), Ok(bytes));
        }
    }
}
