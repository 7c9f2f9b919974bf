//! A server in this process, for tests that look at calls or change replies.
#![allow(dead_code, reason = "each test takes what it needs")]

mod setting;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use comity_export::{Exports, RpcPeer};
use comity_nfs3::{Mount, Nfs3};
use comity_nfs4::{Memory, Nfs4, Versions};
use comity_remote::nfs4::Wire;
use comity_rpc::{Answered, Dispatcher, Program, RecordLimits, Scan, next_record};
use comity_xdr::Encoder;

/// The exports and the state of a server.
#[derive(Clone)]
pub(crate) struct Served {
    exports: Arc<Exports>,
    memory: Memory,
}

impl Served {
    pub(crate) fn new(root: &Path) -> Self {
        Self { exports: setting::exports(root).unwrap(), memory: setting::memory() }
    }

    /// A connection to the server while it has this write verifier.
    pub(crate) fn line(&self, verifier: [u8; 8]) -> Line {
        let exports = || Arc::clone(&self.exports);
        let four = Nfs4::new(exports(), verifier, Versions::ALL, self.memory.clone());
        let mount = Arc::new(Mount::new(exports()));
        let programs: Vec<Arc<dyn Program<RpcPeer>>> =
            vec![Arc::new(Nfs3::new(exports(), verifier)), mount, Arc::new(four)];
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 777));
        let dispatcher = Dispatcher::new(programs, exports());
        Line { dispatcher, visitor: RpcPeer::new(peer), peer }
    }
}

/// A connection without a socket.
pub(crate) struct Line {
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    visitor: RpcPeer,
    peer: SocketAddr,
}

const LIMITS: RecordLimits = RecordLimits { bytes_max: 1 << 21 };

impl Line {
    /// Answers a call; returns the record of the reply with its record mark.
    pub(crate) fn answer(&self, call: &[u8]) -> Result<Vec<u8>> {
        let mut call = call.to_vec();
        let Ok(Scan::Record { body, .. }) = next_record(&mut call, &LIMITS) else {
            bail!("no record");
        };
        let mut replies = Encoder::new();
        let record = call.get(body).context("no record")?;
        match self.dispatcher.answer(record, self.peer.ip(), &self.visitor, &mut replies) {
            Ok(Answered::Now) => {}
            Ok(Answered::Later(late)) => drop(late.finish(&mut replies)),
            _ => bail!("no reply"),
        }
        Ok(sent(&replies))
    }
}

/// A reply as it is sent: a server sends some data directly from files.
fn sent(reply: &Encoder) -> Vec<u8> {
    let (mut sent, mut from) = (Vec::new(), 0);
    for segment in reply.files() {
        sent.extend_from_slice(&reply.bytes()[from..segment.after]);
        let mut stretch = vec![0; segment.length as usize];
        segment.file.read_exact_at(&mut stretch, segment.offset).unwrap();
        sent.extend(stretch);
        from = segment.after;
    }
    sent.extend_from_slice(&reply.bytes()[from..]);
    sent
}

impl Wire for Line {
    fn exchange(&mut self, record: &[&[u8]]) -> Result<Vec<u8>> {
        Ok(self.answer(&record.concat())?.get(4..).context("no reply")?.to_vec())
    }
}

/// Serves connections. From the n-th call on that `counts`, replies are those of another server,
/// which has lost the data that were not on stable storage.
pub(crate) fn forgetting(served: &Served, at: usize, counts: fn(&[u8]) -> bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (served, counted) = (served.clone(), Arc::new(AtomicUsize::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let lines = [served.line([1; 8]), served.line([2; 8])];
            let (stream, counted) = (stream.unwrap(), Arc::clone(&counted));
            thread::spawn(move || {
                serve(stream, &lines, |call| {
                    let before = counted.fetch_add(usize::from(counts(call)), Ordering::Relaxed);
                    usize::from(before + usize::from(counts(call)) > at)
                })
            });
        }
    });
    address
}

/// Serves a connection. `choose` decides which of two servers answers a call.
fn serve(mut stream: TcpStream, lines: &[Line; 2], choose: impl Fn(&[u8]) -> usize) {
    loop {
        let mut call = vec![0; 4];
        if stream.read_exact(&mut call).is_err() {
            return;
        }
        let length = u32::from_be_bytes([call[0] & 0x7f, call[1], call[2], call[3]]);
        call.resize(4 + length as usize, 0);
        stream.read_exact(&mut call[4..]).unwrap();
        let reply = lines[choose(&call)].answer(&call).unwrap();
        if stream.write_all(&reply).is_err() {
            return;
        }
    }
}
