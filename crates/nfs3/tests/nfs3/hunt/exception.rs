//! The exceptions of docs/semantics.md: traces that cannot be hidden.

use comity_vfs::{Access, FileType, Name};

use super::twins::{Target, Twins, entries, root};

/// A name in a directory, made or put there by a call.
pub(crate) type Place = (Target, Vec<u8>);

/// The kinds of traces that a call may meet and that cannot be hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exception {
    /// A hidden object where something is to come to stand.
    OntoHidden,
    /// A directory that is to go and holds only hidden entries.
    OnlyHidden,
}

impl Twins {
    /// The trace that a call meets that would put something `onto` a place, or remove what is
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

    /// Looks at both, so that both are looked at: it shows in times of access.
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
