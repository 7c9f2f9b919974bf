//! SEQUENCE (RFC 8881, 18.46): the request gets its slot.

use comity_proto::nfs4::{Nfsstat4, Sequence4args};
use comity_state::{Sequence, SequenceAnswer, Sequenced, SessionId, StatusFlags};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::limits::CALL_HEADER_BYTES_MIN;
use crate::sequencing::Sequencing;
use crate::stop::{Stop, refused};

pub(super) fn sequence(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let (args, following) = (args.value::<Sequence4args>()?, args.rest());
    let wanted = Sequence {
        session: SessionId(args.sessionid),
        seqid: args.sequenceid,
        slot: args.slotid,
        highest_slot: args.highest_slotid,
        cache_this: args.cachethis,
        operations: compound.following + 1,
        request_bytes: compound.request.len() + CALL_HEADER_BYTES_MIN,
        digest: compound.digest(following),
        connection: compound.connection(),
        origin: compound.caller.origin,
    };
    let answer = compound.engine().sequence(compound.now(), &wanted).map_err(refused)?;
    let Sequencing::Sequenced(sequenced) = &mut compound.sequencing else {
        return Err(Nfsstat4::OpIllegal.into());
    };
    match answer {
        Sequenced::New(ticket) => {
            say(ticket.answer(), reply);
            if ticket.answer().status.has(StatusFlags::LEASE_MOVED) {
                compound.lease_moved = Some((reply.last_word(), ticket.answer().status));
            }
            sequenced.begin(ticket);
        }
        Sequenced::Again(answer) => return Err(Stop::Replay(answer.as_ref().into())),
        Sequenced::Forgotten(answer) => {
            sequenced.forgotten = true;
            say(&answer, reply);
        }
    }
    Ok(())
}

/// Appends `Sequence4resok`. The words are written together because every reply has them.
fn say(answer: &SequenceAnswer, reply: &mut Encoder) {
    reply.raw(&answer.session.0);
    let SequenceAnswer { seqid, slot, highest_slot, target_highest_slot, .. } = *answer;
    reply.words([seqid, slot, highest_slot, target_highest_slot, answer.status.0]);
}
