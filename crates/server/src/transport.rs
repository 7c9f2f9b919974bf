//! The bytes of a connection, between its socket and its records. Only this module knows how they
//! are sent: plain, or encrypted if the peer has asked for TLS (RFC 9289).

mod tls;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use comity_tls::TlsError;
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{RecvFlags, SendFlags};

use crate::blocking::blocking;

pub(crate) use self::tls::Tls;

/// Bytes of a file that are read at once if they cannot be sent directly from the page cache.
const COPY_BYTES: usize = 64 << 10;

/// A range of a file that is to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch<'a> {
    pub(crate) file: &'a File,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

/// Why a range of a file could not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileError {
    /// The connection failed, or takes no more at present (AGAIN).
    Connection(Errno),
    /// The file cannot be read.
    File(Errno),
}

/// A stream of bytes over a nonblocking socket.
pub(crate) trait Transport {
    /// Receives into `room`; returns 0 at the end of the stream.
    ///
    /// # Errors
    /// AGAIN if no bytes have arrived.
    fn receive(&mut self, room: &mut [u8]) -> Result<usize, Errno>;

    /// Returns whether there are received bytes that the socket will not report any more, because
    /// they are in the transport's own buffer.
    fn has_received(&self) -> bool;

    /// Sends a prefix of `bytes`, as long as is taken at once; `more` if more bytes follow at once.
    ///
    /// # Errors
    /// AGAIN if no bytes are taken.
    fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno>;

    /// Sends the bytes that the transport has taken and the socket has not; `false` if some are
    /// left.
    ///
    /// # Errors
    /// The connection failed.
    fn flush(&mut self) -> Result<bool, Errno> {
        Ok(true)
    }

    /// Sends the beginning of a range of a file, as long as is taken at once; returns 0 if the file
    /// ends before it. It reads the file, because only a plain transport can leave that to the
    /// kernel.
    ///
    /// # Errors
    /// [`FileError`].
    fn send_file(&mut self, stretch: Stretch<'_>) -> Result<usize, FileError> {
        let mut buffer = vec![0; stretch.length.min(COPY_BYTES)];
        match read_stretch(stretch, &mut buffer).map_err(FileError::File)? {
            0 => Ok(0),
            count => {
                let more = count < stretch.length;
                self.send(&buffer[..count], more).map_err(FileError::Connection)
            }
        }
    }
}

/// Reads the beginning of a range of a file, as much as fits into `buffer`.
fn read_stretch(stretch: Stretch<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    let Stretch { file, offset, length } = stretch;
    let wanted = length.min(buffer.len());
    let mut read = || rustix::io::pread(file, &mut buffer[..wanted], offset);
    if is_cold(file, offset) { blocking(read) } else { read() }
}

/// The stream of a connection: its socket, and its encryption.
pub(crate) struct Stream {
    socket: OwnedFd,
    protection: Protection,
}

/// The encryption of the bytes between a socket and its records.
enum Protection {
    /// Bytes are not encrypted.
    Plain,
    /// A handshake is under way: no data is sent or received.
    Handshaking,
    /// Bytes are encrypted.
    Tls(Box<Tls>),
}

impl Stream {
    /// Makes a stream over a nonblocking socket, plain at first.
    pub(crate) const fn plain(socket: OwnedFd) -> Self {
        Self { socket, protection: Protection::Plain }
    }

    /// The socket, for readiness and for a handshake.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Stops data in both directions until TLS is established.
    pub(crate) fn begin_handshake(&mut self) {
        self.protection = Protection::Handshaking;
    }

    /// Encrypts data from now on.
    pub(crate) fn secure(&mut self, tls: Tls) {
        self.protection = Protection::Tls(Box::new(tls));
    }

    /// Returns why the transport failed with [`Errno::PROTO`].
    pub(crate) fn fault(&self) -> Option<&TlsError> {
        match &self.protection {
            Protection::Plain | Protection::Handshaking => None,
            Protection::Tls(tls) => tls.fault(),
        }
    }
}

impl Transport for Stream {
    #[inline]
    fn receive(&mut self, room: &mut [u8]) -> Result<usize, Errno> {
        match &mut self.protection {
            Protection::Plain => {
                rustix::net::recv(&self.socket, room, RecvFlags::empty()).map(|(count, _)| count)
            }
            Protection::Handshaking => Err(Errno::AGAIN),
            Protection::Tls(tls) => tls.receive(self.socket.as_fd(), room),
        }
    }

    #[inline]
    fn has_received(&self) -> bool {
        match &self.protection {
            Protection::Plain | Protection::Handshaking => false,
            Protection::Tls(tls) => tls.has_received(),
        }
    }

    #[inline]
    fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        match &mut self.protection {
            Protection::Plain => {
                let more = if more { SendFlags::MORE } else { SendFlags::empty() };
                rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL | more)
            }
            Protection::Handshaking => Err(Errno::AGAIN),
            Protection::Tls(tls) => tls.send(self.socket.as_fd(), bytes, more),
        }
    }

    #[inline]
    fn flush(&mut self) -> Result<bool, Errno> {
        match &mut self.protection {
            Protection::Plain | Protection::Handshaking => Ok(true),
            Protection::Tls(tls) => tls.flush(self.socket.as_fd(), false),
        }
    }

    #[inline]
    fn send_file(&mut self, stretch: Stretch<'_>) -> Result<usize, FileError> {
        match &mut self.protection {
            Protection::Plain => send_plain_file(&self.socket, stretch),
            Protection::Handshaking => Err(FileError::Connection(Errno::AGAIN)),
            Protection::Tls(tls) => tls.send_file(self.socket.as_fd(), stretch),
        }
    }
}

impl Drop for Stream {
    /// Sends a peer that uses TLS its end of data, if the socket takes that at once.
    fn drop(&mut self) {
        if let Protection::Tls(tls) = &mut self.protection {
            tls.close(self.socket.as_fd());
        }
    }
}

/// Lets the kernel send a range of a file.
fn send_plain_file(socket: &OwnedFd, stretch: Stretch<'_>) -> Result<usize, FileError> {
    let Stretch { file, mut offset, length } = stretch;
    let last = offset + length as u64 - 1;
    let mut send = || rustix::fs::sendfile(socket, file, Some(&mut offset), length);
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

/// Returns whether reading there would wait for the disk. The cost is a quarter of a microsecond.
fn is_cold(file: &File, offset: u64) -> bool {
    let mut byte = [0; 1];
    let buffer = &mut [io::IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, buffer, offset, ReadWriteFlags::NOWAIT) == Err(Errno::AGAIN)
}
