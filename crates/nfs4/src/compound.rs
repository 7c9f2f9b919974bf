mod state;

use std::time::Duration;

use comity_credential::CredentialRef;
use comity_export::{Barrier, Door, Node, Plan, Pseudo, RpcPeer, SealedHandle, View};
use comity_proto::nfs4::{Nfsstat4, Stateid4};
use comity_state::{Caller, StatusFlags};
use comity_xdr::{Checkpoint, Encoder, Word};

use crate::deferred_reply::{OwnerReply, PendingAnswer, PendingResult};
use crate::filehandle::{Object, enter};
use crate::program::Nfs4;
use crate::sequencing::Sequencing;
use crate::stop::Stop;

/// A COMPOUND while its operations are executed.
pub(crate) struct Compound<'a> {
    /// The program.
    pub(crate) nfs: &'a Nfs4,
    /// The exports in force while it is answered.
    pub(crate) plan: &'a Plan,
    /// The caller's connection.
    pub(crate) visitor: &'a RpcPeer,
    /// The caller's credential.
    pub(crate) credential: CredentialRef<'a>,
    /// The principal and the origin to which new state belongs.
    pub(crate) caller: Caller,
    /// All arguments, encoded.
    pub(crate) request: &'a [u8],
    /// The minor version.
    pub(crate) minor: u32,
    /// The time at which it began.
    pub(crate) now: Duration,
    /// The session and its limits, once SEQUENCE has found them.
    pub(crate) sequencing: Sequencing,
    /// The number of the present operation (`nfs_opnum4`).
    pub(crate) operation: u32,
    /// Number of operations after the present one.
    pub(crate) following: u32,
    /// The object of the current filehandle.
    pub(crate) current: Option<Object<'a>>,
    /// The object of the saved filehandle.
    pub(crate) saved: Option<Object<'a>>,
    /// The current stateid (RFC 8881, 16.2.3.1.2).
    pub(crate) stateid: Stateid4,
    /// The saved stateid.
    pub(crate) saved_stateid: Stateid4,
    /// The exports of which the caller was told that they are at another server (4.0).
    pub(crate) placed: Vec<u32>,
    /// The status flags of SEQUENCE, if they say that leases of the client have moved.
    pub(crate) lease_moved: Option<(Word, StatusFlags)>,
    /// The beginning of the reply.
    pub(crate) start: Checkpoint,
    /// The results that must wait for barriers and records before the reply is sent.
    pub(crate) pending_results: Vec<PendingResult>,
    /// Barriers of the present operation.
    pub(crate) barriers: Vec<Barrier>,
    /// The reply of the present operation to its open-owner or lock-owner (4.0).
    pub(crate) kept: Option<OwnerReply>,
    /// Replies to owners that wait for a barrier or a record.
    pub(crate) pending_answers: Vec<PendingAnswer>,
}

impl<'a> Compound<'a> {
    /// Returns the object of the current filehandle.
    pub(crate) fn object(&self) -> Result<&Object<'a>, Stop> {
        self.current.as_ref().ok_or(Stop::Status(Nfsstat4::NoFileHandle))
    }

    /// Returns the number of the export of the current object, if it is inside one.
    pub(crate) fn export(&self) -> Option<u32> {
        match &self.current {
            Some(Object::In(view, _)) => Some(view.export_id().0),
            _ => None,
        }
    }

    /// Returns the current object if it is inside an export. A directory above the exports is
    /// refused with `otherwise`.
    pub(crate) fn real(&self, otherwise: Nfsstat4) -> Result<(&View<'a>, &Node), Stop> {
        match self.object()? {
            Object::In(view, node) => Ok((view, node)),
            Object::Pseudo(_) => Err(otherwise.into()),
            Object::Absent(_) => Err(Nfsstat4::Moved.into()),
        }
    }

    /// Returns the saved object if it is inside an export. A directory above the exports is refused
    /// with `otherwise`.
    pub(crate) fn real_saved(&self, otherwise: Nfsstat4) -> Result<(&View<'a>, &Node), Stop> {
        match &self.saved {
            Some(Object::In(view, node)) => Ok((view, node)),
            Some(Object::Pseudo(_)) => Err(otherwise.into()),
            Some(Object::Absent(_)) => Err(Nfsstat4::Moved.into()),
            None => Err(Nfsstat4::NoFileHandle.into()),
        }
    }

    /// Sets the current object, and clears the current stateid, which belonged to the previous one.
    pub(crate) fn go_to(&mut self, object: Object<'a>) {
        self.current = Some(object);
        self.stateid = Stateid4::INVALID;
    }

    /// Returns the tree above the exports, as this caller sees it.
    pub(crate) fn pseudo(&self) -> Pseudo<'a> {
        self.plan.pseudo(self.visitor)
    }

    /// Returns the object that `door` names, if the caller may access it.
    pub(crate) fn enter(&self, door: Door<'_>) -> Result<Object<'a>, Stop> {
        enter(self.plan, self.visitor, &self.credential, door)
    }

    /// Returns the filehandle of an object.
    pub(crate) fn seal(&self, object: &Object<'_>) -> SealedHandle {
        match object {
            Object::Pseudo(node) => self.plan.pseudo(self.visitor).seal(node),
            Object::In(view, node) => view.seal(node),
            Object::Absent(absent) => absent.seal(),
        }
    }

    /// Notes that the caller was told where an absent file system is. From 4.1 on the session names
    /// the client. In 4.0 a RENEW names it that follows in the COMPOUND.
    /// In the COMPOUND that asks for the last place, SEQUENCE does not say that leases have moved:
    /// Linux takes the flag for another move, and gives up.
    pub(crate) fn tell_place(&mut self, export: u32, reply: &mut Encoder) {
        let Some(client) = self.client() else {
            if matches!(self.sequencing, Sequencing::Unsequenced) {
                self.placed.push(export);
            }
            return;
        };
        client.knows_place(export);
        let still_moved = client.has_moved_lease();
        if let Some((word, status)) = self.lease_moved.take_if(|_| !still_moved) {
            reply.set(word, status.without(StatusFlags::LEASE_MOVED).0);
        }
    }

    /// Adds a barrier that the result of the present operation must wait for.
    pub(crate) fn behind(&mut self, barrier: Option<Barrier>) {
        self.barriers.extend(barrier);
    }

    /// Returns the number of bytes that the reply may still grow.
    pub(crate) fn room(&self, reply: &Encoder) -> usize {
        self.sequencing.reply_bytes_max().saturating_sub(reply.length_since(self.start))
    }
}
