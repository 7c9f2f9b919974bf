//! Requests for locks: GETLK, SETLK, SETLKW.
//!
//! Locks are forwarded if there is a server; otherwise the kernel keeps them itself. The kernel
//! does not tell locks of fcntl(2) from those of flock(2). So, as with Linux's NFS client, the two
//! kinds conflict with each other, and flock(2) locks all bytes.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use comity_vfs::{
    HeldLock, LockOutcome, LockOwner, LockRequest, OpenFiles, OpenId, RangeLock, Status,
};
use rustix::io::{self, Errno};

use super::{Mounted, told};
use crate::callers::Requester;
use crate::limits::LOCK_WAITERS_MAX;

/// Sends the answer to a request for a lock, possibly much later.
pub(crate) type LockReply = Box<dyn FnOnce(io::Result<()>) + Send>;

/// A lock that the kernel requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockArguments {
    /// The open with which it is requested.
    pub(crate) open: u64,
    /// The owner.
    pub(crate) owner: u64,
    /// The first byte and the last one.
    pub(crate) bytes: (u64, u64),
    /// Shared, exclusive, or an unlock.
    pub(crate) lock: RangeLock,
}

/// The opens with which each owner has locked bytes of each object: closing any descriptor unlocks
/// all of them (fcntl(2)).
#[derive(Debug, Default)]
pub(super) struct LockedOpens {
    opens: Mutex<HashMap<(u64, u64), HashSet<OpenId>>>,
    waiters: AtomicUsize,
}

impl LockedOpens {
    fn add(&self, number: u64, owner: u64, open: OpenId) {
        let mut opens = self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        opens.entry((number, owner)).or_default().insert(open);
    }

    fn take(&self, number: u64, owner: u64) -> HashSet<OpenId> {
        let mut opens = self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        opens.remove(&(number, owner)).unwrap_or_default()
    }

    /// Counts one more waiting request; returns false if there are too many.
    fn enter(&self) -> bool {
        let enters = self.waiters.fetch_add(1, Ordering::AcqRel) < LOCK_WAITERS_MAX;
        if !enters {
            self.leave();
        }
        enters
    }

    fn leave(&self) {
        self.waiters.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Mounted {
    /// Answers F_GETLK of fcntl(2): returns a conflicting lock.
    pub(crate) fn getlk(
        &self,
        who: Requester,
        arguments: LockArguments,
    ) -> io::Result<Option<HeldLock>> {
        let (files, request) = self.lock_request(arguments)?;
        self.verb(who, || files.find_lock(&request))
    }

    /// Locks or unlocks. With `waits`, the answer may come much later, from a thread of its own.
    pub(crate) fn setlk(
        self: &Arc<Self>,
        who: Requester,
        (arguments, waits): (LockArguments, bool),
        reply: LockReply,
    ) {
        match self.lock_once(who, arguments, false) {
            Err(Errno::AGAIN) if waits => self.wait_for_lock(who, arguments, reply),
            done => self.answer_lock(arguments, done, reply),
        }
    }

    /// Answers a request for a lock. The holder must see what others wrote before, so the kernel
    /// first drops the file's pages, unless the file is delegated.
    fn answer_lock(&self, arguments: LockArguments, done: io::Result<()>, reply: LockReply) {
        let shared = match done {
            Ok(()) if arguments.lock != RangeLock::Free => self.shared_number(arguments.open),
            _ => None,
        };
        let Some(number) = shared else { return reply(done) };
        // If the queue is full, the dropped reply becomes an error; the lock is released with the
        // unlock.
        if !self.queue.push_before(number, Box::new(move || reply(Ok(())))) {
            self.unlock_all(number, arguments.owner);
        }
    }

    /// The inode number of an open file, if other clients may write it.
    fn shared_number(&self, open: u64) -> Option<u64> {
        let file = self.opens.get(open).ok()?;
        let delegation = self.open_files()?.delegation(&file.handle);
        delegation.is_none().then_some(file.number)
    }

    fn wait_for_lock(self: &Arc<Self>, who: Requester, arguments: LockArguments, reply: LockReply) {
        if !self.locked.enter() {
            return reply(Err(Errno::NOLCK));
        }
        let mounted = Arc::clone(self);
        let work = move || {
            let done = mounted.lock_once(who, arguments, true);
            mounted.answer_lock(arguments, done, reply);
            mounted.locked.leave();
        };
        if let Err(error) = thread::Builder::new().name("fuse-lock".to_owned()).spawn(work) {
            // The closure with the reply was dropped, which answers with an error.
            tracing::warn!(%error, "no thread to wait for a lock");
            self.locked.leave();
        }
    }

    fn lock_once(&self, who: Requester, arguments: LockArguments, waits: bool) -> io::Result<()> {
        let (files, request) = self.lock_request(arguments)?;
        let request = LockRequest { waits, ..request };
        match self.verb(who, || files.lock(&request))? {
            LockOutcome::Done if request.lock == RangeLock::Free => Ok(()),
            LockOutcome::Done => {
                let number = self.opens.get(arguments.open)?.number;
                self.locked.add(number, arguments.owner, request.open);
                Ok(())
            }
            LockOutcome::Denied => Err(Errno::AGAIN),
            LockOutcome::Deadlock => Err(Errno::DEADLK),
        }
    }

    fn lock_request(&self, arguments: LockArguments) -> io::Result<(&dyn OpenFiles, LockRequest)> {
        let LockArguments { open, owner, bytes, lock } = arguments;
        let files = self.open_files().ok_or(Errno::NOSYS)?;
        let open = self.opens.get(open)?.opened.ok_or(Errno::BADF)?;
        let (owner, waits) = (LockOwner(owner), false);
        Ok((files, LockRequest { open, owner, bytes, lock, waits }))
    }

    /// Unlocks all locks of an owner on an object.
    pub(super) fn unlock_all(&self, number: u64, owner: u64) {
        let Some(files) = self.open_files() else { return };
        for open in self.locked.take(number, owner) {
            let (bytes, lock) = ((0, u64::MAX), RangeLock::Free);
            let owner = LockOwner(owner);
            let request = LockRequest { open, owner, bytes, lock, waits: false };
            match files.lock(&request) {
                // The open and its locks may have been closed before.
                Ok(_) | Err(Status::BadHandle | Status::Stale) => {}
                failed => {
                    let failed = told(failed);
                    tracing::warn!(?failed, "the server may still hold locks of a closed file");
                }
            }
        }
    }
}
