//! Locks between clients and local programs: neither can take a lock or open that conflicts with
//! one of the other.

use std::array;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_export::Exports;
use comity_state::{
    ByteRange, DelegationKind, Engine, FileKey, LocalLock, LockType, Origin, Taken,
};
use comity_vfs::{DirectoryHold, FileHold, RangeLock, Result, Status};
use foldhash::fast::RandomState;

use crate::limits::{LOCAL_PARTS, LOCAL_RANGES_MAX};
use crate::origin_shares::OriginShares;

/// The locks and leases that the server takes on files on behalf of clients, so that local programs
/// respect the clients' locks.
pub(crate) struct LocalLocks {
    engine: Arc<Engine>,
    exports: Arc<Exports>,
    hasher: RandomState,
    /// For each part of the files: locked while the engine's state of a file is read and applied.
    parts: [Mutex<Part>; LOCAL_PARTS],
    /// The locked files. Each keeps descriptors open, of which there are few.
    locked: OriginShares,
}

/// Some of the files.
#[derive(Default)]
struct Part {
    /// Files with more locked ranges than are locked one by one; true if the whole file is locked.
    many: HashMap<FileKey, bool, RandomState>,
    /// The origin for which each locked file counts.
    first: HashMap<FileKey, Origin, RandomState>,
}

impl LocalLocks {
    /// Takes locks for the clients of `engine`, in the files of `exports`.
    pub(crate) fn new(engine: Arc<Engine>, exports: Arc<Exports>) -> Self {
        let parts = array::from_fn(|_| Mutex::default());
        let locked = OriginShares::at_most(engine.settings().limits.locked_files);
        Self { engine, exports, hasher: RandomState::default(), parts, locked }
    }

    /// Locks the part of a file, so that no other thread handles the file.
    fn alone(&self, file: &FileKey) -> MutexGuard<'_, Part> {
        let part = &self.parts[self.hasher.hash_one(file) as usize % LOCAL_PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the server's locks in a range equal to those of clients. If a file has too many
    /// ranges, the whole file is locked, because the kernel searches them one by one.
    fn follow(&self, part: &mut Part, file: &FileKey, range: ByteRange) {
        let many = &mut part.many;
        let is_whole = !many.is_empty() && many.contains_key(file);
        let range = if is_whole { ByteRange::ALL } else { range };
        let (count, held) = self.engine.held(file, range, LOCAL_RANGES_MAX);
        if count == 0 {
            return self.let_go(part, file);
        }
        if count > LOCAL_RANGES_MAX {
            many.entry(*file).or_default();
            return;
        }
        if is_whole {
            many.remove(file);
        }
        for (part, kind) in held {
            // A failure is harmless: a range that can no longer be locked was not locked before
            // either.
            let _ = self.hold(file, part, kind);
        }
    }

    /// Releases a file in which clients hold nothing.
    fn let_go(&self, part: &mut Part, file: &FileKey) {
        if !part.many.is_empty() {
            part.many.remove(file);
        }
        if let Some(origin) = part.first.remove(file) {
            self.locked.leave(origin);
        }
        // A failure is harmless: a file that no longer exists has no locks.
        let _ = self.hold(file, ByteRange::ALL, None);
    }

    /// Counts a file for the origin that is the first to lock it; returns false if that has as many
    /// as it may. A lock that is reclaimed was granted before, so that it is not refused.
    fn enter(&self, part: &mut Part, file: &FileKey, (origin, reclaim): (Origin, bool)) -> bool {
        let Entry::Vacant(place) = part.first.entry(*file) else { return true };
        let has_room = self.locked.enter(origin, reclaim);
        if has_room {
            place.insert(origin);
        }
        has_room
    }

    /// Locks a range for a client; locks of other clients in the range stay.
    fn reserve(&self, part: &Part, file: &FileKey, (range, kind): (ByteRange, LockType)) -> Taken {
        let many = &part.many;
        if !many.is_empty() && many.get(file) == Some(&true) {
            return Taken::Done;
        }
        // A write lock covers the bytes for all clients, whichever of them locked the bytes before.
        if kind == LockType::Write {
            return taken(self.hold(file, range, Some(kind)));
        }
        let (count, held) = self.engine.held(file, range, usize::MAX);
        if count == 0 {
            return taken(self.hold(file, range, Some(kind)));
        }
        let each = held.into_iter().map(|(part, held)| self.hold(file, part, held.max(Some(kind))));
        let mut failed = each.map(taken).filter(|taken| *taken != Taken::Done);
        failed.next().unwrap_or(Taken::Done)
    }

    /// Locks the whole file, unless a program has locked a part of it.
    fn hold_whole(&self, part: &mut Part, file: &FileKey) {
        let whole = part.many.entry(*file).or_default();
        *whole = *whole || self.hold(file, ByteRange::ALL, Some(LockType::Write)) == Ok(true);
    }

    fn hold(&self, file: &FileKey, range: ByteRange, kind: Option<LockType>) -> Result<bool> {
        let lock = kind.map_or(RangeLock::Free, range_lock);
        self.exports.current().hold_range(file, (range.first, range.last), lock)
    }

    fn hold_file(&self, file: &FileKey, hold: FileHold) -> Result<bool> {
        self.exports.current().hold_file(file, hold)
    }
}

impl comity_state::Locals for LocalLocks {
    fn take(
        &self,
        file: &FileKey,
        &LocalLock { range, kind, origin, reclaim }: &LocalLock,
        take: &mut dyn FnMut() -> Option<usize>,
    ) -> Taken {
        let mut part = self.alone(file);
        if !self.enter(&mut part, file, (origin.network(), reclaim)) {
            return Taken::Later;
        }
        let reserved = self.reserve(&part, file, (range, kind));
        let held = if reserved == Taken::Done { take() } else { None };
        match held {
            Some(count) if count > LOCAL_RANGES_MAX => self.hold_whole(&mut part, file),
            Some(_) if kind == LockType::Write => {}
            // The client may have had a write lock before, so the server's lock may have to be
            // reduced.
            Some(_) | None => self.follow(&mut part, file, range),
        }
        reserved
    }

