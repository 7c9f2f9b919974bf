//! TLS between a socket and its records.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use comity_tls::{
    Established, RECORD_BYTES_MAX, RECORD_DATA_BYTES_MAX, RecordContent, RecordLayer, TlsError,
    record_bytes,
};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

use super::{COPY_BYTES, FileError, Stretch, read_stretch};
use crate::limits::{OPENED_BYTES_MAX, SEALED_BYTES_MAX};
use crate::memory_budget::{Account, Charge};

/// A transport that encrypts the bytes that it sends and decrypts those that it receives.
pub(crate) struct Tls {
    session: RecordLayer,
    account: Arc<Account>,
    /// Received bytes that are not decrypted yet: part of a record, mostly none.
    unopened: HeldBytes,
    /// Decrypted data that did not fit into the receive buffer.
    opened: HeldBytes,
    /// Encrypted records that the socket has not taken, and the number of bytes sent of the first
    /// one.
    sealed: VecDeque<Vec<u8>>,
    sent: usize,
    _sealed_charge: Option<Charge>,
    /// The socket was read by the last call of [`Tls::receive`], and had no more.
    is_drained: bool,
    is_closed: bool,
    fault: Option<TlsError>,
}

/// Bytes in memory that is charged to the peer's account.
#[derive(Default)]
struct HeldBytes {
    bytes: Box<[u8]>,
    taken: usize,
    _charge: Option<Charge>,
}

thread_local! {
    /// Received bytes while they are decrypted.
    static RECEIVED: RefCell<Vec<u8>> = RefCell::new(vec![0; OPENED_BYTES_MAX + RECORD_BYTES_MAX]);
    /// A range of a file while it is encrypted.
    static STRETCH: RefCell<Vec<u8>> = RefCell::new(vec![0; COPY_BYTES]);
}

impl Tls {
    /// Makes the transport after a handshake.
    ///
    /// # Errors
    /// [`Errno::NOBUFS`]: there is no memory for the bytes received after the handshake.
    pub(crate) fn new(established: Established, account: &Arc<Account>) -> Result<Self, Errno> {
        let Established { session, sealed, .. } = established;
        Ok(Self {
            session,
            account: Arc::clone(account),
            unopened: HeldBytes::new(&sealed, account)?,
            opened: HeldBytes::default(),
            sealed: VecDeque::new(),
            sent: 0,
            _sealed_charge: None,
            is_drained: false,
            is_closed: false,
            fault: None,
        })
    }

    /// The reason why the transport failed with [`Errno::PROTO`].
    pub(crate) const fn fault(&self) -> Option<&TlsError> {
        self.fault.as_ref()
    }

    /// Receives once and decrypts the received records; returns the bytes that were put into
    /// `room`.
    fn open_into(
        &mut self,
        socket: BorrowedFd<'_>,
        room: &mut [u8],
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        let mut filled = self.unopened.take_into(buffer);
        if !starts_with_record(&buffer[..filled]) {
            filled += self.receive_sealed(socket, (&mut *buffer, filled), room.len())?;
        }
        let (mut at, mut written) = (0, 0);
        while written < room.len() && self.opened.is_empty() && !self.is_closed {
            let opened = match self.next_record(socket, &buffer[at..filled]) {
                Ok(None) => break,
                Ok(Some(end)) => {
                    at += end;
                    self.open(socket, &mut buffer[at - end..at], &mut room[written..])
                }
                Err(error) => Err(error),
            };
            match opened {
                Ok(count) => written += count,
                // Calls that came before the peer's error are still answered.
                Err(_) if written > 0 => return Ok(written),
                Err(error) => return Err(error),
            }
        }
        self.unopened = HeldBytes::new(&buffer[at..filled], &self.account)?;
        self.tell_new_keys(socket)?;
        Ok(written)
    }

    /// Receives after the `filled` bytes of the buffer. No more is received than fits into the
    /// room, except the rest of a record.
    fn receive_sealed(
        &mut self,
        socket: BorrowedFd<'_>,
        (buffer, filled): (&mut [u8], usize),
        room: usize,
    ) -> Result<usize, Errno> {
        let wanted = room.clamp(RECORD_BYTES_MAX, OPENED_BYTES_MAX);
        let end = (filled + wanted).min(buffer.len());
        let received = rustix::net::recv(socket, &mut buffer[filled..end], RecvFlags::empty());
        match received {
            Ok((0, _)) => self.is_closed = true,
            Ok((received, _)) => self.is_drained = received < end - filled,
            Err(_) => {
                self.unopened = HeldBytes::new(&buffer[..filled], &self.account)?;
                self.is_drained = true;
            }
        }
        received.map(|(received, _)| received)
    }

    /// Returns the length of the first record, if it is complete.
    fn next_record(
        &mut self,
        socket: BorrowedFd<'_>,
        stream: &[u8],
    ) -> Result<Option<usize>, Errno> {
        let whole = record_bytes(stream).map(|bytes| bytes.filter(|bytes| *bytes <= stream.len()));
        whole.map_err(|why| self.fail(socket, why))
    }

    /// Decrypts a record; returns the number of bytes put into `room`, and keeps the others.
    fn open(
        &mut self,
        socket: BorrowedFd<'_>,
        record: &mut [u8],
        room: &mut [u8],
    ) -> Result<usize, Errno> {
        let data = match self.session.open(record) {
            Ok(RecordContent::Data(data)) => data,
            Ok(RecordContent::Closed) => {
                self.is_closed = true;
                return Ok(0);
            }
            Err(why) => return Err(self.fail(socket, why)),
        };
        let (now, later) = data.split_at(data.len().min(room.len()));
        room[..now.len()].copy_from_slice(now);
        self.opened = HeldBytes::new(later, &self.account)?;
        Ok(now.len())
    }

