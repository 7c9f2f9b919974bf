use std::cmp::Ordering;
use std::ffi::CStr;
use std::sync::{Arc, MutexGuard};

use comity_vfs::{Change, Cred, Disk, Handle, Name, Result, Status};
use rustix::fs::{AtFlags, renameat, unlinkat};

use super::Passthrough;
use super::attr::attr;
use super::errno::status;
use super::name::ZeroName;
use super::node::Node;

impl Passthrough {
    /// See [`comity_vfs::Fs::remove`].
    pub(super) fn remove(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Change<Disk>> {
        self.unlink(cred, dir, name, AtFlags::empty())
    }

    /// See [`comity_vfs::Fs::rmdir`].
    pub(super) fn rmdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Change<Disk>> {
        self.unlink(cred, dir, name, AtFlags::REMOVEDIR)
    }

    /// See [`comity_vfs::Fs::rename`].
    pub(super) fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        let (from, to) = (self.directory(source.0)?, self.directory(target.0)?);
        let names = (ZeroName::new(source.1), ZeroName::new(target.1));
        if !Arc::ptr_eq(&from.volume, &to.volume) {
            return Err(Status::XDev);
        }
        let held = hold_both(&from, &to);
        let before = (self.stat(&from)?, self.stat(&to)?);
        self.identity.caller(cred)?;
        self.replace((&from, names.0.as_c_str()), (&to, names.1.as_c_str()))?;
        from.barrier.changed();
        to.barrier.changed();
        let changes = (
            self.since(&from, Some(attr(&from.volume, &before.0))),
            self.since(&to, Some(attr(&to.volume, &before.1))),
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
            let victim = dir.volume.name(dir.fd(), name.as_c_str());
            unlinkat(dir.fd(), name.as_c_str(), flags).map_err(status)?;
            self.bury(victim.ok().as_ref());
            Ok(())
        };
        self.change_directory(&dir, work).map(|((), change)| change)
    }

    fn replace(&self, source: (&Node, &CStr), target: (&Node, &CStr)) -> Result<()> {
        let victim = target.0.volume.name(target.0.fd(), target.1).ok();
        renameat(source.0.fd(), source.1, target.0.fd(), target.1).map_err(status)?;
        self.bury(victim.as_ref());
        if self.places.is_kept()
            && let Ok(moved) = target.0.volume.name(target.0.fd(), target.1)
        {
            self.places.learn(&moved, &target.0.handle, target.1);
        }
        Ok(())
    }

    /// Lets go of an object that may have lost its last name, so that its space is given back.
    fn bury(&self, victim: Option<&Handle>) {
        let Some(handle) = victim else { return };
        if let Some(node) = self.nodes.get(handle)
            && matches!(self.stat(&node), Err(Status::Stale))
        {
            self.places.bury(handle);
        }
    }
}

/// Guards of one or two directories.
type Held<'a> = (MutexGuard<'a, ()>, Option<MutexGuard<'a, ()>>);

/// Holds two directories, always in the same order, so that two renames never wait for each other.
fn hold_both<'a>(one: &'a Node, other: &'a Node) -> Held<'a> {
    match one.handle.bytes().cmp(other.handle.bytes()) {
        Ordering::Equal => (one.hold(), None),
        Ordering::Less => (one.hold(), Some(other.hold())),
        Ordering::Greater => (other.hold(), Some(one.hold())),
    }
}
