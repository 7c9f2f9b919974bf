//! Notifications of changes in delegated directories (RFC 8881, 20.4).

use std::collections::VecDeque;
use std::time::Duration;

use comity_proto::nfs4::{
    Bitmap4, CbNotify4args, Fattr4, NfsFh4, Nfsstat4, Nfstime4, Notify4, NotifyAdd4, NotifyAttr4,
    NotifyRemove4, NotifyRename4, attribute as a, notify_type as kind,
};
use comity_vfs::{DelegationNumber, NoticedAttributes, Time};
use comity_xdr::{Decoder, Malformed};

use super::file_states::HeldDelegation;
use super::machine::ClientMachine;
use crate::limits::NOTICES_MAX;
use crate::server_handle::ServerHandle;

/// The kinds of notifications that are requested.
pub(crate) const KINDS: Bitmap4 = Bitmap4::of(&[
    kind::CHANGE_DIR_ATTRS,
    kind::REMOVE_ENTRY,
    kind::ADD_ENTRY,
    kind::RENAME_ENTRY,
    kind::GFLAG_EXTEND,
]);

/// The attributes of entries that are requested.
pub(crate) const OF_ENTRY: Bitmap4 = Bitmap4::of(&[a::FILEHANDLE, a::FILEID]);

/// The attributes of the directory that are requested.
pub(crate) const OF_DIRECTORY: Bitmap4 = Bitmap4::of(&[
    a::CHANGE,
    a::SIZE,
    a::NUMLINKS,
    a::SPACE_USED,
    a::TIME_ACCESS,
    a::TIME_METADATA,
    a::TIME_MODIFY,
]);

/// A change of a directory, with the server's handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerNotice {
    pub(crate) directory: ServerHandle,
    pub(crate) grant: DelegationNumber,
    pub(crate) change: ServerChange,
    pub(crate) after: Option<NoticedAttributes>,
}

/// A change of a name, or of the attributes of the directory alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerChange {
    Added { name: Box<[u8]>, object: ServerObject },
    Removed { name: Box<[u8]> },
    Renamed { from: Box<[u8]>, name: Box<[u8]>, object: ServerObject },
    Attributes,
}

/// The object of a name; fields are `None` if the server did not send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ServerObject {
    pub(crate) handle: Option<ServerHandle>,
    pub(crate) fileid: Option<u64>,
}

impl ClientMachine {
    /// Handles a CB_NOTIFY. If its changes are malformed or too many, the delegation is returned.
    pub(super) fn callback_notify(&mut self, now: Duration, args: &CbNotify4args<'_>) -> Nfsstat4 {
        let is_it = |held: &&HeldDelegation| held.stateid.other == args.stateid.other;
        let directory = ServerHandle::new(args.fh.0);
        let held = directory.and_then(|dir| self.states.delegation(&dir).filter(is_it));
        let (Some(directory), Some(grant)) = (directory, held.and_then(|held| held.grant)) else {
            // The delegation may come with a reply that has not arrived yet.
            let is_early = self.may_be_delegated();
            return if is_early { Nfsstat4::Delay } else { Nfsstat4::BadStateid };
        };
        let has_room = self.notices.len() + args.changes.0.len() <= NOTICES_MAX;
        let noticed = read_all(&directory, grant, args).ok().filter(|_| has_room);
        let Some(noticed) = noticed else {
            self.notices.retain(|notice| notice.grant != grant);
            self.recalled(now, &directory, false);
            return Nfsstat4::Delay;
        };
        self.notices.extend(noticed);
        Nfsstat4::Ok
    }

    /// Returns the next change that was not applied yet.
    pub(crate) fn next_notice(&mut self) -> Option<ServerNotice> {
        self.notices.pop_front()
    }
}

/// Changes that have not been applied yet.
pub(super) type NoticeQueue = VecDeque<ServerNotice>;

fn read_all(
    directory: &ServerHandle,
    grant: DelegationNumber,
    args: &CbNotify4args<'_>,
) -> Result<Vec<ServerNotice>, Malformed> {
    let mut notices: Vec<ServerNotice> = Vec::new();
    for notify in &args.changes.0 {
        let (change, after) = read_change(notify)?;
        let is_last_bare = notices.last().is_some_and(|last| last.after.is_none());
        if change != ServerChange::Attributes || !is_last_bare {
            notices.push(ServerNotice { directory: *directory, grant, change, after });
            continue;
        }
        // The attributes after several changes of names follow them on their own.
        let bare = notices.iter_mut().rev().take_while(|notice| notice.after.is_none());
        bare.for_each(|notice| notice.after = after);
    }
    Ok(notices)
}

