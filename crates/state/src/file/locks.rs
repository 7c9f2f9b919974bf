use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::FileLocks;

/// The byte-range locks of a file. Most files never have any: these cost no memory.
pub(crate) struct Locks {
    some: Option<Box<FileLocks>>,
    offer: Duration,
}

/// The locks of a file that has none.
static NONE: FileLocks = FileLocks::new(Duration::ZERO);

impl Locks {
    /// None; offers will stand for `offer`.
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
