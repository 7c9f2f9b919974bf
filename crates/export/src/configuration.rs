use crate::export_spec::ExportSpec;
use crate::placement::PlacementSpec;
use crate::{PeerServer, ServerSettings};

/// The contents of a configuration.
#[derive(Debug, Default)]
pub struct Configuration {
    /// The settings of the server.
    pub server: ServerSettings,
    /// The exports.
    pub(crate) exports: Vec<ExportSpec>,
    /// The placements of exports on data servers.
    pub(crate) placements: Vec<PlacementSpec>,
    /// The servers with which this one exchanges exports.
    pub peers: Vec<PeerServer>,
}
