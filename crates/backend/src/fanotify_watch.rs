//! Reports of the kernel (`fanotify`) that a program has renamed, removed or linked a marked file
//! or changed its attributes, or changed the names in a marked directory. Changes made by this
//! process are ignored.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use comity_vfs::AsServer;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::fanotify_groups::{self, Groups, Inode};
use crate::sys::KernelHandle;

/// Size of the buffer for reports: about a thousand records.
const RECORDS_BYTES: usize = 65_536;

/// Most reads in a row: the kernel queues 16,384 records, and a program that changes files
/// endlessly must not keep this thread from other work.
const READS_MAX: usize = 16;

/// The groups in which the kernel reports changes, and an eventfd that requests marks.
#[derive(Debug)]
pub(crate) struct ChangeWatch {
    groups: Mutex<Groups>,
    /// An epoll set, which is readable when one of the groups is readable.
    any: OwnedFd,
    /// The eventfd, written when there are files to be marked.
    bell: OwnedFd,
    process: i32,
    refused: Once,
}

/// A mark on a file, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Mark {
    watch: Arc<ChangeWatch>,
    file: Arc<File>,
    inode: Inode,
}

impl Mark {
    /// Marks a file; returns `None` if the kernel cannot report its changes, which is logged once.
    pub(crate) fn set(watch: &Arc<ChangeWatch>, file: &Arc<File>) -> Option<Self> {
        let outcome = watch.groups().mark(file, watch.any());
        let told = outcome.inspect_err(|errno| watch.refused.call_once(|| tell_refused(*errno)));
        let mark = |inode| Self { watch: Arc::clone(watch), file: Arc::clone(file), inode };
        told.ok().map(mark)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.watch.groups().unmark(self.inode, &self.file);
    }
}

/// A report of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Another process has changed this file.
    Changed(KernelHandle),
    /// More files were changed than the kernel's queue holds.
    Lost,
}

impl ChangeWatch {
    /// Opens the first group, if the kernel supports these reports.
    ///
    /// # Errors
    /// The kernel's error: ENOSYS and EINVAL before Linux 5.13 without CAP_SYS_ADMIN.
    pub(crate) fn new(server: &AsServer) -> Result<Self, Errno> {
        fanotify_groups::new_group()?;
        let (groups, any) = (Mutex::new(Groups::new(server)), fanotify_groups::any_group()?);
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let process = rustix::process::getpid().as_raw_nonzero().get();
        Ok(Self { groups, any, bell, process, refused: Once::new() })
    }

    /// Returns the descriptor that is readable when there are reports.
    pub(crate) fn any(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }

    /// Returns the eventfd, which is readable when marks were requested.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Requests that files be marked.
    pub(crate) fn ring(&self) {
        // A write fails only if the eventfd is readable already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Resets the eventfd.
    pub(crate) fn answer(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// Reads the pending reports; returns whether any was about another process.
    pub(crate) fn hear(&self, mut tell: impl FnMut(Told)) -> Result<bool, Errno> {
        let mut heard = false;
        let mut bytes = vec![0; RECORDS_BYTES];
        let groups = self.groups().all();
        for group in groups {
            heard |= self.hear_one(&group, &mut bytes, &mut tell)?;
        }
        Ok(heard)
    }

    fn hear_one(
        &self,
        group: &OwnedFd,
        bytes: &mut [u8],
        mut tell: impl FnMut(Told),
    ) -> Result<bool, Errno> {
        let mut heard = false;
        for _ in 0..READS_MAX {
            let length = match rustix::io::read(group, &mut *bytes) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            let read = bytes.get(..length).unwrap_or_default();
            for told in records(read).filter_map(|record| record.told(self.process)) {
                heard = true;
                tell(told);
            }
        }
        Ok(heard)
    }

    /// Returns the number of marks in the kernel.
    #[cfg(test)]
    pub(crate) fn marks(&self) -> usize {
        self.groups().all().iter().map(|group| fanotify_groups::marks(group)).sum()
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell_refused(errno: Errno) {
    tracing::warn!(%errno, "the kernel does not tell of all files that are delegated when programs \
        rename, remove or link them or change their mode or owner: clients may show what was there \
        before until they ask. It cannot on every file system; ENOSPC: raise the sysctl \
        fs.fanotify.max_user_marks; EMFILE: fs.fanotify.max_user_groups, as there are more devices \
        with such files than half of that");
}

/// One `struct fanotify_event_metadata`, and the data that follows it.
#[derive(Debug)]
struct Record<'a> {
    mask: u64,
    process: i32,
    /// The `struct fanotify_event_info_fid`, if the record is about a file.
    file: &'a [u8],
}

/// Bytes of a `struct fanotify_event_metadata`.
const METADATA_BYTES: usize = 24;

/// Bytes before those of the handle: type and length of the information, the file system's id, then
/// the length and the type of the handle.
const FILE_BYTES: usize = 20;

fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let length = number(bytes, 0).filter(|length| *length as usize >= METADATA_BYTES)?;
        let (record, rest) = bytes.split_at_checked(length as usize)?;
        bytes = rest;
        let mask = record.get(8..16)?.try_into().map(u64::from_ne_bytes).ok()?;
        let process = number(record, 20)?.cast_signed();
        Some(Record { mask, process, file: record.get(METADATA_BYTES..)? })
    })
}

