use std::ops::Range;
use std::sync::Arc;

use crate::close_reason::CloseReason;
use crate::limits::{BATCH_BYTES, LARGE_ARRIVED_BYTES};
use crate::memory_budget::{Account, Charge, LargeBuffer};

/// Bytes of a connection that were received and not yet answered: usually the beginning of a
/// record, which takes no more memory than has arrived.
#[derive(Default)]
pub(crate) enum ReceiveBuffer {
    /// No bytes.
    #[default]
    Empty,
    /// A few bytes.
    Part(Part),
    /// A long record, received into the buffer from which it will be answered.
    Large(Box<Large>),
}

/// Some bytes in a buffer of exactly their size.
pub(crate) struct Part {
    bytes: Vec<u8>,
    _charge: Charge,
}

/// A long record that is being received.
pub(crate) struct Large {
    pub(crate) buffer: LargeBuffer,
    /// Number of its bytes that have arrived.
    pub(crate) filled: usize,
    /// Number of bytes that must have arrived before the next search for a record.
    pub(crate) needed: usize,
    /// True if the record has many fragments: more is then received at once than up to the next
    /// header.
    pub(crate) fragments: bool,
}

impl ReceiveBuffer {
    pub(crate) const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Moves the bytes, if they are few, to the front of `buffer`; returns their number.
    pub(crate) fn unload(&mut self, buffer: &mut [u8]) -> usize {
        let Self::Part(part) = self else { return 0 };
        let length = part.bytes.len();
        buffer[..length].copy_from_slice(&part.bytes);
        *self = Self::Empty;
        length
    }

    /// Keeps a few bytes.
    ///
    /// # Errors
    /// [`CloseReason::Memory`].
    pub(crate) fn part(bytes: &[u8], account: &Arc<Account>) -> Result<Self, CloseReason> {
        if bytes.is_empty() {
            return Ok(Self::Empty);
        }
        let _charge = account.charge(bytes.len()).ok_or(CloseReason::Memory)?;
        Ok(Self::Part(Part { bytes: bytes.to_vec(), _charge }))
    }

    /// Keeps the beginning of a record, which is at `rest` in `buffer`; `needed` is the number of
    /// bytes to be received, including these. `false` if it needs a large buffer and there is none.
    ///
    /// # Errors
    /// [`CloseReason::Memory`].
    pub(crate) fn keep(
        &mut self,
        buffer: &mut Vec<u8>,
        rest: Range<usize>,
        needed: usize,
        account: &Arc<Account>,
    ) -> Result<bool, CloseReason> {
        let filled = rest.len();
        let is_large = needed > BATCH_BYTES && filled >= LARGE_ARRIVED_BYTES;
        if is_large && let Some(mut large) = account.large() {
            // The memory itself is swapped, so that a stream of large records is not copied.
            buffer.copy_within(rest, 0);
            large.trade(buffer);
            let large = Large { buffer: large, filled, needed, fragments: false };
            *self = Self::Large(Box::new(large));
            return Ok(true);
        }
        *self = Self::part(&buffer[rest], account)?;
        Ok(!is_large)
    }
}

impl Large {
    /// Returns the room for the next bytes: up to the end of the record, or beyond.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let Self { buffer, filled, needed, fragments } = self;
        let ahead = if *fragments { BATCH_BYTES } else { 0 };
        let end = (*filled + ahead).max(*needed);
        let bytes = buffer.bytes();
        let end = end.min(bytes.len());
        &mut bytes[*filled..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_budget::{LARGE_BYTES, MemoryBudget};

    fn account(limit: usize) -> Arc<Account> {
        Arc::new(Arc::new(MemoryBudget::new(limit)).account())
    }

    /// Returns a thread's buffer in which `length` bytes of value 7 have arrived.
    fn arrived(length: usize) -> Vec<u8> {
        let mut buffer = vec![0; LARGE_BYTES];
        buffer[..length].fill(7);
        buffer
    }

    #[test]
    fn few_bytes_are_kept_and_come_back() {
        let account = account(1000);
        assert!(ReceiveBuffer::part(&[], &account).unwrap().is_empty());
        let mut kept = ReceiveBuffer::part(b"abc", &account).unwrap();
        assert!(!kept.is_empty());
        let mut buffer = [0; 8];
        assert_eq!(kept.unload(&mut buffer), 3);
        assert_eq!(&buffer[..4], b"abc\0");
        assert!(kept.is_empty());
        assert_eq!(kept.unload(&mut buffer), 0);
    }

    #[test]
    fn bytes_beyond_the_budget_end_the_connection() {
        let found = ReceiveBuffer::part(&[0; 101], &account(100)).map(|_| ());
        assert!(matches!(found, Err(CloseReason::Memory)));
    }

    #[test]
    fn a_long_record_gets_a_large_buffer_once_enough_of_it_has_arrived() {
        let account = account(4 * LARGE_BYTES);
        for (filled, is_large) in [(LARGE_ARRIVED_BYTES - 1, false), (LARGE_ARRIVED_BYTES, true)] {
            let (mut kept, mut buffer) = (ReceiveBuffer::Empty, arrived(filled));
            assert!(kept.keep(&mut buffer, 0..filled, BATCH_BYTES + 1, &account).unwrap());
            assert_eq!(matches!(kept, ReceiveBuffer::Large(_)), is_large, "{filled}");
            assert_eq!(buffer.len(), LARGE_BYTES, "the thread has a buffer again");
        }
        let (mut kept, mut buffer) = (ReceiveBuffer::Empty, arrived(LARGE_ARRIVED_BYTES));
        assert!(kept.keep(&mut buffer, 0..LARGE_ARRIVED_BYTES, BATCH_BYTES, &account).unwrap());
        assert!(matches!(kept, ReceiveBuffer::Part(_)), "a batch needs no large buffer");
    }

    #[test]
    fn without_memory_for_a_large_buffer_the_bytes_that_came_are_kept() {
        let account = account(LARGE_BYTES);
        let (mut kept, mut buffer) = (ReceiveBuffer::Empty, arrived(LARGE_ARRIVED_BYTES));
        let needed = BATCH_BYTES + 1;
        assert!(!kept.keep(&mut buffer, 0..LARGE_ARRIVED_BYTES, needed, &account).unwrap());
        assert!(matches!(kept, ReceiveBuffer::Part(_)));
    }

    #[test]
    fn the_room_of_a_large_buffer_ends_with_its_record_or_reads_ahead() {
        let account = account(4 * LARGE_BYTES);
        let (filled, needed) = (LARGE_ARRIVED_BYTES, BATCH_BYTES + 100);
        let (mut kept, mut buffer) = (ReceiveBuffer::Empty, arrived(filled + 9));
        assert!(kept.keep(&mut buffer, 9..filled + 9, needed, &account).unwrap());
        let ReceiveBuffer::Large(mut large) = kept else { unreachable!("enough has arrived") };
        assert!(large.buffer.bytes()[..filled].iter().all(|byte| *byte == 7));
        assert_eq!(large.room().len(), needed - filled);
        large.fragments = true;
        large.filled = needed - 1;
        assert_eq!(large.room().len(), BATCH_BYTES, "many fragments are received ahead");
        large.filled = LARGE_BYTES - 10;
        assert_eq!(large.room().len(), 10, "the room ends with the buffer");
    }
}
