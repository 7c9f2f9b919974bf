use std::path::Path;

use comity_coherence::Newest;
use comity_export::{Node, PseudoNode, View};
use comity_proto::nfs4::{
    Bitmap4, ChangeAttrType4, ChangeInfo4, FsLocations4, Fsid4, Nfsstat4, OpenArguments4,
    Specdata4, ace, attribute as a,
};
use comity_vfs::limits::NAME_BYTES_MAX;
use comity_vfs::{Acl, AclKind, Attr, Change, FileType, Properties, Space, Status, Time, Wire};
use comity_xdr::{Counted, Encoder};

use super::absent::pathname4;
use super::acl::{self, Acls};
use super::supported::{EXCLUSIVE, supported};
use super::{owner, placement};
use crate::attribute_values::{ftype4, nfstime4};
use crate::compound::Compound;
use crate::filehandle::Object;
use crate::limits::TRANSFER_BYTES_MAX;
use crate::stop::Stop;

/// FSCHARSET_CAP4_CONTAINS_NON_UTF8 (RFC 8881, 14.4): names may be other bytes than UTF-8.
const CONTAINS_NON_UTF8: u32 = 1;

/// FSCHARSET_CAP4_ALLOWS_ONLY_UTF8: the server refuses names that are not UTF-8.
const ALLOWS_ONLY_UTF8: u32 = 2;

/// The arguments that OPEN supports (RFC 9754): delegations of each kind, and all claims except
/// those of a client's earlier instance.
const OPEN_ARGUMENTS: OpenArguments4 = OpenArguments4 {
    share_access: Bitmap4::of(&[1, 2, 3]),
    share_deny: Bitmap4::of(&[0, 1, 2, 3]),
    share_access_want: Bitmap4::of(&[3, 4, 5]),
    open_claim: Bitmap4::of(&[0, 1, 2, 4, 5]),
    createmode: Bitmap4::of(&[0, 1, 2, 3]),
};

/// Attributes that only objects inside exports have.
const OF_EXPORTS: Bitmap4 = Bitmap4::of(&[
    a::ACL,
    a::FILES_AVAIL,
    a::FILES_FREE,
    a::FILES_TOTAL,
    a::SPACE_AVAIL,
    a::SPACE_FREE,
    a::SPACE_TOTAL,
]);

const SPACE: Bitmap4 = Bitmap4::of(&[
    a::FILES_AVAIL,
    a::FILES_FREE,
    a::FILES_TOTAL,
    a::SPACE_AVAIL,
    a::SPACE_FREE,
    a::SPACE_TOTAL,
]);

/// Attributes whose newest value the holder of a write delegation has.
const WRITTEN: Bitmap4 = Bitmap4::of(&[a::CHANGE, a::SIZE]);

const PROPERTIES: Bitmap4 = Bitmap4::of(&[
    a::LINK_SUPPORT,
    a::SYMLINK_SUPPORT,
    a::CASE_INSENSITIVE,
    a::CASE_PRESERVING,
    a::CHOWN_RESTRICTED,
    a::MAXFILESIZE,
    a::MAXLINK,
    a::MAXNAME,
    a::TIME_DELTA,
    a::CLONE_BLKSIZE,
]);

/// An object whose attributes are encoded.
pub(crate) struct Subject<'s, 'a> {
    pub(crate) compound: &'s Compound<'a>,
    pub(crate) what: What<'s, 'a>,
    pub(crate) attr: Attr<Wire>,
    /// The `mounted_on_fileid`, if it is already known.
    pub(crate) mounted_on_fileid: Option<u64>,
    /// True if it is an entry of a listing.
    pub(crate) listed: bool,
}

