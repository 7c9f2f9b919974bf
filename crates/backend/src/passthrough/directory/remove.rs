use std::cmp::Ordering;
use std::ffi::CStr;
use std::sync::Arc;

use comity_vfs::{Change, Cred, Disk, Handle, Name, Result, Status};
use rustix::fs::{AtFlags, renameat, statat, unlinkat};

use crate::blocking::{blocking, is_hooked};
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::attr;
use crate::passthrough::handles::node::{Changing, Node};
use crate::passthrough::limits::TRUNCATE_BYTES_SLOW;
use crate::zero_name::ZeroName;

impl Passthrough {
    /// See [`comity_vfs::Fs::remove`].
    pub(crate) fn remove(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Change<Disk>> {
        self.unlink(cred, dir, name, AtFlags::empty())
    }

    /// See [`comity_vfs::Fs::rmdir`].
    pub(crate) fn rmdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Change<Disk>> {
        self.unlink(cred, dir, name, AtFlags::REMOVEDIR)
    }

    /// See [`comity_vfs::Fs::rename`].
    pub(crate) fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        let (from, to) = (self.directory(source.0)?, self.directory(target.0)?);
        let names = (ZeroName::new(source.1), ZeroName::new(target.1));
        if !Arc::ptr_eq(&from.mount, &to.mount) {
            return Err(Status::XDev);
        }
        let held = hold_both(&from, &to)?;
        let before = (self.stat(&from)?, self.stat(&to)?);
        self.identity.caller(cred)?;
        let (source, target) = ((&*from, names.0.as_c_str()), (&*to, names.1.as_c_str()));
        patiently_if(is_huge(target), || self.replace(source, target))?;
        from.barrier.changed();
        to.barrier.changed();
        let changes = (
            self.since(&from, Some(attr(&from.mount, &before.0))),
            self.since(&to, Some(attr(&to.mount, &before.1))),
        );
        drop(held);
        Ok(changes)
    }

    fn unlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        flags: AtFlags,
    ) -> Result<Change<Disk>> {
        let dir = self.directory(dir)?;
        let name = ZeroName::new(name);
        let work = || {
            self.identity.caller(cred)?;
            patiently_if(is_huge((&dir, name.as_c_str())), || {
                let victim = dir.mount.name(dir.fd(), name.as_c_str());
                unlinkat(dir.fd(), name.as_c_str(), flags).map_err(status)?;
                self.mark_gone(victim.ok().as_ref());
                Ok(())
            })
        };
        self.change_directory(&dir, work).map(|((), change)| change)
    }

    fn replace(&self, source: (&Node, &CStr), target: (&Node, &CStr)) -> Result<()> {
        let victim = target.0.mount.name(target.0.fd(), target.1).ok();
        renameat(source.0.fd(), source.1, target.0.fd(), target.1).map_err(status)?;
        self.mark_gone(victim.as_ref());
        if self.paths.is_kept()
            && let Ok(moved) = target.0.mount.name(target.0.fd(), target.1)
        {
            self.paths.learn(&moved, &target.0.handle, target.1);
        }
        Ok(())
    }

    /// Closes an object that may have lost its last name, so that its space is freed.
    fn mark_gone(&self, victim: Option<&Handle>) {
        let Some(handle) = victim else { return };
        if let Some(node) = self.nodes.get(handle)
            && matches!(self.stat(&node), Err(Status::Stale))
        {
            self.paths.mark_gone(handle);
        }
    }
}

/// Returns whether the removal of a last name frees much space. It is checked only if a hook is
/// installed.
fn is_huge((dir, name): (&Node, &CStr)) -> bool {
    let blocks_slow = TRUNCATE_BYTES_SLOW / 512;
    is_hooked()
        && statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| stat.st_nlink == 1 && stat.st_blocks as u64 >= blocks_slow)
}

fn patiently_if<T>(slow: bool, work: impl FnOnce() -> T) -> T {
    if slow { blocking(work) } else { work() }
}

