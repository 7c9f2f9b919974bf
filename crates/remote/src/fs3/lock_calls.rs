//! The calls of NLM, version 4.

use std::collections::VecDeque;

use comity_proto::nlm::{
    self, Nlm4Lock, Nlm4Lockargs, Nlm4Res, Nlm4Stats, Nlm4Testargs, Nlm4Unlockargs, procedure,
};
use comity_vfs::{RangeLock, Result};
use comity_xdr::{Decoder, Encode, Opaque};

use super::locks::NlmLock;
use super::remote3::Remote3;
use super::undone_locks::{undo_by, until_answered};
use crate::engine::Aftermath;
use crate::server_handle::ServerHandle;
use crate::stateless::{LastingCall, StatelessCall, StatelessMachine, StatelessReply};

impl Remote3 {
    /// Sends LOCK; `number` is that of the lock's owner. If the caller is interrupted, a lock that
    /// is granted later is undone.
    pub(super) fn ask_to_lock(
        &self,
        held: &NlmLock,
        number: i32,
        reclaim: bool,
    ) -> Result<StatelessReply> {
        let call = self.lock_call(held, number, reclaim)?;
        let then =
            || undo_by(self.undoing_calls(held, number), self.locks.undoing.begin(held.key()));
        self.ask_nlm(call, Some(&then))
    }

    /// Sends UNLOCK. The call is repeated until it is answered, even if the caller is interrupted.
    pub(super) fn ask_to_unlock(&self, held: &NlmLock, number: i32) -> Result<StatelessReply> {
        let call = self.unlock_call(held, number)?;
        let then = || {
            let calls = VecDeque::from([call.clone()]);
            until_answered(calls, self.locks.undoing.begin(held.key()))
        };
        self.ask_nlm(call.clone(), Some(&then))
    }

    /// Sends TEST, which returns the lock that conflicts with this one.
    pub(super) fn ask_who_holds(&self, asked: &NlmLock, number: i32) -> Result<StatelessReply> {
        let file = self.file(&asked.node)?;
        let owner = asked.owner.0.to_be_bytes();
        let alock = self.alock(&file, asked, (number, &owner));
        let (cookie, exclusive) = (Opaque(&owner[..]), asked.is_exclusive);
        let arguments = Nlm4Testargs { cookie, exclusive, alock };
        self.ask_nlm(call(procedure::TEST, asked, &arguments, is_in_grace), None)
    }

    /// The calls that restore the bytes of a lock to their state before it was requested.
    fn undoing_calls(&self, undone: &NlmLock, number: i32) -> VecDeque<StatelessCall> {
        let below = self.locks.below(undone).into_iter();
        let calls = below.map(|(lock, kind)| match kind {
            RangeLock::Free => self.unlock_call(&lock, number),
            RangeLock::Shared | RangeLock::Exclusive => self.lock_call(&lock, number, false),
        });
        calls.filter_map(Result::ok).collect()
    }

    fn lock_call(&self, held: &NlmLock, number: i32, reclaim: bool) -> Result<StatelessCall> {
        let file = self.file(&held.node)?;
        let owner = held.owner.0.to_be_bytes();
        let alock = self.alock(&file, held, (number, &owner));
        let (cookie, block, exclusive) = (Opaque(&owner[..]), false, held.is_exclusive);
        let arguments = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 0 };
        let is_put_off = if reclaim { |_: &[u8]| false } else { is_in_grace };
        Ok(call(procedure::LOCK, held, &arguments, is_put_off))
    }

    fn unlock_call(&self, held: &NlmLock, number: i32) -> Result<StatelessCall> {
        let file = self.file(&held.node)?;
        let owner = held.owner.0.to_be_bytes();
        let alock = self.alock(&file, held, (number, &owner));
        let arguments = Nlm4Unlockargs { cookie: Opaque(&owner), alock };
        Ok(call(procedure::UNLOCK, held, &arguments, is_in_grace))
    }

    fn alock<'a>(
        &'a self,
        file: &'a ServerHandle,
        held: &NlmLock,
        (svid, owner): (i32, &'a [u8]),
    ) -> Nlm4Lock<'a> {
        let (first, last) = held.bytes;
        let l_len = if last == u64::MAX { 0 } else { last - first + 1 };
        let (caller_name, fh) = (Opaque(self.locks.caller_name.as_slice()), Opaque(file.bytes()));
        Nlm4Lock { caller_name, fh, oh: Opaque(owner), svid, l_offset: first, l_len }
    }

    fn ask_nlm(
        &self,
        call: StatelessCall,
        then: Option<&dyn Fn() -> Aftermath<StatelessMachine>>,
    ) -> Result<StatelessReply> {
        let (program, call) = ((nlm::PROGRAM, nlm::VERSION), LastingCall { call, then });
        self.locks.programs.ask_lasting(&self.engine, program, &call)
    }
}

/// Makes a call with the credential of the caller that has opened the lock's file.
fn call(
    procedure: u32,
    held: &NlmLock,
    arguments: &impl Encode,
    is_put_off: fn(&[u8]) -> bool,
) -> StatelessCall {
    let procedure = (nlm::PROGRAM, nlm::VERSION, procedure);
    let call = StatelessCall::new(procedure, &held.caller.credential, arguments);
    StatelessCall { is_put_off, ..call }
}

/// Returns whether the server is in its grace period, in which it grants only reclaims.
fn is_in_grace(results: &[u8]) -> bool {
    let told = Decoder::new(results).value::<Nlm4Res<'_>>();
    told.is_ok_and(|told| told.stat == Nlm4Stats::DeniedGracePeriod)
}
