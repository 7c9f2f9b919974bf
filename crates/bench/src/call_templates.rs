//! The calls of a load and the replies that it expects: calls encoded beforehand, and the form of
//! their replies.

use std::ops::Range;
use std::sync::Arc;

/// The bytes of the xid in an encoded call, after the record mark.
pub(crate) const XID: Range<usize> = 4..8;

/// The calls of a load, all of one operation against one server, used in turn.
#[derive(Debug, Clone, Default)]
pub struct CallTemplates {
    /// Encoded calls; `order` says which one is used next.
    pub templates: Vec<Template>,
    /// The order of the calls.
    pub order: Order,
    /// Data that follows every call; empty for most operations.
    pub payload: Arc<[u8]>,
    /// Offset in every call of a name of [`SERIAL_DIGITS`] digits that must be new each time.
    pub serial_at: Option<usize>,
    /// Offset of the arguments of SEQUENCE in every call, if the calls are of NFS 4.1.
    pub sequence_at: Option<usize>,
    /// Offset of the results of SEQUENCE in every reply, which must match the call, without the
    /// record mark.
    pub sequenced_at: Option<usize>,
}

/// The order of the calls.
#[derive(Debug, Clone, Copy, Default)]
pub enum Order {
    /// Call `n` of connection `c` of `k` is number `n * k + c`.
    #[default]
    Shared,
    /// Every place for a call uses its own group of this many consecutive templates.
    Own(usize),
}

/// The slot of a call, with the stateid that the slot has learned.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallSlot {
    /// The number of this call among all calls of the load.
    pub number: u64,
    /// A number that no other outstanding call has.
    pub place: usize,
    /// Calls made from this place before.
    pub before: usize,
}

/// Bytes of a stateid.
pub const STATEID_BYTES: usize = 16;

/// The parts of a call that are new each time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stamp {
    /// The xid of the RPC.
    pub xid: u32,
    /// The number for the name in the call, if it contains one.
    pub serial: u64,
    /// The slot for the SEQUENCE of the call, if it has one.
    pub place: SlotPlace,
    /// The stateid from the reply to the previous call of the same place, for calls that name it.
    pub stateid: [u8; STATEID_BYTES],
}

/// A slot of a session, and the sequence number of a request in it (RFC 8881, 18.46).
#[derive(Debug, Clone, Copy, Default)]
pub struct SlotPlace {
    /// The session.
    pub sessionid: [u8; 16],
    /// Counts the slot's requests from 1.
    pub sequenceid: u32,
    /// The slot.
    pub slotid: u32,
    /// The highest slot that is used.
    pub highest: u32,
}

/// Digits in a name that is made new for each call.
pub const SERIAL_DIGITS: usize = 10;

/// One encoded call.
#[derive(Debug, Clone, Default)]
pub struct Template {
    /// The record, its mark included, without the payload.
    pub bytes: Vec<u8>,
    /// The expected reply.
    pub expect: Expectation,
    /// Units of the call: 1, or the entries of the directory that it lists.
    pub units: u32,
    /// Offset in the reply of a stateid that the next call from the same place needs.
    pub gives_stateid_at: Option<usize>,
    /// Offset of that stateid in the call, its record mark included.
    pub takes_stateid_at: Option<usize>,
}

/// The expected form of a reply. It is taken from a reply that was decoded and checked in full.
#[derive(Debug, Clone, Default)]
pub struct Expectation {
    /// The length of the reply in bytes, without the record mark.
    pub length: usize,
    /// The bytes from number 4 on, after the xid.
    pub head: Vec<u8>,
    /// Samples of the reply after the head, mostly of data, each with its offset.
    pub samples: Vec<(usize, [u8; 8])>,
}

/// The difference between a reply and its expectation.
#[derive(Debug)]
pub struct Wrong(pub String);

impl Template {
    /// Appends the call under `xid`.
    pub fn encode(&self, xid: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        out[start..][XID].copy_from_slice(&xid.to_be_bytes());
    }
}

impl CallTemplates {
    /// The number of the template for a call.
    pub fn choose(&self, turn: CallSlot) -> usize {
        let all = self.templates.len();
        match self.order {
            Order::Shared => (turn.number % all as u64) as usize,
            Order::Own(own) => (turn.place * own + turn.before % own) % all,
        }
    }

    /// Appends a call, without the payload.
    pub fn encode(&self, template: usize, stamp: &Stamp, out: &mut Vec<u8>) {
        let start = out.len();
        self.templates[template].encode(stamp.xid, out);
        if let Some(at) = self.serial_at {
            write_serial(stamp.serial, &mut out[start + at..][..SERIAL_DIGITS]);
        }
        if let Some(at) = self.sequence_at {
            stamp.place.write(&mut out[start + at..]);
        }
        if let Some(at) = self.templates[template].takes_stateid_at {
            out[start + at..][..STATEID_BYTES].copy_from_slice(&stamp.stateid);
        }
    }

    /// Compares the reply to a call with its template, and takes the stateid for the next call from
    /// it.
    ///
    /// # Errors
    /// [`Wrong`] with the first difference.
    pub fn settle(&self, template: usize, stamp: &mut Stamp, reply: &[u8]) -> Result<(), Wrong> {
        let template = &self.templates[template];
        template.expect.check(reply)?;
        if let Some(at) = self.sequenced_at {
            let mut wanted = [0; 28];
            stamp.place.write(&mut wanted);
            if reply[at..][..24] != wanted[..24] {
                return Err(Wrong("a reply of another slot, or of another request".to_owned()));
            }
        }
        if let Some(at) = template.gives_stateid_at {
            stamp.stateid.copy_from_slice(&reply[at..][..STATEID_BYTES]);
        }
        Ok(())
    }
}

