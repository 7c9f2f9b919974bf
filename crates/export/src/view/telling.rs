//! Changes of names, of which clients that hold the directories are notified.

use comity_vfs::{
    Attr, Change, Changed, Cred, Disk, Handle, Name, NamedObject, NoticedAttributes, Result, Wire,
};

use super::name_change::telling;
use super::{ChangedPlace, Clearance, DirectoryClearance, NameChange, Node, View};

/// A name in a directory of the file system.
type EntryName<'n> = (&'n Handle, Name<'n>);

impl View<'_> {
    /// Makes a name, and notifies the holders. `object` returns the object from the result.
    pub(super) fn tell_name<T>(
        &self,
        cleared: &DirectoryClearance<'_>,
        (dir, name): (&Node, Name<'_>),
        make: impl FnOnce() -> Result<Changed<T, Disk>>,
        object: impl Fn(&Changed<T, Disk>) -> (Handle, Attr<Disk>),
    ) -> Result<Changed<T, Disk>> {
        let make = || {
            let made = make()?;
            self.note_changed(cleared, &[Some(dir.handle()), Some(&object(&made).0)]);
            Ok(made)
        };
        cleared.telling(make, |made| {
            let place = self.changed((dir.handle(), name), &made.change);
            let (handle, attr) = object(made);
            Some(NameChange::Added { place, object: self.named(&handle, &attr) })
        })
    }

    /// Notes that the attributes of these objects were changed.
    fn note_changed(&self, cleared: &DirectoryClearance<'_>, objects: &[Option<&Handle>]) {
        for object in objects.iter().copied().flatten() {
            cleared.changed(|| self.resolved.export().key(object));
        }
    }

    /// Returns the object of a name, if somebody wants to know that it is changed.
    fn watched(&self, cleared: &DirectoryClearance<'_>, place: EntryName<'_>) -> Option<Handle> {
        if !cleared.are_watched() {
            return None;
        }
        let found = self.fs().lookup(&Cred::root(), place.0, place.1);
        found.ok().map(|entry| entry.node.handle)
    }

    /// Removes a name, and notifies the holders.
    pub(super) fn tell_removal(
        &self,
        cleared: &DirectoryClearance<'_>,
        (dir, name): (&Node, Name<'_>),
        remove: impl FnOnce() -> Result<Change<Disk>>,
    ) -> Result<Change<Wire>> {
        let place = (dir.handle(), name);
        let gone = self.watched(cleared, place);
        let remove = || {
            let change = remove()?;
            self.note_changed(cleared, &[Some(place.0), gone.as_ref()]);
            Ok(change)
        };
        let change = cleared
            .telling(remove, |change| Some(NameChange::Removed(self.changed(place, change))))?;
        Ok(self.change_out(change))
    }

    /// Moves a name, and notifies the holders.
    pub(super) fn tell_move(
        &self,
        cleared: &DirectoryClearance<'_>,
        (from, to): (EntryName<'_>, EntryName<'_>),
        rename: impl FnOnce() -> Result<(Change<Disk>, Change<Disk>)>,
    ) -> Result<(Change<Wire>, Change<Wire>)> {
        let find = |place: EntryName<'_>| self.fs().lookup(&Cred::root(), place.0, place.1);
        let (moved, replaced) = (self.watched(cleared, from), self.watched(cleared, to));
        let rename = || {
            let replaces = cleared.is_told() && find(to).is_ok();
            let changes = rename()?;
            let objects = [Some(from.0), Some(to.0), moved.as_ref(), replaced.as_ref()];
            self.note_changed(cleared, &objects);
            Ok((changes, replaces))
        };
        let ((source, target), _) = cleared.telling(rename, |((source, target), replaces)| {
            // Two names of one object stay as they are (POSIX, rename).
            if find(from).is_ok() {
                return None;
            }
            let moved = find(to).ok().map(|entry| entry.node);
            Some(NameChange::Moved {
                from: self.changed(from, source),
                to: self.changed(to, target),
                object: moved.map(|moved| self.named(&moved.handle, &moved.attr)),
                replaces: *replaces,
            })
        })?;
        Ok((self.change_out(source), self.change_out(target)))
    }

    /// Passes on the result of a change of an object, and notes the change.
    #[inline]
    pub(super) fn noting<T>(&self, cleared: Clearance<'_>, node: &Node, made: T) -> T {
        cleared.changed(|| self.resolved.export().key(node.handle()));
        made
    }

    /// Sets attributes, and notifies the holders if the object is a directory.
    pub(super) fn tell_attributes(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        set: impl FnOnce() -> Result<Change<Disk>>,
    ) -> Result<Change<Wire>> {
        let set = || self.noting(cleared, node, set());
        let change = telling(cleared.holders, set, |change, holders| {
            let after = change.after.as_ref().map(NoticedAttributes::of);
            holders.tell_attributes(&self.resolved.export().key(node.handle()), after);
        })?;
        Ok(self.change_out(change))
    }

    fn changed<'n>(&self, (dir, name): EntryName<'n>, change: &Change<Disk>) -> ChangedPlace<'n> {
        // The attributes as they are, not as this caller sees them.
        let after = change.after.as_ref().map(NoticedAttributes::of);
        let directory = self.resolved.export().key(dir);
        ChangedPlace { directory, name: name.bytes(), after }
    }

    fn named(&self, handle: &Handle, attr: &Attr<Disk>) -> NamedObject {
        let key = self.resolved.export().key(handle);
        NamedObject { key, fileid: attr.fileid, file_type: attr.file_type }
    }
}
