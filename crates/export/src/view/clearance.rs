use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comity_grants::Operation;
use comity_vfs::{ChangedObjects, FileKey, ObjectChange, Result, Status};

use super::name_change::DirectoryHolders;
use super::{Node, View};

/// Permission to change an object: no delegation, deny mode or reclaim of a client conflicts with
/// the change. Every verb of a [`View`] that changes an object takes one.
///
/// Only `comity-coherence` and tests make it; `cargo xtask tidy` finds other callers.
#[derive(Clone, Copy)]
pub struct Clearance<'a> {
    /// The holders of the object, if it is a directory, who are told of a change of attributes.
    pub(super) holders: Option<&'a dyn DirectoryHolders>,
    changes: Option<ChangesBy<'a>>,
}

/// The place in which changes of a caller are noted, for clients that are notified of changed
/// attributes.
#[derive(Debug, Clone, Copy)]
pub struct ChangesBy<'a> {
    /// The changed objects.
    pub objects: &'a ChangedObjects,
    /// The number of the caller's client, if it is known.
    pub client: Option<u64>,
}

impl ChangesBy<'_> {
    #[inline]
    fn note(&self, object: impl FnOnce() -> FileKey) {
        if self.objects.are_watched() {
            self.objects.note(ObjectChange { object: object(), client: self.client });
        }
    }
}

impl std::fmt::Debug for Clearance<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clearance")
    }
}

impl<'a> Clearance<'a> {
    /// Permits a change. Only `comity-coherence` and tests may call it.
    #[must_use]
    pub const fn given() -> Self {
        Self { holders: None, changes: None }
    }

    /// Returns the same for a change that is noted. It is for `comity-coherence`.
    #[must_use]
    pub const fn noted_in(self, changes: ChangesBy<'a>) -> Self {
        Self { changes: Some(changes), ..self }
    }

    /// Notes the change of an object after it was made, or was tried and has failed half-way.
    #[inline]
    pub(super) fn changed(&self, object: impl FnOnce() -> FileKey) {
        if let Some(changes) = &self.changes {
            changes.note(object);
        }
    }
}

/// Permission to change names or attributes of one or two directories. Every verb of a [`View`]
/// that changes the names of a directory takes one. While it lives, no client is granted a
/// delegation of these directories, because it would not be notified of the change.
///
/// Only `comity-coherence` gives it, and tests do; `cargo xtask tidy` finds others.
#[derive(Clone)]
pub struct DirectoryClearance<'a> {
    _under_way: [Option<ChangeUnderWay<'a>>; 2],
    pub(super) holders: Option<Arc<dyn DirectoryHolders + 'a>>,
    changes: Option<ChangesBy<'a>>,
}

impl std::fmt::Debug for DirectoryClearance<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DirectoryClearance({:?})", self._under_way)
    }
}

impl<'a> DirectoryClearance<'a> {
    /// Permits a change where no client can have a delegation of a directory. It is for
    /// `comity-coherence` and for tests.
    #[must_use]
    pub const fn given() -> Self {
        Self { _under_way: [None, None], holders: None, changes: None }
    }

    /// Permits a change that is counted as under way. It is for `comity-coherence`.
    #[must_use]
    pub const fn during(first: ChangeUnderWay<'a>, second: Option<ChangeUnderWay<'a>>) -> Self {
        Self { _under_way: [Some(first), second], holders: None, changes: None }
    }

    /// Returns the same for a change that others are told of. It is for `comity-coherence`.
    #[must_use]
    pub fn told_to(self, holders: Arc<dyn DirectoryHolders + 'a>) -> Self {
        Self { holders: Some(holders), ..self }
    }

    /// Returns the permission to change the attributes of the object whose change is under way.
    #[must_use]
    pub fn of_object(&self) -> Clearance<'_> {
        let holders = self.holders.as_deref().map(|holders| holders as _);
        Clearance { holders, changes: self.changes }
    }

    /// Returns the same for a change that is noted. It is for `comity-coherence`.
    #[must_use]
    pub fn noted_in(self, changes: ChangesBy<'a>) -> Self {
        Self { changes: Some(changes), ..self }
    }

    /// Returns whether somebody wants to know which objects are changed.
    pub(super) fn are_watched(&self) -> bool {
        self.changes.is_some_and(|changes| changes.objects.are_watched())
    }

    /// Notes the change of an object after it was made.
    pub(super) fn changed(&self, object: impl FnOnce() -> FileKey) {
        self.of_object().changed(object);
    }
}

/// A change of a directory that is counted as under way until this value is dropped.
#[derive(Debug)]
pub struct ChangeUnderWay<'a>(&'a AtomicUsize);

impl<'a> ChangeUnderWay<'a> {
    /// Counts a change in the number of those that are under way. It must be called before the
    /// delegations of the directory are looked at.
    #[must_use]
    pub fn begin(changes: &'a AtomicUsize) -> Self {
        changes.fetch_add(1, Ordering::SeqCst);
        Self(changes)
    }
}

impl Clone for ChangeUnderWay<'_> {
    fn clone(&self) -> Self {
        Self::begin(self.0)
    }
}

impl Drop for ChangeUnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl View<'_> {
    /// Returns whether the caller counts as the owner of an object or as the superuser.
    ///
    /// # Errors
    /// [`comity_vfs::Status`].
    pub fn owns(&self, node: &Node) -> Result<bool> {
        match self.gate(node, Operation::SetAttributes) {
            Ok(at) => at.fs.owns(at.cred, node.handle()),
            Err(Status::Acces) => Ok(false),
            Err(why) => Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_under_way_as_long_as_its_clearance_lives() {
        let (first, second) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let counts = || (first.load(Ordering::SeqCst), second.load(Ordering::SeqCst));
        let begin = ChangeUnderWay::begin;
        let cleared = DirectoryClearance::during(begin(&first), Some(begin(&second)));
        let again = cleared.clone();
        assert_eq!(counts(), (2, 2));
        drop(cleared);
        assert_eq!(counts(), (1, 1));
        drop(again);
        assert_eq!(counts(), (0, 0));
    }
}
