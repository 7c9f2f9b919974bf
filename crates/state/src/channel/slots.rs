//! The slots of a session: each remembers the last request it carried and its answer (RFC 8881,
//! 2.10.6.1).

use std::sync::Arc;
use std::time::Duration;

use super::attrs::ChannelAttrs;
use super::exported::{ExportedReply, ExportedSession, ExportedSlot};
use super::request::{Sequence, SequenceAnswer};
use crate::limits::{SKIPPED_MAX, SLOT_RECALL_REST, SLOTS_MIN};
use crate::memory_pool::Portion;
use crate::{Error, Limits, Result};

/// The slots of one session.
pub(crate) struct Slots {
    slots: Vec<Slot>,
    /// The highest slot the client should use.
    target: u32,
    /// Number of times that `target` was lowered, modulo 65,536, and the time of the last.
    lowered: u16,
    lowered_at: Option<Duration>,
    /// Value of `lowered` when the client last confirmed the target (CB_RECALL_SLOT).
    acknowledged: u16,
    slots_max: u32,
    slot_bytes: usize,
    closed: bool,
}

#[derive(Debug, Default)]
struct Slot {
    seqid: u32,
    busy: bool,
    digest: u64,
    /// Value of `lowered` when the last reply on this slot was made, which contained the target.
    told: u16,
    kept: CachedReply,
    /// True if another server may have answered requests after the last one known here. All that it
    /// could answer to them is DELAY.
    may_skip: bool,
    /// The last whole reply that was kept. Its buffer is reused for the next reply.
    reply: Vec<u8>,
}

/// The part of the last reply that a slot keeps.
#[derive(Debug, Default)]
enum CachedReply {
    /// No request was answered yet.
    #[default]
    Nothing,
    /// The whole reply.
    Whole,
    /// Only the result of SEQUENCE.
    Sequence(SequenceAnswer),
}

/// The answer to a request that asks for a slot.
pub(crate) enum SlotAnswer {
    /// The request is new and has the slot. True if the client knew the current target when it sent
    /// the request.
    New(bool),
    /// The request repeats the last one, which had this reply.
    Again(Arc<[u8]>),
    /// The request repeats the last one, of which only the result of SEQUENCE was kept.
    Forgotten(SequenceAnswer),
}

impl Slots {
    /// Makes as many slots as the client asks for. There are fewer if the memory for replies is
    /// short, or the client already has its share of it.
    ///
    /// # Errors
    /// [`Error::Delay`]: there is no memory until other slots are freed.
    pub(crate) fn new(replies: Portion<'_>, fore: &ChannelAttrs, limits: &Limits) -> Result<Self> {
        let slot_bytes = fore.response_cached_bytes_max as usize + size_of::<Slot>();
        let least = fore.requests_max.min(SLOTS_MIN);
        let wished = if replies.is_short() { least } else { fore.requests_max };
        let count = replies.take(slot_bytes, least, wished);
        if count == 0 {
            return Err(Error::Delay);
        }
        let slots = (0..count).map(|_| Slot::default()).collect();
        // A session never gets more slots than its client asked for: the client may not support
        // more.
        let slots_max = fore.requests_max.min(limits.slots_per_session).max(count);
        let (target, lowered, acknowledged) = (count - 1, 0, 0);
        let (lowered_at, closed) = (None, false);
        Ok(Self { slots, target, lowered, lowered_at, acknowledged, slots_max, slot_bytes, closed })
    }

