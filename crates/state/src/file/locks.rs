use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::FileLocks;

/// The byte-range locks of a file. A file without locks takes no memory for them.
pub(crate) struct Locks {
    some: Option<Box<FileLocks>>,
    offer: Duration,
}

/// The empty set, which stands for a file without locks.
static NONE: FileLocks = FileLocks::new(Duration::ZERO);

impl Locks {
    /// Makes an empty set. A free lock stays offered to the next waiting owner for the time
    /// `offer`.
    pub(crate) const fn new(offer: Duration) -> Self {
        Self { some: None, offer }
    }
}

impl Deref for Locks {
    type Target = FileLocks;

    fn deref(&self) -> &FileLocks {
        self.some.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Locks {
    fn deref_mut(&mut self) -> &mut FileLocks {
        self.some.get_or_insert_with(|| Box::new(FileLocks::new(self.offer)))
    }
}
