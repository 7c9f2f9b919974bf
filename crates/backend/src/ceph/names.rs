use comity_vfs::permission::{Object, Permissions};
use comity_vfs::{
    Attr, Change, Changed, Cred, Disk, Entry, FileType, Handle, Name, Node, Result, Status,
};

use rustix::io::Errno;

use super::Ceph;
use super::attributes::vino_of;
use super::ffi::{self, CephInode, FoundInode, Statx, Vino};
use super::handle;
use super::snapshot::{self, check_current};
use crate::zero_name::ZeroName;

impl Ceph {
    /// Returns a found object in the form of this project.
    pub(super) fn node(&self, (_, stat): &FoundInode<'_>) -> Result<Node<Disk>> {
        self.node_of(stat)
    }

    /// Returns the object with these attributes.
    pub(super) fn node_of(&self, stat: &Statx) -> Result<Node<Disk>> {
        let handle = handle::encode(self.volume, vino_of(stat))?;
        Ok(Node { handle, attr: self.attr_of(stat)? })
    }

    /// Returns a directory and its attributes.
    pub(super) fn directory(&self, dir: &Handle) -> Result<(Vino, CephInode<'_>, Attr<Disk>)> {
        let found = self.find(dir)?;
        if found.2.file_type == FileType::Directory { Ok(found) } else { Err(Status::NotDir) }
    }

    /// See [`comity_vfs::Fs::lookup`].
    pub(super) fn look_up(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Entry<Disk>> {
        let (vino, dir, _) = self.directory(dir)?;
        let (name, perms) = (ZeroName::new(name), self.perms(cred));
        let find = || self.done(dir.lookup(name.as_c_str(), &perms));
        let is_there = |found: &FoundInode<'_>| snapshot::may_contain(vino, vino_of(&found.1));
        let found = self.find_in_snapshot(vino, find, is_there)?;
        Ok(Entry { node: self.node(&found)?, dir: self.attr(&dir).ok() })
    }

    /// Finds an object from a directory by `find`. If that finds none in a snapshot, or one that
    /// `is_there` refuses, libcephfs may not know the path of the directory.
    fn find_in_snapshot<'c>(
        &'c self,
        dir: Vino,
        find: impl Fn() -> Result<FoundInode<'c>>,
        is_there: impl Fn(&FoundInode<'c>) -> bool,
    ) -> Result<FoundInode<'c>> {
        let found = find();
        match &found {
            Err(Status::NoEnt) if snapshot::is_of_snapshot(dir) => {}
            Ok(found) if !is_there(found) => {}
            _ => return found,
        }
        self.learn_path(dir)?;
        find().and_then(|found| if is_there(&found) { Ok(found) } else { Err(Status::Stale) })
    }

    /// Has libcephfs learn the path of a directory in a snapshot, which is among the snapshots of
    /// the current directory, unless it knows it.
    ///
    /// # Errors
    /// [`Status::Stale`] if the directory is not there any more.
    pub(super) fn learn_path(&self, dir: Vino) -> Result<()> {
        let above = self.inode(dir)?.lookup(c"..", self.mount.root_perms());
        if above.is_ok_and(|(_, stat)| snapshot::may_be_above(dir, vino_of(&stat))) {
            return Ok(());
        }
        // A directory that was removed since shows itself as empty there.
        self.attr(&self.inode(Vino { snapid: snapshot::NO_SNAPSHOT, ..dir })?)?;
        let snapshots = self.inode(Vino { snapid: snapshot::DIRECTORY, ..dir })?;
        let mut open = self.done(ffi::Listing::open(&snapshots, self.mount.root_perms()))?;
        while let Some(entry) = self.done(open.next(true))? {
            if vino_of(&entry.stat) == dir {
                return Ok(());
            }
        }
        Err(Status::Stale)
    }

    /// See [`comity_vfs::Fs::parent`].
    pub(super) fn parent_of(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        let (vino, inode, attr) = self.directory(dir)?;
        if *dir == self.root {
            return Ok(Node { handle: *dir, attr });
        }
        if vino.snapid == snapshot::DIRECTORY {
            let above = self.inode(Vino { snapid: snapshot::NO_SNAPSHOT, ..vino })?;
            return self.node_of(&self.done(above.getattr())?);
        }
        let perms = self.perms(cred);
        let find = || self.done(inode.lookup(c"..", &perms));
        let is_there = |found: &FoundInode<'_>| snapshot::may_be_above(vino, vino_of(&found.1));
        self.node(&self.find_in_snapshot(vino, find, is_there)?)
    }

    /// Does `work` in a directory; returns the directory's attributes before and after.
    pub(super) fn change_directory<'c, T>(
        &'c self,
        dir: &Handle,
        work: impl FnOnce(&CephInode<'c>, &Attr<Disk>) -> Result<T>,
    ) -> Result<(T, Change<Disk>)> {
        let vino = self.vino(dir)?;
        let inode = self.inode(vino)?;
        let change = self.siblings.changes().begin(self.volume, vino);
        let before = self.attr(&inode)?;
        if before.file_type != FileType::Directory {
            return Err(Status::NotDir);
        }
        check_current(vino)?;
        let value = work(&inode, &before)?;
        let after = self.attr(&inode).ok();
        Ok((value, change.end(before, after)))
    }

