//! The layout of one file that one client has, as plain data.

mod range_set;

use range_set::RangeSet;

use crate::limits::RANGE_BYTES;
use crate::{ByteRange, Principal};

/// The access that a layout allows (`layoutiomode4`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayoutIomode {
    /// The client reads from data servers.
    Read,
    /// The client reads and writes.
    ReadWrite,
}

/// The ranges of a file for which a client has a layout, by iomode (RFC 8881, 12.5.2).
#[derive(Debug, Clone)]
pub(crate) struct LayoutState {
    /// The principal that asked for the first range.
    principal: Principal,
    read: RangeSet,
    read_write: RangeSet,
    /// True if the client has told by LAYOUTCOMMIT how far it has written, since it last got a
    /// range for writing.
    pub(crate) is_committed: bool,
}

impl LayoutState {
    pub(crate) fn new(principal: Principal) -> Self {
        let (read, read_write) = (RangeSet::default(), RangeSet::default());
        Self { principal, read, read_write, is_committed: true }
    }

    /// Returns the principal that asked for the first range.
    pub(crate) const fn principal(&self) -> Principal {
        self.principal
    }

    /// Adds a range; returns whether it is the first one for writing.
    pub(crate) fn add(&mut self, iomode: LayoutIomode, range: ByteRange) -> bool {
        let was_for_writing = self.is_for_writing();
        self.set(iomode).insert(range);
        self.is_committed &= iomode == LayoutIomode::Read;
        self.is_for_writing() && !was_for_writing
    }

    /// Takes a range away from one iomode, or from both if none is given. Returns whether it was
    /// the last one for writing.
    pub(crate) fn take(&mut self, iomode: Option<LayoutIomode>, range: ByteRange) -> bool {
        let was_for_writing = self.is_for_writing();
        for one in [LayoutIomode::Read, LayoutIomode::ReadWrite] {
            if iomode.is_none_or(|iomode| iomode == one) {
                self.set(one).remove(range);
            }
        }
        was_for_writing && !self.is_for_writing()
    }

    /// Returns whether the client may write any range.
    pub(crate) fn is_for_writing(&self) -> bool {
        self.read_write.len() > 0
    }

    /// Returns whether the client may write all of a range.
    pub(crate) fn allows_write(&self, range: ByteRange) -> bool {
        self.read_write.contains(range)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges() == [0, 0]
    }

    /// Returns the number of ranges for reading, and for reading and writing.
    pub(crate) fn ranges(&self) -> [usize; 2] {
        [self.read.len(), self.read_write.len()]
    }

    /// Returns the bytes of memory that its ranges take.
    pub(crate) fn range_bytes(&self) -> usize {
        self.ranges().iter().sum::<usize>() * RANGE_BYTES
    }

    const fn set(&mut self, iomode: LayoutIomode) -> &mut RangeSet {
        match iomode {
            LayoutIomode::Read => &mut self.read,
            LayoutIomode::ReadWrite => &mut self.read_write,
        }
    }
}
