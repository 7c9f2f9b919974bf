//! A client that holds locks while the folder moves, and rivals that want them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use comity_proto::nfs4::{
    ExistLockOwner4, Locker4, NfsLockType4, Nfsstat4, Stateid4, operation as op, share,
};

use crate::common::four::{Four, Opened, operation};
use crate::common::placed::on;
use crate::common::wait_until;

const ACCESS: u32 = share::READ | share::WRITE | share::WANT_NO_DELEG;

/// A client with an open and two locks: one of the range 0, and one of a range that it changes.
pub(crate) struct Holder {
    /// None if the server to which the client was connected has been killed.
    client: Option<Four>,
    name: String,
    pub(crate) file: Opened,
    lock: Stateid4,
    /// The number of the second range.
    pub(crate) range: u64,
}

/// The bytes of a range. No range touches another one.
const fn bytes(range: u64) -> (u64, u64) {
    (range * 10, 5)
}

impl Holder {
    /// A new client of the server at this port, under this name.
    pub(crate) fn new(port: u16, path: &Path, name: &str) -> Self {
        let mut client = Four::connect(port, 0, name);
        let file = client.open(path, ACCESS).unwrap();
        let lock = client.lock(&file, NfsLockType4::Write, bytes(0)).unwrap();
        let name = name.to_owned();
        let mut holder = Self { client: Some(client), name, file, lock, range: 0 };
        holder.step().unwrap();
        holder
    }

    /// Moves the second lock to the next range, which is locked first.
    fn step(&mut self) -> Result<(), Nfsstat4> {
        let client = self.client.as_mut().unwrap();
        self.lock = locked(client, &self.file, (self.lock, false), self.range + 1)?;
        self.range += 1;
        if self.range > 1 {
            self.lock = client.unlock(&self.file, self.lock, bytes(self.range - 1))?;
        }
        Ok(())
    }

    /// Moves the second lock on until the server lets it wait, refuses, or is killed.
    pub(crate) fn work(&mut self, is_over: &AtomicBool) {
        let work = || while !is_over.load(Ordering::SeqCst) && self.step().is_ok() {};
        // A client panics if its server hangs up.
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            self.client = None;
        }
    }

    /// Goes to the server that serves. Its state is good there; if that server was killed, the
    /// client reclaims it.
    pub(crate) fn arrive(&mut self, port: u16, (is_elsewhere, was_killed): (bool, bool)) {
        if is_elsewhere || was_killed {
            self.client = Some(Four::follow(port, 0, &self.name));
        }
        if was_killed {
            self.reclaim();
        }
        // The server may have changed the lock for the last time without a reply.
        self.lock.seqid = 0;
        let client = self.client.as_mut().unwrap();
        client.change(&self.file, self.file.stateid).unwrap();
        wait_until("the grace period is over", || match self.step() {
            Err(Nfsstat4::Grace) => false,
            done => done.is_ok() || panic!("{done:?}"),
        });
    }

    fn reclaim(&mut self) {
        let client = self.client.as_mut().unwrap();
        self.file = client.reclaim(&self.file, ACCESS).unwrap();
        let first = (client.locker(&self.file), true);
        self.lock = client.lock_as(&self.file, first, NfsLockType4::Write, bytes(0)).unwrap();
        self.lock = locked(client, &self.file, (self.lock, true), self.range).unwrap();
        match client.perform(vec![operation(op::RECLAIM_COMPLETE, &false)]) {
            // The server knows the client, as it serves another export to it.
            Err(Nfsstat4::CompleteAlready) => {
                let one_fs = operation(op::RECLAIM_COMPLETE, &true);
                client.perform(on(&self.file.handle, one_fs)).unwrap();
            }
            completed => drop(completed.unwrap()),
        }
    }

    /// Unlocks both ranges.
    pub(crate) fn let_go(&mut self) {
        let client = self.client.as_mut().unwrap();
        for range in [0, self.range] {
            self.lock = client.unlock(&self.file, self.lock, bytes(range)).unwrap();
        }
    }
}

/// Locks another range of an owner that has locks, or reclaims it.
fn locked(
    client: &mut Four,
    file: &Opened,
    (lock_stateid, reclaim): (Stateid4, bool),
    range: u64,
) -> Result<Stateid4, Nfsstat4> {
    let locker = Locker4::Exist(ExistLockOwner4 { lock_stateid, lock_seqid: 0 });
    client.lock_as(file, (locker, reclaim), NfsLockType4::Write, bytes(range))
}

/// Has a new client of a server try to lock a range; returns the answer.
pub(crate) fn rival(port: u16, (path, range): (&Path, u64)) -> Nfsstat4 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!("rival {}", COUNT.fetch_add(1, Ordering::SeqCst));
    let mut rival = Four::connect(port, 0, &name);
    let opened = rival.open(path, ACCESS);
    let locked = opened.and_then(|file| rival.lock(&file, NfsLockType4::Write, bytes(range)));
    locked.map_or_else(|refusal| refusal, |_| Nfsstat4::Ok)
}
