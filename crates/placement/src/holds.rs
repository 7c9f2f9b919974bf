//! The uses of files that are under way. The move of a file to other data servers waits for
//! them, and refuses new ones.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use comity_vfs::{BlockingHook, Handle, Result, Status, run_through};

use crate::limits::{HOLD_SHARDS, MOVE_WAIT_MAX, PLACING_WAIT_MAX};
use crate::placings::{Placing, Placings};
use crate::shards::shard_of;

/// A kind of use of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// The use depends on the place of the file; it changes neither bytes nor size.
    Look,
    /// The use changes bytes or the size, or gives out handles by which clients can.
    Change,
}

/// The uses of all files.
#[derive(Default)]
pub(crate) struct Holds {
    shards: [HoldShard; HOLD_SHARDS],
    /// The number of moves that are under way.
    moves: AtomicUsize,
    placings: Placings,
    /// Waits go through this hook, so that other calls are served meanwhile.
    blocking: OnceLock<BlockingHook>,
}

#[derive(Default)]
struct HoldShard {
    files: Mutex<HashMap<Handle, FileUses>>,
    ended: Condvar,
}

/// The uses of one file.
#[derive(Default)]
struct FileUses {
    looks: usize,
    changes: usize,
    /// The uses that a move of the file refuses now, if it is being moved.
    refused: Option<RefusedUses>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusedUses {
    Changes,
    All,
    /// All wait: the file is being placed, which does not take long.
    AllForAMoment,
}

/// A use of a file. The place of the file does not change while this lives.
pub(crate) struct Hold<'h> {
    shard: &'h HoldShard,
    file: Handle,
    what: Use,
}

/// A move of a file, or its placing. It refuses uses of the file while it lives.
pub(crate) struct MoveHold<'h> {
    holds: &'h Holds,
    file: Handle,
    /// Set if it is a placing.
    placing: Option<Placing<'h>>,
}

impl Holds {
    /// Begins a use of a file; waits while the file is being placed.
    ///
    /// # Errors
    /// [`Status::Delay`]: the file is being moved, or its placing takes too long.
    pub(crate) fn hold(&self, file: &Handle, what: Use) -> Result<Hold<'_>> {
        let shard = self.shard(file);
        let mut files = self.lock_placed(file);
        let uses = files.entry(*file).or_default();
        match (uses.refused, what) {
            (Some(RefusedUses::All | RefusedUses::AllForAMoment), _)
            | (Some(RefusedUses::Changes), Use::Change) => return Err(Status::Delay),
            (_, Use::Look) => uses.looks += 1,
            (_, Use::Change) => uses.changes += 1,
        }
        Ok(Hold { shard, file: *file, what })
    }

    /// Begins to move a file.
    ///
    /// # Errors
    /// [`Status::Delay`]: another move of the file is under way.
    pub(crate) fn begin_move(&self, file: &Handle) -> Result<MoveHold<'_>> {
        let moving = self.begin(file, RefusedUses::Changes, None)?;
        self.moves.fetch_add(1, Ordering::AcqRel);
        Ok(moving)
    }

    /// Begins to place a file whose bytes are on the metadata server. Uses of the file wait until
    /// the hold ends, and this waits while another thread places the file.
    ///
    /// # Errors
    /// [`Status::Delay`]: a move of the file is under way.
    pub(crate) fn begin_placing(&self, file: &Handle) -> Result<MoveHold<'_>> {
        self.begin(file, RefusedUses::AllForAMoment, Some(self.placings.begin()))
    }

    fn begin<'h>(
        &'h self,
        file: &Handle,
        refused: RefusedUses,
        placing: Option<Placing<'h>>,
    ) -> Result<MoveHold<'h>> {
        let mut files = self.lock_placed(file);
        let uses = files.entry(*file).or_default();
        if uses.refused.is_some() {
            return Err(Status::Delay);
        }
        uses.refused = Some(refused);
        Ok(MoveHold { holds: self, file: *file, placing })
    }

    /// Returns whether a file is being moved. Waits for the files that are being placed now: those
    /// that are placed later go to the data servers of the current settings.
    pub(crate) fn has_moves(&self) -> bool {
        self.moves.load(Ordering::Acquire) > 0
            || !self.blocking(|| self.placings.present().await_end(MOVE_WAIT_MAX))
    }

    /// Lets all waits go through a hook from now on. Later hooks are ignored.
    pub(crate) fn wait_through(&self, hook: BlockingHook) {
        let _ = self.blocking.set(hook);
    }

    fn blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.blocking.get() {
            Some(hook) => run_through(*hook, work),
            None => work(),
        }
    }

    /// Locks the table when the file is not being placed, or that takes too long.
    fn lock_placed(&self, file: &Handle) -> MutexGuard<'_, HashMap<Handle, FileUses>> {
        let is_placed = |files: &mut HashMap<_, FileUses>| {
            let uses = files.get(file);
            uses.is_some_and(|uses| uses.refused == Some(RefusedUses::AllForAMoment))
        };
        self.wait(file, PLACING_WAIT_MAX, is_placed).0
    }

    /// Waits as long as the table is as described; returns it locked, and whether it still is so
    /// after the longest time. It is not locked while the hook runs, which has locks of its own.
    fn wait(
        &self,
        file: &Handle,
        longest: Duration,
        mut is_so: impl FnMut(&mut HashMap<Handle, FileUses>) -> bool,
    ) -> (MutexGuard<'_, HashMap<Handle, FileUses>>, bool) {
        let (shard, end) = (self.shard(file), Instant::now() + longest);
        loop {
            let mut files = shard.lock();
            let left = end.saturating_duration_since(Instant::now());
            let is_still_so = is_so(&mut files);
            if !is_still_so || left.is_zero() {
                return (files, is_still_so);
            }
            drop(files);
            let mut wait = || shard.ended.wait_timeout_while(shard.lock(), left, &mut is_so);
            self.blocking(|| drop(wait()));
        }
    }

    fn shard(&self, file: &Handle) -> &HoldShard {
        shard_of(&self.shards, file)
    }
}

