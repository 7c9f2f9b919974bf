//! Notifications of changes in delegated directories: those that a client may get, and their bytes
//! (RFC 8881, 18.39 and 20.4).

use comity_export::Plan;
use comity_proto::nfs4::{
    Bitmap4, CbNotify4args, Fattr4, GetDirDelegation4args, NfsFh4, Notify4, NotifyAdd4,
    NotifyAttr4, NotifyEntry4, NotifyRemove4, NotifyRename4, Stateid4, attribute as a,
    notify_type as kind,
};
use comity_state::{
    DirectoryNotice, FileKey, NotedChange, NoticeBatch, NoticeWishes, Share, Stateid,
};
use comity_vfs::{NamedObject, NoticedAttributes};
use comity_xdr::{Counted, Encoder, Opaque, encoded};

use crate::attribute_values::{ftype4, nfstime4};
use crate::limits::NOTICE_BYTES_MIN;

/// The bitmaps of an answer without notifications: their kinds, attributes of entries, and those of
/// the directory.
pub(crate) const NO_NOTICES: (Bitmap4, Bitmap4, Bitmap4) =
    (Bitmap4::EMPTY, Bitmap4::EMPTY, Bitmap4::EMPTY);

/// The kinds of changes of names, in the order of their numbers. A change of a kind that a client
/// does not want recalls its delegation (RFC 8881, 10.9.2).
const NAMES: [(u32, u32); 3] = [
    (kind::REMOVE_ENTRY, Share::REMOVED),
    (kind::ADD_ENTRY, Share::ADDED),
    (kind::RENAME_ENTRY, Share::RENAMED),
];

/// Attributes of an entry that a notification can have.
const OF_ENTRY: Bitmap4 = Bitmap4::of(&[a::TYPE, a::FILEHANDLE, a::FILEID]);

/// Attributes of a directory that a notification can have, in the order of their numbers.
const OF_DIRECTORY: [(u32, u8); 7] = [
    (a::CHANGE, NoticeWishes::CHANGE),
    (a::SIZE, NoticeWishes::SIZE),
    (a::NUMLINKS, NoticeWishes::LINKS),
    (a::SPACE_USED, NoticeWishes::USED),
    (a::TIME_ACCESS, NoticeWishes::ATIME),
    (a::TIME_METADATA, NoticeWishes::CTIME),
    (a::TIME_MODIFY, NoticeWishes::MTIME),
];

/// Returns the notifications that a client gets with a delegation, with their bounds; none if it
/// wants none of these, or takes no calls that are long enough.
pub(crate) fn wishes(
    args: &GetDirDelegation4args,
    (bytes_max, unacknowledged_max): (usize, usize),
) -> Option<NoticeWishes> {
    let wanted = &args.notification_types;
    let (names, directory) = (kinds_of_names(wanted), attributes_of_directory(args));
    let has_any = names != 0 || directory != 0 || wanted.contains(kind::CHANGE_COOKIE_VERIFIER);
    if !has_any || needs_order(wanted) || bytes_max < NOTICE_BYTES_MIN {
        return None;
    }
    let entry = &args.child_attributes;
    Some(NoticeWishes {
        kinds: names | NoticeWishes::kinds_of_settings(directory),
        handles: entry.contains(a::FILEHANDLE),
        fileids: entry.contains(a::FILEID),
        types: entry.contains(a::TYPE),
        directory,
        bytes_max,
        unacknowledged_max,
    })
}

/// Returns the attributes of the directory that are told, as bits of [`NoticeWishes`].
fn attributes_of_directory(args: &GetDirDelegation4args) -> u8 {
    if !args.notification_types.contains(kind::CHANGE_DIR_ATTRS) {
        return 0;
    }
    let wanted = OF_DIRECTORY.iter().filter(|(number, _)| args.dir_attributes.contains(*number));
    wanted.fold(0, |all, (_, bit)| all | bit)
}

/// Returns the kinds of changes of names of which a client is notified.
fn kinds_of_names(wanted: &Bitmap4) -> u32 {
    let names = NAMES.iter().filter(|(number, _)| wanted.contains(*number));
    names.fold(0, |all, (_, bit)| all | bit)
}

/// Returns whether a client needs the order of the entries. RFC 8881 tells it by cookies and
/// neighbours, and notifies a client of its own changes for the same reason; this server does
/// neither.
fn needs_order(wanted: &Bitmap4) -> bool {
    !wanted.contains(kind::GFLAG_EXTEND) || wanted.contains(kind::CFLAG_ORDER)
}

/// Kinds of the answer of which nothing is ever sent: a flag, and the verifier of cookies, which
/// never changes.
const SILENT: Bitmap4 = Bitmap4::of(&[kind::CHANGE_COOKIE_VERIFIER, kind::GFLAG_EXTEND]);

/// Returns the bitmaps of the answer: the kinds of notifications, the attributes of entries, and
/// those of the directory.
pub(crate) fn granted_notices(
    args: &GetDirDelegation4args,
    wishes: &NoticeWishes,
) -> (Bitmap4, Bitmap4, Bitmap4) {
    let mut kinds = args.notification_types.and(&SILENT);
    let names = NAMES.iter().filter(|(_, bit)| wishes.kinds & bit != 0);
    names.for_each(|(number, _)| kinds.insert(*number));
    if wishes.directory != 0 {
        kinds.insert(kind::CHANGE_DIR_ATTRS);
    }
    (kinds, args.child_attributes.and(&OF_ENTRY), of_directory(wishes))
}

