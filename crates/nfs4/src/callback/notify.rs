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
const OF_DIRECTORY: [(u32, u8); 6] = [
    (a::CHANGE, NoticeWishes::CHANGE),
    (a::SIZE, NoticeWishes::SIZE),
    (a::NUMLINKS, NoticeWishes::LINKS),
    (a::SPACE_USED, NoticeWishes::USED),
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
    let kinds = kinds_of_names(wanted);
    if kinds == 0 || bytes_max < NOTICE_BYTES_MIN {
        return None;
    }
    let entry = &args.child_attributes;
    let has_directory = wanted.contains(kind::CHANGE_DIR_ATTRS);
    let of_directory = OF_DIRECTORY.iter().filter(|_| has_directory);
    let of_directory = of_directory.filter(|(number, _)| args.dir_attributes.contains(*number));
    Some(NoticeWishes {
        kinds,
        handles: entry.contains(a::FILEHANDLE),
        fileids: entry.contains(a::FILEID),
        types: entry.contains(a::TYPE),
        directory: of_directory.fold(0, |all, (_, bit)| all | bit),
        bytes_max,
        unacknowledged_max,
    })
}

/// Returns the kinds of changes of names of which a client is notified. RFC 8881 says where an entry
/// is added, by cookies and neighbours, and this server does not. A client that wants only some
/// kinds must say by the flag that it does not need that. One that wants all of them has all names,
/// wherever they are.
fn kinds_of_names(wanted: &Bitmap4) -> u32 {
    let names = NAMES.iter().filter(|(number, _)| wanted.contains(*number));
    let is_enough = wanted.contains(kind::GFLAG_EXTEND) || names.clone().count() == NAMES.len();
    if is_enough { names.fold(0, |all, (_, bit)| all | bit) } else { 0 }
}

/// Returns the bitmaps of the answer: the kinds of notifications, the attributes of entries, and
/// those of the directory.
pub(crate) fn granted_notices(
    args: &GetDirDelegation4args,
    wishes: &NoticeWishes,
) -> (Bitmap4, Bitmap4, Bitmap4) {
    let mut kinds = args.notification_types.and(&Bitmap4::of(&[kind::GFLAG_EXTEND]));
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
    let values: Vec<_> = batch.iter().map(|notice| values(plan, wishes, notice)).collect();
    let changes = values.iter().map(|(mask, vals)| Notify4 { mask: *mask, vals: Opaque(vals) });
    let fh = plan.seal_key(directory);
    encoded(&CbNotify4args {
        stateid: Stateid4 { seqid: stateid.seqid, other: stateid.other },
        fh: Opaque(fh.bytes()),
        changes: Counted(changes.collect()),
    })
}

/// Returns the kinds of a notification and their values, in the order of the kinds.
fn values(plan: &Plan, wishes: &NoticeWishes, notice: &DirectoryNotice) -> (Bitmap4, Vec<u8>) {
    let (mut mask, mut encoder) = (Bitmap4::EMPTY, Encoder::new());
    if let Some(after) = notice.after.filter(|_| wishes.directory != 0) {
        mask.insert(kind::CHANGE_DIR_ATTRS);
        let values = directory_values(wishes, &after);
        let attrs = Fattr4 { attrmask: of_directory(wishes), attr_vals: Opaque(values.bytes()) };
        let changed_entry = NotifyEntry4 { file: Opaque(b""), attrs };
        encoder.value(&NotifyAttr4 { changed_entry });
    }
    match &notice.change {
        NotedChange::Removed { name } => {
            mask.insert(kind::REMOVE_ENTRY);
            encoder.value(&removed(name));
        }
        NotedChange::Added { name, object, replaces } => {
            mask.insert(kind::ADD_ENTRY);
            let values = entry_values(plan, wishes, object);
            encoder.value(&added(name, (&values.0, values.1.bytes()), *replaces));
        }
        NotedChange::Renamed { from, name, object, replaces } => {
            mask.insert(kind::RENAME_ENTRY);
            let values = entry_values(plan, wishes, object);
            let new_entry = added(name, (&values.0, values.1.bytes()), *replaces);
            encoder.value(&NotifyRename4 { old_entry: removed(from), new_entry });
        }
    }
    (mask, encoder.bytes().to_vec())
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
            NoticeWishes::CTIME => values.value(&nfstime4(after.ctime)),
            _ => values.value(&nfstime4(after.mtime)),
        }
    }
    values
}
