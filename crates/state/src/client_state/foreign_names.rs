//! Names of states that another engine gave.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::StateName;
use crate::id_hasher::BuildIdHasher;

/// The names by which a client knows states that came from an engine at which it has another
/// clientid.
#[derive(Debug, Default)]
pub(super) struct ForeignNames {
    numbers: HashMap<StateName, u32, RandomState>,
    names: HashMap<u32, StateName, BuildIdHasher>,
}

impl ForeignNames {
    /// Notes the name of the state with this number.
    pub(super) fn insert(&mut self, number: u32, name: StateName) {
        self.numbers.insert(name, number);
        self.names.insert(number, name);
    }

    /// Forgets the name of a state, if it has one.
    pub(super) fn remove(&mut self, number: u32) {
        if let Some(name) = self.names.remove(&number) {
            self.numbers.remove(&name);
        }
    }

    /// Returns the number of the state with this name.
    pub(super) fn number(&self, name: StateName) -> Option<u32> {
        self.numbers.get(&name).copied()
    }

    /// Returns the name of the state with this number.
    pub(super) fn name(&self, number: u32) -> Option<StateName> {
        self.names.get(&number).copied()
    }
}
