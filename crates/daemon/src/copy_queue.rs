//! The asynchronous copies that wait for their next piece. Origins take turns, and so do the copies
//! of one origin: an origin with many copies delays those of others no more than one with a few.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use comity_nfs4::Progress;
use comity_state::Origin;

use crate::limits::{COPIES_MAX, COPY_PAUSE_MIN};
use crate::origin_shares::OriginShares;

/// A job that is done in pieces.
pub(crate) trait CopyJob: Send + 'static {
    /// Returns the origin of its client; addresses of one network count as one origin.
    fn origin(&self) -> Origin;

    /// Does one piece.
    fn go_on(&mut self) -> Progress;
}

/// The waiting copies.
pub(crate) struct CopyQueue<C> {
    /// The copies of each origin that has any waiting. The first origin is the next one.
    origins: VecDeque<(Origin, VecDeque<WaitingCopy<C>>)>,
    /// The places of all copies, of those under way as well.
    places: OriginShares,
    stopped: bool,
}

/// A copy in the queue.
pub(crate) struct WaitingCopy<C> {
    pub(crate) copy: Box<C>,
    /// The length of the next pause, if the copy cannot continue.
    pub(crate) pause: Duration,
    /// The end of the current pause.
    pub(crate) until: Option<Instant>,
}

impl<C> WaitingCopy<C> {
    /// Returns a copy whose next piece can be copied.
    pub(crate) const fn ready(copy: Box<C>) -> Self {
        Self { copy, pause: COPY_PAUSE_MIN, until: None }
    }

    fn is_ready(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }
}

impl<C> Default for CopyQueue<C> {
    fn default() -> Self {
        let places = OriginShares::at_most(COPIES_MAX);
        Self { origins: VecDeque::new(), places, stopped: false }
    }
}

impl<C: CopyJob> CopyQueue<C> {
    /// Adds a new copy, or returns it if its origin has as many as it leaves for others, or after
    /// [`CopyQueue::stop`].
    ///
    /// # Errors
    /// The copy.
    pub(crate) fn add(&mut self, copy: Box<C>) -> Result<(), Box<C>> {
        if self.stopped || !self.places.enter(copy.origin(), false) {
            return Err(copy);
        }
        self.put(WaitingCopy::ready(copy));
        Ok(())
    }

    /// Removes and returns the next copy without a current pause. It is under way until
    /// [`CopyQueue::give_back`].
    pub(crate) fn take_ready(&mut self, now: Instant) -> Option<WaitingCopy<C>> {
        let ready = |copies: &VecDeque<WaitingCopy<C>>| copies.iter().position(|c| c.is_ready(now));
        let mut origins = self.origins.iter().enumerate();
        let (at, place) = origins.find_map(|(at, (_, copies))| Some((at, ready(copies)?)))?;
        let (origin, mut copies) = self.origins.remove(at)?;
        let next = copies.remove(place)?;
        if !copies.is_empty() {
            self.origins.push_back((origin, copies));
        }
        Some(next)
    }

    /// Ends what [`CopyQueue::take_ready`] began for a copy of this origin; a copy that has not
    /// ended waits again.
    pub(crate) fn give_back(&mut self, origin: Origin, again: Option<WaitingCopy<C>>) {
        match again {
            Some(again) => self.put(again),
            None => self.places.leave(origin),
        }
    }

    /// Returns the end of the first pause of a copy.
    pub(crate) fn next_end_of_pause(&self) -> Option<Instant> {
        self.origins.iter().flat_map(|(_, copies)| copies).filter_map(|copy| copy.until).min()
    }

    /// Accepts no more copies. Those in the queue stay until it is dropped.
    pub(crate) const fn stop(&mut self) {
        self.stopped = true;
    }

    pub(crate) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn put(&mut self, waiting: WaitingCopy<C>) {
        let origin = waiting.copy.origin();
        match self.origins.iter_mut().find(|(other, _)| *other == origin) {
            Some((_, copies)) => copies.push_back(waiting),
            None => self.origins.push_back((origin, VecDeque::from([waiting]))),
        }
    }
}
