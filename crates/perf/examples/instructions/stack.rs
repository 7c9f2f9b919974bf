//! All layers between a received record and its reply.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use comity_export::{Exports, RpcPeer};
use comity_rpc::{Answered, Dispatcher, Program, RecordLimits, Scan, next_record};
use comity_xdr::Encoder;

/// Replies after which the buffer is emptied, as a server does after a batch.
const BATCH: u64 = 8;
/// Bytes of a successful reply before its results, with the record mark.
const RESULTS_AT: usize = 28;
const LIMITS: RecordLimits = RecordLimits { bytes_max: 1 << 21 };

/// Programs, and one peer of theirs.
pub(crate) struct Stack {
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    visitor: RpcPeer,
    peer: SocketAddr,
    replies: Encoder,
    replied: u64,
}

impl Stack {
    pub(crate) fn new(programs: Vec<Arc<dyn Program<RpcPeer>>>, exports: Arc<Exports>) -> Self {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 777));
        Self {
            dispatcher: Dispatcher::new(programs, exports),
            visitor: RpcPeer::new(peer),
            peer,
            replies: Encoder::new(),
            replied: 0,
        }
    }

    /// Answers a call that has to succeed, and returns its results.
    pub(crate) fn results(&mut self, record: &mut [u8]) -> Result<Vec<u8>> {
        self.replies.clear(1 << 20);
        self.answer(record)?;
        let reply = self.replies.bytes();
        let results = reply.get(RESULTS_AT..).context("a short reply")?;
        ensure!(results.starts_with(&[0; 4]), "a status: {results:?}");
        Ok(results.to_vec())
    }

    /// Answers a call, and returns the record of the reply without its mark.
    pub(crate) fn exchange_within(&mut self, record: &mut [u8]) -> Result<&[u8]> {
        self.replies.clear(1 << 20);
        self.answer(record)?;
        self.replies.bytes().get(4..).context("no reply")
    }

    /// Does the work of the server for a record that it has received.
    pub(crate) fn answer(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.replied += 1;
        if self.replied.is_multiple_of(BATCH) {
            self.replies.clear(1 << 20);
        }
        let Ok(Scan::Record { body, .. }) = next_record(buffer, &LIMITS) else {
            bail!("no record");
        };
        let record = &buffer[body];
        let answered =
            self.dispatcher.answer(record, self.peer.ip(), &self.visitor, &mut self.replies);
        ensure!(matches!(answered, Ok(Answered::Now)), "no reply at once");
        Ok(())
    }
}