fn of_directory(wishes: &NoticeWishes) -> Bitmap4 {
    let mut mask = Bitmap4::EMPTY;
    let wanted = OF_DIRECTORY.iter().filter(|(_, bit)| wishes.directory & bit != 0);
    wanted.for_each(|(number, _)| mask.insert(*number));
    mask
}

/// Encodes the arguments of CB_NOTIFY.
pub(super) fn arguments(
    plan: &Plan,
    (directory, stateid): (&FileKey, &Stateid),
    wishes: &NoticeWishes,
    batch: &NoticeBatch,
) -> Vec<u8> {
    let names = batch.iter().filter_map(|notice| name_change(plan, wishes, &notice.change));
    let after = batch.last().and_then(|last| attributes_after(wishes, last));
    let values: Vec<_> = names.chain(after).collect();
    let changes = values.iter().map(|(kind, encoder)| Notify4 {
        mask: Bitmap4::of(&[*kind]),
        vals: Opaque(encoder.bytes()),
    });
    let fh = plan.seal_key(directory);
    encoded(&CbNotify4args {
        stateid: Stateid4 { seqid: stateid.seqid, other: stateid.other },
        fh: Opaque(fh.bytes()),
        changes: Counted(changes.collect()),
    })
}

/// A notification of one kind, and its value. A `notify4` could have several kinds, but some
/// clients read only the first one.
type OfKind = (u32, Encoder);

/// Returns the attributes of the directory after the last change of a call.
fn attributes_after(wishes: &NoticeWishes, last: &DirectoryNotice) -> Option<OfKind> {
    let after = last.after.filter(|_| wishes.directory != 0)?;
    let values = directory_values(wishes, &after);
    let attrs = Fattr4 { attrmask: of_directory(wishes), attr_vals: Opaque(values.bytes()) };
    let changed_entry = NotifyEntry4 { file: Opaque(b""), attrs };
    let mut encoder = Encoder::new();
    encoder.value(&NotifyAttr4 { changed_entry });
    Some((kind::CHANGE_DIR_ATTRS, encoder))
}

fn name_change(plan: &Plan, wishes: &NoticeWishes, change: &NotedChange) -> Option<OfKind> {
    let mut encoder = Encoder::new();
    let kind = match change {
        NotedChange::Removed { name } => {
            encoder.value(&removed(name));
            kind::REMOVE_ENTRY
        }
        NotedChange::Added { name, object, replaces } => {
            let values = entry_values(plan, wishes, object);
            encoder.value(&added(name, (&values.0, values.1.bytes()), *replaces));
            kind::ADD_ENTRY
        }
        NotedChange::Renamed { from, name, object, replaces } => {
            let values = entry_values(plan, wishes, object);
            let new_entry = added(name, (&values.0, values.1.bytes()), *replaces);
            encoder.value(&NotifyRename4 { old_entry: removed(from), new_entry });
            kind::RENAME_ENTRY
        }
        NotedChange::Attributes => return None,
    };
    Some((kind, encoder))
}

/// Returns an entry that is gone. Cookies of the file system are positions that are known while a
/// directory is read, so that no notification has one.
const fn removed(name: &[u8]) -> NotifyRemove4<'_> {
    let attrs = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(&[]) };
    NotifyRemove4 { entry: NotifyEntry4 { file: Opaque(name), attrs }, cookie: 0 }
}

fn added<'a>(
    name: &'a [u8],
    (mask, values): (&Bitmap4, &'a [u8]),
    replaces: bool,
) -> NotifyAdd4<'a> {
    let attrs = Fattr4 { attrmask: *mask, attr_vals: Opaque(values) };
    NotifyAdd4 {
        old_entry: Counted(replaces.then(|| removed(name)).into_iter().collect()),
        new_entry: NotifyEntry4 { file: Opaque(name), attrs },
        new_entry_cookie: Counted(Vec::new()),
        prev_entry: Counted(Vec::new()),
        last_entry: false,
    }
}

fn entry_values(plan: &Plan, wishes: &NoticeWishes, object: &NamedObject) -> (Bitmap4, Encoder) {
    let (mut mask, mut values) = (Bitmap4::EMPTY, Encoder::new());
    if wishes.types {
        mask.insert(a::TYPE);
        values.value(&ftype4(object.file_type));
    }
    if wishes.handles {
        mask.insert(a::FILEHANDLE);
        values.value::<NfsFh4<'_>>(&Opaque(plan.seal_key(&object.key).bytes()));
    }
    if wishes.fileids {
        mask.insert(a::FILEID);
        values.value(&object.fileid);
    }
    (mask, values)
}

fn directory_values(wishes: &NoticeWishes, after: &NoticedAttributes) -> Encoder {
    let mut values = Encoder::new();
    for (_, bit) in OF_DIRECTORY.iter().filter(|(_, bit)| wishes.directory & bit != 0) {
        match *bit {
            NoticeWishes::CHANGE => values.value(&after.change),
            NoticeWishes::SIZE => values.value(&after.size),
            NoticeWishes::LINKS => values.value(&after.links),
            NoticeWishes::USED => values.value(&after.used),
            NoticeWishes::ATIME => values.value(&nfstime4(after.atime)),
            NoticeWishes::CTIME => values.value(&nfstime4(after.ctime)),
            _ => values.value(&nfstime4(after.mtime)),
        }
    }
    values
}
