//! The order of an owner's operations in 4.0 (RFC 7530, 9.1.7): every open-owner and lock-owner has
//! a seqid, and the reply to its last operation is kept for a retry. Later versions have sessions
//! for that.

use comity_export::Door;
use comity_proto::nfs4::Nfsstat4;
use comity_state::{Error, FileKey, OwnerTurn, SeqidCheck, Stateid};
use comity_xdr::{Checkpoint, Encoder};

use crate::compound::Compound;
use crate::deferred_reply::OwnerReply;
use crate::stop::{Stop, refused};

/// The body of an operation, which runs if its seqid is the next one.
type Work<'w, 'a> = &'w mut dyn FnMut(&mut Compound<'a>, &mut Encoder) -> Result<(), Stop>;

impl<'a> Compound<'a> {
    /// Runs an operation on the current file for the owner that a stateid names, if its seqid is
    /// the next one.
    pub(crate) fn in_turn_of(
        &mut self,
        file: &FileKey,
        (stateid, seqid): (&Stateid, u32),
        reply: &mut Encoder,
        work: Work<'_, 'a>,
    ) -> Result<(), Stop> {
        if self.minor > 0 {
            return work(self, reply);
        }
        let turn = self.engine().stateid_turn(self.at(file), stateid, seqid);
        self.in_turn(turn, reply, work)
    }

    /// Runs an operation of an owner if its seqid is the next one, or repeats the kept reply.
    pub(crate) fn in_turn(
        &mut self,
        turn: Result<SeqidCheck, Error>,
        reply: &mut Encoder,
        work: Work<'_, 'a>,
    ) -> Result<(), Stop> {
        let turn = match turn.map_err(refused)? {
            SeqidCheck::Again(again) => {
                let (operation, result) = again.result.split_at_checked(4).unwrap_or_default();
                if operation != self.operation.to_be_bytes() {
                    return Err(Nfsstat4::BadSeqid.into());
                }
                if let Some(handle) = &again.handle {
                    let object = self.enter(Door::Handle(handle))?;
                    self.go_to(object);
                }
                return repeat(result, reply);
            }
            SeqidCheck::New(turn) => turn,
        };
        let begin = reply.checkpoint();
        let done = work(self, reply);
        self.keep(turn, begin, reply, &done);
        done
    }

    /// Keeps the reply for a retry, or prepares it if it must wait for a barrier.
    fn keep(
        &mut self,
        turn: OwnerTurn,
        begin: Checkpoint,
        reply: &Encoder,
        done: &Result<(), Stop>,
    ) {
        let (status, body) = match done {
            Ok(()) => (Nfsstat4::Ok, reply.contiguous_since(begin)),
            Err(Stop::Told(status)) => (*status, reply.contiguous_since(begin)),
            Err(Stop::Status(status)) => (*status, Some(&[][..])),
            Err(Stop::Replay(_)) => return,
        };
        if !counts(status) {
            return;
        }
        let mut result = self.operation.to_be_bytes().to_vec();
        result.extend_from_slice(&(status as u32).to_be_bytes());
        result.extend_from_slice(body.unwrap_or_default());
        let handle = self.current.as_ref().map(|object| self.seal(object));
        self.kept = Some(OwnerReply { answer: turn.done(), result, handle });
    }
}

fn repeat(result: &[u8], reply: &mut Encoder) -> Result<(), Stop> {
    let (status, body) = result.split_at_checked(4).unwrap_or_default();
    reply.raw(body);
    match comity_xdr::Decoder::whole(status)? {
        Nfsstat4::Ok => Ok(()),
        status => Err(Stop::Told(status)),
    }
}

/// Returns whether an operation with this status advances the owner's seqid.
const fn counts(status: Nfsstat4) -> bool {
    !matches!(
        status,
        Nfsstat4::StaleClientid
            | Nfsstat4::StaleStateid
            | Nfsstat4::BadStateid
            | Nfsstat4::BadSeqid
            | Nfsstat4::BadXdr
            | Nfsstat4::Resource
            | Nfsstat4::NoFileHandle
            | Nfsstat4::Moved
            | Nfsstat4::WrongCred
    )
}
