use comity_proto::nfs4::Nfsstat4;
use comity_vfs::limits::NAME_BYTES_MAX;

/// A name of an entry. Names are bytes: no character set is asked for, but what leads out of a
/// directory is none (RFC 8881, 14.5).
///
/// # Errors
/// [`Nfsstat4::Inval`] for an empty one, [`Nfsstat4::BadName`] for `.` and `..`,
/// [`Nfsstat4::BadChar`] for a slash or a zero byte in it, [`Nfsstat4::NameTooLong`].
pub(crate) fn component(name: &[u8]) -> Result<&[u8], Nfsstat4> {
    match name {
        b"" => Err(Nfsstat4::Inval),
        b"." | b".." => Err(Nfsstat4::BadName),
        _ if name.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(Nfsstat4::BadChar),
        _ if name.len() > NAME_BYTES_MAX => Err(Nfsstat4::NameTooLong),
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_of_a_directory_is_no_name() {
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
}
