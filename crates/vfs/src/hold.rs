//! Holds of clients against other programs of the machine.

/// A hold on a file against programs of this machine that open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileHold {
    /// Not at all.
    Free,
    /// They may read it.
    Shared,
    /// They may neither read nor write it.
    Exclusive,
}

/// The use that a program of this machine makes of a file that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalUse {
    /// It waits to open it.
    Open,
    /// It has renamed, removed or linked it, or changed its attributes, and does not wait.
    Change,
}

/// A hold on bytes of a file against programs of this machine that lock them, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RangeLock {
    /// Not at all.
    Free,
    /// They may be read by others.
    Shared,
    /// They may be used by nobody else.
    Exclusive,
}
