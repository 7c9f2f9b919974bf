use crate::machine::Machine;

/// Handles the outcome of a request whose caller was interrupted, and may return one more request
/// that nobody waits for. It runs while the engine is locked: it must not block or use the engine.
pub(crate) type Aftermath<M> =
    Box<dyn FnOnce(<M as Machine>::Outcome) -> Option<FollowUp<M>> + Send>;

/// A request without a waiting caller.
pub(crate) struct FollowUp<M: Machine> {
    /// The request.
    pub(crate) request: M::Request,
    /// Handles its outcome.
    pub(crate) then: Aftermath<M>,
}
