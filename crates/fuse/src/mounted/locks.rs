//! Requests for locks: GETLK, SETLK, SETLKW.
//!
//! A request that waits keeps no thread of those that answer the kernel: one thread asks again for
//! all of them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Cred, Disk, Handle};
use rustix::io::{self, Errno};

use super::Mounted;
use crate::callers::Requester;
use crate::errno::errno;
use crate::limits::{LOCK_PAUSE, LOCK_WAITERS_MAX};
use crate::lower::LockRequest;
use crate::process::is_interrupted;

/// Sends the answer of a request that may wait.
pub(crate) type LockReply = Box<dyn FnOnce(io::Result<()>) + Send>;

/// Requests that wait for a lock.
#[derive(Default)]
pub(super) struct Waiters {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Default)]
struct List {
    waiting: Vec<LockWait>,
    closed: bool,
}

struct LockWait {
    cred: Cred<Disk>,
    node: Handle,
    request: LockRequest,
    reply: LockReply,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Adds one, or refuses it.
    fn add(&self, waiting: LockWait) {
        let mut list = self.lock();
        if list.closed || list.waiting.len() >= LOCK_WAITERS_MAX {
            drop(list);
            (waiting.reply)(Err(Errno::NOLCK));
            return;
        }
        list.waiting.push(waiting);
        self.changed.notify_all();
    }

    /// Takes all that wait, once there are some. `None` when the mount ends.
    fn take(&self) -> Option<Vec<LockWait>> {
        let mut list = self.lock();
        while list.waiting.is_empty() && !list.closed {
            list = self.changed.wait(list).unwrap_or_else(PoisonError::into_inner);
        }
        if list.closed { None } else { Some(std::mem::take(&mut list.waiting)) }
    }
}

impl Mounted {
    /// Answers fcntl(2) with F_GETLK: a lock that is in the way.
    pub(crate) fn getlk(
        &self,
        who: Requester,
        number: u64,
        request: &LockRequest,
    ) -> io::Result<Option<LockRequest>> {
        let node = self.inodes.handle(number)?;
        let locks = self.lower.locks().ok_or(Errno::NOSYS)?;
        self.verb(who, || locks.conflict(&node, request))
    }

    /// LowerLocks or unlocks; with `waits` the answer may come much later.
    pub(crate) fn setlk(
        &self,
        who: Requester,
        number: u64,
        (request, waits): (LockRequest, bool),
        reply: LockReply,
    ) {
        let cred = self.cred(who);
        match self.lock_once(number, &cred, &request) {
            Ok((true, _)) => reply(Ok(())),
            Ok((false, node)) if waits => self.waiters.add(LockWait { cred, node, request, reply }),
            Ok((false, _)) => reply(Err(Errno::AGAIN)),
            Err(error) => reply(Err(error)),
        }
    }

    fn lock_once(
        &self,
        number: u64,
        cred: &Cred<Disk>,
        request: &LockRequest,
    ) -> io::Result<(bool, Handle)> {
        let node = self.inodes.handle(number)?;
        let locks = self.lower.locks().ok_or(Errno::NOSYS)?;
        match locks.lock(cred, &node, request) {
            Err(comity_vfs::Status::Delay) => Ok((false, node)),
            locked => locked.map(|locked| (locked, node)).map_err(errno),
        }
    }

    /// Asks again for one that waits; returns it if it still has to.
    fn ask_again(&self, waiting: LockWait) -> Option<LockWait> {
        let answer = match self.lower.locks() {
            _ if is_interrupted(waiting.request.pid) => Some(Err(Errno::INTR)),
            None => Some(Err(Errno::NOSYS)),
            Some(locks) => match locks.lock(&waiting.cred, &waiting.node, &waiting.request) {
                Ok(true) => Some(Ok(())),
                Ok(false) | Err(comity_vfs::Status::Delay) => None,
                Err(status) => Some(Err(errno(status))),
            },
        };
        match answer {
            Some(answer) => {
                (waiting.reply)(answer);
                None
            }
            None => Some(waiting),
        }
    }
}

/// Asks again for the locks of all that wait, in the order of their coming, until the mount ends.
pub(crate) fn wait_for_locks(mounted: &Mounted) {
    while let Some(waiting) = mounted.waiters.take() {
        let rest: Vec<_> =
            waiting.into_iter().filter_map(|waiting| mounted.ask_again(waiting)).collect();
        if rest.is_empty() {
            continue;
        }
        let mut list = mounted.waiters.lock();
        // Those that came meanwhile stand behind.
        list.waiting.splice(0..0, rest);
        let woken = mounted.waiters.changed.wait_timeout(list, LOCK_PAUSE);
        drop(woken);
    }
    let mut list = mounted.waiters.lock();
    for waiting in std::mem::take(&mut list.waiting) {
        (waiting.reply)(Err(Errno::INTR));
    }
}
