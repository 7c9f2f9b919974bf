//! The directories of a trace as they are on the server.

use std::collections::HashMap;

use super::event::Event;

/// The directories, by number.
#[derive(Debug, Default)]
pub(super) struct DirectoryTree {
    numbers: HashMap<String, u32>,
    /// The number of changes of each directory.
    versions: HashMap<u32, u64>,
    names: HashMap<(u32, String), TreeName>,
}

/// A name of a directory.
#[derive(Debug, Clone, Copy)]
struct TreeName {
    is_there: bool,
    /// The number of the last change of the name; 0 before the first.
    changed: u64,
    /// True if the name was there before the last change.
    was_there: bool,
}

impl DirectoryTree {
    /// The directories before the trace.
    pub(super) fn new(events: &[Event]) -> Self {
        let mut tree = Self::default();
        for (directory, name, is_there) in events.iter().flat_map(Event::before) {
            let directory = tree.number(directory);
            if let Some(name) = name {
                let name = (directory, name.to_owned());
                let first = TreeName { is_there, changed: 0, was_there: is_there };
                tree.names.entry(name).or_insert(first);
            }
        }
        tree
    }

    /// The number of a directory.
    pub(super) fn number(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(path.to_owned(), number);
        number
    }

    /// The number of changes of a directory.
    pub(super) fn version(&self, directory: u32) -> u64 {
        self.versions.get(&directory).copied().unwrap_or(0)
    }

    /// Notes that a name is there or not, as a trace says.
    pub(super) fn observe(&mut self, directory: u32, name: &str, is_there: bool) {
        let first = TreeName { is_there, changed: 0, was_there: is_there };
        let name = self.names.entry((directory, name.to_owned())).or_insert(first);
        name.is_there = is_there;
    }

    /// Returns whether a name is there.
    pub(super) fn is_there(&self, directory: u32, name: &str) -> bool {
        self.names.get(&(directory, name.to_owned())).is_some_and(|name| name.is_there)
    }

    /// Returns whether a name was there after so many changes of its directory.
    pub(super) fn was_there(&self, directory: u32, name: &str, version: Option<u64>) -> bool {
        let name = self.names.get(&(directory, name.to_owned()));
        name.is_some_and(|name| match version {
            Some(version) if version < name.changed => name.was_there,
            _ => name.is_there,
        })
    }

    /// Changes a name; returns the number of changes of the directory.
    pub(super) fn change(&mut self, directory: u32, name: &str, is_there: bool) -> u64 {
        let version = self.versions.entry(directory).or_default();
        *version += 1;
        let was_there = self.names.get(&(directory, name.to_owned()));
        let was_there = was_there.is_some_and(|name| name.is_there);
        let name = (directory, name.to_owned());
        self.names.insert(name, TreeName { is_there, changed: *version, was_there });
        *version
    }
}
