//! The `fanotify` groups, one for each device, from which the kernel's reports of marked files are
//! read. A subvolume of btrfs is a device of its own, and the kernel refuses to have its files in
//! one group with others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use comity_vfs::AsServer;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;

use crate::sys::{self, MarkBound, MarkChange, Marked};

/// Number of groups of a user, if the kernel does not report it.
const USER_GROUPS: usize = 128;

/// The numbers of the device and of the inode, which identify a file as long as it is open.
pub(crate) type Inode = (u64, u64);

/// The groups. They are kept, because the kernel takes 10 ms to close one. Groups without marks are
/// closed if there is no room for another group.
#[derive(Debug)]
pub(crate) struct Groups {
    by_device: HashMap<u64, Group>,
    most: usize,
}

#[derive(Debug)]
struct Group {
    fd: Arc<OwnedFd>,
    /// The number of marks of each inode: exports may share it, and the kernel counts only one.
    marks: HashMap<u64, u32>,
}

impl Groups {
    /// Makes an empty set, limited to half of the groups that the kernel allows the user, because
    /// other programs need some, too.
    pub(crate) fn new(_: &AsServer) -> Self {
        let said = std::fs::read_to_string("/proc/sys/fs/fanotify/max_user_groups");
        let user = said.ok().and_then(|said| said.trim().parse().ok()).unwrap_or(USER_GROUPS);
        Self { by_device: HashMap::new(), most: user.div_ceil(2) }
    }

    /// Marks a file. Reports about it can be read when `any` is readable.
    pub(crate) fn mark(&mut self, file: &File, any: BorrowedFd<'_>) -> Result<Inode, Errno> {
        let stat = fstat(file)?;
        let group = self.group(stat.st_dev, any)?;
        sys::mark(group.fd.as_fd(), (file.as_fd(), kind(&stat)), MarkChange::Add)?;
        *group.marks.entry(stat.st_ino).or_default() += 1;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Removes a mark that was set.
    pub(crate) fn unmark(&mut self, (device, inode): Inode, file: &File) {
        let Some(group) = self.by_device.get_mut(&device) else { return };
        let Entry::Occupied(mut count) = group.marks.entry(inode) else { return };
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
            // If the mark is gone already, nothing has to be removed.
            let _ = fstat(file).and_then(|stat| {
                sys::mark(group.fd.as_fd(), (file.as_fd(), kind(&stat)), MarkChange::Remove)
            });
        }
    }

    /// Returns all groups.
    pub(crate) fn all(&self) -> Vec<Arc<OwnedFd>> {
        self.by_device.values().map(|group| Arc::clone(&group.fd)).collect()
    }

    fn group(&mut self, device: u64, any: BorrowedFd<'_>) -> Result<&mut Group, Errno> {
        if self.by_device.len() >= self.most && !self.by_device.contains_key(&device) {
            let mut unused = self.by_device.extract_if(|_, group| group.marks.is_empty());
            unused.next().ok_or(Errno::MFILE)?;
        }
        match self.by_device.entry(device) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(Group::new(any)?)),
        }
    }
}

impl Group {
    fn new(any: BorrowedFd<'_>) -> Result<Self, Errno> {
        let fd = new_group()?;
        epoll::add(any, &fd, EventData::new_u64(0), EventFlags::IN)?;
        Ok(Self { fd: Arc::new(fd), marks: HashMap::new() })
    }
}

fn kind(stat: &Stat) -> Marked {
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if is_directory { Marked::Directory } else { Marked::Other }
}

/// Marks a directory in a group that is closed again, to see whether the kernel can.
///
/// # Errors
/// The kernel's error.
pub(crate) fn try_mark(directory: &File) -> Result<(), Errno> {
    let group = new_group()?;
    sys::mark(group.as_fd(), (directory.as_fd(), Marked::Directory), MarkChange::Add)
}

/// Makes a group without marks.
///
/// # Errors
/// The kernel's error: ENOSYS and EINVAL before Linux 5.13 without CAP_SYS_ADMIN.
pub(crate) fn new_group() -> Result<OwnedFd, Errno> {
    sys::change_group(MarkBound::Ours).or_else(|_| sys::change_group(MarkBound::User))
}

/// Makes the epoll set that is readable when one of the groups made with it is.
pub(crate) fn any_group() -> Result<OwnedFd, Errno> {
    epoll::create(CreateFlags::CLOEXEC)
}

/// Returns the number of marks in the kernel.
#[cfg(test)]
pub(crate) fn marks(group: &OwnedFd) -> usize {
    let path = format!("/proc/self/fdinfo/{}", std::os::fd::AsRawFd::as_raw_fd(group));
    let said = std::fs::read_to_string(path).unwrap();
    said.lines().filter(|line| line.starts_with("fanotify ino:")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(most: usize) -> (Groups, OwnedFd) {
        (Groups { by_device: HashMap::new(), most }, any_group().unwrap())
    }

    #[test]
    fn there_are_no_more_groups_than_there_may_be() {
        let (mut groups, any) = groups(2);
        let files = [(); 2].map(|()| tempfile::tempfile().unwrap());
        let inodes = files.each_ref().map(|file| groups.mark(file, any.as_fd()).unwrap());
        assert_eq!(groups.all().iter().map(|group| marks(group)).collect::<Vec<_>>(), [2]);
        for other in 1..10 {
            // No marked file is on a device with such a number.
            assert!(groups.group(inodes[0].0.wrapping_add(other), any.as_fd()).is_ok());
            assert_eq!(groups.all().len(), 2);
        }
        assert_eq!(marks(&groups.by_device[&inodes[0].0].fd), 2);
    }

    #[test]
    fn a_file_is_marked_until_it_is_unmarked_as_often() {
        let (mut groups, any) = groups(1);
        let file = tempfile::tempfile().unwrap();
        let told = |groups: &Groups| marks(&groups.all()[0]);
        let inode = groups.mark(&file, any.as_fd()).unwrap();
        assert_eq!(groups.mark(&file, any.as_fd()), Ok(inode));
        let other = groups.group(inode.0.wrapping_add(1), any.as_fd());
        assert_eq!(other.err(), Some(Errno::MFILE), "only one group is allowed");
        groups.unmark(inode, &file);
        assert_eq!(told(&groups), 1);
        groups.unmark(inode, &file);
        assert_eq!(told(&groups), 0);
        groups.unmark(inode, &file);
        assert!(groups.group(inode.0.wrapping_add(1), any.as_fd()).is_ok());
    }
}
