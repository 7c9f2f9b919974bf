//! The exceptions of docs/semantics.md: traces of hidden objects that cannot be hidden.

use comity_vfs::{Access, FileType, Name};

use super::twins::{Target, Twins, entries, root};

/// A directory and a name in it that a call makes or moves.
pub(crate) type Place = (Target, Vec<u8>);

/// The kinds of traces that a call may meet and that cannot be hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exception {
    /// A hidden object has the name that a call would make.
    OntoHidden,
    /// A directory that a call would remove has only hidden entries.
    OnlyHidden,
}

impl Twins {
    /// The trace that a call meets if it would make the name `onto`, or remove the directory
    /// `emptied`.
    pub(crate) fn exception(
        &self,
        onto: Option<&Place>,
        emptied: Option<&Place>,
    ) -> Option<Exception> {
        if onto.is_some_and(|place| self.is_hidden(place) && self.may_add(place)) {
            return Some(Exception::OntoHidden);
        }
        self.holds_only_hidden(emptied?).then_some(Exception::OnlyHidden)
    }

    fn is_hidden(&self, (dir, name): &Place) -> bool {
        let fs = &self.twins[0].fs;
        let Ok(name) = Name::new(name) else { return false };
        let found = fs.lookup(&root(), &dir.handles[0], name);
        found.is_ok_and(|entry| self.hides(&entry.node.attr))
    }

    fn may_add(&self, (dir, _): &Place) -> bool {
        let (fs, wanted) = (&self.twins[0].fs, Access::EXTEND | Access::LOOKUP);
        let granted = fs.access(&self.caller.disk, &dir.handles[0], wanted);
        granted.is_ok_and(|(granted, _)| granted.contains(wanted))
    }

    /// Lists the directory on both servers, because listing changes the access time.
    fn holds_only_hidden(&self, (dir, name): &Place) -> bool {
        let Ok(name) = Name::new(name) else { return false };
        let held = [0, 1].map(|side| {
            let fs = &self.twins[side].fs;
            let node = fs.lookup(&root(), &dir.handles[side], name).ok()?.node;
            (node.attr.file_type == FileType::Directory).then(|| entries(&**fs, &node.handle))
        });
        let [Some(held), Some(_)] = held else { return false };
        !held.is_empty() && held.iter().all(|(_, attr)| self.hides(attr))
    }
}
