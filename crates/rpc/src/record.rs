//! Record marking (RFC 5531, 11): finds the records in a stream of bytes.

use std::ops::Range;

use crate::limits::RECORD_FRAGMENTS_MAX;

const LAST_FRAGMENT: u32 = 1 << 31;
const HEADER_BYTES: usize = 4;

/// The bounds of a record.
#[derive(Debug, Clone, Copy)]
pub struct RecordLimits {
    /// Most bytes of a record, fragment headers left out.
    pub bytes_max: usize,
}

/// The result of a search for a record at the beginning of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scan {
    /// A whole record: its bytes, and where the next one begins.
    Record {
        /// The position of its bytes, without fragment headers.
        body: Range<usize>,
        /// The beginning of the next record.
        end: usize,
    },
    /// The beginning of a record: the search should be repeated when the buffer holds at least
    /// `bytes_needed` bytes, counted from the same position.
    Partial {
        /// The number of bytes.
        bytes_needed: usize,
    },
}

/// Why a stream cannot be split into records any more. It is the peer's fault, and the connection
/// ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A record is announced that is longer than allowed.
    #[error("record of {bytes} bytes or more announced, the limit is {limit}")]
    TooLong {
        /// The length announced so far.
        bytes: usize,
        /// The most allowed.
        limit: usize,
    },
    /// A record is cut into too many fragments.
    #[error("record of more than {RECORD_FRAGMENTS_MAX} fragments")]
    TooManyFragments,
}

/// Looks for a record at the beginning of `buffer`. The fragments of a record are joined in place,
/// so that its bytes are contiguous; the usual record of a single fragment is not moved.
///
/// # Errors
/// [`RecordError`] as soon as an announced length exceeds the limits.
#[inline]
pub fn next_record(buffer: &mut [u8], limits: &RecordLimits) -> Result<Scan, RecordError> {
    // Nearly every record has one fragment, which has arrived whole.
    if let Some(header) = fragment_header(buffer, 0) {
        let end = HEADER_BYTES + header.length;
        if header.last && header.length <= limits.bytes_max && end <= buffer.len() {
            return Ok(Scan::Record { body: HEADER_BYTES..end, end });
        }
    }
    join_fragments(buffer, limits)
}

/// Looks for a record of any number of fragments.
#[inline(never)]
fn join_fragments(buffer: &mut [u8], limits: &RecordLimits) -> Result<Scan, RecordError> {
    let (mut at, mut length, mut fragments) = (0_usize, 0_usize, 0_u32);
    loop {
        let Some(header) = fragment_header(buffer, at) else {
            return Ok(Scan::Partial { bytes_needed: at + HEADER_BYTES });
        };
        fragments += 1;
        length += header.length;
        check(length, fragments, limits)?;
        at += HEADER_BYTES + header.length;
        if at > buffer.len() {
            return Ok(Scan::Partial { bytes_needed: at });
        }
        if header.last {
            if fragments > 1 {
                join(buffer, fragments);
            }
            return Ok(Scan::Record { body: HEADER_BYTES..HEADER_BYTES + length, end: at });
        }
    }
}

struct FragmentHeader {
    length: usize,
    last: bool,
}

#[inline]
fn fragment_header(buffer: &[u8], at: usize) -> Option<FragmentHeader> {
    let word = u32::from_be_bytes(*buffer.get(at..)?.first_chunk()?);
    let length = (word & !LAST_FRAGMENT) as usize;
    Some(FragmentHeader { length, last: word & LAST_FRAGMENT != 0 })
}

const fn check(bytes: usize, fragments: u32, limits: &RecordLimits) -> Result<(), RecordError> {
    if bytes > limits.bytes_max {
        return Err(RecordError::TooLong { bytes, limit: limits.bytes_max });
    }
    if fragments > RECORD_FRAGMENTS_MAX {
        return Err(RecordError::TooManyFragments);
    }
    Ok(())
}

/// Moves the fragments of a complete record together, after the first header.
fn join(buffer: &mut [u8], fragments: u32) {
    let (mut from, mut to) = (0, HEADER_BYTES);
    for _ in 0..fragments {
        let Some(header) = fragment_header(buffer, from) else { break };
        let data = from + HEADER_BYTES;
        if data != to {
            buffer.copy_within(data..data + header.length, to);
        }
        to += header.length;
        from = data + header.length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: RecordLimits = RecordLimits { bytes_max: 4096 };

    fn stream(fragments: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (at, fragment) in fragments.iter().enumerate() {
            let last = if at + 1 == fragments.len() { LAST_FRAGMENT } else { 0 };
            bytes.extend((last | fragment.len() as u32).to_be_bytes());
            bytes.extend(fragment);
        }
        bytes
    }

    #[test]
    fn two_gigabytes_announced_are_refused_at_the_header() {
        let found = next_record(&mut [0xff; 4], &LIMITS);
        assert_eq!(found, Err(RecordError::TooLong { bytes: 0x7fff_ffff, limit: 4096 }));
    }

    #[test]
    fn empty_fragments_without_end_are_refused() {
        let found = next_record(&mut [0; 4 * 2048], &LIMITS);
        assert_eq!(found, Err(RecordError::TooManyFragments));
    }

    #[test]
    fn a_megabyte_in_pieces_of_two_kilobytes_is_a_record() {
        let whole = stream(&vec![vec![1; 2048]; (1 << 20) / 2048 + 1]);
        let limits = RecordLimits { bytes_max: 2 << 20 };
        let found = next_record(&mut whole.clone(), &limits);
        assert!(matches!(found, Ok(Scan::Record { end, .. }) if end == whole.len()), "{found:?}");
    }

    proptest! {
        #[test]
        fn fragments_join_wherever_the_stream_was_cut(
            fragments in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..40),
                1..9,
            ),
            behind in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let whole = stream(&fragments);
            for cut in 0..whole.len() {
                let mut part = whole[..cut].to_vec();
                let Ok(Scan::Partial { bytes_needed }) = next_record(&mut part, &LIMITS) else {
                    panic!("a part was taken for the whole");
                };
                prop_assert!(bytes_needed > cut && bytes_needed <= whole.len());
            }
            let mut bytes = [whole.clone(), behind].concat();
            let Ok(Scan::Record { body, end }) = next_record(&mut bytes, &LIMITS) else {
                panic!("the whole was not found");
            };
            prop_assert_eq!(end, whole.len());
            prop_assert_eq!(&bytes[body], fragments.concat());
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            let _ = next_record(&mut bytes, &LIMITS);
        }
    }
}