impl HoldShard {
    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, FileUses>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends something for a file, and forgets the file if nothing is left.
    fn end(&self, file: &Handle, end: impl FnOnce(&mut FileUses)) {
        let (mut files, mut is_awaited) = (self.lock(), false);
        if let Some(uses) = files.get_mut(file) {
            // Only moves wait for uses, and uses only for moves.
            is_awaited = uses.refused.is_some();
            end(uses);
            if uses.looks == 0 && uses.changes == 0 && uses.refused.is_none() {
                files.remove(file);
            }
        }
        drop(files);
        if is_awaited {
            self.ended.notify_all();
        }
    }
}

impl MoveHold<'_> {
    /// Returns when no change of the file is under way.
    ///
    /// # Errors
    /// [`Status::Delay`]: one has not ended in time.
    pub(crate) fn await_changes(&self) -> Result<()> {
        self.wait(|uses| uses.changes > 0)
    }

    /// Refuses all uses of the file from now on; returns when none is under way.
    ///
    /// # Errors
    /// [`Status::Delay`]: one has not ended in time.
    pub(crate) fn stop_all(&self) -> Result<()> {
        if let Some(uses) = self.holds.shard(&self.file).lock().get_mut(&self.file) {
            uses.refused = Some(RefusedUses::All);
        }
        self.await_uses()
    }

    /// Returns when no use of the file is under way.
    ///
    /// # Errors
    /// [`Status::Delay`]: one has not ended in time.
    pub(crate) fn await_uses(&self) -> Result<()> {
        self.wait(|uses| uses.changes > 0 || uses.looks > 0)
    }

    fn wait(&self, is_used: impl Fn(&FileUses) -> bool) -> Result<()> {
        let is_used = |files: &mut HashMap<_, _>| files.get(&self.file).is_some_and(&is_used);
        let (files, is_late) = self.holds.wait(&self.file, MOVE_WAIT_MAX, is_used);
        drop(files);
        if is_late { Err(Status::Delay) } else { Ok(()) }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.shard.end(&self.file, |uses| match self.what {
            Use::Look => uses.looks -= 1,
            Use::Change => uses.changes -= 1,
        });
    }
}