    /// See [`comity_vfs::Fs::remove`].
    pub(super) fn unlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Change<Disk>> {
        let (name, perms) = (ZeroName::new(name), self.perms(cred));
        let removed = self.change_directory(dir, |dir, _| {
            snapshot::check_old_name(name.as_c_str())?;
            let found = self.done(dir.lookup(name.as_c_str(), &perms))?;
            if self.node(&found)?.attr.file_type == FileType::Directory {
                return Err(Status::IsDir);
            }
            self.end_hold(vino_of(&found.1));
            self.done(dir.unlink(name.as_c_str(), &perms))?;
            self.forget_removed(vino_of(&found.1), &found.0);
            Ok(())
        });
        removed.map(|(_, change)| change)
    }

    /// See [`comity_vfs::Fs::rmdir`].
    pub(super) fn remove_directory(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Change<Disk>> {
        let (name, perms) = (ZeroName::new(name), self.perms(cred));
        let removed = self.change_directory(dir, |dir, _| {
            snapshot::check_old_name(name.as_c_str())?;
            self.done(dir.rmdir(name.as_c_str(), &perms))
        });
        removed.map(|(_, change)| change)
    }

    /// See [`comity_vfs::Fs::link`].
    pub(super) fn add_link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        let (vino, inode, attr) = self.find(node)?;
        let (name, perms) = (ZeroName::new(name), self.perms(cred));
        let (value, change) = self.change_directory(dir, |dir, _| {
            snapshot::check_new_name(name.as_c_str())?;
            if vino.snapid != snapshot::NO_SNAPSHOT {
                return Err(Status::XDev);
            }
            if attr.file_type == FileType::Directory {
                return Err(Status::Perm);
            }
            self.end_hold(vino);
            self.done(inode.link(dir, name.as_c_str(), &perms))?;
            self.attr(&inode)
        })?;
        Ok(Changed { value, change })
    }

    /// See [`comity_vfs::Fs::rename`].
    pub(super) fn move_name(
        &self,
        cred: &Cred<Disk>,
        (source, old): (&Handle, Name<'_>),
        (target, new): (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        let (old, new) = (ZeroName::new(old), ZeroName::new(new));
        if source == target {
            let work = |dir: &CephInode<'_>, _: &_| self.replace(cred, (dir, &old), (dir, &new));
            let ((), change) = self.change_directory(source, work)?;
            return Ok((change, change));
        }
        let (second, first) = self.change_directory(source, |from, _| {
            let work =
                |to: &CephInode<'_>, _: &_| self.move_between(cred, (from, &old), (to, &new));
            self.change_directory(target, work).map(|((), change)| change)
        })?;
        Ok((first, second))
    }

    /// Moves an object to another directory. The entry `..` of a directory changes, so the caller
    /// must be able to write that.
    fn move_between(
        &self,
        cred: &Cred<Disk>,
        (from, old): (&CephInode<'_>, &ZeroName),
        (to, new): (&CephInode<'_>, &ZeroName),
    ) -> Result<()> {
        let (inode, stat) = self.done(from.lookup(old.as_c_str(), &self.perms(cred)))?;
        let attr = self.attr_of(&stat)?;
        if attr.file_type == FileType::Directory {
            let acl = self.acl_of(&inode, &attr)?;
            Object { attr: &attr, acl: acl.as_ref() }.check(cred, Permissions::WRITE)?;
        }
        self.replace(cred, (from, old), (to, new))?;
        // The reply of Ceph has no attributes of the source.
        self.done(from.refresh())
    }

    /// Renames an object. If both names are those of one object, nothing is done, as POSIX demands:
    /// libcephfs would take the old name out of its cache although Ceph keeps it.
    fn replace(
        &self,
        cred: &Cred<Disk>,
        (from, old): (&CephInode<'_>, &ZeroName),
        (to, new): (&CephInode<'_>, &ZeroName),
    ) -> Result<()> {
        snapshot::check_old_name(old.as_c_str())?;
        snapshot::check_new_name(new.as_c_str())?;
        let perms = self.perms(cred);
        let moved = self.done(from.lookup(old.as_c_str(), &perms))?;
        let replaced = match to.lookup(new.as_c_str(), &perms) {
            Err(Errno::NOENT) => None,
            found => Some(self.done(found)?),
        };
        if let Some((_, stat)) = &replaced {
            if vino_of(stat) == vino_of(&moved.1) {
                return self.check_named(cred, (from, old), &moved.1);
            }
            check_replaceable(&self.attr_of(&moved.1)?, &self.attr_of(stat)?)?;
        }
        for (_, stat) in std::iter::once(&moved).chain(&replaced) {
            self.end_hold(vino_of(stat));
        }
        self.done(from.rename(old.as_c_str(), (to, new.as_c_str()), &perms))?;
        if let Some((inode, stat)) = &replaced {
            self.forget_removed(vino_of(stat), inode);
        }
        Ok(())
    }

    /// Checks that a name is still that of an object that was found at another name, too. Another
    /// caller may have moved the object between the two lookups.
    fn check_named(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&CephInode<'_>, &ZeroName),
        stat: &Statx,
    ) -> Result<()> {
        let (_, now) = self.done(dir.lookup(name.as_c_str(), &self.perms(cred)))?;
        if vino_of(&now) == vino_of(stat) { Ok(()) } else { Err(Status::NoEnt) }
    }
}

/// Checks that a directory replaces only a directory, and another object only an object that is no
/// directory.
fn check_replaceable(moved: &Attr<Disk>, replaced: &Attr<Disk>) -> Result<()> {
    let is_directory = |attr: &Attr<Disk>| attr.file_type == FileType::Directory;
    match (is_directory(moved), is_directory(replaced)) {
        (true, false) => Err(Status::NotDir),
        (false, true) => Err(Status::IsDir),
        _ => Ok(()),
    }
}
