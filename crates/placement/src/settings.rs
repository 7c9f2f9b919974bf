use comity_vfs::{LayoutKind, Threshold};

use crate::DataServer;

/// The settings of a placement that a reload may change.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementSettings {
    /// The name of the placement in the labels of its data files, such as the folder of its files.
    /// Placements on the same data servers have different names. Of a long name, the end counts.
    pub name: Box<[u8]>,
    /// The number of mirrors of new files; `None` if they are put in stripes.
    pub mirrors: Option<usize>,
    /// The length of the stripe units of new files in bytes.
    pub unit_bytes: u32,
    /// The sizes below which clients should use the metadata server.
    pub threshold: Threshold,
    /// The data servers; new files are placed on those that are not being drained.
    pub servers: Vec<DataServer>,
}

impl PlacementSettings {
    /// The kind of layouts that clients get.
    #[must_use]
    pub const fn layout_kind(&self) -> LayoutKind {
        match self.mirrors {
            None => LayoutKind::Files,
            Some(_) => LayoutKind::FlexibleFiles,
        }
    }

    /// Returns whether new files are placed on the data server of this name.
    pub(crate) fn takes(&self, server: &str) -> bool {
        self.servers.iter().any(|it| *it.name == *server && !it.is_draining)
    }
}
