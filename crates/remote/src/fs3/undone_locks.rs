use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_proto::nlm::{Nlm4Res, Nlm4Stats};
use comity_vfs::{Handle, LockOwner};

use crate::engine::{Aftermath, FollowUp};
use crate::machine::CallFailure;
use crate::stateless::{StatelessCall, StatelessMachine};

/// A file and an owner of locks.
pub(super) type LockKey = (Handle, LockOwner);

/// The files and owners whose locks at the server are uncertain: their callers were interrupted,
/// and calls that undo the locks are still under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Undoing(Arc<Mutex<Vec<LockKey>>>);

/// Marks a file and owner as uncertain until it is dropped.
#[derive(Debug)]
pub(super) struct UndoingMark {
    undoing: Undoing,
    key: LockKey,
}

impl Undoing {
    /// Marks a file and owner as uncertain.
    pub(super) fn begin(&self, key: LockKey) -> UndoingMark {
        self.keys().push(key);
        UndoingMark { undoing: self.clone(), key }
    }

    /// Returns whether a lock of this file and owner is being undone.
    pub(super) fn has(&self, key: &LockKey) -> bool {
        self.keys().contains(key)
    }

    fn keys(&self) -> MutexGuard<'_, Vec<LockKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UndoingMark {
    fn drop(&mut self) {
        let mut keys = self.undoing.keys();
        if let Some(at) = keys.iter().position(|key| *key == self.key) {
            keys.swap_remove(at);
        }
    }
}

/// Handles the reply to a LOCK that nobody waits for: the lock is undone unless it was refused.
pub(super) fn undo_by(
    calls: VecDeque<StatelessCall>,
    mark: UndoingMark,
) -> Aftermath<StatelessMachine> {
    Box::new(move |outcome| {
        let told = outcome.as_ref().ok().map(|reply| reply.read::<Nlm4Res<'_>>());
        let is_refused = matches!(told, Some(Ok(told)) if told.stat != Nlm4Stats::Granted);
        if is_refused { None } else { next(calls, mark) }
    })
}

/// Handles the outcome of the first call: repeats it if it timed out, then makes the other calls in
/// the same way.
pub(super) fn until_answered(
    mut calls: VecDeque<StatelessCall>,
    mark: UndoingMark,
) -> Aftermath<StatelessMachine> {
    Box::new(move |outcome| {
        if !matches!(outcome, Err(CallFailure::TimedOut)) {
            calls.pop_front();
        }
        next(calls, mark)
    })
}

fn next(calls: VecDeque<StatelessCall>, mark: UndoingMark) -> Option<FollowUp<StatelessMachine>> {
    let request = calls.front()?.clone();
    Some(FollowUp { request, then: until_answered(calls, mark) })
}

#[cfg(test)]
mod tests {
    use comity_rpc::{ReplyVerifier, accepted};
    use comity_xdr::{Encoder, Opaque};

    use super::*;
    use crate::stateless::{StatelessOutcome, StatelessReply};

    const KEY: fn() -> LockKey = || (Handle::new(b"file").unwrap(), LockOwner(1));

    fn call(number: u32) -> StatelessCall {
        StatelessCall::new((number, 4, 2), b"", &())
    }

    fn calls(numbers: &[u32]) -> VecDeque<StatelessCall> {
        numbers.iter().map(|number| call(*number)).collect()
    }

    fn reply(stat: Nlm4Stats) -> StatelessOutcome {
        let mut reply = Encoder::new();
        accepted::success(&mut reply, 1, &ReplyVerifier::Empty);
        reply.value(&Nlm4Res { cookie: Opaque(b""), stat });
        Ok(StatelessReply::parse(reply.bytes().to_vec()).unwrap())
    }

    fn is(next: &FollowUp<StatelessMachine>, number: u32) -> bool {
        next.request.record == call(number).record
    }

    #[test]
    fn calls_that_undo_a_lock_are_made_one_after_the_other_until_each_is_answered() {
        let undoing = Undoing::default();
        let undo = undo_by(calls(&[1, 2]), undoing.begin(KEY()));
        let first = undo(reply(Nlm4Stats::Granted)).unwrap();
        assert!(is(&first, 1));
        let again = (first.then)(Err(CallFailure::TimedOut)).unwrap();
        assert!(is(&again, 1) && undoing.has(&KEY()));
        let second = (again.then)(reply(Nlm4Stats::Granted)).unwrap();
        assert!(is(&second, 2) && undoing.has(&KEY()));
        assert!((second.then)(reply(Nlm4Stats::Granted)).is_none());
        assert!(!undoing.has(&KEY()));
    }

    #[test]
    fn a_lock_that_was_refused_is_not_undone() {
        let undoing = Undoing::default();
        let undo = undo_by(calls(&[1]), undoing.begin(KEY()));
        assert!(undo(reply(Nlm4Stats::Denied)).is_none());
        assert!(!undoing.has(&KEY()));
        let undo = undo_by(calls(&[1]), undoing.begin(KEY()));
        assert!(undo(Err(CallFailure::TimedOut)).is_some(), "it may be granted later");
    }

    #[test]
    fn an_unlock_that_timed_out_is_repeated() {
        let undoing = Undoing::default();
        let then = until_answered(calls(&[1]), undoing.begin(KEY()));
        let again = then(Err(CallFailure::TimedOut)).unwrap();
        assert!(is(&again, 1));
        assert!((again.then)(reply(Nlm4Stats::Granted)).is_none());
        assert!(!undoing.has(&KEY()));
    }
}
