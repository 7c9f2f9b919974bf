use comity_vfs::Status;

use super::call::{StatelessCall, StatelessReply};
use super::machine::StatelessMachine;
use crate::engine::{Aftermath, ClientEngine};
use crate::machine::CallFailure;
use crate::rpc::RpcRefusal;

/// A call to a program whose connection is kept.
pub(crate) struct LastingCall<'a> {
    /// The call.
    pub(crate) call: StatelessCall,
    /// Makes the closure that handles the outcome if the caller is interrupted or gives up. Without
    /// it that outcome is ignored.
    pub(crate) then: Option<&'a dyn Fn() -> Aftermath<StatelessMachine>>,
}

/// The reason why a call has no reply.
pub(super) enum AskFailure {
    /// The server does not offer the program on this port.
    Unavailable,
    /// The program did not answer in time.
    Late,
    /// The call has failed.
    Failed(Status),
}

impl From<AskFailure> for Status {
    fn from(failure: AskFailure) -> Self {
        match failure {
            AskFailure::Unavailable => Self::NotSupp,
            AskFailure::Late => CallFailure::TimedOut.into(),
            AskFailure::Failed(status) => status,
        }
    }
}

impl From<CallFailure> for AskFailure {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Refused(RpcRefusal::ProgramUnavailable) => Self::Unavailable,
            CallFailure::TimedOut => Self::Late,
            failure => Self::Failed(failure.into()),
        }
    }
}

impl LastingCall<'_> {
    /// Makes the call once.
    ///
    /// # Errors
    /// [`AskFailure`].
    pub(super) fn perform(
        &self,
        engine: &ClientEngine<StatelessMachine>,
    ) -> Result<StatelessReply, AskFailure> {
        let call = self.call.clone();
        let done = match self.then {
            Some(then) => engine.perform_to_the_end(call, then),
            None => engine.perform(call.record.len(), call),
        };
        Ok(done.map_err(|interrupted| AskFailure::Failed(interrupted.into()))??)
    }

    /// Gives the call up although it was not answered; the closure handles that as a timeout.
    pub(super) fn abandon(&self, engine: &ClientEngine<StatelessMachine>) {
        let next = self.then.and_then(|then| then()(Err(CallFailure::TimedOut)));
        if let Some(next) = next {
            engine.follow_up(next);
        }
    }
}