impl Record<'_> {
    /// Returns the report, or `None` if this process itself made the change.
    fn told(&self, ourselves: i32) -> Option<Told> {
        if self.mask & libc::FAN_Q_OVERFLOW != 0 {
            return Some(Told::Lost);
        }
        if self.process == ourselves {
            return None;
        }
        // An event that does not name its file may be about any file.
        Some(self.handle().map_or(Told::Lost, Told::Changed))
    }

    fn handle(&self) -> Option<KernelHandle> {
        let is_file = self.file.first() == Some(&libc::FAN_EVENT_INFO_TYPE_FID);
        let length = number(self.file, 12).filter(|_| is_file)? as usize;
        let kind = number(self.file, 16)?.cast_signed();
        KernelHandle::new(kind, self.file.get(FILE_BYTES..FILE_BYTES.checked_add(length)?)?)
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(mask: u64, process: i32, file: &[u8]) -> Vec<u8> {
        let length = (METADATA_BYTES + file.len()) as u32;
        let start = [&length.to_ne_bytes()[..], &[3, 0, 24, 0], &mask.to_ne_bytes()];
        let end = [&(-1i32).to_ne_bytes()[..], &process.to_ne_bytes(), file];
        [start.concat(), end.concat()].concat()
    }

    fn file(kind: i32, bytes: &[u8]) -> Vec<u8> {
        let length = (bytes.len() as u32).to_ne_bytes();
        [&[1, 0, 28, 0][..], &[9; 8], &length, &kind.to_ne_bytes(), bytes].concat()
    }

    fn told(bytes: &[u8]) -> Vec<Told> {
        records(bytes).filter_map(|record| record.told(7)).collect()
    }

    #[test]
    fn a_change_of_a_marked_file_on_any_device_is_reported() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
        let watch = Arc::new(ChangeWatch::new(&AsServer::here().unwrap()).unwrap());
        let mut marks = Vec::new();
        for folder in [std::env::temp_dir(), "/dev/shm".into()] {
            let Ok(file) = tempfile::NamedTempFile::new_in(folder) else { continue };
            marks.push(Mark::set(&watch, &Arc::new(file.reopen().unwrap())).unwrap());
            let program = std::process::Command::new("chmod").arg("644").arg(file.path()).status();
            assert!(program.unwrap().success());
            let any = PollFd::from_borrowed_fd(watch.any(), PollFlags::IN);
            assert_eq!(poll(&mut [any], Some(&patience)), Ok(1));
            let mut told = Vec::new();
            assert_eq!(watch.hear(|it| told.push(it)), Ok(true));
            assert!(matches!(told[..], [Told::Changed(_)]));
        }
        assert_eq!(watch.marks(), marks.len());
    }

    #[test]
    fn records_tell_what_others_did_with_which_file() {
        let [one, two] =
            [b"12345678", b"abcdefgh"].map(|bytes| KernelHandle::new(1, bytes).unwrap());
        let bytes = [
            record(libc::FAN_ATTRIB, 8, &file(1, b"12345678")),
            record(libc::FAN_ATTRIB, 7, &file(1, b"12345678")),
            record(libc::FAN_MOVE_SELF, 0, &file(1, b"abcdefgh")),
        ];
        assert_eq!(told(&bytes.concat()), [Told::Changed(one), Told::Changed(two)]);
    }

    #[test]
    fn an_event_that_names_no_file_may_mean_any_file() {
        assert_eq!(told(&record(libc::FAN_Q_OVERFLOW, 7, &[])), [Told::Lost]);
        assert_eq!(told(&record(libc::FAN_ATTRIB, 8, &[])), [Told::Lost]);
        assert_eq!(told(&record(libc::FAN_ATTRIB, 8, &file(1, &[1; 200]))), [Told::Lost]);
        let mut longer = file(1, b"12345678");
        longer[12] = 9;
        assert_eq!(told(&record(libc::FAN_ATTRIB, 8, &longer)), [Told::Lost]);
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        let whole = record(libc::FAN_ATTRIB, 8, &file(1, b"12345678"));
        for length in 0..whole.len() {
            assert_eq!(told(&whole[..length]), []);
        }
        assert_eq!(told(&[0; 64]), []);
    }
}
