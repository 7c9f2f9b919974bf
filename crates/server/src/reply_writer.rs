//! Sends replies: bytes, and ranges of files between them that are not copied to this process.

use std::sync::Arc;

use comity_xdr::{Encoder, FileSegment};
use rustix::io::Errno;

use crate::close_reason::CloseReason;
use crate::memory_budget::{Account, Charge};
use crate::transport::{FileError, Stretch, Transport};

/// Replies to send: bytes, and ranges of files between them.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    bytes: &'a [u8],
    files: &'a [FileSegment],
}

/// The position up to which replies were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    bytes: usize,
    files: usize,
    /// Number of bytes sent of the file after the last file sent completely.
    in_file: u32,
}

/// Replies that the peer has not taken yet.
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

    /// Sends from `progress` on the bytes that the socket takes at once; `true` if that was all.
    pub(crate) fn send(
        &self,
        transport: &mut impl Transport,
        progress: &mut Progress,
    ) -> Result<bool, CloseReason> {
        loop {
            let file = self.files.get(progress.files);
            let end = file.map_or(self.bytes.len(), |file| file.after);
            if !send_bytes(transport, self.bytes, &mut progress.bytes, end, file.is_some())? {
                return Ok(false);
            }
            let Some(file) = file else { return flush(transport) };
            if !send_file(transport, file, &mut progress.in_file)? {
                return Ok(false);
            }
            progress.files += 1;
            progress.in_file = 0;
        }
    }
}

impl Backlog {
    /// Keeps the bytes that were not sent.
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

    /// Adds further replies at the end of the backlog.
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

    /// Appends the backlog that another thread kept.
    pub(crate) fn join(&mut self, other: Self) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        let moved = |file: FileSegment| FileSegment { after: base + file.after, ..file };
        self.files.extend(other.files.into_iter().map(moved));
        self.charges.extend(other.charges);
    }

    /// Sends the bytes that the socket takes now. Returns `None` if that was all, else whether it
    /// took any.
    pub(crate) fn send(
        &mut self,
        transport: &mut impl Transport,
    ) -> Result<Option<bool>, CloseReason> {
        let before = self.progress;
        let outgoing = Outgoing { bytes: &self.bytes, files: &self.files };
        let all = outgoing.send(transport, &mut self.progress)?;
        Ok(if all { None } else { Some(self.progress != before) })
    }
}

