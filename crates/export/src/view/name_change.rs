//! Changes of names, and the interface by which clients that hold the directories are notified.

use std::sync::MutexGuard;

use comity_vfs::{FileKey, NamedObject, NoticedAttributes, Result};

use super::clearance::DirectoryClearance;

/// A change of names that was made.
#[derive(Debug, Clone, Copy)]
pub enum NameChange<'n> {
    /// A name was made in a directory. It may have been there before.
    Added {
        /// The directory, the name, and the attributes of the directory afterwards.
        place: ChangedPlace<'n>,
        /// The object.
        object: NamedObject,
    },
    /// A name was removed.
    Removed(ChangedPlace<'n>),
    /// An object was moved from the first place to the second one.
    Moved {
        /// The old place.
        from: ChangedPlace<'n>,
        /// The new place.
        to: ChangedPlace<'n>,
        /// The object, if it could be found.
        object: Option<NamedObject>,
        /// True if another object had the new name before.
        replaces: bool,
    },
}

/// A name in a directory that was changed.
#[derive(Debug, Clone, Copy)]
pub struct ChangedPlace<'n> {
    /// The directory.
    pub directory: FileKey,
    /// The name.
    pub name: &'n [u8],
    /// The attributes of the directory afterwards, if they are known.
    pub after: Option<NoticedAttributes>,
}

/// The locks by which changes of one directory are made and notified one after the other.
pub type Turns<'a> = Vec<MutexGuard<'a, ()>>;

/// Clients that hold delegations of the changed directories and want notifications.
pub trait DirectoryHolders: Send + Sync {
    /// Waits until no other change of these directories is being made.
    fn turns(&self) -> Turns<'_>;

    /// Queues the notifications of a change.
    fn tell(&self, change: &NameChange<'_>);

    /// Queues the notifications of a change of attributes of a directory.
    fn tell_attributes(&self, directory: &FileKey, after: Option<NoticedAttributes>);

    /// Waits until all notified clients have answered. [`Turns`] must have been released before.
    fn wait(&self);
}

impl DirectoryClearance<'_> {
    /// Returns whether somebody has to be told of a change.
    pub(crate) const fn is_told(&self) -> bool {
        self.holders.is_some()
    }

    /// Makes a change, and tells the holders of its directories before it is acknowledged.
    /// `describe` returns what there is to tell, if there is anything.
    pub(crate) fn telling<'n, T>(
        &self,
        make: impl FnOnce() -> Result<T>,
        describe: impl FnOnce(&T) -> Option<NameChange<'n>>,
    ) -> Result<T> {
        let tell = |made: &T, holders: &dyn DirectoryHolders| {
            if let Some(change) = describe(made) {
                holders.tell(&change);
            }
        };
        telling(self.holders.as_deref(), make, tell)
    }
}

/// Makes a change, and tells the holders before it is acknowledged.
pub(super) fn telling<T>(
    holders: Option<&dyn DirectoryHolders>,
    make: impl FnOnce() -> Result<T>,
    tell: impl FnOnce(&T, &dyn DirectoryHolders),
) -> Result<T> {
    let Some(holders) = holders else { return make() };
    let turns = holders.turns();
    let made = make()?;
    tell(&made, holders);
    drop(turns);
    holders.wait();
    Ok(made)
}
