//! SEQUENCE (RFC 8881, 18.46): the request takes its slot.

use comity_proto::nfs4::{Nfsstat4, Sequence4args, Sequence4resok};
use comity_state::{Sequence, SequenceAnswer, Sequenced, SessionId};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::desk::Desk;
use crate::memory::refused;
use crate::table::Stop;

pub(super) fn sequence(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<Sequence4args>()?;
    let wanted = Sequence {
        session: SessionId(args.sessionid),
        seqid: args.sequenceid,
        slot: args.slotid,
        highest_slot: args.highest_slotid,
        cache_this: args.cachethis,
        digest: compound.digest(),
        connection: compound.connection(),
    };
    let sequenced = compound.engine().sequence(compound.now(), &wanted).map_err(refused)?;
    let (operations, bytes) = (compound.following + 1, compound.request.len());
    let Desk::Sequenced(desk) = &mut compound.desk else { return Err(Nfsstat4::OpIllegal.into()) };
    match sequenced {
        Sequenced::New(ticket, answer) => {
            desk.begin(ticket, operations, bytes)?;
            say(&answer, reply);
        }
        Sequenced::Again(answer) => return Err(Stop::Replay(answer.as_ref().into())),
        Sequenced::Forgotten(answer) => {
            desk.forgotten = true;
            say(&answer, reply);
        }
    }
    Ok(())
}

fn say(answer: &SequenceAnswer, reply: &mut Encoder) {
    reply.value(&Sequence4resok {
        sessionid: answer.session.0,
        sequenceid: answer.seqid,
        slotid: answer.slot,
        highest_slotid: answer.highest_slot,
        target_highest_slotid: answer.target_highest_slot,
        status_flags: answer.status.0,
    });
}