/// Decodes a change of one name, the attributes of the directory, whose kind has a smaller number,
/// or both. Other kinds are not requested.
fn read_change(
    notify: &Notify4<'_>,
) -> Result<(ServerChange, Option<NoticedAttributes>), Malformed> {
    let mut values = Decoder::new(notify.vals.0);
    let (mut change, mut after, mut is_told) = (None, None, false);
    for number in notify.mask.iter() {
        match number {
            kind::CHANGE_DIR_ATTRS => {
                let NotifyAttr4 { changed_entry } = values.value()?;
                (after, is_told) = (attributes(&changed_entry.attrs)?, true);
            }
            _ if change.is_some() => return Err(unasked(number)),
            kind::REMOVE_ENTRY => {
                let removed: NotifyRemove4<'_> = values.value()?;
                change = Some(ServerChange::Removed { name: removed.entry.file.0.into() });
            }
            kind::ADD_ENTRY => {
                let NotifyAdd4 { new_entry, .. } = values.value()?;
                let (name, object) = (new_entry.file.0.into(), object(&new_entry.attrs)?);
                change = Some(ServerChange::Added { name, object });
            }
            kind::RENAME_ENTRY => {
                let NotifyRename4 { old_entry, new_entry } = values.value()?;
                let (from, new_entry) = (old_entry.entry.file.0.into(), new_entry.new_entry);
                let (name, object) = (new_entry.file.0.into(), object(&new_entry.attrs)?);
                change = Some(ServerChange::Renamed { from, name, object });
            }
            _ => return Err(unasked(number)),
        }
    }
    values.finish()?;
    let change = change.or(is_told.then_some(ServerChange::Attributes));
    Ok((change.ok_or(unasked(0))?, after))
}

