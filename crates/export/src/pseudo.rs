//! The pseudo file system above the exports: read-only directories that lead to the exports a
//! caller may use (NFSv4; RFC 8881, 7.3).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::Hasher;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use comity_vfs::{
    Attr, Cred, Device, Disk, FileType, Gid, Handle, Mode, Name, Result, Status, Uid, Wire,
};
use siphasher::sip::SipHasher24;

use crate::handle_mac::claimed;
use crate::{Export, ExportId, Fsid, Plan, RpcPeer, SealedHandle};

/// The tree above the exports as one caller sees it.
#[derive(Clone, Copy)]
pub struct Pseudo<'a> {
    plan: &'a Plan,
    visitor: &'a RpcPeer,
}

/// A directory of the tree: a path that leads to an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PseudoNode<'a>(&'a Path);

/// The object at a path.
#[derive(Clone, Copy)]
pub enum Found<'a> {
    /// A directory that leads to exports.
    Pseudo(PseudoNode<'a>),
    /// An export.
    Export(&'a Export),
}

impl Plan {
    /// Returns the tree above the exports as a peer sees it.
    #[must_use]
    pub const fn pseudo<'a>(&'a self, visitor: &'a RpcPeer) -> Pseudo<'a> {
        Pseudo { plan: self, visitor }
    }
}

impl<'a> Pseudo<'a> {
    /// Returns the root for NFSv4 clients: the export of `/` or the one with `fsid=0`, else the top
    /// of the tree.
    ///
    /// # Errors
    /// [`Status::Delay`] while it is unknown whether the caller may use the export that would be
    /// the root.
    pub fn root(&self) -> Result<Found<'a>> {
        let may_be_root = |one: &Export| one.is_v4_root() || one.path() == Path::new("/");
        let visible = self.visible_among(may_be_root)?;
        let by_number = visible.iter().find(|export| export.is_v4_root());
        let top = by_number.or_else(|| visible.iter().find(|one| one.path() == Path::new("/")));
        Ok(top.map_or(Found::Pseudo(PseudoNode(Path::new("/"))), |export| Found::Export(export)))
    }

    /// Returns the tree's own top, even if an export is the root for clients.
    #[must_use]
    pub fn top(&self) -> PseudoNode<'a> {
        PseudoNode(Path::new("/"))
    }

    /// Finds a name in a directory.
    ///
    /// # Errors
    /// [`Status::NoEnt`]; [`Status::Delay`].
    pub fn lookup(&self, dir: PseudoNode<'a>, name: &[u8]) -> Result<Found<'a>> {
        let children = self.children(dir)?;
        children.get(name).copied().ok_or(Status::NoEnt)
    }

    /// The entries of a directory, by name.
    ///
    /// # Errors
    /// [`Status::Delay`].
    pub fn children(&self, dir: PseudoNode<'a>) -> Result<BTreeMap<&'a [u8], Found<'a>>> {
        let mut children = BTreeMap::new();
        for export in self.visible()? {
            let Ok(below) = export.path().strip_prefix(dir.0) else { continue };
            let mut parts = below.iter();
            let Some(name) = parts.next() else { continue };
            if parts.next().is_none() {
                children.insert(name.as_bytes(), Found::Export(export));
            } else if let Some(path) = prefix(export.path(), dir.0, name) {
                let found = Found::Pseudo(PseudoNode(path));
                children.entry(name.as_bytes()).or_insert(found);
            }
        }
        Ok(children)
    }

    /// Returns the directory above a directory; the top has none.
    #[must_use]
    pub fn parent(&self, dir: PseudoNode<'a>) -> Option<PseudoNode<'a>> {
        dir.0.parent().map(PseudoNode)
    }

    /// Returns the directory of the tree that contains an export.
    ///
    /// # Errors
    /// [`Status::NoEnt`]: the export is the top itself, or the caller may not use it.
    pub fn above(&self, export: &Export) -> Result<PseudoNode<'a>> {
        let own = self.visible()?.into_iter().find(|one| one.id() == export.id());
        let above = own.and_then(|own| own.path().parent());
        above.map(PseudoNode).ok_or(Status::NoEnt)
    }

    /// Returns the path of an export below the root for NFSv4 clients, as most of them name it: an
    /// export with `fsid=0` stands at the root itself.
    ///
    /// # Errors
    /// As for [`Self::root`].
    pub fn path_of<'e>(&self, export: &'e Export) -> Result<&'e Path> {
        let top = match self.root()? {
            Found::Export(top) => top.path(),
            Found::Pseudo(_) => Path::new("/"),
        };
        let path = export.path();
        Ok(path.strip_prefix(top).or_else(|_| path.strip_prefix("/")).unwrap_or(path))
    }

    /// Returns the innermost export that contains another one, among those that the caller may use.
    ///
    /// # Errors
    /// [`Status::Delay`] while it is unknown which of those that contain it the caller may use.
    pub fn around(&self, export: &Export) -> Result<Option<&'a Export>> {
        let is_around =
            |one: &Export| one.path() != export.path() && export.path().starts_with(one.path());
        let around = self.visible_among(is_around)?.into_iter();
        Ok(around.max_by_key(|one| one.path().components().count()))
    }

    /// Returns a directory's handle for the wire: it depends only on the path and the key.
    #[must_use]
    pub fn seal(&self, node: &PseudoNode<'_>) -> SealedHandle {
        let name = number(node.0).to_be_bytes();
        // Eight bytes always make a handle.
        Handle::new(&name).map_or_else(
            |_| SealedHandle::NONE,
            |name| self.plan.key().seal(ExportId::PSEUDO, &name),
        )
    }

    /// Returns the directory of a handle from the wire; `None` if it is a handle of an export.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if it was not sealed here; [`Status::Stale`] if the directory leads to
    /// nothing any more that the caller may use.
    #[inline]
    pub fn open(&self, sealed: &[u8]) -> Result<Option<PseudoNode<'a>>> {
        if claimed(sealed) != Some(ExportId::PSEUDO) {
            return Ok(None);
        }
        self.open_own(sealed).map(Some)
    }

    /// Opens a handle that claims to be of the pseudo file system.
    fn open_own(&self, sealed: &[u8]) -> Result<PseudoNode<'a>> {
        let (_, handle) = self.plan.key().open(sealed)?;
        let is_meant = |path: &&Path| handle.bytes() == number(path).to_be_bytes();
        if is_meant(&Path::new("/")) {
            return Ok(self.top());
        }
        let visible = self.visible()?;
        let mut paths = visible.iter().flat_map(|export| export.path().ancestors().skip(1));
        paths.find(is_meant).map(PseudoNode).ok_or(Status::Stale)
    }

    /// Returns a directory's attributes. They change with each plan.
    #[must_use]
    pub fn attr(&self, node: PseudoNode<'_>) -> Attr<Wire> {
        let moment = self.plan.moment();
        Attr {
            file_type: FileType::Directory,
            mode: Mode::new(0o555),
            links: 2,
            uid: Uid::new(0),
            gid: Gid::new(0),
            size: 4096,
            used: 0,
            device: Device::default(),
            fsid: 0,
            fileid: node.fileid(),
            atime: moment,
            mtime: moment,
            ctime: moment,
            change: moment.change(),
        }
    }

    /// Returns the exports that lie in a directory of another export under a name, among those that
    /// the caller may use.
    ///
    /// # Errors
    /// [`Status::Delay`].
    pub fn nested(&self, within: &Export, name: &[u8]) -> Result<Vec<&'a Export>> {
        self.visible_among(|export| {
            export.path() != within.path()
                && export.path().starts_with(within.path())
                && export.path().file_name() == Some(OsStr::from_bytes(name))
        })
    }

    /// Returns the fileid of the directory that an export covers: one of another export, or of the
    /// tree.
    #[must_use]
    pub fn covered_fileid(&self, export: &Export) -> u64 {
        let within = self.around(export).ok().flatten();
        within
            .and_then(|around| around.below(export.path()))
            .map(|covered| covered.attr.fileid)
            .unwrap_or_else(|| number(export.path()))
    }

    fn visible(&self) -> Result<Vec<&'a Export>> {
        self.visible_among(|_| true)
    }

    /// Returns those of the exports meant that the caller may use. Only these are judged, so that a
    /// question about one export does not cost a judgement of all, nor wait for them.
    fn visible_among(&self, is_meant: impl Fn(&Export) -> bool) -> Result<Vec<&'a Export>> {
        let mut visible = Vec::new();
        for export in self.plan.exports().iter().filter(|export| is_meant(export)) {
            match export.judge(self.visitor) {
                Ok(_) if export.is_mounted() => visible.push(&**export),
                Ok(_) | Err(Status::Acces) => {}
                Err(status) => return Err(status),
            }
        }
        Ok(visible)
    }
}