/// The kind of an object.
#[derive(Clone, Copy)]
pub(crate) enum What<'s, 'a> {
    /// A directory above the exports.
    Pseudo(PseudoNode<'a>),
    /// An object inside an export.
    In(&'s View<'a>, &'s Node),
}

/// Values that are fetched only if attributes that need them are requested.
struct Facts {
    newest: Newest,
    space: Space,
    properties: Properties,
    acls: Option<Acls>,
}

impl<'s, 'a> Subject<'s, 'a> {
    /// Returns an object with its present attributes.
    pub(crate) fn of(compound: &'s Compound<'a>, object: &'s Object<'a>) -> Result<Self, Stop> {
        let (what, attr) = match object {
            Object::Pseudo(node) => (What::Pseudo(*node), compound.pseudo().attr(*node)),
            Object::In(view, node) => (What::In(view, node), view.getattr(node)?),
            Object::Absent(_) => return Err(Nfsstat4::Moved.into()),
        };
        Ok(Self { compound, what, attr, mounted_on_fileid: None, listed: false })
    }

    fn facts(&self, wanted: &Bitmap4) -> Result<Facts, Stop> {
        let newest = Newest::stored(&self.attr);
        let mut facts = Facts { newest, space: Space::default(), properties: ABOVE, acls: None };
        let What::In(view, node) = self.what else { return Ok(facts) };
        if !wanted.and(&WRITTEN).is_empty() {
            facts.newest = self.compound.newest((view, node), &self.attr, !self.listed)?;
        }
        if !wanted.and(&SPACE).is_empty() {
            facts.space = view.statfs(node)?;
        }
        if !wanted.and(&PROPERTIES).is_empty() {
            facts.properties = view.properties(node)?;
        }
        if wanted.contains(a::ACL) {
            facts.acls = acls(view, node, &self.attr)?;
        }
        Ok(facts)
    }

    fn mounted_on_fileid(&self) -> u64 {
        match (self.mounted_on_fileid, self.what) {
            (Some(fileid), _) => fileid,
            (None, What::In(view, node)) if view.is_root(node) => {
                self.compound.pseudo().covered_fileid(view.export())
            }
            _ => self.attr.fileid,
        }
    }
}

/// Appends those of the requested attributes that are supported and that the object has (`fattr4`).
pub(crate) fn fattr4(
    reply: &mut Encoder,
    subject: &Subject<'_, '_>,
    wanted: &Bitmap4,
) -> Result<(), Stop> {
    let mut said = wanted.and(&supported(subject.compound.minor));
    if matches!(subject.what, What::Pseudo(_)) {
        said = said.without(&OF_EXPORTS);
    }
    let facts = subject.facts(&said)?;
    if facts.acls.is_none() {
        said.remove(a::ACL);
    }
    said = placement::without_absent(said, subject);
    reply.value(&said);
    let length = reply.word();
    let start = reply.checkpoint();
    for number in said.iter() {
        say(reply, number, subject, &facts)?;
    }
    let bytes = reply.length_since(start) as u32;
    reply.set(length, bytes);
    Ok(())
}

/// Appends one attribute.
fn say(
    reply: &mut Encoder,
    number: u32,
    subject: &Subject<'_, '_>,
    facts: &Facts,
) -> Result<(), Stop> {
    let (attr, properties, space) = (&facts.newest.attr, &facts.properties, &facts.space);
    match number {
        a::SUPPORTED_ATTRS => reply.value(&supported(subject.compound.minor)),
        a::SUPPATTR_EXCLCREAT => reply.value(&EXCLUSIVE.and(&supported(subject.compound.minor))),
        a::TYPE => reply.value(&ftype4(attr.file_type)),
        a::CHANGE => reply.value(&facts.newest.change),
        a::SIZE => reply.value(&attr.size),
        a::FSID => reply.value(&fsid4(subject)),
        a::ACL => {
            let is_dir = attr.file_type == FileType::Directory;
            if let (Some(acls), What::In(view, _)) = (&facts.acls, subject.what) {
                acl::say(reply, view, acls, is_dir);
            }
        }
        a::FILEHANDLE => match subject.what {
            What::Pseudo(node) => reply.opaque(subject.compound.pseudo().seal(&node).bytes()),
            What::In(view, node) => reply.opaque(view.seal(node).bytes()),
        },
        a::FILEID => reply.value(&attr.fileid),
        a::MODE => reply.value(&attr.mode.bits()),
        a::NUMLINKS => reply.value(&attr.links),
        a::OWNER | a::OWNER_GROUP => say_owner(reply, number, subject),
        a::RAWDEV => reply.value(&specdata4(attr)),
        a::SPACE_USED => reply.value(&attr.used),
        a::TIME_ACCESS => reply.value(&nfstime4(attr.atime)),
        a::TIME_METADATA => reply.value(&nfstime4(attr.ctime)),
        a::TIME_MODIFY => reply.value(&nfstime4(attr.mtime)),
        a::MOUNTED_ON_FILEID => reply.value(&subject.mounted_on_fileid()),
        _ if SPACE.contains(number) => reply.value(&of_space(number, space)),
        _ if PROPERTIES.contains(number) => say_property(reply, number, properties),
        _ => return say_constant(reply, number, subject),
    }
    Ok(())
}

/// Appends an owner. Directories above the exports belong to no domain, so their owner is encoded
/// as a number.
fn say_owner(reply: &mut Encoder, number: u32, subject: &Subject<'_, '_>) {
    let Attr { uid, gid, .. } = subject.attr;
    match (number, subject.what) {
        (a::OWNER, What::In(view, _)) => owner::say(reply, view.owner_out(uid)),
        (_, What::In(view, _)) => owner::say(reply, view.owner_group_out(gid)),
        (a::OWNER, What::Pseudo(_)) => owner::say_number(reply, uid.number()),
        (_, What::Pseudo(_)) => owner::say_number(reply, gid.number()),
    }
}

const fn of_space(number: u32, space: &Space) -> u64 {
    match number {
        a::FILES_AVAIL => space.files_available,
        a::FILES_FREE => space.files_free,
        a::FILES_TOTAL => space.files_total,
        a::SPACE_AVAIL => space.bytes_available,
        a::SPACE_FREE => space.bytes_free,
        _ => space.bytes_total,
    }
}

fn say_property(reply: &mut Encoder, number: u32, properties: &Properties) {
    match number {
        a::LINK_SUPPORT => reply.value(&properties.hard_links),
        a::SYMLINK_SUPPORT => reply.value(&properties.symbolic_links),
        a::CASE_INSENSITIVE => reply.value(&properties.case_insensitive),
        a::CASE_PRESERVING => reply.value(&properties.case_preserving),
        a::CHOWN_RESTRICTED => reply.value(&properties.chown_restricted),
        a::MAXFILESIZE => reply.value(&properties.file_size_max),
        a::MAXLINK => reply.value(&properties.links_max),
        a::MAXNAME => reply.value(&properties.name_bytes_max),
        a::CLONE_BLKSIZE => reply.value(&properties.clone_bytes),
        _ => reply.value(&nfstime4(properties.time_delta)),
    }
}

/// Appends an attribute whose value is the same for all objects.
fn say_constant(reply: &mut Encoder, number: u32, subject: &Subject<'_, '_>) -> Result<(), Stop> {
    match number {
        // Filehandles do not expire (FH4_PERSISTENT).
        a::FH_EXPIRE_TYPE => reply.value(&0_u32),
        a::NAMED_ATTR => reply.value(&false),
        a::UNIQUE_HANDLES | a::CANSETTIME | a::HOMOGENEOUS | a::NO_TRUNC => reply.value(&true),
        a::LEASE_TIME => {
            let lease = subject.compound.engine().settings().lease;
            reply.value(&(lease.as_secs() as u32));
        }
        a::RDATTR_ERROR => reply.value(&Nfsstat4::Ok),
        a::FS_LOCATIONS => say_locations(reply, subject)?,
        a::FS_LAYOUT_TYPES => placement::say_layout_types(reply, subject),
        a::LAYOUT_BLKSIZE => placement::say_stripe_unit(reply, subject),
        a::MDSTHRESHOLD => placement::say_threshold(reply, subject),
        a::ACLSUPPORT => reply.value(&(ace::SUPPORT_ALLOW | ace::SUPPORT_DENY)),
        a::MAXREAD | a::MAXWRITE => reply.value(&u64::from(TRANSFER_BYTES_MAX)),
        a::FS_CHARSET_CAP => match subject.what {
            What::In(view, _) if view.rules().utf8_names => reply.value(&ALLOWS_ONLY_UTF8),
            _ => reply.value(&CONTAINS_NON_UTF8),
        },
        a::OPEN_ARGUMENTS => reply.value(&OPEN_ARGUMENTS),
        a::CHANGE_ATTR_TYPE => reply.value(&ChangeAttrType4::TimeMetadata),
        a::XATTR_SUPPORT => reply.value(&bears_xattrs(subject)),
        _ => return Err(Nfsstat4::ServerFault.into()),
    }
    Ok(())
}

/// Appends the path of the file system. No other servers are known to have its files (RFC 7530,
/// 8.4).
fn say_locations(reply: &mut Encoder, subject: &Subject<'_, '_>) -> Result<(), Stop> {
    let pseudo = subject.compound.pseudo();
    let path = match subject.what {
        What::In(view, _) => pseudo.path_of(view.export())?,
        What::Pseudo(_) => Path::new(""),
    };
    reply.value(&FsLocations4 { fs_root: pathname4(path), locations: Counted(Vec::new()) });
    Ok(())
}

/// Returns whether the file system of an object has extended attributes. To find out it looks one
/// up by an arbitrary name. Only files and directories have extended attributes.
fn bears_xattrs(subject: &Subject<'_, '_>) -> bool {
    match (subject.what, subject.attr.file_type) {
        (What::In(view, node), FileType::Regular | FileType::Directory) => {
            view.getxattr(node, b"any") != Err(Status::NotSupp)
        }
        (what, _) => matches!(what, What::In(..)),
    }
}

/// Returns the ACLs of an object; `None` if the file system has no ACLs.
fn acls(view: &View<'_>, node: &Node, attr: &Attr<Wire>) -> Result<Option<Acls>, Stop> {
    let access = match view.getacl(node, AclKind::Access) {
        Ok(acl) => acl.unwrap_or_else(|| Acl::from_mode(attr.mode)),
        Err(Status::NotSupp) => return Ok(None),
        Err(status) => return Err(status.into()),
    };
    let default = match attr.file_type {
        FileType::Directory => view.getacl(node, AclKind::Default)?,
        _ => None,
    };
    Ok(Some(Acls { access, default }))
}

/// Returns the `change` of a directory before and after a change.
pub(crate) fn change_info(done: &Change<Wire>) -> ChangeInfo4 {
    let after = done.after.as_ref().map_or(0, |after| after.change);
    match &done.before {
        Some(before) if done.after.is_some() => {
            ChangeInfo4 { atomic: true, before: before.change, after }
        }
        // A value that differs from every earlier one makes the client drop its cache.
        _ => ChangeInfo4 { atomic: false, before: after.wrapping_sub(1), after },
    }
}

/// Returns the fsid. The tree above the exports is a file system of its own.
fn fsid4(subject: &Subject<'_, '_>) -> Fsid4 {
    match subject.what {
        What::Pseudo(_) => Fsid4 { major: 0, minor: 0 },
        What::In(..) => Fsid4 { major: subject.attr.fsid, minor: 1 },
    }
}

const fn specdata4(attr: &Attr<Wire>) -> Specdata4 {
    Specdata4 { major: attr.device.major, minor: attr.device.minor }
}

/// The properties of the tree above the exports.
const ABOVE: Properties = Properties {
    file_size_max: i64::MAX as u64,
    name_bytes_max: NAME_BYTES_MAX as u32,
    links_max: 255,
    time_delta: Time { seconds: 1, nanoseconds: 0 },
    hard_links: false,
    symbolic_links: false,
    chown_restricted: true,
    case_insensitive: false,
    case_preserving: true,
    clone_bytes: 1,
    maker: None,
};
