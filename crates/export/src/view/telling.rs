//! Changes of names, of which clients that hold the directories are notified.

use comity_vfs::{Attr, Change, Changed, Cred, Disk, Handle, Name, NamedObject, Result, Wire};

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
        object: impl FnOnce(&Changed<T, Disk>) -> (Handle, Attr<Disk>),
    ) -> Result<Changed<T, Disk>> {
        cleared.telling(make, |made| {
            let place = self.changed((dir.handle(), name), &made.change);
            let (handle, attr) = object(made);
            Some(NameChange::Added { place, object: self.named(&handle, &attr) })
        })
    }

    /// Removes a name, and notifies the holders.
    pub(super) fn tell_removal(
        &self,
        cleared: &DirectoryClearance<'_>,
        (dir, name): (&Node, Name<'_>),
        remove: impl FnOnce() -> Result<Change<Disk>>,
    ) -> Result<Change<Wire>> {
        let place = (dir.handle(), name);
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
        let rename = || {
            let replaces = cleared.is_told() && find(to).is_ok();
            Ok((rename()?, replaces))
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

    /// Sets attributes, and notifies the holders if the object is a directory.
    pub(super) fn tell_attributes(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        set: impl FnOnce() -> Result<Change<Disk>>,
    ) -> Result<Change<Wire>> {
        let change = telling(cleared.holders, set, |change, holders| {
            let after = change.after.map(|attr| self.attr_out(&attr));
            holders.tell_attributes(&self.resolved.export().key(node.handle()), after.as_ref());
        })?;
        Ok(self.change_out(change))
    }

    fn changed<'n>(&self, (dir, name): EntryName<'n>, change: &Change<Disk>) -> ChangedPlace<'n> {
        let after = change.after.map(|attr| self.attr_out(&attr));
        let directory = self.resolved.export().key(dir);
        ChangedPlace { directory, name: name.bytes(), after }
    }

    fn named(&self, handle: &Handle, attr: &Attr<Disk>) -> NamedObject {
        let key = self.resolved.export().key(handle);
        NamedObject { key, fileid: attr.fileid, file_type: attr.file_type }
    }
}