    pub(crate) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) const fn target(&self) -> u32 {
        self.target
    }

    /// Returns the slots as plain values, and the most that the client asked for.
    ///
    /// # Errors
    /// [`Error::Delay`]: a request is under way.
    pub(crate) fn exported(&self) -> Result<(u32, Vec<ExportedSlot>)> {
        if self.closed || self.slots.iter().any(|slot| slot.busy) {
            return Err(Error::Delay);
        }
        Ok((self.slots_max, self.slots.iter().map(Slot::exported).collect()))
    }

    /// Makes slots of plain values.
    ///
    /// # Errors
    /// [`Error::Delay`]: there is no memory for all of them.
    pub(crate) fn imported(replies: Portion<'_>, session: &ExportedSession) -> Result<Self> {
        let slot_bytes = session.fore.response_cached_bytes_max as usize + size_of::<Slot>();
        let wanted = u32::try_from(session.slots.len()).unwrap_or(u32::MAX).max(1);
        let count = replies.take(slot_bytes, wanted, wanted);
        if count < wanted {
            replies.give_back(slot_bytes * count as usize);
            return Err(Error::Delay);
        }
        let mut slots: Vec<Slot> = session.slots.iter().map(Slot::imported).collect();
        slots.resize_with(count as usize, Slot::default);
        let (target, slots_max) = (count - 1, session.slots_max.max(count));
        let (lowered, acknowledged, lowered_at, closed) = (0, 0, None, false);
        Ok(Self { slots, target, lowered, lowered_at, acknowledged, slots_max, slot_bytes, closed })
    }

    /// Takes over the slots that are further at another engine, where the session was used, too.
    pub(crate) fn catch_up(&mut self, other: &ExportedSession) {
        for (slot, exported) in self.slots.iter_mut().zip(&other.slots) {
            let ahead = exported.seqid.wrapping_sub(slot.seqid);
            if !slot.busy && (1..=u32::MAX / 2).contains(&ahead) {
                *slot = Slot::imported(exported);
            }
        }
    }

    /// Takes the next request of each slot although requests before it are missing. While the
    /// address by which the client comes moves from server to server, the first one answers DELAY.
    pub(crate) fn expect_gaps(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.may_skip = true);
    }

    /// Frees the memory of all slots.
    pub(crate) fn close(&mut self, replies: Portion<'_>) {
        if !std::mem::replace(&mut self.closed, true) {
            replies.give_back(self.bytes());
            self.slots = Vec::new();
        }
    }

    pub(crate) fn begin(&mut self, args: &Sequence) -> Result<SlotAnswer> {
        if self.closed {
            return Err(Error::BadSession);
        }
        let count = self.len();
        let slot = self.slots.get_mut(args.slot as usize).ok_or(Error::BadSlot)?;
        if args.highest_slot >= count {
            return Err(Error::BadHighSlot);
        }
        if slot.is_next(args.seqid) && !slot.busy {
            slot.may_skip = false;
            (slot.seqid, slot.busy, slot.digest) = (args.seqid, true, args.digest);
            slot.kept = CachedReply::Nothing;
            // The client has the reply to the slot's last request, or it would not send another.
            let told = std::mem::replace(&mut slot.told, self.lowered);
            return Ok(SlotAnswer::New(self.lowered == told || self.lowered == self.acknowledged));
        }
        slot.retry(args)
    }

    /// Notes the reply to the request of a slot.
    pub(crate) fn end(&mut self, slot: u32, kept: Option<&[u8]>, sequence: SequenceAnswer) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.busy = false;
            let reply = kept.unwrap_or_default();
            slot.reply.clear();
            // A buffer that grows by doubling could take twice the bytes that were reserved for it.
            slot.reply.reserve_exact(reply.len());
            slot.reply.extend_from_slice(reply);
            slot.kept = kept.map_or(CachedReply::Sequence(sequence), |_| CachedReply::Whole);
        }
    }

    /// Adapts the number of slots; returns whether it became smaller. It grows when the client uses
    /// all slots. It shrinks when the target was lowered and the client has followed: the client
    /// `knew` the target, and no request above the target is under way. A request that it sent
    /// before it knew the target may still arrive (RFC 8881, 2.10.6.1).
    pub(crate) fn adapt(&mut self, replies: Portion<'_>, args: &Sequence, knew: bool) -> bool {
        let count = self.len();
        if knew && args.highest_slot.max(args.slot) <= self.target && self.target + 1 < count {
            return self.cut(replies);
        }
        if replies.is_short() {
            return false;
        }
        if args.slot == self.target && self.target + 1 == count && count < self.slots_max {
            let wished = (count / 2).clamp(1, self.slots_max - count);
            let more = replies.take(self.slot_bytes, 0, wished);
            self.slots.extend((0..more).map(|_| Slot::default()));
            self.target += more;
        } else if self.target + 1 < count {
            self.target = count - 1;
        }
        false
    }

    /// Halves the target number of slots. Returns whether the client must be notified, and the
    /// bytes that are freed once it has followed this notice or the previous one.
    pub(crate) fn lower(&mut self, now: Duration) -> (bool, usize) {
        let rests = self.lowered_at.is_some_and(|at| now < at.saturating_add(SLOT_RECALL_REST));
        let target = (self.target / 2).max(self.target.min(SLOTS_MIN - 1));
        let lowers = !rests && target < self.target && !self.closed;
        if lowers {
            (self.target, self.lowered_at) = (target, Some(now));
            self.lowered = self.lowered.wrapping_add(1);
        }
        let above = self.len().saturating_sub(self.target + 1) as usize;
        (lowers, if lowers || rests { above * self.slot_bytes } else { 0 })
    }

    /// Notes that the client has confirmed this target.
    pub(crate) const fn acknowledge(&mut self, target: u32) {
        if target == self.target {
            self.acknowledged = self.lowered;
        }
    }

    /// Returns the bytes of memory that its replies may take.
    pub(crate) fn bytes(&self) -> usize {
        self.slot_bytes * self.slots.len()
    }

    /// Frees idle slots above the target; returns whether there were any.
    fn cut(&mut self, replies: Portion<'_>) -> bool {
        let keep = self.target as usize + 1;
        let before = self.slots.len();
        while self.slots.len() > keep && self.slots.last().is_some_and(|slot| !slot.busy) {
            self.slots.pop();
        }
        replies.give_back(self.slot_bytes * (before - self.slots.len()));
        self.slots.len() < before
    }
}

