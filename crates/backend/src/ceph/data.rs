use comity_vfs::permission::{Object, mode_after_write};
use comity_vfs::{
    Attr, Change, Changed, Cred, Data, Disk, FileType, Handle, Read, ReadInto, Result, Stability,
    Status, Target, Written,
};

use super::Ceph;
use super::ffi::{CephInode, Vino};
use super::files::FileUse;
use super::limits::FILE_SIZE_MAX;

impl Ceph {
    /// See [`comity_vfs::Fs::readlink`].
    pub(super) fn target_of(&self, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        let (_, inode, attr) = self.find(node)?;
        if attr.file_type != FileType::Symlink {
            return Err(Status::Inval);
        }
        Ok((self.done(inode.readlink())?.into(), attr))
    }

    /// See [`comity_vfs::Fs::read`].
    pub(super) fn read_data(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (offset, count): (u64, u32),
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        let (vino, inode, attr) = self.find(node)?;
        check_file(&attr)?;
        if !into.opened {
            let acl = self.acl_of(&inode, &attr)?;
            Object { attr: &attr, acl: acl.as_ref() }.check_read_data(cred)?;
        }
        if offset >= attr.size || count == 0 {
            let eof = offset >= attr.size;
            return Ok(Read { data: Data::Appended(0), eof, attr: Some(attr) });
        }
        let file = self.data_file(vino, &inode, FileUse::Read)?;
        let at = i64::try_from(offset).map_err(|_| Status::FBig)?;
        let length = self.done(file.file.read_append(into.bytes, at, count as usize))?;
        let attr = self.attr(&inode)?;
        let eof = offset + length as u64 >= attr.size;
        Ok(Read { data: Data::Appended(length as u32), eof, attr: Some(attr) })
    }

    /// Writes; the rights of the caller are checked unless it has the file `opened`.
    pub(super) fn write_data(
        &self,
        (cred, opened): (&Cred<Disk>, bool),
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        let work = |vino, inode: &CephInode<'_>| {
            if data.is_empty() {
                return Ok(0);
            }
            let (at, data) = within_limit(offset, data)?;
            let file = self.data_file(vino, inode, FileUse::Write)?;
            self.done(file.write(data, at)).map(|length| length as u32)
        };
        let (value, change) = self.change_data((cred, opened), node, work)?;
        Ok(Changed { value, change })
    }

    /// See [`comity_vfs::Fs::write_stable`].
    pub(super) fn write_through(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<(Written<Disk>, Stability)> {
        let written = self.write_data((cred, false), node, offset, data)?;
        self.commit_object(node)?;
        Ok((written, Stability::FileSync))
    }

    /// See [`comity_vfs::Fs::deallocate`].
    pub(super) fn punch_hole(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        let work = |vino, inode: &CephInode<'_>| {
            let end = offset.checked_add(length).ok_or(Status::FBig)?;
            if length == 0 || end > FILE_SIZE_MAX {
                return Err(if length == 0 { Status::Inval } else { Status::FBig });
            }
            let file = self.data_file(vino, inode, FileUse::Write)?;
            self.done(file.punch(offset as i64, length as i64))
        };
        self.change_data((cred, false), node, work).map(|(_, change)| change)
    }

    fn change_data<T>(
        &self,
        (cred, opened): (&Cred<Disk>, bool),
        node: &Handle,
        work: impl FnOnce(Vino, &CephInode<'_>) -> Result<T>,
    ) -> Result<(T, Change<Disk>)> {
        self.change(node, |vino, inode, attr| {
            check_file(attr)?;
            if !opened {
                let acl = self.acl_of(inode, attr)?;
                Object { attr, acl: acl.as_ref() }.check_write_data(cred)?;
            }
            let mode = mode_after_write(cred, attr);
            if mode != attr.mode {
                self.set_mode(inode, mode)?;
            }
            work(vino, inode)
        })
    }

    /// See [`comity_vfs::Fs::commit`].
    pub(super) fn commit_object(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        let vino = self.vino(node)?;
        let inode = match self.inode(vino) {
            Err(Status::Stale) => return self.commit_removed(),
            inode => inode?,
        };
        match self.files.get(vino, FileUse::Write) {
            Some(file) => self.sync_file(vino, &file)?,
            None => {
                self.check_failures(node)?;
                self.note_failure(vino, inode.sync())?;
            }
        }
        match self.attr(&inode) {
            Err(Status::Stale) => self.commit_removed(),
            attr => attr.map(Some),
        }
    }

    /// Commits an object that was removed: its changes are stable once the removal is.
    fn commit_removed(&self) -> Result<Option<Attr<Disk>>> {
        self.done(self.mount.sync()).map(|()| None)
    }
}

/// Checks that the data of an object can be used.
fn check_file(attr: &Attr<Disk>) -> Result<()> {
    match attr.file_type {
        FileType::Regular => Ok(()),
        FileType::Directory => Err(Status::IsDir),
        _ => Err(Status::Inval),
    }
}

/// Returns the offset and the part of the data that a file can have there.
fn within_limit(offset: u64, data: &[u8]) -> Result<(i64, &[u8])> {
    let room = FILE_SIZE_MAX.checked_sub(offset).filter(|room| *room > 0).ok_or(Status::FBig)?;
    let length = usize::try_from(room).unwrap_or(usize::MAX).min(data.len());
    Ok((offset as i64, &data[..length]))
}