impl SlotPlace {
    fn write(&self, out: &mut [u8]) {
        out[..16].copy_from_slice(&self.sessionid);
        for (place, word) in
            out[16..28].chunks_exact_mut(4).zip([self.sequenceid, self.slotid, self.highest])
        {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }
}

impl Expectation {
    /// Takes the expectation from a reply: its length and its bytes before `head_end`.
    #[must_use]
    pub fn like(reply: &[u8], head_end: usize) -> Self {
        let head = reply[4..head_end].to_vec();
        Self { length: reply.len(), head, samples: Vec::new() }
    }

    /// Compares a reply with the expectation.
    ///
    /// # Errors
    /// [`Wrong`] with the first difference.
    pub fn check(&self, reply: &[u8]) -> Result<(), Wrong> {
        if reply.len() != self.length {
            let start = &reply[..reply.len().min(32)];
            let (found, wanted) = (reply.len(), self.length);
            return Err(Wrong(format!("{found} bytes instead of {wanted}: {start:02x?}")));
        }
        if reply[4..4 + self.head.len()] != self.head[..] {
            let found = &reply[4..4 + self.head.len()];
            return Err(Wrong(format!("begins with {found:02x?} instead of {:02x?}", self.head)));
        }
        for (at, bytes) in &self.samples {
            let found = &reply[*at..at + bytes.len()];
            if found != bytes {
                return Err(Wrong(format!("byte {at}: {found:02x?} instead of {bytes:02x?}")));
            }
        }
        Ok(())
    }
}

fn write_serial(mut serial: u64, place: &mut [u8]) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (serial % 10) as u8;
        serial /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> Vec<u8> {
        (0..40).collect()
    }

    #[test]
    fn a_reply_like_the_first_passes_whatever_its_xid() {
        let expect = Expectation::like(&reply(), 20);
        let mut other = reply();
        other[3] = 99;
        other[30] = 99;
        assert!(expect.check(&other).is_ok());
    }

    #[test]
    fn another_length_head_or_sample_is_wrong() {
        let mut expect = Expectation::like(&reply(), 20);
        expect.samples.push((32, [32, 33, 34, 35, 36, 37, 38, 39]));
        assert!(expect.check(&reply()).is_ok());
        for at in [4, 19, 32, 39] {
            let mut other = reply();
            other[at] ^= 1;
            assert!(expect.check(&other).is_err(), "byte {at}");
        }
        assert!(expect.check(&reply()[..36]).is_err());
    }

    #[test]
    fn a_call_carries_its_xid_its_serial_and_its_slot() {
        let template = Template { bytes: vec![0; 60], ..Template::default() };
        let templates = vec![template];
        let (serial_at, sequence_at) = (Some(12), Some(24));
        let script =
            CallTemplates { templates, serial_at, sequence_at, ..CallTemplates::default() };
        let place = SlotPlace { sessionid: [9; 16], sequenceid: 3, slotid: 4, highest: 5 };
        let mut out = vec![7];
        let stamp = Stamp { xid: 0x0102_0304, serial: 1234, place, ..Stamp::default() };
        script.encode(0, &stamp, &mut out);
        assert_eq!(out[5..9], [1, 2, 3, 4]);
        assert_eq!(&out[13..23], b"0000001234");
        assert_eq!(out[25..41], [9; 16]);
        assert_eq!(out[41..53], [0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5]);
        assert_eq!(out[53..], [0; 8], "nothing else is touched");
    }

    #[test]
    fn the_next_call_of_its_place_takes_a_value_from_the_reply() {
        let of = |gives_stateid_at, takes_stateid_at| {
            let expect = Expectation { length: 60, ..Expectation::default() };
            Template { bytes: vec![0; 40], expect, units: 1, gives_stateid_at, takes_stateid_at }
        };
        let pair = || [of(Some(40), None), of(None, Some(20))];
        let templates = [pair(), pair()].concat();
        let order = Order::Own(2);
        let script =
            CallTemplates { templates, order, sequenced_at: Some(8), ..CallTemplates::default() };
        assert_eq!(script.choose(CallSlot { number: 77, place: 1, before: 4 }), 2);
        assert_eq!(script.choose(CallSlot { number: 78, place: 1, before: 5 }), 3);
        let place = SlotPlace { sessionid: [9; 16], sequenceid: 3, slotid: 4, highest: 5 };
        let mut stamp = Stamp { place, ..Stamp::default() };
        let mut reply = vec![0; 60];
        reply[8..24].copy_from_slice(&[9; 16]);
        reply[24..32].copy_from_slice(&[0, 0, 0, 3, 0, 0, 0, 4]);
        reply[40..56].copy_from_slice(&[7; 16]);
        assert!(script.settle(2, &mut stamp, &reply).is_ok());
        let mut out = Vec::new();
        script.encode(3, &stamp, &mut out);
        assert_eq!(out[20..36], [7; 16]);
        stamp.place.sequenceid = 4;
        assert!(script.settle(3, &mut stamp, &reply).is_err(), "the reply to the request before");
    }
}
