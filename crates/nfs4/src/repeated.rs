//! COMPOUNDs of 4.0 that must not be executed twice.

use comity_proto::nfs4::{DATA_BYTES_MAX, HANDLE_BYTES_MAX, operation as op};
use comity_xdr::{Decoder, Malformed};

use crate::limits::REPEAT_SCAN_BYTES;

/// Operations whose second execution would differ, and that no owner's seqid orders. A WRITE may be
/// repeated, as in NFSv3; other operations give the same result again.
const ONCE: [u32; 6] = [op::CREATE, op::DELEGRETURN, op::LINK, op::REMOVE, op::RENAME, op::SETATTR];

/// Bytes of WRITE's arguments before the data: stateid, offset, stability.
const WRITE_HEAD_BYTES: usize = 16 + 8 + 4;

/// Returns whether a COMPOUND may contain one of these operations. Arguments are not decoded: if no
/// word equals the number of such an operation, there is none. A word that equals one by chance
/// only costs an entry of the cache.
pub(crate) fn may_change(args: &mut Decoder<'_>) -> bool {
    let mut rest = args.clone();
    while let Ok(true) = skip(args) {
        rest = args.clone();
    }
    let words = rest.rest();
    words.len() > REPEAT_SCAN_BYTES
        || words.as_chunks::<4>().0.iter().any(|word| ONCE.contains(&u32::from_be_bytes(*word)))
}

/// Skips a PUTFH or WRITE, whose arguments may contain any bytes. Returns `false` if the next
/// operation is another one.
fn skip(args: &mut Decoder<'_>) -> Result<bool, Malformed> {
    match args.value::<u32>()? {
        op::PUTFH => args.opaque(HANDLE_BYTES_MAX).map(|_| true),
        op::WRITE => {
            args.fixed(WRITE_HEAD_BYTES)?;
            args.opaque(DATA_BYTES_MAX).map(|_| true)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_xdr::Encoder;

    fn changes(write: impl FnOnce(&mut Encoder)) -> bool {
        let mut args = Encoder::new();
        args.value(&op::PUTFH);
        args.opaque(&[0, 0, 0, op::REMOVE as u8, 1, 2, 3]);
        write(&mut args);
        may_change(&mut Decoder::new(args.bytes()))
    }

    #[test]
    fn a_call_that_changes_nothing_is_not_remembered() {
        assert!(!changes(|_| {}));
        assert!(!changes(|args| args.words([op::GETATTR, 2, 0x0018_091a, 0x00b0_a23a])));
        assert!(!changes(|args| args.words([op::RENEW, 7, 9])));
        assert!(!changes(|args| {
            args.value(&op::WRITE);
            args.raw(&[0; WRITE_HEAD_BYTES]);
            args.opaque(&vec![op::REMOVE as u8; 1 << 16]);
            args.words([op::GETATTR, 1, 0x18]);
        }));
    }

    #[test]
    fn a_changing_operation_is_remembered_at_any_place_in_a_compound() {
        for number in ONCE {
            assert!(changes(|args| args.value(&number)), "{number}");
            assert!(changes(|args| args.words([op::SAVEFH, op::PUTROOTFH, number, 1])), "{number}");
        }
        assert!(changes(|args| {
            args.value(&op::WRITE);
            args.raw(&[0; WRITE_HEAD_BYTES]);
            args.opaque(b"data");
            args.value(&op::SETATTR);
        }));
        assert!(changes(|args| args.raw(&[0; REPEAT_SCAN_BYTES + 4])), "too long to be searched");
    }

    #[test]
    fn a_compound_that_is_cut_off_may_change_something_if_it_names_an_operation() {
        assert!(!may_change(&mut Decoder::new(&[])));
        assert!(!may_change(&mut Decoder::new(&[0, 0, 0])));
        assert!(may_change(&mut Decoder::new(&[0, 0, 0, 22, 0, 0, 0, 28])), "a PUTFH cut off");
    }
}
