use comity_tls::Handshake;

use crate::memory_budget::Charge;

/// A handshake that is under way.
pub(crate) struct Handshaking {
    pub(crate) handshake: Box<Handshake>,
    /// The second in which it began.
    pub(crate) begun: u32,
    /// True if the handshake has been counted among those of strangers, or the peer is no stranger.
    pub(crate) is_counted: bool,
    pub(crate) _charge: Charge,
}