impl Drop for MoveHold<'_> {
    fn drop(&mut self) {
        self.holds.shard(&self.file).end(&self.file, |uses| uses.refused = None);
        if self.placing.is_none() {
            self.holds.moves.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// The number of waits that have begun in the hook, which one test sets.
    static WAITS: AtomicUsize = AtomicUsize::new(0);

    fn counted(work: &mut dyn FnMut()) {
        WAITS.fetch_add(1, Ordering::SeqCst);
        work();
    }

    #[test]
    fn a_use_waits_until_its_file_is_placed() {
        let (holds, file) = (Holds::default(), Handle::new(b"file").unwrap());
        let placing = holds.begin_placing(&file).unwrap();
        placing.await_uses().unwrap();
        let (told, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| told.send(holds.hold(&file, Use::Change).map(drop)));
            scope.spawn(|| told.send(holds.begin_placing(&file).map(drop)));
            assert!(heard.recv_timeout(Duration::from_millis(100)).is_err(), "it is being placed");
            drop(placing);
            assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok(Ok(())));
            assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok(Ok(())));
        });
        assert!(holds.shards.iter().all(|shard| shard.lock().is_empty()));
    }

    #[test]
    fn only_waits_go_through_the_hook() {
        let (holds, file) = (Holds::default(), Handle::new(b"file").unwrap());
        holds.wait_through(counted);
        let placing = holds.begin_placing(&file).unwrap();
        placing.await_uses().unwrap();
        assert_eq!(WAITS.load(Ordering::SeqCst), 0);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| holds.hold(&file, Use::Look).map(drop));
            let deadline = Instant::now() + Duration::from_secs(10);
            while WAITS.load(Ordering::SeqCst) == 0 {
                assert!(Instant::now() < deadline, "no wait goes through the hook");
                std::thread::yield_now();
            }
            drop(placing);
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
        assert_eq!(WAITS.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn files_that_are_being_placed_are_waited_for_and_are_no_moves() {
        let (holds, file) = (Holds::default(), Handle::new(b"file").unwrap());
        let other = Handle::new(b"other").unwrap();
        let placing = holds.begin_placing(&file).unwrap();
        let present = holds.placings.present();
        assert!(!present.await_end(Duration::ZERO), "a file is being placed");
        let later = holds.begin_placing(&other).unwrap();
        drop(placing);
        assert!(present.await_end(Duration::ZERO), "a later placing is not waited for");
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| holds.has_moves());
            std::thread::sleep(Duration::from_millis(100));
            assert!(!asked.is_finished(), "the other file is being placed");
            drop(later);
            assert!(!asked.join().unwrap());
        });
        let _moving = holds.begin_move(&file).unwrap();
        assert!(holds.has_moves());
    }

    #[test]
    fn a_move_waits_for_changes_and_refuses_new_ones() {
        let (holds, file) = (Holds::default(), Handle::new(b"file").unwrap());
        let (change, look) = (holds.hold(&file, Use::Change), holds.hold(&file, Use::Look));
        let moving = holds.begin_move(&file).unwrap();
        assert_eq!(holds.hold(&file, Use::Change).err(), Some(Status::Delay));
        assert!(holds.hold(&file, Use::Look).is_ok());
        assert_eq!(holds.begin_move(&file).err(), Some(Status::Delay));
        let (told, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| told.send(moving.await_changes()));
            assert!(heard.recv_timeout(Duration::from_millis(100)).is_err(), "one is under way");
            drop(change);
            assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok(Ok(())));
            scope.spawn(|| told.send(moving.stop_all()));
            assert!(heard.recv_timeout(Duration::from_millis(100)).is_err(), "one is under way");
            assert_eq!(holds.hold(&file, Use::Look).err(), Some(Status::Delay));
            drop(look);
            assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok(Ok(())));
        });
        drop(moving);
        assert!(holds.hold(&file, Use::Change).is_ok());
        assert!(holds.shards.iter().all(|shard| shard.lock().is_empty()));
    }
}
