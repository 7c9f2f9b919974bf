//! Verbs on names in directories.

use comity_proto::nfs3::{
    Create3args, Create3res, Createhow3, Diropargs3, Link3args, Link3res, Lookup3res, Mkdir3args,
    Mknod3args, Mknoddata3, Remove3res, Rename3args, Rename3res, Symlink3args, WccData, procedure,
};
use comity_vfs::{
    Attr, Change, Changed, Create, Cred, Disk, Entry, Handle, Made, Name, Node, Result, SetAttr,
    Special, Status,
};
use comity_xdr::{Encode, Opaque};

use super::attributes::{attr_after, change, sattr3, specdata3};
use super::remote3::{Remote3, fh, place};
use super::status::ok;

/// The place of an object: its directory and its name there.
pub(super) type NamePlace<'a> = (&'a Handle, Name<'a>);

/// Longest target of a symbolic link in bytes, the same as in Linux.
const LINK_TARGET_BYTES_MAX: usize = 4_095;

impl Remote3 {
    pub(super) fn lookup(&self, cred: &Cred<Disk>, at: NamePlace<'_>) -> Result<Entry<Disk>> {
        let dir = self.file(at.0)?;
        self.find(cred, at.0, &place(&dir, at.1))
    }

    fn find(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        arguments: &Diropargs3<'_>,
    ) -> Result<Entry<Disk>> {
        let reply = self.ask_using((cred, dir), procedure::LOOKUP, arguments)?;
        let found = ok(reply.read::<Lookup3res<'_>>())?;
        let node = self.node(cred, found.object, &found.obj_attributes)?;
        Ok(Entry { node, dir: attr_after(&found.dir_attributes) })
    }

    pub(super) fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        if *dir == self.root {
            return Ok(Node { handle: *dir, attr: self.getattr(dir)? });
        }
        let file = self.file(dir)?;
        let above = Diropargs3 { dir: fh(&file), name: Opaque(b"..") };
        self.find(cred, dir, &above).map(|found| found.node)
    }

    /// Creates a regular file, or opens an existing one if `how` allows that.
    pub(super) fn create(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        let dir = self.file(at.0)?;
        let (set, how) = match how {
            Create::Unchecked(set) => (Some(set), Createhow3::Unchecked(sattr3(set))),
            Create::Guarded(set) => (Some(set), Createhow3::Guarded(sattr3(set))),
            Create::Exclusive(verifier) => (None, Createhow3::Exclusive(*verifier)),
        };
        let arguments = Create3args { place: place(&dir, at.1), how };
        let made = self.make(cred, at, procedure::CREATE, &arguments)?;
        if let Some(size) = set.and_then(|set| set.size) {
            self.unstable.cut(&made.value.handle, (size, u64::MAX));
        }
        Ok(made)
    }

    pub(super) fn mkdir(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let dir = self.file(at.0)?;
        let arguments = Mkdir3args { place: place(&dir, at.1), attributes: sattr3(set) };
        self.make(cred, at, procedure::MKDIR, &arguments)
    }

    pub(super) fn symlink(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        if target.is_empty() || target.contains(&0) {
            return Err(Status::Inval);
        }
        if target.len() > LINK_TARGET_BYTES_MAX {
            return Err(Status::NameTooLong);
        }
        let (dir, attributes) = (self.file(at.0)?, sattr3(set));
        let (place, target) = (place(&dir, at.1), Opaque(target));
        let arguments = Symlink3args { place, attributes, target };
        self.make(cred, at, procedure::SYMLINK, &arguments)
    }

    pub(super) fn mknod(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let (dir, set) = (self.file(at.0)?, sattr3(set));
        let what = match special {
            Special::Block(device) => Mknoddata3::Blk(set, specdata3(device)),
            Special::Character(device) => Mknoddata3::Chr(set, specdata3(device)),
            Special::Fifo => Mknoddata3::Fifo(set),
            Special::Socket => Mknoddata3::Sock(set),
        };
        let arguments = Mknod3args { place: place(&dir, at.1), what };
        self.make(cred, at, procedure::MKNOD, &arguments)
    }

    /// Makes an object. If the reply omits its handle, the object is looked up.
    fn make(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        procedure: u32,
        arguments: &impl Encode,
    ) -> Result<Made<Disk>> {
        let reply = self.ask_using((cred, at.0), procedure, arguments)?;
        let made = ok(reply.read::<Create3res<'_>>())?;
        let value = match made.obj {
            Some(object) => self.node(cred, object, &made.obj_attributes)?,
            None => self.lookup(cred, at)?.node,
        };
        Ok(Changed { value, change: change(&made.dir_wcc) })
    }

    /// Removes a name by REMOVE or RMDIR.
    pub(super) fn remove_by(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        procedure: u32,
    ) -> Result<Change<Disk>> {
        let dir = self.file(at.0)?;
        let reply = self.ask_using((cred, at.0), procedure, &place(&dir, at.1))?;
        ok(reply.read::<Remove3res>()).map(|wcc: WccData| change(&wcc))
    }

    pub(super) fn rename(
        &self,
        cred: &Cred<Disk>,
        source: NamePlace<'_>,
        target: NamePlace<'_>,
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        let (from, to) = (self.file(source.0)?, self.file(target.0)?);
        let arguments = Rename3args { from: place(&from, source.1), to: place(&to, target.1) };
        let reply = self.ask_using((cred, source.0), procedure::RENAME, &arguments)?;
        let renamed = ok(reply.read::<Rename3res>())?;
        Ok((change(&renamed.fromdir_wcc), change(&renamed.todir_wcc)))
    }

    pub(super) fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        at: NamePlace<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        let (file, dir) = (self.file(node)?, self.file(at.0)?);
        let arguments = Link3args { file: fh(&file), link: place(&dir, at.1) };
        let reply = self.ask_using((cred, node), procedure::LINK, &arguments)?;
        let linked = ok(reply.read::<Link3res>())?;
        let value = self.told_or_asked(node, &linked.file_attributes)?;
        Ok(Changed { value, change: change(&linked.linkdir_wcc) })
    }
}