impl PseudoNode<'_> {
    /// Its number among the directories of the tree.
    #[must_use]
    pub fn fileid(&self) -> u64 {
        number(self.0)
    }
}

impl Export {
    /// Returns whether it is the root that NFSv4 clients see (`fsid=0`).
    #[must_use]
    pub fn is_v4_root(&self) -> bool {
        self.settings().fsid == Some(Fsid::Number(0))
    }

    /// The fileid of its path in the tree above the exports.
    #[must_use]
    pub fn path_number(&self) -> u64 {
        number(self.path())
    }

    /// Returns the object at a path below the export's, with the server's own rights.
    pub(crate) fn below(&self, path: &Path) -> Option<comity_vfs::Node<Disk>> {
        let (fs, server) = (self.fs(), Cred::root());
        let below = path.strip_prefix(self.path()).ok()?;
        let mut found = None;
        let mut handle = fs.root();
        for name in below.iter() {
            let node = fs.lookup(&server, &handle, Name::new(name.as_bytes()).ok()?).ok()?.node;
            handle = node.handle;
            found = Some(node);
        }
        found
    }
}

/// Returns the beginning of `path` that consists of `dir` and one more name.
fn prefix<'a>(path: &'a Path, dir: &Path, name: &OsStr) -> Option<&'a Path> {
    let wanted = dir.join(name);
    path.ancestors().find(|ancestor| *ancestor == wanted)
}

/// Returns the number of a path: the same over restarts and on every server.
fn number(path: &Path) -> u64 {
    let mut hasher = SipHasher24::new();
    hasher.write(path.as_os_str().as_bytes());
    hasher.finish()
}
