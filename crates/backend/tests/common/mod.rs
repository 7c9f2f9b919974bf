//! Shared by the tests of the passthrough: a served folder, callers, and short forms of the verbs.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub)]

use std::ops::ControlFlow;
use std::path::Path;

use comity_backend::{Passthrough, PassthroughOptions};
use comity_vfs::{
    Create, Cred, Data, Disk, Fs, Gid, Handle, Listed, Mode, Name, Node, ReadInto, Result, SetAttr,
    Uid,
};
use tempfile::TempDir;

/// A folder on a real file system, and the file system that serves it.
pub struct Served {
    /// The folder.
    pub folder: TempDir,
    /// The file system that serves it.
    pub fs: Passthrough,
}

impl Drop for Served {
    /// Returns this thread to the server's own ids, so that the folder can be removed.
    fn drop(&mut self) {
        self.fs.release_identity().unwrap();
    }
}

/// Serves a fresh folder that everybody may use.
pub fn serve() -> Served {
    // Tests that run as another user name a folder that this user may write to.
    let place = std::env::var_os("COMITY_TEST_AS_NOBODY");
    let place = place.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let folder = tempfile::tempdir_in(place).unwrap();
    set_mode(folder.path(), 0o777);
    let fs = open(folder.path());
    Served { folder, fs }
}

/// Serves a folder that exists.
pub fn open(folder: &Path) -> Passthrough {
    Passthrough::open(folder, PassthroughOptions::default()).unwrap()
}

/// Returns whether the tests run as root; says so if not.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: needs root");
    }
    root
}

/// Sets the mode of a path as another program would.
pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A caller with these ids and no other groups.
pub fn caller(uid: u32, gid: u32) -> Cred<Disk> {
    Cred::new(Uid::new(uid), Gid::new(gid))
}

/// The superuser.
pub fn root() -> Cred<Disk> {
    caller(0, 0)
}

pub fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).unwrap()
}

/// Attributes that set a mode and nothing else.
pub fn mode(bits: u32) -> SetAttr<Disk> {
    SetAttr { mode: Some(Mode::new(bits)), ..SetAttr::default() }
}

impl Served {
    /// The root's handle.
    pub fn root(&self) -> Handle {
        self.fs.root()
    }

    /// Makes a file in the root.
    pub fn create(&self, cred: &Cred<Disk>, file: &str, bits: u32) -> Result<Node<Disk>> {
        let how = Create::Guarded(mode(bits));
        self.fs.create(cred, &self.root(), name(file.as_bytes()), &how).map(|made| made.value)
    }

    /// Makes a directory in the root.
    pub fn mkdir(&self, cred: &Cred<Disk>, dir: &str, bits: u32) -> Result<Node<Disk>> {
        let made = self.fs.mkdir(cred, &self.root(), name(dir.as_bytes()), &mode(bits))?;
        Ok(made.value)
    }

    /// Looks a name up in the root.
    pub fn lookup(&self, cred: &Cred<Disk>, file: &str) -> Result<Node<Disk>> {
        self.fs.lookup(cred, &self.root(), name(file.as_bytes())).map(|entry| entry.node)
    }
}

/// Reads a whole range.
pub fn read(
    fs: &Passthrough,
    cred: &Cred<Disk>,
    node: &Handle,
    offset: u64,
    count: u32,
) -> Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut into = ReadInto::new(&mut bytes);
    let read = fs.read(cred, node, offset, count, &mut into)?;
    assert!(matches!(read.data, Data::Appended(length) if length as usize == bytes.len()));
    Ok((bytes, read.eof))
}

/// An entry as a listing shows it: its name, its cookie and its object.
pub type Entry = (Vec<u8>, u64, Option<Node<Disk>>);

/// Lists a directory from `cookie`, at most `count` entries: name, cookie and node.
pub fn list(
    fs: &Passthrough,
    cred: &Cred<Disk>,
    dir: &Handle,
    cookie: u64,
    count: usize,
) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    fs.readdir(cred, dir, cookie, Listed::Nodes, &mut |entry| {
        if entries.len() == count {
            return ControlFlow::Break(());
        }
        entries.push((entry.name.bytes().to_vec(), entry.cookie, entry.node));
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}
