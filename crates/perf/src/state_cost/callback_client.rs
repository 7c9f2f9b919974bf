use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use comity_proto::nfs4::callback::{
    CbCompoundHead, CbCompoundResultHead, CbResultHead, CbSequence4args, CbSequence4resok,
    operation,
};
use comity_remote::nfs4::Wire;
use comity_remote::rpc::{dial, receive};
use comity_xdr::{Decoder, Encoder};

use comity_bench::limits::SILENCE_SECONDS_MAX;

/// A connection on which the server may call back: its calls are answered with success whenever one
/// waits for a record.
pub(crate) struct CallbackClient {
    stream: TcpStream,
    /// The number of recalls received.
    pub(crate) recalls: usize,
}

/// The bytes of a record that hold the kind of the message, after the xid.
const KIND: std::ops::Range<usize> = 4..8;
/// Longest body of a credential (RFC 5531, 8.2).
const AUTH_BYTES_MAX: u32 = 400;
/// The shortest reply: an accepted one without results.
const RECORD_BYTES_MIN: usize = 24;
/// A call, not a reply.
const CALL: [u8; 4] = [0; 4];

impl CallbackClient {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = dial(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(SILENCE_SECONDS_MAX.into())))?;
        Ok(Self { stream, recalls: 0 })
    }

    /// Waits for the next recall.
    pub(crate) fn await_recall(&mut self) -> Result<()> {
        while self.recalls == 0 {
            let record = self.receive()?;
            ensure!(record[KIND] == CALL, "a reply to no call");
            self.heed(&record)?;
        }
        self.recalls -= 1;
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        let record = receive(&mut self.stream)?;
        ensure!(record.len() >= RECORD_BYTES_MIN, "a record of {} bytes", record.len());
        Ok(record)
    }

    /// Answers a call of the server's.
    fn heed(&mut self, record: &[u8]) -> Result<()> {
        let mut call = Decoder::new(record);
        let mut words = [0; 6];
        words.iter_mut().try_for_each(|word| call.value().map(|value: u32| *word = value))?;
        let [xid, _, _, _, _, procedure] = words;
        // Credential and verifier: a flavor and a body each.
        for _ in 0..2 {
            call.value::<u32>()?;
            call.opaque(AUTH_BYTES_MAX)?;
        }
        let mut reply = Encoder::new();
        let start = reply.begin_record();
        // REPLY, MSG_ACCEPTED, an empty verifier, SUCCESS.
        [xid, 1, 0, 0, 0, 0].iter().for_each(|word| reply.value(word));
        if procedure != 0 {
            self.recalls += usize::from(results(&mut call, &mut reply)?);
        }
        reply.end_record(start);
        self.stream.write_all(reply.bytes()).context("answer a callback")
    }
}

impl Wire for CallbackClient {
    fn exchange(&mut self, record: &[&[u8]]) -> Result<Vec<u8>> {
        record.iter().try_for_each(|part| self.stream.write_all(part)).context("send")?;
        loop {
            let record = self.receive()?;
            if record[KIND] != CALL {
                return Ok(record);
            }
            self.heed(&record)?;
        }
    }
}

/// Encodes the results of a CB_COMPOUND: CB_SEQUENCE and the operations after it succeed. Returns
/// whether one of them is a recall.
fn results(call: &mut Decoder<'_>, reply: &mut Encoder) -> Result<bool> {
    let head: CbCompoundHead<'_> = call.value()?;
    reply.value(&CbCompoundResultHead { status: 0, tag: head.tag, results: head.operations });
    ensure!(call.value::<u32>()? == operation::CB_SEQUENCE, "a callback without CB_SEQUENCE");
    let sequence: CbSequence4args = call.value()?;
    reply.value(&CbResultHead { operation: operation::CB_SEQUENCE, status: 0 });
    reply.value(&CbSequence4resok {
        sessionid: sequence.sessionid,
        sequenceid: sequence.sequenceid,
        slotid: sequence.slotid,
        highest_slotid: sequence.highest_slotid,
        target_highest_slotid: sequence.highest_slotid,
    });
    let operation = if head.operations > 1 { call.value()? } else { 0 };
    if operation > 0 {
        reply.value(&CbResultHead { operation, status: 0 });
    }
    Ok([operation::CB_RECALL, operation::CB_LAYOUTRECALL].contains(&operation))
}
