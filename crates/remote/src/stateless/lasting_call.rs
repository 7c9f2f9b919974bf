use comity_vfs::Status;

use super::call::{StatelessCall, StatelessReply};
use super::machine::StatelessMachine;
use crate::engine::{Aftermath, ClientEngine};
use crate::machine::CallFailure;
use crate::rpc::RpcRefusal;

/// A call to a program that is asked again and again.
pub(crate) struct LastingCall<'a> {
    /// The call.
    pub(crate) call: StatelessCall,
    /// Makes the code that takes in the outcome if the caller is interrupted, or waits no longer.
    /// Without it nobody cares for the outcome then.
    pub(crate) then: Option<&'a dyn Fn() -> Aftermath<StatelessMachine>>,
}

/// Why a call has no reply.
pub(super) enum AskFailure {
    /// There is no such program where it was asked.
    Unavailable,
    /// The program has not answered in time.
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

    /// Nobody makes the call again, though it was not answered.
    pub(super) fn abandon(&self, engine: &ClientEngine<StatelessMachine>) {
        let next = self.then.and_then(|then| then()(Err(CallFailure::TimedOut)));
        if let Some(next) = next {
            engine.follow_up(next);
        }
    }
}
