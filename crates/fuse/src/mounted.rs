//! A mounted file system: answers the kernel's requests by verbs of an [`Fs`].
//!
//! Every function answers one request. Errors are those that the program gets.

mod attributes;
mod data;
mod events;
mod extended;
mod listing;
mod locks;
mod named_opens;
mod names;
mod open;
mod removed;
mod wait;

pub(crate) use attributes::NewAttributes;
pub(crate) use data::WriteHow;
pub(crate) use locks::LockArguments;
pub(crate) use names::{Looked, NewMode};
pub(crate) use open::{Handed, OpenFlags};

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Attr, Change, Cred, Disk, Fs, Handle, Node, OpenFiles, Status};
use rustix::io;

use crate::callers::{Callers, Requester};
use crate::errno::errno;
use crate::inodes::{EntryPlace, Inodes, ROOT};
use crate::interrupts::Interrupts;
use crate::invalidation::{Invalidation, InvalidationQueue};
use crate::limits::DELEGATED_KEEP;
use crate::lower::{Keep, Lower};
use crate::opens::Opens;

/// The state of a mount.
pub(crate) struct Mounted {
    fs: Arc<dyn Fs>,
    lower: Arc<dyn Lower>,
    inodes: Inodes,
    opens: Opens,
    callers: Callers,
    queue: Arc<InvalidationQueue>,
    /// True if the kernel checks modes and ACLs, and leaves umasks to this crate.
    kernel_judges: bool,
    removed: removed::Removed,
    stale_opens: named_opens::StaleOpens,
    locked: locks::LockedOpens,
    interrupts: Interrupts,
}

/// An object as it is described to the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownNode {
    /// Its inode number.
    pub(crate) number: u64,
    /// A hash of its handle.
    pub(crate) generation: u32,
    /// Its attributes.
    pub(crate) attr: Attr<Disk>,
    /// The time for which the kernel may cache them.
    pub(crate) keep: Keep,
}

impl Mounted {
    pub(crate) fn new(
        fs: Arc<dyn Fs>,
        lower: Arc<dyn Lower>,
        queue: Arc<InvalidationQueue>,
        (caller_life, kernel_judges): (Duration, bool),
    ) -> Self {
        Self {
            inodes: Inodes::new(fs.root()),
            fs,
            lower,
            opens: Opens::default(),
            callers: Callers::new(caller_life),
            queue,
            kernel_judges,
            removed: removed::Removed::default(),
            stale_opens: named_opens::StaleOpens::default(),
            locked: locks::LockedOpens::default(),
            interrupts: Interrupts::default(),
        }
    }

    /// The layer's state at a server (opens, locks, delegations), if there is a server.
    pub(crate) fn open_files(&self) -> Option<&dyn OpenFiles> {
        self.fs.open_files()
    }

    /// The interruptible requests of this mount.
    pub(crate) const fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// Returns whether the kernel checks modes and ACLs.
    pub(crate) const fn kernel_judges(&self) -> bool {
        self.kernel_judges
    }

    /// Ends the threads of this mount.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.interrupts.close();
    }

    /// Reduces the lookup count of an object.
    pub(crate) fn forget(&self, number: u64, times: u64) {
        self.inodes.forget(number, times);
    }

    fn cred(&self, who: Requester) -> Cred<Disk> {
        self.callers.cred(who)
    }

    /// Makes the description of an object, and counts a lookup by the kernel.
    fn introduce(&self, node: &Node<Disk>, place: Option<EntryPlace>) -> io::Result<KnownNode> {
        let known = self.inodes.look_up(&node.handle, &node.attr, place)?;
        for (dir, name) in known.too_many {
            self.queue.push(Invalidation::Name(dir, name));
        }
        Ok(self.known(known.number, &node.handle, node.attr))
    }

    fn known(&self, number: u64, handle: &Handle, attr: Attr<Disk>) -> KnownNode {
        if self.inodes.observe(number, attr.change) {
            self.queue.push(Invalidation::Data(number));
        }
        KnownNode { number, generation: mark(handle), attr, keep: self.keep(handle, &attr) }
    }

    fn keep(&self, handle: &Handle, attr: &Attr<Disk>) -> Keep {
        let keep = self.lower.keep(handle, attr);
        if self.is_granted(handle) {
            return Keep { attr: Duration::ZERO, ..keep };
        }
        match self.open_files().and_then(|files| files.delegation(handle)) {
            Some(_) => Keep { attr: DELEGATED_KEEP, ..keep },
            None => keep,
        }
    }

    /// Returns whether a directory is delegated. Answers about it are then valid until a recall,
    /// and the layer below gives them without a call. So the kernel must not cache them: it asks
    /// each time, and needs no invalidation at the recall.
    fn is_granted(&self, dir: &Handle) -> bool {
        self.open_files().is_some_and(|files| files.directory_grant(dir).is_some())
    }

    /// Notes a change of an object by this mount.
    fn note(&self, number: u64, change: &Change<Disk>) {
        let [before, after] = [change.before, change.after].map(|attr| attr.map(|a| a.change));
        self.inodes.changed(number, before, after);
    }

    /// Performs a verb; repeats it while it returns DELAY, until the requester gets a signal.
    fn verb<T>(&self, who: Requester, work: impl FnMut() -> Result<T, Status>) -> io::Result<T> {
        let _watched = self.open_files().map(|_| self.interrupts.watch(who.pid));
        wait::patiently(who.pid, work)
    }
}

impl KnownNode {
    /// The same, without caching of the name.
    const fn unkept(self) -> Self {
        Self { keep: Keep { entry: Duration::ZERO, ..self.keep }, ..self }
    }
}

/// A hash of a handle (FNV-1a), the same in every mount.
fn mark(handle: &Handle) -> u32 {
    const BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    handle.bytes().iter().fold(BASIS, |mark, byte| (mark ^ u32::from(*byte)).wrapping_mul(PRIME))
}

fn told<T>(result: comity_vfs::Result<T>) -> io::Result<T> {
    result.map_err(errno)
}

/// The inode number that programs see: the number that the kernel uses. The root directory is
/// different: the kernel uses [`ROOT`], programs see the fileid.
pub(crate) const fn inode_number(known: &KnownNode) -> u64 {
    if known.number == ROOT { known.attr.fileid } else { known.number }
}
