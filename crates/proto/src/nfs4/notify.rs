//! Notifications of changes in a delegated directory (RFC 8881, 20.4; RFC 5662).
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{Bitmap4, Component4, Fattr4, NfsFh4, Stateid4, Verifier4};

/// Kinds of notifications, as numbers of a bitmap: `notify_type4`.
pub mod notify_type {
    pub const CHANGE_CHILD_ATTRS: u32 = 0;
    pub const CHANGE_DIR_ATTRS: u32 = 1;
    pub const REMOVE_ENTRY: u32 = 2;
    pub const ADD_ENTRY: u32 = 3;
    pub const RENAME_ENTRY: u32 = 4;
    pub const CHANGE_COOKIE_VERIFIER: u32 = 5;
    /// The client knows the flags from here on, and without [`CFLAG_ORDER`] it needs neither
    /// cookies nor neighbours of entries (proposed for the successor of RFC 8881; Linux uses it).
    pub const GFLAG_EXTEND: u32 = 6;
    /// The client needs the order of the entries.
    pub const CFLAG_ORDER: u32 = 12;
}

/// Most bytes of one notification that are decoded.
pub const NOTIFY_BYTES_MAX: u32 = 64 << 10;

/// Most notifications in one callback that are decoded. A server of this project sends at most
/// 1025.
pub const NOTIFICATIONS_MAX: u32 = 2048;

/// A set of notifications: their kinds, and their values, undecoded, in the order of the kinds
/// (`notify4`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Notify4<'a> {
    pub mask: Bitmap4,
    pub vals: Opaque<'a, NOTIFY_BYTES_MAX>,
}

/// The arguments of CB_NOTIFY.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CbNotify4args<'a> {
    pub stateid: Stateid4,
    pub fh: NfsFh4<'a>,
    pub changes: Counted<Notify4<'a>, NOTIFICATIONS_MAX>,
}

/// An entry with its attributes: `notify_entry4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NotifyEntry4<'a> {
    pub file: Component4<'a>,
    pub attrs: Fattr4<'a>,
}

/// The entry before another one, and its cookie: `prev_entry4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct PrevEntry4<'a> {
    pub entry: NotifyEntry4<'a>,
    pub cookie: u64,
}

/// An entry that was removed: `notify_remove4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NotifyRemove4<'a> {
    pub entry: NotifyEntry4<'a>,
    pub cookie: u64,
}

/// An entry that was added: `notify_add4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NotifyAdd4<'a> {
    /// The entry that a rename replaced.
    pub old_entry: Counted<NotifyRemove4<'a>, 1>,
    pub new_entry: NotifyEntry4<'a>,
    pub new_entry_cookie: Counted<u64, 1>,
    pub prev_entry: Counted<PrevEntry4<'a>, 1>,
    pub last_entry: bool,
}

/// Changed attributes: `notify_attr4`. For the directory itself the name is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NotifyAttr4<'a> {
    pub changed_entry: NotifyEntry4<'a>,
}

/// An entry that was renamed in the same directory: `notify_rename4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NotifyRename4<'a> {
    pub old_entry: NotifyRemove4<'a>,
    pub new_entry: NotifyAdd4<'a>,
}

/// A change of the cookie verifier: `notify_verifier4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NotifyVerifier4 {
    pub old: Verifier4,
    pub new: Verifier4,
}

#[cfg(test)]
mod tests {
    use comity_xdr::{Decoder, encoded};

    use super::*;
    use crate::nfs4::attribute;