fn object(fattr: &Fattr4<'_>) -> Result<ServerObject, Malformed> {
    let (mut values, mut found) = (Decoder::new(fattr.attr_vals.0), ServerObject::default());
    for number in fattr.attrmask.iter() {
        match number {
            a::FILEHANDLE => found.handle = ServerHandle::new(values.value::<NfsFh4<'_>>()?.0),
            a::FILEID => found.fileid = Some(values.value()?),
            _ => return Err(unasked(number)),
        }
    }
    values.finish().map(|()| found)
}

/// Decodes the attributes of the directory; `None` if one is missing.
fn attributes(fattr: &Fattr4<'_>) -> Result<Option<NoticedAttributes>, Malformed> {
    if fattr.attrmask != OF_DIRECTORY {
        return Ok(None);
    }
    let mut values = Decoder::new(fattr.attr_vals.0);
    let found = NoticedAttributes {
        change: values.value()?,
        size: values.value()?,
        links: values.value()?,
        used: values.value()?,
        atime: time(values.value()?),
        ctime: time(values.value()?),
        mtime: time(values.value()?),
    };
    values.finish().map(|()| Some(found))
}

const fn time(time: Nfstime4) -> Time {
    Time { seconds: time.seconds, nanoseconds: time.nseconds }
}

/// The error for a kind that was not requested.
const fn unasked(found: u32) -> Malformed {
    Malformed::Discriminant { of: "notification", found }
}

#[cfg(test)]
mod tests {
    use comity_proto::nfs4::{NotifyEntry4, Stateid4};
    use comity_xdr::{Counted, Encode, Encoder, Opaque};
    use proptest::prelude::*;

    use super::*;

    fn encoded(values: &[&dyn Fn(&mut Encoder)]) -> Vec<u8> {
        let mut encoder = Encoder::new();
        values.iter().for_each(|value| value(&mut encoder));
        encoder.bytes().to_vec()
    }

    fn one(value: &impl Encode) -> Vec<u8> {
        encoded(&[&|encoder| encoder.value(value)])
    }

    fn read(kinds: &[u32], vals: &[u8]) -> Result<ServerChange, Malformed> {
        let notify = Notify4 { mask: Bitmap4::of(kinds), vals: Opaque(vals) };
        read_change(&notify).map(|(change, _)| change)
    }

    fn entry<'a>(name: &'a [u8], mask: Bitmap4, values: &'a [u8]) -> NotifyEntry4<'a> {
        let attrs = Fattr4 { attrmask: mask, attr_vals: Opaque(values) };
        NotifyEntry4 { file: Opaque(name), attrs }
    }

    fn added<'a>(mask: Bitmap4, values: &'a [u8]) -> NotifyAdd4<'a> {
        NotifyAdd4 {
            old_entry: Counted(vec![]),
            new_entry: entry(b"new", mask, values),
            new_entry_cookie: Counted(vec![7]),
            prev_entry: Counted(vec![]),
            last_entry: true,
        }
    }

    #[test]
    fn an_added_entry_has_the_handle_and_fileid_of_the_notification() {
        let handle: NfsFh4<'_> = Opaque(b"file");
        let values =
            encoded(&[&|encoder| encoder.value(&handle), &|encoder| encoder.value(&9_u64)]);
        let object = ServerObject { handle: ServerHandle::new(b"file"), fileid: Some(9) };
        let name: Box<[u8]> = b"new"[..].into();
        let change = read(&[kind::ADD_ENTRY], &one(&added(OF_ENTRY, &values)));
        assert_eq!(change, Ok(ServerChange::Added { name: name.clone(), object }));
        let nothing = read(&[kind::ADD_ENTRY], &one(&added(Bitmap4::EMPTY, &[])));
        let object = ServerObject::default();
        assert_eq!(nothing, Ok(ServerChange::Added { name, object }), "unknown fields are None");
    }

    #[test]
    fn kinds_and_attributes_that_were_not_asked_for_are_refused() {
        let removed = NotifyRemove4 { entry: entry(b"old", Bitmap4::EMPTY, &[]), cookie: 0 };
        assert!(read(&[kind::REMOVE_ENTRY], &one(&removed)).is_ok());
        for (kinds, vals) in [
            (&[kind::CHANGE_COOKIE_VERIFIER][..], vec![0; 16]),
            (&[kind::CHANGE_CHILD_ATTRS], one(&removed.entry)),
            (&[kind::CHANGE_DIR_ATTRS], one(&removed)),
            (&[], Vec::new()),
            (&[kind::REMOVE_ENTRY], [one(&removed), vec![0; 4]].concat()),
            (&[kind::REMOVE_ENTRY, kind::ADD_ENTRY], [one(&removed), one(&removed)].concat()),
            (&[kind::ADD_ENTRY], one(&added(Bitmap4::of(&[a::MODE]), &[0; 4]))),
        ] {
            assert!(read(kinds, &vals).is_err(), "{kinds:?}");
        }
    }

    /// The attributes of a directory with this change attribute, as a notification.
    fn changed(change: u64) -> Vec<u8> {
        let values: Vec<u64> = vec![change, 2, 3 << 32 | 4, 5 << 32 | 6, 7, 8, 9, 10, 11];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
        let bytes = &bytes[..8 + 8 + 4 + 8 + 3 * 12];
        one(&NotifyAttr4 { changed_entry: entry(b"", OF_DIRECTORY, bytes) })
    }

    #[test]
    fn attributes_after_changes_of_names_belong_to_them_and_others_are_a_change_of_their_own() {
        let removed = NotifyRemove4 { entry: entry(b"old", Bitmap4::EMPTY, &[]), cookie: 0 };
        let removed = one(&removed);
        let (first, second) = (changed(1), changed(2));
        let notify = |number: u32, vals| Notify4 { mask: Bitmap4::of(&[number]), vals };
        let changes = Counted(vec![
            notify(kind::REMOVE_ENTRY, Opaque(&removed)),
            notify(kind::REMOVE_ENTRY, Opaque(&removed)),
            notify(kind::CHANGE_DIR_ATTRS, Opaque(&first)),
            notify(kind::CHANGE_DIR_ATTRS, Opaque(&second)),
        ]);
        let stateid = Stateid4 { seqid: 1, other: [0; 12] };
        let args = CbNotify4args { stateid, fh: Opaque(b"dir"), changes };
        let dir = ServerHandle::new(b"dir").unwrap();
        let notices = read_all(&dir, DelegationNumber(1), &args).unwrap();
        let short = |notice: &ServerNotice| (notice.change.clone(), notice.after.unwrap().change);
        let removed = ServerChange::Removed { name: b"old"[..].into() };
        let notices: Vec<_> = notices.iter().map(short).collect();
        assert_eq!(notices, [(removed.clone(), 1), (removed, 1), (ServerChange::Attributes, 2)]);
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            for number in 0..7 {
                let _ = read(&[number], &bytes);
            }
            let stateid = Stateid4 { seqid: 1, other: [0; 12] };
            let vals = Opaque(&bytes[..]);
            let changes = Counted(vec![Notify4 { mask: KINDS, vals }]);
            let args = CbNotify4args { stateid, fh: Opaque(b"dir"), changes };
            if let Some(directory) = ServerHandle::new(b"dir") {
                let _ = read_all(&directory, DelegationNumber(1), &args);
            }
        }
    }
}
