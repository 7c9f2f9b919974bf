//! Decoding of a client's reply to a callback. No byte of it is trusted.

use comity_credential::OpaqueAuth;
use comity_proto::nfs4::attribute;
use comity_proto::nfs4::callback::{
    CbCompoundResultHead, CbGetattr4resok, CbResultHead, CbSequence4resok, operation,
};
use comity_xdr::{Decoder, Malformed};

const REPLY: u32 = 1;
const MSG_ACCEPTED: u32 = 0;
const SUCCESS: u32 = 0;

/// Returns the xid of a reply and the bytes after it; `None` if the record is no reply.
pub(super) fn reply(record: &[u8]) -> Option<(u32, Decoder<'_>)> {
    let mut decoder = Decoder::new(record);
    let xid = decoder.value().ok()?;
    let kind: u32 = decoder.value().ok()?;
    (kind == REPLY).then_some((xid, decoder))
}

/// The result of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// True if the client has used the slot of the call, so that the next call has the next
    /// sequenceid.
    pub(super) sequenced: bool,
    /// The status of the requested operation.
    pub(super) status: u32,
    /// Size and change attribute, if they were requested and returned.
    pub(super) attributes: Option<(u64, u64)>,
}

impl Answer {
    const fn empty(sequenced: bool, status: u32) -> Self {
        Self { sequenced, status, attributes: None }
    }
}

/// Decodes the reply to a CB_NULL: any accepted call is a success.
pub(super) fn null(mut decoder: Decoder<'_>) -> Option<Answer> {
    accepted(&mut decoder).ok()?.then_some(Answer::empty(false, 0))
}

/// Decodes the reply to a CB_COMPOUND.
pub(super) fn compound(mut decoder: Decoder<'_>) -> Option<Answer> {
    if !accepted(&mut decoder).ok()? {
        return None;
    }
    results(&mut decoder).ok()
}

fn accepted(decoder: &mut Decoder<'_>) -> Result<bool, Malformed> {
    if decoder.value::<u32>()? != MSG_ACCEPTED {
        return Ok(false);
    }
    decoder.value::<OpaqueAuth<'_>>()?;
    Ok(decoder.value::<u32>()? == SUCCESS)
}

fn results(decoder: &mut Decoder<'_>) -> Result<Answer, Malformed> {
    let head: CbCompoundResultHead<'_> = decoder.value()?;
    let mut answer = Answer::empty(false, head.status);
    // A callback of this server has at most two operations.
    for _ in 0..head.results.min(2) {
        let result: CbResultHead = decoder.value()?;
        answer.status = result.status;
        if result.status != 0 {
            break;
        }
        match result.operation {
            operation::CB_SEQUENCE => {
                decoder.value::<CbSequence4resok>()?;
                answer.sequenced = true;
            }
            operation::CB_GETATTR => answer.attributes = attributes(decoder)?,
            _ => {}
        }
    }
    Ok(answer)
}

fn attributes(decoder: &mut Decoder<'_>) -> Result<Option<(u64, u64)>, Malformed> {
    let CbGetattr4resok { attrmask, attr_vals } = decoder.value()?;
    // Further attributes, which were not requested, would follow these.
    if !attrmask.iter().take(2).eq([attribute::CHANGE, attribute::SIZE]) {
        return Ok(None);
    }
    let mut values = Decoder::new(attr_vals.0);
    let change = values.value()?;
    Ok(Some((values.value()?, change)))
}

#[cfg(test)]
mod tests {
    use comity_proto::nfs4::Bitmap4;
    use comity_xdr::{Encoder, Opaque};
    use proptest::prelude::*;

    use super::*;

    fn accepted_reply() -> Encoder {
        let mut encoder = Encoder::new();
        [7, REPLY, MSG_ACCEPTED].iter().for_each(|word| encoder.value(word));
        encoder.value(&OpaqueAuth::NONE);
        encoder.value(&SUCCESS);
        encoder
    }

    fn read(encoder: &Encoder) -> Option<Answer> {
        let (xid, rest) = reply(encoder.bytes())?;
        assert_eq!(xid, 7);
        compound(rest)
    }

    fn head(encoder: &mut Encoder, status: u32, results: u32) {
        encoder.value(&CbCompoundResultHead { status, tag: Opaque(b""), results });
    }

    fn sequence(encoder: &mut Encoder) {
        encoder.value(&CbResultHead { operation: operation::CB_SEQUENCE, status: 0 });
        let sessionid = [1; 16];
        encoder.value(&CbSequence4resok {
            sessionid,
            sequenceid: 1,
            slotid: 0,
            highest_slotid: 0,
            target_highest_slotid: 0,
        });
    }

    #[test]
    fn a_slot_counts_as_used_though_the_recall_failed() {
        let mut encoder = accepted_reply();
        head(&mut encoder, 10_025, 2);
        sequence(&mut encoder);
        encoder.value(&CbResultHead { operation: operation::CB_RECALL, status: 10_025 });
        assert_eq!(read(&encoder), Some(Answer::empty(true, 10_025)));
    }

    #[test]
    fn a_slot_whose_sequence_failed_was_not_used() {
        let mut encoder = accepted_reply();
        head(&mut encoder, 10_063, 1);
        encoder.value(&CbResultHead { operation: operation::CB_SEQUENCE, status: 10_063 });
        assert_eq!(read(&encoder), Some(Answer::empty(false, 10_063)));
    }

    #[test]
    fn size_and_change_are_read_if_both_are_there() {
        let told = |numbers: &[u32], values: &[u64]| {
            let mut encoder = accepted_reply();
            head(&mut encoder, 0, 2);
            sequence(&mut encoder);
            encoder.value(&CbResultHead { operation: operation::CB_GETATTR, status: 0 });
            let mut told = Encoder::new();
            values.iter().for_each(|value| told.value(value));
            let (attrmask, attr_vals) = (Bitmap4::of(numbers), Opaque(told.bytes()));
            encoder.value(&CbGetattr4resok { attrmask, attr_vals });
            read(&encoder).map(|answer| answer.attributes)
        };
        let both = [attribute::CHANGE, attribute::SIZE];
        assert_eq!(told(&both, &[7, 4096]), Some(Some((4096, 7))));
        assert_eq!(told(&[attribute::SIZE], &[4096]), Some(None));
        let more = [attribute::CHANGE, attribute::SIZE, attribute::MODE];
        assert_eq!(told(&more, &[7, 4096, 1]), Some(Some((4096, 7))));
        assert_eq!(
            told(&[attribute::TYPE, attribute::CHANGE, attribute::SIZE], &[1, 7, 8]),
            Some(None)
        );
        assert_eq!(told(&both, &[7]), None, "a false answer is not used");
    }

    #[test]
    fn a_denied_call_has_no_answer() {
        let mut encoder = Encoder::new();
        [7, REPLY, 1, 1, 1].iter().for_each(|word| encoder.value(word));
        assert_eq!(read(&encoder), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some((_, rest)) = reply(&bytes) {
                let _ = (null(rest.clone()), compound(rest));
            }
        }
    }
}
