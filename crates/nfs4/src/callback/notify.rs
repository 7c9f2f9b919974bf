//! Notifications of changes in delegated directories: those that a client may get, and their bytes
//! (RFC 8881, 18.39 and 20.4).

use std::sync::Arc;
use std::time::Duration;

use comity_export::{Plan, SealedHandle};
use comity_proto::nfs4::{
    Bitmap4, CbNotify4args, Fattr4, GetDirDelegation4args, NfsFh4, Nfstime4, Notify4, NotifyAdd4,
    NotifyAttr4, NotifyEntry4, NotifyRemove4, NotifyRename4, Stateid4, attribute as a,
    notify_type as kind,
};
use comity_state::{
    ChildAttributes, DirectoryNotice, FileKey, NotedChange, NoticeBatch, NoticeWishes, Share,
    Stateid,
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

/// Attributes of an object in a directory of whose changes clients are notified, in the order of
/// their numbers. Reading changes the access time, which is not told.
const OF_CHILD: [(u32, u8); 6] = [
    (a::CHANGE, NoticeWishes::CHANGE),
    (a::SIZE, NoticeWishes::SIZE),
    (a::NUMLINKS, NoticeWishes::LINKS),
    (a::SPACE_USED, NoticeWishes::USED),
    (a::TIME_METADATA, NoticeWishes::CTIME),
    (a::TIME_MODIFY, NoticeWishes::MTIME),
];

/// Returns the notifications that a client gets with a delegation, with their bounds; none if it
/// wants none of these, or takes no calls that are long enough.
pub(crate) fn wishes(args: &GetDirDelegation4args, bounds: &NoticeBounds) -> Option<NoticeWishes> {
    let wanted = &args.notification_types;
    let (names, directory) = (kinds_of_names(wanted), attributes_of_directory(args));
    let children = if bounds.children { attributes_of_children(args) } else { 0 };
    let has_any = names != 0 || directory != 0 || children != 0;
    let has_any = has_any || wanted.contains(kind::CHANGE_COOKIE_VERIFIER);
    if !has_any || needs_order(wanted) || bounds.bytes_max < NOTICE_BYTES_MIN {
        return None;
    }
    let entry = &args.child_attributes;
    Some(NoticeWishes {
        kinds: names | NoticeWishes::kinds_of_settings(directory),
        handles: entry.contains(a::FILEHANDLE),
        fileids: entry.contains(a::FILEID),
        types: entry.contains(a::TYPE),
        directory,
        children,
        child_delay: delay(&args.child_attr_delay).min(bounds.delay_max),
        bytes_max: bounds.bytes_max,
        unacknowledged_max: bounds.unacknowledged_max,
    })
}

/// The bounds of the notifications of a client.
pub(crate) struct NoticeBounds {
    /// Most bytes of notifications in one call.
    pub(crate) bytes_max: usize,
    /// Most notifications that the client has not acknowledged.
    pub(crate) unacknowledged_max: usize,
    /// True if it may be notified of changed attributes of the objects in the directory.
    pub(crate) children: bool,
    /// The longest delay of such a notification.
    pub(crate) delay_max: Duration,
}

/// Returns a delay that a client has asked for; none if it is negative.
fn delay(wanted: &Nfstime4) -> Duration {
    let seconds = u64::try_from(wanted.seconds);
    let nanoseconds = Duration::from_nanos(wanted.nseconds.into());
    seconds
        .map_or(Duration::ZERO, |seconds| Duration::from_secs(seconds).saturating_add(nanoseconds))
}

/// Returns the attributes of objects in the directory whose changes are told, as bits of
/// [`NoticeWishes`]. A name may get another object before a notification arrives, so that the
/// client must want the handle.
fn attributes_of_children(args: &GetDirDelegation4args) -> u8 {
    let wanted = &args.child_attributes;
    let is_wanted = args.notification_types.contains(kind::CHANGE_CHILD_ATTRS);
    if !is_wanted || !wanted.contains(a::FILEHANDLE) {
        return 0;
    }
    let told = OF_CHILD.iter().filter(|(number, _)| wanted.contains(*number));
    told.fold(0, |all, (_, bit)| all | bit)
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
    if wishes.children != 0 {
        kinds.insert(kind::CHANGE_CHILD_ATTRS);
    }
    let of_children = args.child_attributes.and(&OF_ENTRY).or(&mask_of(&OF_CHILD, wishes.children));
    (kinds, of_children, of_directory(wishes))
}

fn of_directory(wishes: &NoticeWishes) -> Bitmap4 {
    mask_of(&OF_DIRECTORY, wishes.directory)
}

/// Returns the numbers of attributes of these bits.
fn mask_of(table: &[(u32, u8)], bits: u8) -> Bitmap4 {
    let mut mask = Bitmap4::EMPTY;
    let wanted = table.iter().filter(|(_, bit)| bits & bit != 0);
    wanted.for_each(|(number, _)| mask.insert(*number));
    mask
}

/// Reads the attributes of the changed children of a notification, and leaves out those that do not
/// exist any more. Returns `None` if nothing is left.
pub(super) fn with_attributes(plan: &Plan, batch: &NoticeBatch) -> Option<NoticeBatch> {
    if !batch.iter().any(|notice| is_child(notice)) {
        return Some(Arc::clone(batch));
    }
    let read = |notice: &Arc<DirectoryNotice>| match &notice.change {
        NotedChange::Child { name, key, .. } => {
            let (object, rest) = plan.noticed(key)?;
            let attributes = Some(ChildAttributes { object, rest });
            let change = NotedChange::Child { name: Arc::clone(name), key: *key, attributes };
            Some(Arc::new(DirectoryNotice { change, after: None }))
        }
        _ => Some(Arc::clone(notice)),
    };
    let batch: NoticeBatch = batch.iter().filter_map(read).collect();
    (!batch.is_empty()).then_some(batch)
}

/// Encodes the arguments of CB_NOTIFY.
pub(super) fn arguments(
    plan: &Plan,
    (directory, stateid): (&FileKey, &Stateid),
    wishes: &NoticeWishes,
    batch: &NoticeBatch,
) -> Vec<u8> {
    let names =
        batch.iter().filter_map(|notice| name_change((plan, directory), wishes, &notice.change));
    let last = batch.iter().rev().find(|notice| !is_child(notice));
    let after = last.and_then(|last| attributes_after(wishes, last));
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

const fn is_child(notice: &DirectoryNotice) -> bool {
    matches!(notice.change, NotedChange::Child { .. })
}

/// The exports, and the directory as the client that is notified has named it.
type Addressee<'a> = (&'a Plan, &'a FileKey);

/// Returns the handle of an object for a client: it belongs to the export of the client's
/// directory, though the object may have been changed through another one.
fn sealed((plan, directory): Addressee<'_>, object: &FileKey) -> SealedHandle {
    plan.seal_key(&FileKey { export: directory.export, ..*object })
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

fn name_change(to: Addressee<'_>, wishes: &NoticeWishes, change: &NotedChange) -> Option<OfKind> {
    let mut encoder = Encoder::new();
    let kind = match change {
        NotedChange::Removed { name } => {
            encoder.value(&removed(name));
            kind::REMOVE_ENTRY
        }
        NotedChange::Added { name, object, replaces } => {
            let values = entry_values(to, wishes, object);
            encoder.value(&added(name, (&values.0, values.1.bytes()), *replaces));
            kind::ADD_ENTRY
        }
        NotedChange::Renamed { from, name, object, replaces } => {
            let values = entry_values(to, wishes, object);
            let new_entry = added(name, (&values.0, values.1.bytes()), *replaces);
            encoder.value(&NotifyRename4 { old_entry: removed(from), new_entry });
            kind::RENAME_ENTRY
        }
        NotedChange::Child { name, attributes, .. } => {
            let (mask, values) = child_values(to, wishes, attributes.as_ref()?);
            let attrs = Fattr4 { attrmask: mask, attr_vals: Opaque(values.bytes()) };
            let changed_entry = NotifyEntry4 { file: Opaque(name), attrs };
            encoder.value(&NotifyAttr4 { changed_entry });
            kind::CHANGE_CHILD_ATTRS
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

fn entry_values(
    to: Addressee<'_>,
    wishes: &NoticeWishes,
    object: &NamedObject,
) -> (Bitmap4, Encoder) {
    let (mut mask, mut values) = (Bitmap4::EMPTY, Encoder::new());
    if wishes.types {
        mask.insert(a::TYPE);
        values.value(&ftype4(object.file_type));
    }
    if wishes.handles {
        mask.insert(a::FILEHANDLE);
        values.value::<NfsFh4<'_>>(&Opaque(sealed(to, &object.key).bytes()));
    }
    if wishes.fileids {
        mask.insert(a::FILEID);
        values.value(&object.fileid);
    }
    (mask, values)
}

/// Returns the attributes of a changed child, in the order of their numbers.
fn child_values(
    to: Addressee<'_>,
    wishes: &NoticeWishes,
    ChildAttributes { object, rest }: &ChildAttributes,
) -> (Bitmap4, Encoder) {
    let mut mask = mask_of(&OF_CHILD, wishes.children);
    let of_entry =
        [(a::TYPE, wishes.types), (a::FILEHANDLE, wishes.handles), (a::FILEID, wishes.fileids)];
    let wanted = of_entry.iter().filter(|(_, is_wanted)| *is_wanted);
    wanted.for_each(|(number, _)| mask.insert(*number));
    let mut values = Encoder::new();
    for number in mask.iter() {
        match number {
            a::TYPE => values.value(&ftype4(object.file_type)),
            a::FILEHANDLE => {
                values.value::<NfsFh4<'_>>(&Opaque(sealed(to, &object.key).bytes()));
            }
            a::FILEID => values.value(&object.fileid),
            number => {
                let bit = OF_CHILD.iter().find(|(other, _)| *other == number);
                bit.into_iter().for_each(|(_, bit)| append_value(&mut values, *bit, rest));
            }
        }
    }
    (mask, values)
}

fn directory_values(wishes: &NoticeWishes, after: &NoticedAttributes) -> Encoder {
    let mut values = Encoder::new();
    let wanted = OF_DIRECTORY.iter().filter(|(_, bit)| wishes.directory & bit != 0);
    wanted.for_each(|(_, bit)| append_value(&mut values, *bit, after));
    values
}

fn append_value(values: &mut Encoder, bit: u8, from: &NoticedAttributes) {
    match bit {
        NoticeWishes::CHANGE => values.value(&from.change),
        NoticeWishes::SIZE => values.value(&from.size),
        NoticeWishes::LINKS => values.value(&from.links),
        NoticeWishes::USED => values.value(&from.used),
        NoticeWishes::ATIME => values.value(&nfstime4(from.atime)),
        NoticeWishes::CTIME => values.value(&nfstime4(from.ctime)),
        _ => values.value(&nfstime4(from.mtime)),
    }
}