/// Guards of one or two directories.
type BothGuards<'a> = (Changing<'a>, Option<Changing<'a>>);

/// Locks two directories, always in the same order, so that two renames cannot deadlock.
fn hold_both<'a>(one: &'a Node, other: &'a Node) -> Result<BothGuards<'a>> {
    Ok(match one.handle.bytes().cmp(other.handle.bytes()) {
        Ordering::Equal => (one.hold_patiently()?, None),
        Ordering::Less => (one.hold_patiently()?, Some(other.hold_patiently()?)),
        Ordering::Greater => (other.hold_patiently()?, Some(one.hold_patiently()?)),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use comity_vfs::{Fs, Gid, Uid};
    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;
    use crate::blocking::watch;
    use crate::passthrough::PassthroughOptions;

    /// The number of calls in `work` that may sleep.
    fn sleeps<T>(work: impl FnOnce() -> Result<T>) -> usize {
        let thread = std::thread::current().id();
        let before = watch::sleeps_of(thread);
        assert!(work().is_ok());
        watch::sleeps_of(thread) - before
    }

    #[test]
    fn the_end_of_a_huge_file_lets_others_take_over() {
        watch::install();
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR").to_owned() + "/../../target");
        let folder = folder.unwrap();
        let fs = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
        let (top, root) = (fs.root(), Cred::new(Uid::new(0), Gid::new(0)));
        let name = |name: &'static str| Name::new(name.as_bytes()).unwrap();
        for (file, bytes) in [("small", 1 << 20), ("huge", TRUNCATE_BYTES_SLOW), ("huge2", 1 << 31)]
        {
            let file = File::create(folder.path().join(file)).unwrap();
            if fallocate(&file, FallocateFlags::empty(), 0, bytes).is_err() {
                return eprintln!("skipped: the disk has no room for a huge file");
            }
        }
        std::fs::hard_link(folder.path().join("huge"), folder.path().join("again")).unwrap();
        assert_eq!(sleeps(|| fs.remove(&root, &top, name("again"))), 0);
        let over_huge = || fs.rename(&root, (&top, name("small")), (&top, name("huge")));
        assert_eq!(sleeps(over_huge), 1);
        assert_eq!(sleeps(|| fs.remove(&root, &top, name("huge"))), 0);
        assert_eq!(sleeps(|| fs.remove(&root, &top, name("huge2"))), 1);
        fs.release_identity().unwrap();
    }

    /// Bytes in use on the file system of a folder.
    fn taken(folder: &std::path::Path) -> u64 {
        let space = rustix::fs::statvfs(folder).unwrap();
        (space.f_blocks - space.f_bfree) * space.f_frsize
    }

    /// The object may be removed by a program, or through another export of the same file system.
    #[test]
    fn a_file_that_others_removed_frees_its_space() {
        const BYTES: u64 = 64 << 20;
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let file = folder.path().join("file");
        let options = PassthroughOptions::default();
        let fs = Passthrough::open(folder.path(), options).unwrap();
        let root = Cred::new(Uid::new(0), Gid::new(0));
        let found = || fs.lookup(&root, &fs.root(), Name::new(b"file").unwrap());
        for reads in [false, true] {
            fallocate(File::create(&file).unwrap(), FallocateFlags::empty(), 0, BYTES).unwrap();
            let handle = found().unwrap().node.handle;
            if reads {
                let mut bytes = Vec::new();
                fs.read(&root, &handle, 0, 1, &mut comity_vfs::ReadInto::new(&mut bytes)).unwrap();
            }
            assert!(fs.node(&handle).unwrap().is_large());
            let before = taken(folder.path());
            std::fs::remove_file(&file).unwrap();
            Fs::release_removed(&fs);
            assert!(taken(folder.path()) + BYTES / 2 < before, "the file is still open");
            assert_eq!(Fs::getattr(&fs, &handle).err(), Some(Status::Stale));
        }
        fs.release_identity().unwrap();
    }
}
