mod state;

use std::time::Duration;

use comity_credential::CredentialRef;
use comity_export::{Barrier, Door, Node, Plan, Pseudo, RpcPeer, SealedHandle, View};
use comity_proto::nfs4::{Nfsstat4, Stateid4};
use comity_state::Caller;
use comity_xdr::{Checkpoint, Encoder};

use crate::deferred_reply::{OwnerReply, PendingAnswer, PendingResult};
use crate::filehandle::{Object, enter};
use crate::program::Nfs4;
use crate::sequencing::Sequencing;
use crate::stop::Stop;

/// One COMPOUND while it is streamed through its operations.
pub(crate) struct Compound<'a> {
    /// The program.
    pub(crate) nfs: &'a Nfs4,
    /// The exports in force while it is answered.
    pub(crate) plan: &'a Plan,
    /// The caller's connection.
    pub(crate) visitor: &'a RpcPeer,
    /// The caller's credential.
    pub(crate) credential: CredentialRef<'a>,
    /// The principal and origin to which state that it makes belongs.
    pub(crate) caller: Caller,
    /// The arguments, all of them.
    pub(crate) request: &'a [u8],
    /// The minor version.
    pub(crate) minor: u32,
    /// The time at which it was begun.
    pub(crate) now: Duration,
    /// The first operation's outcome: the client and session that SEQUENCE found, and their limits.
    pub(crate) sequencing: Sequencing,
    /// The number of the operation in hand.
    pub(crate) operation: u32,
    /// Operations that follow the one in hand.
    pub(crate) following: u32,
    /// The object of the current file handle.
    pub(crate) current: Option<Object<'a>>,
    /// The object of the saved file handle.
    pub(crate) saved: Option<Object<'a>>,
    /// The current stateid (RFC 8881, 16.2.3.1.2).
    pub(crate) stateid: Stateid4,
    /// The saved stateid.
    pub(crate) saved_stateid: Stateid4,
    /// The beginning of the reply.
    pub(crate) start: Checkpoint,
    /// Barriers and records that must be stable before the reply leaves.
    pub(crate) pending_results: Vec<PendingResult>,
    /// Barriers of the operation in hand.
    pub(crate) barriers: Vec<Barrier>,
    /// The answer of the operation in hand to its owner (4.0).
    pub(crate) kept: Option<OwnerReply>,
    /// Such answers that are not true yet.
    pub(crate) pending_answers: Vec<PendingAnswer>,
}

impl<'a> Compound<'a> {
    /// The object of the current file handle.
    pub(crate) fn object(&self) -> Result<&Object<'a>, Stop> {
        self.current.as_ref().ok_or(Stop::Status(Nfsstat4::NoFileHandle))
    }

    /// The current object, if it is one of an export; a directory above them is refused with
    /// `otherwise`.
    pub(crate) fn real(&self, otherwise: Nfsstat4) -> Result<(&View<'a>, &Node), Stop> {
        match self.object()? {
            Object::In(view, node) => Ok((view, node)),
            Object::Pseudo(_) => Err(otherwise.into()),
        }
    }

    /// The same of the saved file handle.
    pub(crate) fn real_saved(&self, otherwise: Nfsstat4) -> Result<(&View<'a>, &Node), Stop> {
        match &self.saved {
            Some(Object::In(view, node)) => Ok((view, node)),
            Some(Object::Pseudo(_)) => Err(otherwise.into()),
            None => Err(Nfsstat4::NoFileHandle.into()),
        }
    }

    /// Goes on with another object; a stateid that was current was of the one before.
    pub(crate) fn go_to(&mut self, object: Object<'a>) {
        self.current = Some(object);
        self.stateid = Stateid4::INVALID;
    }

    /// The tree above the exports, as this caller sees it.
    pub(crate) fn pseudo(&self) -> Pseudo<'a> {
        self.plan.pseudo(self.visitor)
    }

    /// Opens the object that `door` names, if the caller may reach it.
    pub(crate) fn enter(&self, door: Door<'_>) -> Result<Object<'a>, Stop> {
        enter(self.plan, self.visitor, &self.credential, door)
    }

    /// An object's handle, ready to travel.
    pub(crate) fn seal(&self, object: &Object<'_>) -> SealedHandle {
        match object {
            Object::Pseudo(node) => self.plan.pseudo(self.visitor).seal(node),
            Object::In(view, node) => view.seal(node),
        }
    }

    /// The operation in hand is true only when `barrier` has been waited for.
    pub(crate) fn behind(&mut self, barrier: Option<Barrier>) {
        self.barriers.extend(barrier);
    }

    /// Bytes that the reply may still grow by.
    pub(crate) fn room(&self, reply: &Encoder) -> usize {
        self.sequencing.reply_bytes_max().saturating_sub(reply.length_since(self.start))
    }
}