impl Slot {
    fn exported(&self) -> ExportedSlot {
        let reply = match &self.kept {
            CachedReply::Nothing => ExportedReply::None,
            CachedReply::Whole => ExportedReply::Whole(self.reply.as_slice().into()),
            CachedReply::Sequence(answer) => ExportedReply::Sequence(*answer),
        };
        ExportedSlot { seqid: self.seqid, digest: self.digest, reply }
    }

    fn imported(slot: &ExportedSlot) -> Self {
        let (kept, reply) = match &slot.reply {
            ExportedReply::None => (CachedReply::Nothing, Vec::new()),
            ExportedReply::Whole(reply) => (CachedReply::Whole, reply.to_vec()),
            ExportedReply::Sequence(answer) => (CachedReply::Sequence(*answer), Vec::new()),
        };
        let (seqid, digest) = (slot.seqid, slot.digest);
        Self { seqid, digest, kept, reply, ..Self::default() }
    }

    fn is_next(&self, seqid: u32) -> bool {
        let most = if self.may_skip { SKIPPED_MAX } else { 1 };
        (1..=most).contains(&seqid.wrapping_sub(self.seqid))
    }

    fn retry(&self, args: &Sequence) -> Result<SlotAnswer> {
        if args.seqid != self.seqid {
            return Err(Error::SeqMisordered);
        }
        if self.busy {
            return Err(Error::Delay);
        }
        if args.digest != self.digest && !matches!(self.kept, CachedReply::Nothing) {
            return Err(Error::SeqFalseRetry);
        }
        match &self.kept {
            CachedReply::Nothing => Err(Error::SeqMisordered),
            CachedReply::Whole => Ok(SlotAnswer::Again(self.reply.as_slice().into())),
            CachedReply::Sequence(answer) => Ok(SlotAnswer::Forgotten(*answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_pool::{Pool, PoolShare};

    #[test]
    fn replies_take_no_more_memory_than_was_reserved() {
        let limits = Limits::DEFAULT;
        let pool = &Pool::new(limits.reply_cache_bytes);
        let replies = Portion { pool, share: &PoolShare::default() };
        let (request_bytes_max, response_bytes_max) = (1 << 20, 1 << 20);
        let (response_cached_bytes_max, operations_max, requests_max) = (8192, 16, 1);
        let fore = ChannelAttrs {
            request_bytes_max,
            response_bytes_max,
            response_cached_bytes_max,
            operations_max,
            requests_max,
        };
        let mut slots = Slots::new(replies, &fore, &limits).unwrap();
        let (session, status) = (crate::SessionId([1; 16]), crate::StatusFlags::default());
        let (seqid, slot, highest_slot, target_highest_slot) = (1, 0, 0, 0);
        let answer =
            SequenceAnswer { session, seqid, slot, highest_slot, target_highest_slot, status };
        for length in [5000, 5001, 100, 8192] {
            slots.end(0, Some(&vec![7; length]), answer);
            assert!(slots.slots.iter().all(|slot| slot.reply.capacity() <= 8192), "{length}");
        }
    }
}
