//! The mirrors that a move makes. Good ones stay where they are, so that a resilver writes no more
//! than what was lost.

use std::sync::Arc;

use comity_vfs::{Handle, Result, Status};

use crate::data_server::DataServer;
use crate::mirrors::MirrorSet;
use crate::placed::Placed;
use crate::random::random;
use crate::record::{PlaceRecord, Spread};

/// The change of the place of a file.
pub(crate) struct MovePlan {
    /// The data files that are written. If the file keeps its number, they get the names that the
    /// new place has when they are whole.
    pub(crate) copies: Arc<PlaceRecord>,
    /// The new place.
    pub(crate) new: Arc<PlaceRecord>,
}

impl Placed {
    /// Returns whether a file has data on data servers that are being drained, or lacks mirrors.
    pub(crate) fn needs_move(&self, record: &PlaceRecord) -> bool {
        self.files.is_draining(record) || record.is_degraded() || self.wants(record).is_some()
    }

    /// The number of mirrors that the placement asks for, if the file has been given fewer.
    pub(crate) fn wants(&self, record: &PlaceRecord) -> Option<usize> {
        let Spread::Mirrors(_) = record.spread else { return None };
        self.settings.mirrors.filter(|count| *count > record.servers.len())
    }

    /// Plans the move of a file.
    ///
    /// # Errors
    /// [`Status::Delay`]: too few data servers answer; [`Status`].
    pub(crate) fn plan_move(
        &self,
        (file, size): (&Handle, u64),
        old: &PlaceRecord,
    ) -> Result<MovePlan> {
        if let (Spread::Mirrors(_), Some(count)) = (old.spread, self.settings.mirrors) {
            return self.plan_mirrors((old, size), count);
        }
        let new = self.new_record(file)?;
        if new.is_degraded() {
            return Err(Status::Delay);
        }
        let new = Arc::new(new);
        Ok(MovePlan { copies: Arc::clone(&new), new })
    }

    /// Plans to give a file `count` mirrors. It keeps all good ones, also if these are more, except
    /// those on data servers that are being drained.
    fn plan_mirrors(&self, (old, size): (&PlaceRecord, u64), count: usize) -> Result<MovePlan> {
        let is_taken = |at: &usize| old.servers.get(*at).is_some_and(|it| self.settings.takes(it));
        let stays = |at: &usize| !old.broken().has(*at) && is_taken(at);
        let kept = (0..old.servers.len()).filter(stays).filter_map(|at| old.servers.get(at));
        let mut servers: Vec<Box<str>> = kept.cloned().collect();
        let number = u128::from_be_bytes(random()?);
        let mut made = self.free_servers((old, size), (&servers, number));
        let missing = count.saturating_sub(servers.len());
        if made.len() < missing {
            return Err(Status::Delay);
        }
        made.truncate(missing);
        servers.extend_from_slice(&made);
        let spread = Spread::Mirrors(MirrorSet::NONE);
        let copies = PlaceRecord { number, spread, servers: made, ..*old };
        let new = PlaceRecord { spread, servers, ..*old };
        Ok(MovePlan { copies: Arc::new(copies), new: Arc::new(new) })
    }

    /// Returns the data servers that answer and may get a mirror of a file: first those that have a
    /// broken one, as that is replaced, then the others from that of `number` on, and those without
    /// room for it last.
    fn free_servers(
        &self,
        (old, size): (&PlaceRecord, u64),
        (kept, number): (&[Box<str>], u128),
    ) -> Vec<Box<str>> {
        let mut servers: Vec<_> = self.files.taking().collect();
        let first = number % servers.len().max(1) as u128;
        servers.rotate_left(first as usize);
        servers.retain(|it| !kept.contains(&it.name) && it.files.state().is_up);
        let is_full = |it: &DataServer| {
            it.files.state().space.is_some_and(|space| space.bytes_available < size)
        };
        servers.sort_by_key(|it| (is_full(it), !old.servers.contains(&it.name)));
        servers.into_iter().map(|it| it.name.clone()).collect()
    }
}
