use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_xdr::Encoder;

use crate::limits::LINE_BYTES_MAX;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The way to one peer over the connection it has made: calls that the server makes go out between
/// its replies (the back channel of RFC 8881, 2.10.3.1).
pub struct Line {
    id: u64,
    xid: AtomicU32,
    waiting: AtomicBool,
    outbox: Mutex<Outbox>,
    bell: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Outbox {
    records: VecDeque<Box<[u8]>>,
    bytes: usize,
    closed: bool,
}

/// Why a record was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsaid {
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
    /// The peer reads too slowly: [`LINE_BYTES_MAX`] wait for it.
    #[error("the peer does not read what it is told")]
    Full,
}

impl Line {
    /// A line that rings `bell` when the first of some records waits; whoever answers that takes
    /// them by [`Line::take_into`].
    #[must_use]
    pub fn new(bell: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            xid: AtomicU32::new(1),
            waiting: AtomicBool::new(false),
            outbox: Mutex::default(),
            bell: Box::new(bell),
        }
    }

    /// Which line this is; no other of the process ever has the same number.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// A number for the next call.
    pub fn next_xid(&self) -> u32 {
        self.xid.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether a call had this number.
    #[must_use]
    pub fn has_numbered(&self, xid: u32) -> bool {
        (1..self.xid.load(Ordering::Relaxed)).contains(&xid)
    }

    /// Sends a whole record, its mark in front, as soon as the connection's thread comes by.
    ///
    /// # Errors
    /// [`Unsaid`]; nothing is sent then.
    pub fn say(&self, record: &[u8]) -> Result<(), Unsaid> {
        let mut outbox = self.outbox();
        if outbox.closed {
            return Err(Unsaid::Closed);
        }
        if outbox.bytes + record.len() > LINE_BYTES_MAX {
            return Err(Unsaid::Full);
        }
        outbox.bytes += record.len();
        outbox.records.push_back(record.into());
        let first = !self.waiting.swap(true, Ordering::SeqCst);
        drop(outbox);
        if first {
            (self.bell)();
        }
        Ok(())
    }

    /// Rings the bell although no record waits, so that the connection's thread comes by.
    pub fn ring(&self) {
        (self.bell)();
    }

    /// Whether records wait. Costs no lock.
    pub fn has_words(&self) -> bool {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Appends the records that wait, in their order.
    pub fn take_into(&self, encoder: &mut Encoder) {
        if !self.has_words() {
            return;
        }
        let mut outbox = self.outbox();
        self.waiting.store(false, Ordering::Release);
        outbox.bytes = 0;
        outbox.records.drain(..).for_each(|record| encoder.raw(&record));
    }

    /// The connection has ended: nothing can be said any more.
    pub fn hang_up(&self) {
        let mut outbox = self.outbox();
        *outbox = Outbox { closed: true, ..Outbox::default() };
        self.waiting.store(false, Ordering::Release);
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.outbox().closed
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Line({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn line() -> (Line, Arc<AtomicUsize>) {
        let rings = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rings);
        let line = Line::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        (line, rings)
    }

    #[test]
    fn records_go_out_in_order_after_one_ring() {
        let (line, rings) = line();
        line.say(b"one ").unwrap();
        line.say(b"two").unwrap();
        assert_eq!(rings.load(Ordering::Relaxed), 1);
        let mut encoder = Encoder::new();
        line.take_into(&mut encoder);
        assert_eq!(encoder.bytes(), b"one two");
        assert!(!line.has_words());
        line.say(b"three").unwrap();
        assert_eq!(rings.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_a_peer_does_not_read_is_bounded() {
        let (line, _) = line();
        line.say(&vec![0; LINE_BYTES_MAX]).unwrap();
        assert_eq!(line.say(b"x"), Err(Unsaid::Full));
        line.take_into(&mut Encoder::new());
        line.say(b"x").unwrap();
    }

    #[test]
    fn nothing_is_said_after_the_end() {
        let (line, _) = line();
        line.say(b"x").unwrap();
        line.hang_up();
        assert!(line.is_closed() && !line.has_words());
        assert_eq!(line.say(b"x"), Err(Unsaid::Closed));
    }
}