/// Sends the bytes that the transport still has; `false` if the socket takes no more.
fn flush(transport: &mut impl Transport) -> Result<bool, CloseReason> {
    loop {
        match transport.flush() {
            Ok(all) => return Ok(all),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends `bytes` from `from` to `end`; `false` if the socket takes no more.
fn send_bytes(
    transport: &mut impl Transport,
    bytes: &[u8],
    from: &mut usize,
    end: usize,
    more: bool,
) -> Result<bool, CloseReason> {
    while *from < end {
        match transport.send(&bytes[*from..end], more) {
            Ok(sent) => *from += sent,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Sends the rest of a range of a file; `false` if the socket takes no more.
fn send_file(
    transport: &mut impl Transport,
    segment: &FileSegment,
    sent: &mut u32,
) -> Result<bool, CloseReason> {
    while *sent < segment.length {
        let stretch = Stretch {
            file: &segment.file,
            offset: segment.offset + u64::from(*sent),
            length: (segment.length - *sent) as usize,
        };
        match transport.send_file(stretch) {
            Ok(0) => return send_zeros(transport, segment.length, sent),
            Ok(count) => *sent += count as u32,
            Err(FileError::Connection(Errno::AGAIN)) => return Ok(false),
            Err(FileError::Connection(Errno::INTR) | FileError::File(Errno::INTR)) => {}
            Err(FileError::Connection(error)) => return Err(error.into()),
            Err(FileError::File(error)) => return Err(CloseReason::File(error.into())),
        }
    }
    Ok(true)
}

/// Sends zeros for the end of a file that is shorter than its reply announced.
fn send_zeros(
    transport: &mut impl Transport,
    length: u32,
    sent: &mut u32,
) -> Result<bool, CloseReason> {
    const ZEROS: [u8; 4096] = [0; 4096];
    while *sent < length {
        let mut from = 0;
        let end = ZEROS.len().min((length - *sent) as usize);
        let all = send_bytes(transport, &ZEROS, &mut from, end, false)?;
        *sent += from as u32;
        if !all {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::memory_budget::MemoryBudget;

    /// A transport that changes every byte, as a cipher does, and has room for `room` bytes.
    struct Ciphered {
        sent: Vec<u8>,
        room: usize,
    }

    impl Transport for Ciphered {
        fn receive(&mut self, _: &mut [u8]) -> Result<usize, Errno> {
            Err(Errno::AGAIN)
        }

        fn has_received(&self) -> bool {
            false
        }

        fn send(&mut self, bytes: &[u8], _: bool) -> Result<usize, Errno> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(Errno::AGAIN);
            }
            self.room -= count;
            self.sent.extend(bytes[..count].iter().map(|byte| !byte));
            Ok(count)
        }
    }

    fn reply(file_bytes: usize, announced: u32) -> (Encoder, Vec<u8>) {
        let content: Vec<u8> = (0..file_bytes).map(|n| (n % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        let mut reply = Encoder::new();
        let start = reply.begin_record();
        reply.value(&7_u32);
        reply.file(Arc::new(file), 0, announced);
        reply.end_record(start);
        let mut expected = reply.bytes().to_vec();
        expected.extend(content);
        expected.resize(reply.bytes().len() + announced as usize, 0);
        (reply, expected)
    }

    fn plain_text(transport: &Ciphered) -> Vec<u8> {
        transport.sent.iter().map(|byte| !byte).collect()
    }

    #[test]
    fn a_file_goes_through_a_transport_that_is_not_plain() {
        let (reply, expected) = reply(200_000, 200_000);
        let mut transport = Ciphered { sent: Vec::new(), room: usize::MAX };
        let mut progress = Progress::default();
        assert!(Outgoing::of(&reply).send(&mut transport, &mut progress).unwrap());
        assert!(plain_text(&transport) == expected);
    }

    #[test]
    fn a_file_that_is_too_short_is_filled_with_zeros() {
        let (reply, expected) = reply(1000, 9000);
        let mut transport = Ciphered { sent: Vec::new(), room: usize::MAX };
        assert!(Outgoing::of(&reply).send(&mut transport, &mut Progress::default()).unwrap());
        assert!(plain_text(&transport) == expected);
    }

    #[test]
    fn a_backlog_goes_on_where_the_peer_stopped_reading() {
        let (reply, expected) = reply(200_000, 200_000);
        let account = Arc::new(Arc::new(MemoryBudget::new(1 << 20)).account());
        for room in [1, 40, 50, 70_000] {
            let mut transport = Ciphered { sent: Vec::new(), room };
            let (outgoing, mut progress) = (Outgoing::of(&reply), Progress::default());
            assert!(!outgoing.send(&mut transport, &mut progress).unwrap());
            let mut backlog = Backlog::new(outgoing, progress, &account).unwrap();
            assert_eq!(backlog.send(&mut transport).unwrap(), Some(false));
            transport.room = 30_000;
            assert_eq!(backlog.send(&mut transport).unwrap(), Some(true));
            transport.room = usize::MAX;
            assert_eq!(backlog.send(&mut transport).unwrap(), None);
            assert!(plain_text(&transport) == expected, "from {room}");
        }
    }

    #[test]
    fn replies_that_are_joined_keep_their_order() {
        let (first, expected) = reply(5000, 5000);
        let account = Arc::new(Arc::new(MemoryBudget::new(1 << 20)).account());
        let keep = || Backlog::new(Outgoing::of(&first), Progress::default(), &account).unwrap();
        let mut backlog = keep();
        backlog.append(Outgoing::of(&first), &account).unwrap();
        backlog.join(keep());
        let mut transport = Ciphered { sent: Vec::new(), room: usize::MAX };
        assert_eq!(backlog.send(&mut transport).unwrap(), None);
        assert!(plain_text(&transport) == expected.repeat(3));
    }
}
