/// The phases of a client from the start to a usable session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientPhase {
    /// Nothing has begun.
    Idle,
    /// EXCHANGE_ID is under way.
    Introducing,
    /// CREATE_SESSION is under way.
    CreatingSession,
    /// Opens, locks and delegations are being reclaimed.
    Reclaiming,
    /// RECLAIM_COMPLETE is under way.
    Completing,
    /// Requests of callers are sent.
    Ready,
    /// The session and the client ID are being destroyed.
    Leaving,
    /// The client has ended, or the server refused it.
    Ended,
}
