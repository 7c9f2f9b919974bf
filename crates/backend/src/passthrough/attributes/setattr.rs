use std::fs::File;
use std::sync::Arc;

use comity_vfs::{
    Change, Cred, Disk, FileType, Handle, Mode, Result, SetAttr, SetTime, Status, Time,
};
use rustix::fs::{
    AtFlags, CWD, Gid, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chmodat, chownat,
    ftruncate, utimensat,
};
use rustix::io::Errno;

use super::attr::{attr, ctime};
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::data::space::FILE_SIZE_MAX;
use crate::passthrough::handles::node::{Node, Use};
use crate::passthrough::handles::open_handle::{link_of, must_be_file};
use crate::passthrough::limits::TRUNCATE_BYTES_SLOW;
use crate::{blocking, sys};

impl Passthrough {
    /// See [`comity_vfs::Fs::setattr`].
    pub(crate) fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        let node = self.node(node)?;
        let held = node.hold_patiently()?;
        let writing = self.begin_write(&node);
        let stat = self.stat(&node)?;
        if guard.is_some_and(|guard| guard != ctime(&stat)) {
            return Err(Status::NotSync);
        }
        let outcome = self.apply(cred, &node, &stat, set);
        let before = writing.is_alone().then(|| attr(&node.mount, &stat));
        let change = self.since(&node, before);
        drop(held);
        outcome.map(|()| change)
    }

    /// Sets attributes of a node in the order in which they disturb each other least: truncation
    /// sets the times, and a change of owner clears the set-id bits.
    pub(crate) fn apply(
        &self,
        cred: &Cred<Disk>,
        node: &Node,
        stat: &Stat,
        set: &SetAttr<Disk>,
    ) -> Result<()> {
        if set.is_empty() {
            return Ok(());
        }
        must_make_sense(set)?;
        if let Some(size) = set.size {
            self.resize(cred, node, stat, size)?;
        }
        self.identity.caller(cred)?;
        let outcome = change_owner(node, set)
            .and_then(|()| set.mode.map_or(Ok(()), |mode| change_mode(node, mode)))
            .and_then(|()| change_times(node, set));
        node.barrier.changed_attributes();
        outcome.map_err(status)
    }

    fn resize(&self, cred: &Cred<Disk>, node: &Node, stat: &Stat, size: u64) -> Result<()> {
        must_be_file(node)?;
        if size > FILE_SIZE_MAX {
            return Err(Status::FBig);
        }
        self.admit_writer(cred, node, stat)?;
        let file: Arc<File> = self.data(node, Use::Write)?;
        self.identity.caller(cred)?;
        let cut = || rustix::io::retry_on_intr(|| ftruncate(&*file, size));
        let slow = (stat.st_size as u64).abs_diff(size) >= TRUNCATE_BYTES_SLOW;
        let outcome = if slow { blocking(cut) } else { cut() };
        node.barrier.written();
        outcome.map_err(status)
    }
}

/// Nanoseconds in a second.
const NANOSECONDS: u32 = 1_000_000_000;

/// Refuses ids and times that the kernel takes for "unchanged" or "now".
fn must_make_sense(set: &SetAttr<Disk>) -> Result<()> {
    let no_id = set.uid.is_some_and(|uid| uid.number() == u32::MAX)
        || set.gid.is_some_and(|gid| gid.number() == u32::MAX);
    let no_time = |time| match time {
        Some(SetTime::To(Time { nanoseconds, .. })) => nanoseconds >= NANOSECONDS,
        _ => false,
    };
    if no_id || no_time(set.atime) || no_time(set.mtime) { Err(Status::Inval) } else { Ok(()) }
}

fn change_owner(node: &Node, set: &SetAttr<Disk>) -> rustix::io::Result<()> {
    let owner = set.uid.map(|uid| Uid::from_raw(uid.number()));
    let group = set.gid.map(|gid| Gid::from_raw(gid.number()));
    if owner.is_none() && group.is_none() {
        return Ok(());
    }
    chownat(node.fd(), c"", owner, group, AtFlags::EMPTY_PATH)
}

fn change_mode(node: &Node, mode: Mode) -> rustix::io::Result<()> {
    match sys::change_mode(node.fd(), mode.bits()) {
        // Older kernels change the mode by the link in /proc for the descriptor.
        Err(Errno::NOSYS) if node.kind != FileType::Symlink => {
            let mode = rustix::fs::Mode::from_raw_mode(mode.bits());
            chmodat(CWD, link_of(node.fd()), mode, AtFlags::empty())
        }
        outcome => outcome,
    }
}

fn change_times(node: &Node, set: &SetAttr<Disk>) -> rustix::io::Result<()> {
    if set.atime.is_none() && set.mtime.is_none() {
        return Ok(());
    }
    let times = Timestamps { last_access: wanted(set.atime), last_modification: wanted(set.mtime) };
    utimensat(node.fd(), c"", &times, AtFlags::EMPTY_PATH)
}

fn wanted(time: Option<SetTime>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(SetTime::Now) => (0, UTIME_NOW),
        Some(SetTime::To(time)) => (time.seconds, time.nanoseconds.into()),
    };
    Timespec { tv_sec, tv_nsec }
}
