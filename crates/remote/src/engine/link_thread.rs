use std::io::{self, BufReader, ErrorKind, Read};
use std::sync::Arc;

use super::shared::SharedEngine;
use crate::calls::LinkPlace;
use crate::limits::{FRAGMENTS_MAX, RECORD_BYTES_MAX};
use crate::machine::Machine;

/// Size of the read buffer: many small replies are read with one system call.
const BUFFER_BYTES: usize = 64 << 10;

/// Runs the thread of one connection: connects when the engine orders it, and reads records.
pub(super) fn run<M: Machine>(shared: &Arc<SharedEngine<M>>, number: usize) {
    let Some(link) = shared.links.get(number) else { return };
    while let Some(place) = shared.next_order(link) {
        match shared.transport.connect() {
            Ok(duplex) => {
                link.queue.open(place.generation, duplex.writer, duplex.close);
                if shared.is_over() {
                    link.queue.close(place.generation);
                }
                shared.drive(|machine, now| machine.handle_up(now, place));
                if let Err(error) = take_in(shared, place, duplex.reader) {
                    shared.note_error(error);
                }
                link.queue.close(place.generation);
            }
            Err(error) => shared.note_error(error),
        }
        shared.drive(|machine, now| machine.handle_down(now, place));
    }
}

/// Passes records to the machine until the connection ends.
fn take_in<M: Machine>(
    shared: &SharedEngine<M>,
    place: LinkPlace,
    reader: impl Read,
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, reader);
    while let Some(record) = next_record(&mut reader)? {
        shared.drive(|machine, now| machine.handle_record(now, place, record));
    }
    Ok(())
}

/// Reads a record and joins its fragments (RFC 5531, 11); `None` at the end of the stream.
fn next_record(reader: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut record = Vec::new();
    for _ in 0..FRAGMENTS_MAX {
        let mut mark = [0; 4];
        match reader.read_exact(&mut mark) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && record.is_empty() => {
                return Ok(None);
            }
            read => read?,
        }
        let mark = u32::from_be_bytes(mark);
        let (begin, length) = (record.len(), (mark & !LAST_FRAGMENT) as usize);
        if begin + length > RECORD_BYTES_MAX {
            let bytes = begin + length;
            return Err(invalid(format!("the record mark announces {bytes} bytes or more")));
        }
        record.resize(begin + length, 0);
        reader.read_exact(record.get_mut(begin..).unwrap_or_default())?;
        if mark & LAST_FRAGMENT != 0 {
            return Ok(Some(record));
        }
    }
    Err(invalid(format!("a record has more than {FRAGMENTS_MAX} fragments")))
}

const LAST_FRAGMENT: u32 = 1 << 31;

fn invalid(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(length: u32, last: bool, bytes: &[u8]) -> Vec<u8> {
        let mark = length | if last { LAST_FRAGMENT } else { 0 };
        [&mark.to_be_bytes()[..], bytes].concat()
    }

    #[test]
    fn fragments_are_joined() {
        let stream =
            [fragment(3, false, b"one"), fragment(0, false, b""), fragment(2, true, b"12")];
        let mut reader = &stream.concat()[..];
        assert_eq!(next_record(&mut reader).unwrap(), Some(b"one12".to_vec()));
        assert_eq!(next_record(&mut reader).unwrap(), None);
    }

    #[test]
    fn a_record_that_breaks_off_is_too_long_or_never_ends_is_an_error() {
        for stream in [
            fragment(3, true, b"on"),
            fragment(RECORD_BYTES_MAX as u32 + 1, true, b""),
            fragment(0, false, b"").repeat(FRAGMENTS_MAX + 1),
            fragment(2, false, b"12"),
        ] {
            assert!(next_record(&mut &stream[..]).is_err(), "{:?}", &stream[..8.min(stream.len())]);
        }
    }
}
