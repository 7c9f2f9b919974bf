//! A connection without a socket.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use comity_export::{Exports, RpcPeer};
use comity_rpc::{Answered, Dispatcher, Program, RecordLimits, Scan, next_record};
use comity_xdr::Encoder;

const LIMITS: RecordLimits = RecordLimits { bytes_max: 1 << 21 };

/// Calls are written to it, and the replies of a server in this process are read from it.
pub(super) struct CallStream {
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    visitor: RpcPeer,
    peer: IpAddr,
    calls: Vec<u8>,
    replies: Vec<u8>,
    read: usize,
}

impl CallStream {
    pub(super) fn new(
        programs: Vec<Arc<dyn Program<RpcPeer>>>,
        exports: Arc<Exports>,
        (peer, visitor): (SocketAddr, RpcPeer),
    ) -> Self {
        let dispatcher = Dispatcher::new(programs, exports);
        let (calls, replies) = (Vec::new(), Vec::new());
        Self { dispatcher, visitor, peer: peer.ip(), calls, replies, read: 0 }
    }

    /// Answers the call that was written.
    fn answer(&mut self) -> io::Result<()> {
        let Ok(Scan::Record { body, .. }) = next_record(&mut self.calls, &LIMITS) else {
            return Err(io::Error::other("no record"));
        };
        let mut reply = Encoder::new();
        let record = &self.calls[body];
        match self.dispatcher.answer(record, self.peer, &self.visitor, &mut reply) {
            Ok(Answered::Now) => {}
            Ok(Answered::Later(late)) => drop(late.finish(&mut reply)),
            _ => return Err(io::Error::other("no reply")),
        }
        self.calls.clear();
        self.replies.clear();
        self.read = 0;
        self.send(&reply)
    }

    /// Appends a reply to those that can be read, with the file data that the reply refers to.
    fn send(&mut self, reply: &Encoder) -> io::Result<()> {
        let mut from = 0;
        for segment in reply.files() {
            self.replies.extend_from_slice(&reply.bytes()[from..segment.after]);
            let start = self.replies.len();
            self.replies.resize(start + segment.length as usize, 0);
            segment.file.read_exact_at(&mut self.replies[start..], segment.offset)?;
            from = segment.after;
        }
        self.replies.extend_from_slice(&reply.bytes()[from..]);
        Ok(())
    }
}

impl Write for CallStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.calls.is_empty() { Ok(()) } else { self.answer() }
    }
}

impl Read for CallStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&self.replies[self.read..]).read(buffer)?;
        self.read += read;
        Ok(read)
    }
}

impl fmt::Debug for CallStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallStream")
    }
}
