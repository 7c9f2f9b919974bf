use comity_proto::nfs4::Nfsstat4;
use comity_vfs::limits::NAME_BYTES_MAX;

use crate::compound::Compound;
use crate::filehandle::Object;

impl Compound<'_> {
    /// Checks a name of an entry of the current directory. It must be UTF-8 if the export requires
    /// that (RFC 8881, 14.4).
    ///
    /// # Errors
    /// The errors of [`component`]; [`Nfsstat4::Inval`] for a name that is not UTF-8.
    pub(crate) fn component<'n>(&self, name: &'n [u8]) -> Result<&'n [u8], Nfsstat4> {
        let name = component(name)?;
        match &self.current {
            Some(Object::In(view, _)) if view.rules().utf8_names && !is_text(name) => {
                Err(Nfsstat4::Inval)
            }
            _ => Ok(name),
        }
    }
}

/// Checks a name of an entry. Names are bytes in any encoding, but must not lead out of the
/// directory (RFC 8881, 14.5).
///
/// # Errors
/// [`Nfsstat4::Inval`] for an empty name, [`Nfsstat4::BadName`] for `.` and `..`,
/// [`Nfsstat4::BadChar`] for a slash or a zero byte, [`Nfsstat4::NameTooLong`].
fn component(name: &[u8]) -> Result<&[u8], Nfsstat4> {
    match name {
        b"" => Err(Nfsstat4::Inval),
        b"." | b".." => Err(Nfsstat4::BadName),
        _ if name.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(Nfsstat4::BadChar),
        _ if name.len() > NAME_BYTES_MAX => Err(Nfsstat4::NameTooLong),
        _ => Ok(name),
    }
}

/// Returns whether bytes are UTF-8 without code points that stand for no character.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes);
    text.is_ok_and(|text| !text.contains(['\u{fffe}', '\u{ffff}']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leaves_a_directory_is_no_name() {
        for (name, status) in [
            (&b""[..], Nfsstat4::Inval),
            (b".", Nfsstat4::BadName),
            (b"..", Nfsstat4::BadName),
            (b"a/b", Nfsstat4::BadChar),
            (b"a\0", Nfsstat4::BadChar),
            (&[b'x'; 256], Nfsstat4::NameTooLong),
        ] {
            assert_eq!(component(name), Err(status), "{name:?}");
        }
        assert_eq!(component(b"\xff\xfe..."), Ok(&b"\xff\xfe..."[..]));
    }

    #[test]
    fn text_is_distinguished_from_other_bytes() {
        for text in ["", "create", "Gr\u{fc}\u{df}e", "\u{feff}\u{1f30d}"] {
            assert!(is_text(text.as_bytes()), "{text}");
        }
        for bytes in [&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbf\xbe", b"\xef\xbf\xbf"]
        {
            assert!(!is_text(bytes), "{bytes:x?}");
        }
    }
}
