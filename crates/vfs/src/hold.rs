//! What clients have against other programs of the machine.

/// How a file is held against programs of this machine that open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileHold {
    /// Not at all.
    Free,
    /// They may read it.
    Shared,
    /// They may neither read nor write it.
    Exclusive,
}

/// What a program of this machine does with a file that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalUse {
    /// It waits to open it.
    Open,
    /// It has renamed, removed or linked it, or changed its attributes, and does not wait.
    Change,
}

/// How bytes of a file are held against programs of this machine that lock them, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RangeLock {
    /// Not at all.
    Free,
    /// They may be read by others.
    Shared,
    /// They may be used by nobody else.
    Exclusive,
}
