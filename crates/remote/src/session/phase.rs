/// The way of a client to a session in which requests are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientPhase {
    /// Nothing has begun.
    Idle,
    /// The client introduces itself (EXCHANGE_ID).
    Introducing,
    /// It makes a session (CREATE_SESSION).
    CreatingSession,
    /// It reclaims its opens, locks and delegations.
    Reclaiming,
    /// It says that it has reclaimed all (RECLAIM_COMPLETE).
    Completing,
    /// Requests are done.
    Ready,
    /// The client has ended, or could not be introduced.
    Ended,
}
