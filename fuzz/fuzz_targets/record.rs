//! Record marking: the records of a stream do not depend on the pieces in which it arrives.
#![no_main]

use comity_rpc::{RecordError, RecordLimits, Scan, next_record};
use libfuzzer_sys::fuzz_target;

const LIMITS: RecordLimits = RecordLimits { bytes_max: 1 << 16 };

fuzz_target!(|input: &[u8]| {
    let (step, stream) = input.split_first().unwrap_or((&1, &[]));
    assert_eq!(records(stream, usize::from(*step).max(1)), records(stream, stream.len().max(1)));
});

/// The records of a stream that arrives `step` bytes at a time, and how it ends.
fn records(stream: &[u8], step: usize) -> (Vec<Vec<u8>>, Option<RecordError>) {
    let (mut found, mut buffer) = (Vec::new(), Vec::new());
    for piece in stream.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            match next_record(&mut buffer, &LIMITS) {
                Ok(Scan::Record { body, end }) => {
                    assert!(body.end <= end && body.len() <= LIMITS.bytes_max);
                    found.push(buffer[body].to_vec());
                    buffer.drain(..end);
                }
                Ok(Scan::Partial { bytes_needed }) => {
                    assert!(bytes_needed > buffer.len());
                    break;
                }
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}