    fn give(&self, file: &FileKey, range: ByteRange, give: &mut dyn FnMut() -> Option<usize>) {
        let mut part = self.alone(file);
        match give() {
            Some(0) => self.let_go(&mut part, file),
            Some(_) => self.follow(&mut part, file, range),
            None => {}
        }
    }

    fn delegate(&self, file: &FileKey, kind: DelegationKind) -> bool {
        let _alone = self.alone(file);
        let hold = match kind {
            // See `delegate_directory`.
            DelegationKind::Directory => return true,
            DelegationKind::Read => FileHold::Shared,
            DelegationKind::Write => FileHold::Exclusive,
        };
        // `NotSupp` means that there are no local programs.
        matches!(self.hold_file(file, hold), Ok(true) | Err(Status::NotSupp))
    }

    fn delegate_directory(&self, directory: &FileKey, hold: DirectoryHold) -> bool {
        let _alone = self.alone(directory);
        self.hold_file(directory, FileHold::Directory(hold)) == Ok(true)
    }

    fn settle(&self) {
        while let Some(file) = self.engine.poll_undelegated() {
            let _alone = self.alone(&file);
            if self.engine.delegated(&file).is_none() {
                // A failure is harmless: a file that no longer exists has no lease.
                let _ = self.hold_file(&file, FileHold::Free);
            }
        }
        while let Some((file, range)) = self.engine.poll_unlocked() {
            let mut part = self.alone(&file);
            self.follow(&mut part, &file, range);
        }
    }

    fn is_free(&self, file: &FileKey, (range, kind): (ByteRange, LockType)) -> bool {
        let bytes = (range.first, range.last);
        let free = self.exports.current().is_range_free(file, bytes, range_lock(kind));
        free.unwrap_or(true)
    }
}

fn taken(held: Result<bool>) -> Taken {
    match held {
        Ok(false) => Taken::Held,
        Err(Status::Delay) => Taken::Later,
        // There are no local programs, or none can lock this file.
        Ok(true) | Err(_) => Taken::Done,
    }
}

const fn range_lock(kind: LockType) -> RangeLock {
    match kind {
        LockType::Read => RangeLock::Shared,
        LockType::Write => RangeLock::Exclusive,
    }
}
