use comity_vfs::{LayoutKind, Threshold};

use crate::DataServer;
use crate::limits::SMALL_BYTES_MAX;

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
    /// The sizes below which clients should use the metadata server. New files smaller than
    /// `write_file_bytes` stay there until they grow.
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

    /// The size from which on files are on data servers; smaller ones stay on the metadata server
    /// until they grow. `None` if all new files are on data servers.
    pub(crate) fn placed_from_bytes(&self) -> Option<u64> {
        let bytes = self.threshold.write_file_bytes.filter(|bytes| *bytes > 0);
        bytes.map(|bytes| bytes.min(SMALL_BYTES_MAX))
    }

    /// Returns whether new files are placed on the data server of this name.
    pub(crate) fn takes(&self, server: &str) -> bool {
        self.servers.iter().any(|it| *it.name == *server && !it.is_draining)
    }
}
