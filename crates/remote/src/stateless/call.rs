use comity_xdr::{Decode, Decoder, Encode, Malformed};

use crate::rpc::{RpcRefusal, begin_call, results_at};

/// A call that is repeated until it is answered.
#[derive(Debug, Clone)]
pub(crate) struct StatelessCall {
    /// The record with its mark; the xid is set when it is sent.
    pub(crate) record: Vec<u8>,
    /// Returns whether these results ask the client to try again later.
    pub(crate) is_put_off: fn(&[u8]) -> bool,
    /// True if the call does not time out although other calls do (`soft`).
    pub(crate) is_awaited: bool,
}

impl StatelessCall {
    /// A call of a procedure (program, version, number) with an AUTH_SYS credential. By default no
    /// result counts as "try again later".
    pub(crate) fn new(
        procedure: (u32, u32, u32),
        credential: &[u8],
        arguments: &impl Encode,
    ) -> Self {
        let (mut encoder, start) = begin_call(procedure, credential);
        encoder.value(arguments);
        encoder.end_record(start);
        Self { record: encoder.bytes().to_vec(), is_put_off: |_| false, is_awaited: false }
    }
}

/// The reply to a call that the server executed.
#[derive(Debug)]
pub(crate) struct StatelessReply {
    record: Vec<u8>,
    results_at: usize,
}

impl StatelessReply {
    /// Reads the head of a reply.
    ///
    /// # Errors
    /// The call was not executed.
    pub(crate) fn parse(record: Vec<u8>) -> Result<Self, RpcRefusal> {
        let results_at = results_at(&record)?;
        Ok(Self { record, results_at })
    }

    /// The bytes of the results.
    pub(crate) fn results(&self) -> &[u8] {
        self.record.get(self.results_at..).unwrap_or_default()
    }

    /// Decodes the results.
    ///
    /// # Errors
    /// They are malformed.
    pub(crate) fn read<'r, T: Decode<'r>>(&'r self) -> Result<T, Malformed> {
        Decoder::whole(self.results())
    }
}
