use std::ops::Range;
use std::sync::Arc;

use crate::close_reason::CloseReason;
use crate::limits::{BATCH_BYTES, LARGE_ARRIVED_BYTES};
use crate::memory_budget::{Account, Charge, LargeBuffer};

/// Bytes of a connection that were received and not yet answered: usually the beginning of a
/// record, in no more memory than has arrived.
#[derive(Default)]
pub(crate) enum ReceiveBuffer {
    /// Nothing.
    #[default]
    Empty,
    /// Few bytes.
    Part(Part),
    /// A long record, received where it will be answered from.
    Large(Box<Large>),
}

/// Some bytes, as many as arrived.
pub(crate) struct Part {
    bytes: Vec<u8>,
    _charge: Charge,
}

/// A long record on its way.
pub(crate) struct Large {
    pub(crate) buffer: LargeBuffer,
    /// Bytes of it that arrived.
    pub(crate) filled: usize,
    /// Bytes that must have arrived before it is worth looking again.
    pub(crate) needed: usize,
    /// True if the record has many fragments: it is then received ahead, not header by header.
    pub(crate) fragments: bool,
}

impl ReceiveBuffer {
    pub(crate) const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Moves the few bytes, if it holds such, to the front of `buffer`; tells how many.
    pub(crate) fn unload(&mut self, buffer: &mut [u8]) -> usize {
        let Self::Part(part) = self else { return 0 };
        let length = part.bytes.len();
        buffer[..length].copy_from_slice(&part.bytes);
        *self = Self::Empty;
        length
    }

    /// Keeps few bytes.
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

    /// Keeps the beginning of a record of which `needed` bytes are to come, those among them. It
    /// stands at `rest` in `buffer`. `false` if it deserves a large buffer and there is none.
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
            // The memory itself changes hands, so that a stream of large records is not copied.
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
    /// Returns the room for the next bytes: up to the end of the record, or ahead.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let Self { buffer, filled, needed, fragments } = self;
        let ahead = if *fragments { BATCH_BYTES } else { 0 };
        let end = (*filled + ahead).max(*needed);
        let bytes = buffer.bytes();
        let end = end.min(bytes.len());
        &mut bytes[*filled..end]
    }
}