    /// Concatenates the parts of an encoding (RFC 4506).
    fn vector(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    fn is_read_again<'a, T: Decode<'a> + Encode + PartialEq + std::fmt::Debug>(
        value: &T,
        bytes: &'a [u8],
    ) {
        assert_eq!(encoded(value), bytes);
        let mut decoder = Decoder::new(bytes);
        assert_eq!(&decoder.value::<T>().unwrap(), value);
        decoder.finish().unwrap();
    }

    fn entry<'a>(name: &'a [u8], attrs: Fattr4<'a>) -> NotifyEntry4<'a> {
        NotifyEntry4 { file: Opaque(name), attrs }
    }

    const NONE: Fattr4<'static> = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(&[]) };

    /// `ne_file` "ab" without attributes: the length, two bytes and two of padding, an empty
    /// bitmap, no values.
    const AB: &[u8] = &[0, 0, 0, 2, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    /// `ne_file` "c" with fileid (20) 7: a bitmap of one word, 8 bytes of values.
    const C: &[u8] =
        &[0, 0, 0, 1, b'c', 0, 0, 0, 0, 0, 0, 1, 0, 0x10, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7];

    fn c() -> NotifyEntry4<'static> {
        let attrmask = Bitmap4::of(&[attribute::FILEID]);
        entry(b"c", Fattr4 { attrmask, attr_vals: Opaque(&[0, 0, 0, 0, 0, 0, 0, 7]) })
    }

    #[test]
    fn an_entry_and_the_one_before_it_have_the_encoding_of_the_xdr() {
        is_read_again(&entry(b"ab", NONE), AB);
        is_read_again(&c(), C);
        let bytes = vector(&[AB, &[0, 0, 0, 0, 0, 0, 0, 9]]);
        is_read_again(&PrevEntry4 { entry: entry(b"ab", NONE), cookie: 9 }, &bytes);
        is_read_again(&NotifyAttr4 { changed_entry: c() }, C);
    }

    #[test]
    fn a_removed_entry_is_followed_by_its_cookie() {
        let bytes = vector(&[AB, &[1, 2, 3, 4, 5, 6, 7, 8]]);
        let cookie = 0x0102_0304_0506_0708;
        is_read_again(&NotifyRemove4 { entry: entry(b"ab", NONE), cookie }, &bytes);
    }

    #[test]
    fn an_added_entry_has_three_optional_parts_and_a_flag() {
        let bare = NotifyAdd4 {
            old_entry: Counted(vec![]),
            new_entry: c(),
            new_entry_cookie: Counted(vec![]),
            prev_entry: Counted(vec![]),
            last_entry: false,
        };
        is_read_again(&bare, &vector(&[&[0; 4], C, &[0; 4], &[0; 4], &[0; 4]]));
        let removed = NotifyRemove4 { entry: entry(b"ab", NONE), cookie: 3 };
        let full = NotifyAdd4 {
            old_entry: Counted(vec![removed]),
            new_entry_cookie: Counted(vec![5]),
            prev_entry: Counted(vec![PrevEntry4 { entry: entry(b"ab", NONE), cookie: 4 }]),
            last_entry: true,
            ..bare
        };
        let one = &[0, 0, 0, 1][..];
        let bytes = vector(&[
            &vector(&[one, AB, &[0, 0, 0, 0, 0, 0, 0, 3]]),
            C,
            &vector(&[one, &[0, 0, 0, 0, 0, 0, 0, 5]]),
            &vector(&[one, AB, &[0, 0, 0, 0, 0, 0, 0, 4]]),
            one,
        ]);
        is_read_again(&full, &bytes);
    }

    #[test]
    fn a_second_optional_entry_is_refused() {
        let bytes = vector(&[&[0; 4], C, &[0, 0, 0, 2], &[0; 16], &[0; 8]]);
        assert!(Decoder::new(&bytes).value::<NotifyAdd4<'_>>().is_err());
    }

    #[test]
    fn a_renamed_entry_is_one_removed_and_one_added() {
        let value = NotifyRename4 {
            old_entry: NotifyRemove4 { entry: entry(b"ab", NONE), cookie: 0 },
            new_entry: NotifyAdd4 {
                old_entry: Counted(vec![]),
                new_entry: c(),
                new_entry_cookie: Counted(vec![]),
                prev_entry: Counted(vec![]),
                last_entry: false,
            },
        };
        is_read_again(&value, &vector(&[AB, &[0; 8], &[0; 4], C, &[0; 12]]));
    }

    #[test]
    fn a_callback_has_a_list_of_masks_and_opaque_values() {
        let vals = vector(&[AB, &[0; 8]]);
        let mask = Bitmap4::of(&[notify_type::REMOVE_ENTRY]);
        let args = CbNotify4args {
            stateid: Stateid4 { seqid: 1, other: *b"delegation-1" },
            fh: Opaque(b"dir!"),
            changes: Counted(vec![Notify4 { mask, vals: Opaque(&vals) }]),
        };
        let bytes = vector(&[
            &[0, 0, 0, 1],
            b"delegation-1",
            &[0, 0, 0, 4],
            b"dir!",
            // One notify4: a bitmap of one word with bit 2, and 24 bytes of values.
            &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 24],
            &vals,
        ]);
        is_read_again(&args, &bytes);
        let verifiers = NotifyVerifier4 { old: [1; 8], new: [2; 8] };
        is_read_again(&verifiers, &vector(&[&[1; 8], &[2; 8]]));
    }
}
