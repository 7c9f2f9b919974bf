use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use comity_vfs::{Handle, Name};

use crate::limits::DUE_LABELS_MAX;
use crate::names::NamedIn;

/// The files of which data files lack a label or have an old one, each with the name that it has
/// got, if that is known: to search for it would take reading its directory.
#[derive(Default)]
pub(crate) struct DueLabels(Mutex<HashMap<Handle, Option<NamedIn>>>);

impl DueLabels {
    /// Notes a file. If there is no room, its label is written by the next walk of all files.
    pub(crate) fn note(&self, file: &Handle) {
        self.add(file, None);
    }

    /// Notes a file that has got a name.
    pub(crate) fn note_named(&self, file: &Handle, (dir, name): (&Handle, Name<'_>)) {
        self.add(file, Some((*dir, name.bytes().into())));
    }

    fn add(&self, file: &Handle, named: Option<NamedIn>) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() < DUE_LABELS_MAX || files.contains_key(file) {
            let known = files.entry(*file).or_default();
            *known = named.or_else(|| known.take());
        }
    }

    /// Takes all files.
    pub(crate) fn take(&self) -> HashMap<Handle, Option<NamedIn>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_the_last_name_that_it_has_got() {
        let due = DueLabels::default();
        let [file, other, dir] = [1, 2, 3].map(|byte| Handle::new(&[byte]).unwrap());
        for name in [&b"first"[..], b"second"] {
            due.note_named(&file, (&dir, Name::new(name).unwrap()));
        }
        [&file, &other].iter().for_each(|it| due.note(it));
        let taken = due.take();
        assert_eq!(taken[&file], Some((dir, b"second"[..].into())));
        assert_eq!((taken.len(), &taken[&other]), (2, &None));
        assert!(due.take().is_empty());
    }
}
