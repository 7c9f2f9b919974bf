//! Owners as text: a name of the caller's domain, or the number if there is no name. RFC 8881, 5.9
//! allows numbers if client and server share them, as with AUTH_SYS.

use comity_export::{Owner, View};
use comity_proto::nfs4::Nfsstat4;
use comity_vfs::{Gid, Uid, Wire};
use comity_xdr::Encoder;

/// Conversion of users and groups to text for a caller, and back.
pub(super) trait Owners {
    /// Returns the text of a user.
    fn user_out(&self, uid: Uid<Wire>) -> Owner<'_>;
    /// Returns the text of a group.
    fn group_out(&self, gid: Gid<Wire>) -> Owner<'_>;
    /// Returns the user that a text names.
    ///
    /// # Errors
    /// [`Nfsstat4::BadOwner`] if there is no such user; [`Nfsstat4::Inval`] if the text is empty.
    fn user_in(&self, text: &[u8]) -> Result<Uid<Wire>, Nfsstat4>;
    /// Returns the group that a text names.
    ///
    /// # Errors
    /// [`Nfsstat4::BadOwner`] if there is no such group; [`Nfsstat4::Inval`] if the text is empty.
    fn group_in(&self, text: &[u8]) -> Result<Gid<Wire>, Nfsstat4>;
}

impl Owners for View<'_> {
    fn user_out(&self, uid: Uid<Wire>) -> Owner<'_> {
        self.owner_out(uid)
    }

    fn group_out(&self, gid: Gid<Wire>) -> Owner<'_> {
        self.owner_group_out(gid)
    }

    fn user_in(&self, text: &[u8]) -> Result<Uid<Wire>, Nfsstat4> {
        self.owner_in(text).map_err(|_| refusal(text))
    }

    fn group_in(&self, text: &[u8]) -> Result<Gid<Wire>, Nfsstat4> {
        self.owner_group_in(text).map_err(|_| refusal(text))
    }
}

/// Appends an owner as text.
pub(super) fn say(reply: &mut Encoder, owner: Owner<'_>) {
    match owner {
        Owner::Named(name) => reply.opaque(name.as_bytes()),
        Owner::Number(number) => say_number(reply, number),
    }
}

/// Appends a number as text.
pub(super) fn say_number(reply: &mut Encoder, number: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        if let Some(place) = digits.get_mut(at) {
            *place = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    reply.opaque(digits.get(at..).unwrap_or_default());
}

const fn refusal(text: &[u8]) -> Nfsstat4 {
    if text.is_empty() { Nfsstat4::Inval } else { Nfsstat4::BadOwner }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A domain with one named user and one named group; all others are numbers.
    pub(in crate::attributes) struct NamedOwners;

    impl Owners for NamedOwners {
        fn user_out(&self, uid: Uid<Wire>) -> Owner<'_> {
            if uid.number() == 7 { Owner::Named("alice@a") } else { Owner::Number(uid.number()) }
        }

        fn group_out(&self, gid: Gid<Wire>) -> Owner<'_> {
            if gid.number() == 9 { Owner::Named("staff@a") } else { Owner::Number(gid.number()) }
        }

        fn user_in(&self, text: &[u8]) -> Result<Uid<Wire>, Nfsstat4> {
            meant(text, b"alice@a", 7).map(Uid::new)
        }

        fn group_in(&self, text: &[u8]) -> Result<Gid<Wire>, Nfsstat4> {
            meant(text, b"staff@a", 9).map(Gid::new)
        }
    }

    fn meant(text: &[u8], name: &[u8], id: u32) -> Result<u32, Nfsstat4> {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number.or((text == name).then_some(id)).ok_or(refusal(text))
    }

    #[test]
    fn numbers_and_names_are_said_as_text() {
        for value in [0, 7, 10, 1000, u32::MAX - 1] {
            let mut encoder = Encoder::new();
            say(&mut encoder, Owner::Number(value));
            let text = value.to_string();
            assert_eq!(&encoder.bytes()[4..4 + text.len()], text.as_bytes());
        }
        let mut encoder = Encoder::new();
        say(&mut encoder, NamedOwners.user_out(Uid::new(7)));
        assert_eq!(encoder.bytes(), b"\0\0\0\x07alice@a\0");
        assert_eq!(NamedOwners.user_in(b""), Err(Nfsstat4::Inval));
        assert_eq!(NamedOwners.user_in(b"bob@a"), Err(Nfsstat4::BadOwner));
    }
}
