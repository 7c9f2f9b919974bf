use crate::machine::Machine;

/// Takes in the outcome of a request whose caller has been interrupted. It may have one more
/// request done, for which nobody waits either. It runs while the engine is locked: it must not
/// wait, nor use the engine.
pub(crate) type Aftermath<M> =
    Box<dyn FnOnce(<M as Machine>::Outcome) -> Option<FollowUp<M>> + Send>;

/// A request for which nobody waits.
pub(crate) struct FollowUp<M: Machine> {
    /// The request.
    pub(crate) request: M::Request,
    /// Takes in its outcome.
    pub(crate) then: Aftermath<M>,
}
