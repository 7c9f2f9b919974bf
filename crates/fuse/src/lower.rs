//! The layer below decides how long the kernel may cache answers.

use std::time::Duration;

use comity_vfs::{Attr, Disk, Handle};

/// The time for which the kernel may cache an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// For a name and its object.
    pub entry: Duration,
    /// For the attributes of an object.
    pub attr: Duration,
}

impl Keep {
    /// No caching.
    pub const NOTHING: Self = Self { entry: Duration::ZERO, attr: Duration::ZERO };

    /// The same time for both.
    #[must_use]
    pub const fn both(time: Duration) -> Self {
        Self { entry: time, attr: time }
    }
}

/// The properties of the layer below that a mount needs beyond [`Fs`](comity_vfs::Fs). The
/// attributes of a delegated file ([`comity_vfs::OpenFiles::delegation`]) are cached until the
/// recall, regardless of these times.
pub trait Lower: Send + Sync {
    /// Returns how long the kernel may cache the attributes of an object and its name.
    fn keep(&self, node: &Handle, attr: &Attr<Disk>) -> Keep;

    /// Returns how long the kernel may cache that a name is missing in a directory.
    fn keep_missing(&self, dir: &Handle) -> Duration;
}

/// A layer below with fixed times.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// For existing names and objects.
    pub keep: Keep,
    /// For missing names.
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
