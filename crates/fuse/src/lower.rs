//! The layer below decides for which time the kernel may keep what it was told.

use std::time::Duration;

use comity_vfs::{Attr, Disk, Handle};

/// The time for which the kernel may keep an answer without asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// A name and the object it stands for.
    pub entry: Duration,
    /// The attributes of an object.
    pub attr: Duration,
}

impl Keep {
    /// Not at all.
    pub const NOTHING: Self = Self { entry: Duration::ZERO, attr: Duration::ZERO };

    /// The same time for both.
    #[must_use]
    pub const fn both(time: Duration) -> Self {
        Self { entry: time, attr: time }
    }
}

/// The layer below, in what an [`Fs`](comity_vfs::Fs) does not say. The attributes of a delegated
/// file ([`comity_vfs::OpenFiles::delegation`]) are kept whatever it says, until the recall.
pub trait Lower: Send + Sync {
    /// The time for which the kernel may keep the attributes of an object and its name.
    fn keep(&self, node: &Handle, attr: &Attr<Disk>) -> Keep;

    /// The time for which the kernel may keep that a name is not in a directory.
    fn keep_missing(&self, dir: &Handle) -> Duration;
}

/// A layer below that knows no more than fixed times.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// For everything that is there.
    pub keep: Keep,
    /// For names that are not there.
    pub missing: Duration,
}

impl Lower for Plain {
    fn keep(&self, _node: &Handle, _attr: &Attr<Disk>) -> Keep {
        self.keep
    }

    fn keep_missing(&self, _dir: &Handle) -> Duration {
        self.missing
    }
}
