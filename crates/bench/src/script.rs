//! What a load says and what it must hear: calls encoded beforehand, and how their replies look.

use std::ops::Range;
use std::sync::Arc;

/// Where the xid stands in an encoded call, behind the record mark.
const XID: Range<usize> = 4..8;

/// The calls of a load, used in turn, of one operation against one server.
#[derive(Debug, Clone)]
pub struct Script {
    /// Encoded calls; call `n` of connection `c` of `k` is number `n * k + c`.
    pub templates: Vec<Template>,
    /// Data that follows every call; empty for most operations.
    pub payload: Arc<[u8]>,
    /// Where in every call a name of [`SERIAL_DIGITS`] digits stands that must be new each time.
    pub serial_at: Option<usize>,
}

/// Digits in a name that is made new for each call.
pub const SERIAL_DIGITS: usize = 10;

/// One encoded call.
#[derive(Debug, Clone)]
pub struct Template {
    /// The record, its mark included, without the payload.
    pub bytes: Vec<u8>,
    /// What the reply must look like.
    pub expect: Expectation,
    /// What the call counts for: 1, or the entries of a directory it lists.
    pub units: u32,
}

/// What a reply must look like. It is taken from a reply that was decoded and checked in full.
#[derive(Debug, Clone, Default)]
pub struct Expectation {
    /// Its length in bytes, without the record mark.
    pub length: usize,
    /// The bytes from number 4 on, behind the xid.
    pub head: Vec<u8>,
    /// Bytes further back, by place: data above all.
    pub samples: Vec<(usize, [u8; 8])>,
}

/// A reply that is not what it must be.
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

impl Script {
    /// The number of the template for a call.
    pub fn choose(&self, number: u64) -> usize {
        (number % self.templates.len() as u64) as usize
    }

    /// Appends a call, without the payload; `serial` goes into its name if it has one.
    pub fn encode(&self, template: usize, xid: u32, serial: u64, out: &mut Vec<u8>) {
        let start = out.len();
        self.templates[template].encode(xid, out);
        if let Some(at) = self.serial_at {
            write_serial(serial, &mut out[start + at..][..SERIAL_DIGITS]);
        }
    }
}

impl Expectation {
    /// Takes from `reply`: its length and its bytes before `head_end`.
    #[must_use]
    pub fn like(reply: &[u8], head_end: usize) -> Self {
        let head = reply[4..head_end].to_vec();
        Self { length: reply.len(), head, samples: Vec::new() }
    }

    /// Holds a reply against it.
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
    fn a_call_carries_its_xid_and_its_serial() {
        let template = Template { bytes: vec![0; 30], expect: Expectation::default(), units: 1 };
        let payload = Arc::from([]);
        let script = Script { templates: vec![template], payload, serial_at: Some(12) };
        let mut out = vec![7];
        script.encode(0, 0x0102_0304, 1234, &mut out);
        assert_eq!(out[5..9], [1, 2, 3, 4]);
        assert_eq!(&out[13..23], b"0000001234");
    }
}
