use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_xdr::Encoder;

use crate::limits::BACKCHANNEL_BYTES_MAX;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Sends calls of the server to one peer over the connection that the peer has made, between the
/// replies (the back channel of RFC 8881, 2.10.3.1).
pub struct Backchannel {
    id: u64,
    xid: AtomicU32,
    waiting: AtomicBool,
    queue: Mutex<WaitingRecords>,
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct WaitingRecords {
    records: VecDeque<Box<[u8]>>,
    bytes: usize,
    closed: bool,
}

/// Why a record was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
    /// The peer reads too slowly: [`BACKCHANNEL_BYTES_MAX`] bytes are queued for it.
    #[error("the peer does not read what it is told")]
    Full,
}

impl Backchannel {
    /// Makes a back channel. It calls `wake` when a record is queued and none was before; the
    /// connection's thread then takes the records by [`Backchannel::take_into`].
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            xid: AtomicU32::new(1),
            waiting: AtomicBool::new(false),
            queue: Mutex::default(),
            wake: Box::new(wake),
        }
    }

    /// Returns the number of this back channel; no other of the process ever has the same.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns a number for the next call.
    pub fn next_xid(&self) -> u32 {
        self.xid.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns whether a call of the server had this number.
    #[must_use]
    pub fn has_numbered(&self, xid: u32) -> bool {
        (1..self.xid.load(Ordering::Relaxed)).contains(&xid)
    }

    /// Queues a whole record, record mark included. The connection's thread sends it soon.
    ///
    /// # Errors
    /// [`SendError`]; nothing is queued then.
    pub fn send(&self, record: &[u8]) -> Result<(), SendError> {
        let mut queue = self.queue();
        if queue.closed {
            return Err(SendError::Closed);
        }
        if queue.bytes + record.len() > BACKCHANNEL_BYTES_MAX {
            return Err(SendError::Full);
        }
        queue.bytes += record.len();
        queue.records.push_back(record.into());
        let first = !self.waiting.swap(true, Ordering::SeqCst);
        drop(queue);
        if first {
            (self.wake)();
        }
        Ok(())
    }

    /// Wakes the connection's thread even if no record is queued.
    pub fn wake(&self) {
        (self.wake)();
    }

    /// Returns whether records are queued. Takes no lock.
    pub fn has_records(&self) -> bool {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Appends the queued records to `encoder`, in their order.
    pub fn take_into(&self, encoder: &mut Encoder) {
        if !self.has_records() {
            return;
        }
        let mut queue = self.queue();
        self.waiting.store(false, Ordering::Release);
        queue.bytes = 0;
        queue.records.drain(..).for_each(|record| encoder.raw(&record));
    }

    /// Notes that the connection has ended: later records are refused.
    pub fn close(&self) {
        let mut queue = self.queue();
        *queue = WaitingRecords { closed: true, ..WaitingRecords::default() };
        self.waiting.store(false, Ordering::Release);
    }

    /// Returns whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.queue().closed
    }

    fn queue(&self) -> MutexGuard<'_, WaitingRecords> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Backchannel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Backchannel({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn backchannel() -> (Backchannel, Arc<AtomicUsize>) {
        let rings = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rings);
        let backchannel = Backchannel::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        (backchannel, rings)
    }

    #[test]
    fn records_go_out_in_order_after_one_wake_up() {
        let (backchannel, rings) = backchannel();
        backchannel.send(b"one ").unwrap();
        backchannel.send(b"two").unwrap();
        assert_eq!(rings.load(Ordering::Relaxed), 1);
        let mut encoder = Encoder::new();
        backchannel.take_into(&mut encoder);
        assert_eq!(encoder.bytes(), b"one two");
        assert!(!backchannel.has_records());
        backchannel.send(b"three").unwrap();
        assert_eq!(rings.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn data_that_a_peer_does_not_read_are_bounded() {
        let (backchannel, _) = backchannel();
        backchannel.send(&vec![0; BACKCHANNEL_BYTES_MAX]).unwrap();
        assert_eq!(backchannel.send(b"x"), Err(SendError::Full));
        backchannel.take_into(&mut Encoder::new());
        backchannel.send(b"x").unwrap();
    }

    #[test]
    fn nothing_is_said_after_the_end() {
        let (backchannel, _) = backchannel();
        backchannel.send(b"x").unwrap();
        backchannel.close();
        assert!(backchannel.is_closed() && !backchannel.has_records());
        assert_eq!(backchannel.send(b"x"), Err(SendError::Closed));
    }
}