    /// Sends the peer new keys if it has asked for them. If the socket takes nothing now, they are
    /// sent before the next data.
    fn tell_new_keys(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let answered = self.session.answer(&mut self.sealed);
        answered.map_err(|why| self.fail(socket, why))?;
        if self.sealed.is_empty() { Ok(()) } else { self.flush(socket, false).map(|_| ()) }
    }

    /// Stores why the connection ends, and notifies the peer if the socket takes that at once.
    fn fail(&mut self, socket: BorrowedFd<'_>, why: TlsError) -> Errno {
        if let Ok(alert) = self.session.alert(&why) {
            self.sealed.push_back(alert);
            let _ = self.flush(socket, false);
        }
        self.fault = Some(why);
        Errno::PROTO
    }

    /// Sends encrypted records; `false` if the socket does not take all of them.
    pub(super) fn flush(&mut self, socket: BorrowedFd<'_>, more: bool) -> Result<bool, Errno> {
        while !self.sealed.is_empty() {
            match self.send_sealed(socket, more) {
                Ok(sent) => self.advance(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let bytes: usize = self.sealed.iter().map(Vec::len).sum();
                    let charge = self.account.charge(bytes).ok_or(Errno::NOBUFS)?;
                    self._sealed_charge = Some(charge);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self._sealed_charge = None;
        Ok(true)
    }

    fn send_sealed(&self, socket: BorrowedFd<'_>, more: bool) -> Result<usize, Errno> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut skipped = self.sent;
        for (slice, record) in slices.iter_mut().zip(&self.sealed) {
            *slice = IoSlice::new(&record[skipped..]);
            skipped = 0;
        }
        let more = if more { SendFlags::MORE } else { SendFlags::empty() };
        let count = self.sealed.len().min(SLICES);
        let flags = SendFlags::NOSIGNAL | more;
        let mut control = SendAncillaryBuffer::default();
        rustix::net::sendmsg(socket, &slices[..count], &mut control, flags)
    }

    fn advance(&mut self, mut sent: usize) {
        while let Some(record) = self.sealed.front() {
            let left = record.len() - self.sent;
            if sent < left {
                self.sent += sent;
                return;
            }
            sent -= left;
            self.sent = 0;
            self.sealed.pop_front();
        }
    }
}

/// Number of encrypted records that one system call sends.
const SLICES: usize = SEALED_BYTES_MAX / RECORD_DATA_BYTES_MAX + 1;

impl Tls {
    /// See [`super::Transport::receive`].
    pub(super) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        room: &mut [u8],
    ) -> Result<usize, Errno> {
        // Bytes that are held say nothing of the socket: more may have come since it was read last.
        self.is_drained = false;
        loop {
            let waiting = self.opened.take_into(room);
            if waiting > 0 {
                return Ok(waiting);
            }
            if self.fault.is_some() {
                return Err(Errno::PROTO);
            }
            if self.is_closed {
                return Ok(0);
            }
            let opened = RECEIVED.with_borrow_mut(|buffer| self.open_into(socket, room, buffer))?;
            if opened > 0 || self.is_closed {
                return Ok(opened);
            }
        }
    }

    /// See [`super::Transport::has_received`].
    pub(super) fn has_received(&self) -> bool {
        let more = starts_with_record(self.unopened.bytes()) || !self.is_drained;
        more || !self.opened.is_empty() || self.is_closed || self.fault.is_some()
    }

    /// See [`super::Transport::send`].
    pub(super) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Result<usize, Errno> {
        if !self.flush(socket, more)? {
            return Err(Errno::AGAIN);
        }
        let part = &bytes[..bytes.len().min(SEALED_BYTES_MAX)];
        let sealed = self.session.seal(part, &mut self.sealed);
        sealed.map_err(|why| self.fail(socket, why))?;
        self.flush(socket, more || part.len() < bytes.len())?;
        Ok(part.len())
    }

    /// See [`super::Transport::send_file`].
    pub(super) fn send_file(
        &mut self,
        socket: BorrowedFd<'_>,
        stretch: Stretch<'_>,
    ) -> Result<usize, FileError> {
        if !self.flush(socket, true).map_err(FileError::Connection)? {
            return Err(FileError::Connection(Errno::AGAIN));
        }
        STRETCH.with_borrow_mut(|buffer| {
            let count = read_stretch(stretch, buffer).map_err(FileError::File)?;
            let more = count < stretch.length;
            match count {
                0 => Ok(0),
                count => self.send(socket, &buffer[..count], more).map_err(FileError::Connection),
            }
        })
    }

    /// Sends the peer the end of data, if the socket takes that at once.
    pub(super) fn close(&mut self, socket: BorrowedFd<'_>) {
        if self.fault.is_none()
            && let Ok(close) = self.session.close()
        {
            self.sealed.push_back(close);
            let _ = self.flush(socket, false);
        }
    }
}

impl HeldBytes {
    fn new(bytes: &[u8], account: &Arc<Account>) -> Result<Self, Errno> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let charge = account.charge(bytes.len()).ok_or(Errno::NOBUFS)?;
        Ok(Self { bytes: bytes.into(), taken: 0, _charge: Some(charge) })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Moves as many bytes as fit into `room`, and returns their number.
    fn take_into(&mut self, room: &mut [u8]) -> usize {
        let count = self.bytes().len().min(room.len());
        room[..count].copy_from_slice(&self.bytes()[..count]);
        self.taken += count;
        if self.is_empty() {
            *self = Self::default();
        }
        count
    }
}

/// Returns whether the stream starts with a complete record, or with something invalid.
fn starts_with_record(stream: &[u8]) -> bool {
    record_bytes(stream).map_or(true, |bytes| bytes.is_some_and(|bytes| bytes <= stream.len()))
}
