//! Sessions with their slots and replies.

use std::sync::Arc;
use std::time::Duration;

use comity_xdr::{Decoder, Encoder, Malformed};

use super::value::{Field, fields, lists, variants};
use crate::{
    BackChannel, CallbackSecurity, ChannelAttrs, CreatedSession, ExportedReply, ExportedSession,
    ExportedSlot, Result, SequenceAnswer, SessionId, StatusFlags,
};

fields!(ExportedSession {
    id: SessionId,
    age: Duration,
    fore: ChannelAttrs,
    back: Option<BackChannel>,
    slots_max: u32,
    slots: Vec<ExportedSlot>,
});

fields!(ChannelAttrs {
    request_bytes_max: u32,
    response_bytes_max: u32,
    response_cached_bytes_max: u32,
    operations_max: u32,
    requests_max: u32,
});

fields!(BackChannel {
    attrs: ChannelAttrs,
    minor: u32,
    program: u32,
    security: Box<[CallbackSecurity]>,
});

variants!(CallbackSecurity { 0 => None, 1 => Sys { machine, uid, gid, gids } });
lists!(CallbackSecurity, u32);
fields!(ExportedSlot { seqid: u32, digest: u64, reply: ExportedReply });

fields!(CreatedSession {
    session: SessionId,
    sequenceid: u32,
    back: Option<ChannelAttrs>,
    fore: ChannelAttrs,
    back_attrs: ChannelAttrs,
});

fields!(SequenceAnswer {
    session: SessionId,
    seqid: u32,
    slot: u32,
    highest_slot: u32,
    target_highest_slot: u32,
    status: StatusFlags,
});

impl Field for StatusFlags {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        self.0.put(to);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Field::take(from).map(Self)
    }
}

impl Field for ExportedReply {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        match self {
            Self::None => to.value(&0_u32),
            Self::Whole(reply) => {
                to.value(&1_u32);
                reply.put(to);
            }
            Self::Sequence(answer) => {
                to.value(&2_u32);
                answer.put(to);
            }
        }
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match from.value::<u32>()? {
            0 => Ok(Self::None),
            1 => Arc::take(from).map(Self::Whole),
            2 => SequenceAnswer::take(from).map(Self::Sequence),
            found => Err(Malformed::Discriminant { of: "ExportedReply", found }),
        }
    }
}
