use crate::{Fences, PlacementKey};

/// The key and the fences by which a data server judges the handles of layouts.
#[derive(Debug)]
pub struct DataStore {
    /// The secret that it shares with the metadata server.
    pub key: PlacementKey,
    /// The fences of its files.
    pub fences: Fences,
}

impl DataStore {
    /// Makes the store of a data server with this key.
    #[must_use]
    pub fn new(key: PlacementKey) -> Self {
        Self { key, fences: Fences::default() }
    }
}
