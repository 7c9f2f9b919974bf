//! The bytes of a connection, between its socket and its records. This is the only place that knows
//! how they travel: plain, and encrypted once RPC-with-TLS (RFC 9289) is spoken.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{RecvFlags, SendFlags};

use crate::blocking::blocking;

/// Bytes of a file that are read at once where they cannot go from the page cache to the socket.
const COPY_BYTES: usize = 64 << 10;

/// A stretch of a file that is to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch<'a> {
    pub(crate) file: &'a File,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

/// Why a stretch of a file was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileError {
    /// The connection failed, or takes no more at present (AGAIN).
    Connection(Errno),
    /// The file cannot be read.
    File(Errno),
}

/// A stream of bytes over a nonblocking socket.
pub(crate) trait Transport {
    /// Receives into `room`; 0 at the end of the stream.
    ///
    /// # Errors
    /// AGAIN if nothing is there.
    fn receive(&mut self, room: &mut [u8]) -> Result<usize, Errno>;

    /// Returns whether bytes were received that the socket will not report any more, because they
    /// wait in the transport itself.
    fn has_received(&self) -> bool;

    /// Sends from the beginning of `bytes` what is taken at once; `more` if more follows at once.
    ///
    /// # Errors
    /// AGAIN if nothing is taken.
    fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno>;

    /// Sends from the beginning of a stretch of a file what is taken at once; 0 where the file ends
    /// before it. Reads the file, because only a plain transport can leave that to the kernel.
    ///
    /// # Errors
    /// [`FileError`].
    fn send_file(&mut self, stretch: Stretch<'_>) -> Result<usize, FileError> {
        let mut buffer = vec![0; stretch.length.min(COPY_BYTES)];
        let Stretch { file, offset, .. } = stretch;
        let mut read = || rustix::io::pread(file, &mut buffer, offset);
        let count = if is_cold(file, offset) { blocking(read) } else { read() };
        match count.map_err(FileError::File)? {
            0 => Ok(0),
            count => {
                let more = count < stretch.length;
                self.send(&buffer[..count], more).map_err(FileError::Connection)
            }
        }
    }
}

/// The transports that there are.
pub(crate) enum Stream {
    /// Bytes go over the socket as they are.
    Plain(Plain),
}

/// A transport that adds nothing to its socket.
pub(crate) struct Plain(pub(crate) OwnedFd);

impl Stream {
    /// The socket, for readiness only.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(plain) => plain.0.as_fd(),
        }
    }
}

impl Transport for Stream {
    #[inline]
    fn receive(&mut self, room: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::Plain(plain) => plain.receive(room),
        }
    }

    #[inline]
    fn has_received(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.has_received(),
        }
    }

    #[inline]
    fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        match self {
            Self::Plain(plain) => plain.send(bytes, more),
        }
    }

    #[inline]
    fn send_file(&mut self, stretch: Stretch<'_>) -> Result<usize, FileError> {
        match self {
            Self::Plain(plain) => plain.send_file(stretch),
        }
    }
}

impl Transport for Plain {
    #[inline]
    fn receive(&mut self, room: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(&self.0, room, RecvFlags::empty()).map(|(received, _)| received)
    }

    #[inline]
    fn has_received(&self) -> bool {
        false
    }

    #[inline]
    fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        let more = if more { SendFlags::MORE } else { SendFlags::empty() };
        rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL | more)
    }

    fn send_file(&mut self, stretch: Stretch<'_>) -> Result<usize, FileError> {
        let Stretch { file, mut offset, length } = stretch;
        let last = offset + length as u64 - 1;
        let mut send = || rustix::fs::sendfile(&self.0, file, Some(&mut offset), length);
        let sent = if is_cold(file, last) { blocking(send) } else { send() };
        sent.map_err(|error| match error {
            Errno::AGAIN
            | Errno::INTR
            | Errno::PIPE
            | Errno::CONNRESET
            | Errno::TIMEDOUT
            | Errno::NOTCONN => FileError::Connection(error),
            error => FileError::File(error),
        })
    }
}

/// Returns whether reading there would wait for the disk. Costs a quarter of a microsecond.
fn is_cold(file: &File, offset: u64) -> bool {
    let mut byte = [0; 1];
    let buffer = &mut [io::IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, buffer, offset, ReadWriteFlags::NOWAIT) == Err(Errno::AGAIN)
}
