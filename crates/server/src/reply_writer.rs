//! Sending replies: bytes, and stretches of files between them that never enter this process.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use comity_xdr::{Encoder, FileSegment};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::SendFlags;

use crate::blocking::blocking;
use crate::close_reason::CloseReason;
use crate::memory_budget::{Account, Charge};

/// What is to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    bytes: &'a [u8],
    files: &'a [FileSegment],
}

/// How much of it was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    bytes: usize,
    files: usize,
    /// Of the file after the last whole one.
    in_file: u32,
}

/// Replies that the peer did not take yet.
pub(crate) struct Backlog {
    bytes: Vec<u8>,
    files: Vec<FileSegment>,
    progress: Progress,
    charges: Vec<Charge>,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn of(replies: &'a Encoder) -> Self {
        Self { bytes: replies.bytes(), files: replies.files() }
    }

    /// Sends from `progress` on what the socket takes at once; `true` if that was all.
    pub(crate) fn send(
        &self,
        socket: BorrowedFd<'_>,
        progress: &mut Progress,
    ) -> Result<bool, CloseReason> {
        loop {
            let file = self.files.get(progress.files);
            let end = file.map_or(self.bytes.len(), |file| file.after);
            if !send_bytes(socket, self.bytes, &mut progress.bytes, end, file.is_some())? {
                return Ok(false);
            }
            let Some(file) = file else { return Ok(true) };
            if !send_file(socket, file, &mut progress.in_file)? {
                return Ok(false);
            }
            progress.files += 1;
            progress.in_file = 0;
        }
    }
}

impl Backlog {
    /// Keeps what was not sent.
    pub(crate) fn new(
        outgoing: Outgoing<'_>,
        progress: Progress,
        account: &Arc<Account>,
    ) -> Result<Self, CloseReason> {
        let mut backlog = Self {
            bytes: Vec::new(),
            files: Vec::new(),
            progress: Progress { in_file: progress.in_file, ..Progress::default() },
            charges: Vec::new(),
        };
        backlog.extend(outgoing, progress, account)?;
        Ok(backlog)
    }

    /// Keeps more, behind what it has.
    pub(crate) fn append(
        &mut self,
        outgoing: Outgoing<'_>,
        account: &Arc<Account>,
    ) -> Result<(), CloseReason> {
        self.extend(outgoing, Progress::default(), account)
    }

    fn extend(
        &mut self,
        outgoing: Outgoing<'_>,
        from: Progress,
        account: &Arc<Account>,
    ) -> Result<(), CloseReason> {
        let bytes = &outgoing.bytes[from.bytes..];
        self.charges.push(account.charge(bytes.len()).ok_or(CloseReason::Memory)?);
        let base = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.files.extend(
            outgoing.files[from.files..]
                .iter()
                .map(|file| FileSegment { after: base + file.after - from.bytes, ..file.clone() }),
        );
        Ok(())
    }

    /// Keeps what another thread kept.
    pub(crate) fn join(&mut self, other: Self) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        let moved = |file: FileSegment| FileSegment { after: base + file.after, ..file };
        self.files.extend(other.files.into_iter().map(moved));
        self.charges.extend(other.charges);
    }

    /// Sends what the socket takes now: `None` if that was all, else whether it was anything.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> Result<Option<bool>, CloseReason> {
        let before = self.progress;
        let outgoing = Outgoing { bytes: &self.bytes, files: &self.files };
        let all = outgoing.send(socket, &mut self.progress)?;
        Ok(if all { None } else { Some(self.progress != before) })
    }
}

/// Sends `bytes` from `from` to `end`; `false` if the socket takes no more.
fn send_bytes(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    from: &mut usize,
    end: usize,
    more: bool,
) -> Result<bool, CloseReason> {
    let more = if more { SendFlags::MORE } else { SendFlags::empty() };
    while *from < end {
        match rustix::net::send(socket, &bytes[*from..end], SendFlags::NOSIGNAL | more) {
            Ok(sent) => *from += sent,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(CloseReason::Broken(error.into())),
        }
    }
    Ok(true)
}

/// Sends the rest of a stretch of a file; `false` if the socket takes no more.
fn send_file(
    socket: BorrowedFd<'_>,
    segment: &FileSegment,
    sent: &mut u32,
) -> Result<bool, CloseReason> {
    while *sent < segment.length {
        match send_file_once(socket, segment, *sent) {
            Ok(0) => return send_zeros(socket, segment.length, sent),
            Ok(count) => *sent += count as u32,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error @ (Errno::PIPE | Errno::CONNRESET | Errno::TIMEDOUT | Errno::NOTCONN)) => {
                return Err(CloseReason::Broken(error.into()));
            }
            Err(error) => return Err(CloseReason::File(error.into())),
        }
    }
    Ok(true)
}

fn send_file_once(
    socket: BorrowedFd<'_>,
    segment: &FileSegment,
    sent: u32,
) -> Result<usize, Errno> {
    let left = (segment.length - sent) as usize;
    let mut offset = segment.offset + u64::from(sent);
    let last = offset + left as u64 - 1;
    let mut send = || rustix::fs::sendfile(socket, &*segment.file, Some(&mut offset), left);
    if is_cold(&segment.file, last) { blocking(send) } else { send() }
}

/// Whether reading there would wait for the disk. Costs a quarter of a microsecond.
fn is_cold(file: &File, offset: u64) -> bool {
    let mut byte = [0; 1];
    let buffer = &mut [io::IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, buffer, offset, ReadWriteFlags::NOWAIT) == Err(Errno::AGAIN)
}

/// The file turned out shorter than the reply says: zeros stand for what is missing.
fn send_zeros(socket: BorrowedFd<'_>, length: u32, sent: &mut u32) -> Result<bool, CloseReason> {
    const ZEROS: [u8; 4096] = [0; 4096];
    while *sent < length {
        let mut from = 0;
        let end = ZEROS.len().min((length - *sent) as usize);
        let all = send_bytes(socket, &ZEROS, &mut from, end, false)?;
        *sent += from as u32;
        if !all {
            return Ok(false);
        }
    }
    Ok(true)
}
