use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use comity_remote::rpc::dial;

use super::send_queue::SendQueue;
use crate::call_templates::{CallSlot, CallTemplates, SlotPlace, Stamp};
use crate::limits::{INBOX_BYTES, REPLY_BYTES_MAX};

/// One connection with calls outstanding on it.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    queue: SendQueue,
    inbox: Box<[u8]>,
    filled: Range,
    slots: Vec<Slot>,
    /// Calls sent so far, for choosing among the templates.
    turn: u64,
    /// The session whose slots the calls use, if they are of NFS 4.1.
    session: [u8; 16],
}

/// The received bytes that have not been parsed.
#[derive(Debug, Default, Clone, Copy)]
struct Range {
    start: usize,
    end: usize,
}

/// A place for one outstanding call.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Counts the calls that used the slot; its low half is the high half of their xids.
    generation: u32,
    /// The stamp of the last call in the slot.
    stamp: Stamp,
    pending: Option<Pending>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    template: usize,
    sent: Instant,
}

/// A reply that was correct.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reply {
    pub(crate) slot: usize,
    pub(crate) units: u32,
    pub(crate) sent: Instant,
}

/// The values that distinguish a call from others of the same template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Next {
    pub(crate) slot: usize,
    /// The number of this connection among all connections.
    pub(crate) place: u64,
    pub(crate) places: u64,
    /// A number that no other call has.
    pub(crate) serial: u64,
    pub(crate) now: Instant,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Result<Self> {
        let stream = dial(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            queue: SendQueue::default(),
            inbox: vec![0; INBOX_BYTES].into(),
            filled: Range::default(),
            slots: Vec::new(),
            turn: 0,
            session: [0; 16],
        })
    }

    /// Makes the connection call in the slots of a session that no call has used.
    pub(crate) fn in_session(self, session: [u8; 16]) -> Self {
        Self { session, ..self }
    }

    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Makes room for `depth` calls at a time.
    pub(crate) fn resize(&mut self, depth: usize) {
        self.slots.resize(depth, Slot::default());
    }

    /// Queues the next call in a free slot.
    pub(crate) fn issue(&mut self, script: &CallTemplates, next: Next) {
        let highest = self.slots.len() as u32 - 1;
        let slot = &mut self.slots[next.slot];
        let template = script.choose(CallSlot {
            number: self.turn * next.places + next.place,
            place: next.slot * next.places as usize + next.place as usize,
            before: slot.generation as usize,
        });
        self.turn += 1;
        slot.generation = slot.generation.wrapping_add(1);
        slot.pending = Some(Pending { template, sent: next.now });
        let (sequenceid, slotid) = (slot.generation, next.slot as u32);
        let place = SlotPlace { sessionid: self.session, sequenceid, slotid, highest };
        let (xid, serial) = (sequenceid << 16 | slotid, next.serial);
        slot.stamp = Stamp { xid, serial, place, ..slot.stamp };
        self.queue.add(script, template, &slot.stamp);
    }

    /// Sends the queued calls.
    pub(crate) fn flush(&mut self, script: &CallTemplates) -> io::Result<()> {
        self.queue.flush(&self.stream, &script.payload)
    }

    /// Returns whether calls wait for room in the socket.
    pub(crate) fn is_choked(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Reads once from the socket; returns whether there may be more.
    pub(crate) fn receive(&mut self) -> Result<bool> {
        self.make_room();
        let room = &mut self.inbox[self.filled.end..];
        let wanted = room.len();
        match (&self.stream).read(room) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(got) => {
                self.filled.end += got;
                Ok(got == wanted)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error).context("receive"),
        }
    }

    /// Takes the next whole reply and compares it with the expectation of its call.
    pub(crate) fn next_reply(&mut self, script: &CallTemplates) -> Result<Option<Reply>> {
        let bytes = &self.inbox[self.filled.start..self.filled.end];
        let Some((mark, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = record_length(*mark)?;
        let Some(record) = rest.get(..length) else { return Ok(None) };
        let reply = settle(&mut self.slots, script, record)?;
        self.filled.start += 4 + length;
        Ok(Some(reply))
    }

    fn make_room(&mut self) {
        let Range { start, end } = self.filled;
        if start == end {
            self.filled = Range::default();
        } else if self.inbox.len() - end < REPLY_BYTES_MAX / 2 {
            self.inbox.copy_within(start..end, 0);
            self.filled = Range { start: 0, end: end - start };
        }
    }
}

/// The length in a record mark; replies of several fragments are not expected.
fn record_length(mark: [u8; 4]) -> Result<usize> {
    let mark = u32::from_be_bytes(mark);
    let length = (mark & !(1 << 31)) as usize;
    ensure!(mark >> 31 == 1, "a reply in several fragments");
    ensure!((4..=REPLY_BYTES_MAX).contains(&length), "a reply of {length} bytes");
    Ok(length)
}

fn settle(slots: &mut [Slot], script: &CallTemplates, record: &[u8]) -> Result<Reply> {
    let xid = record.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let number = (xid & 0xffff) as usize;
    let slot = slots.get_mut(number).with_context(|| format!("a reply of unknown xid {xid:#x}"))?;
    ensure!(slot.generation & 0xffff == xid >> 16, "a reply of old xid {xid:#x}");
    let pending = slot.pending.take().with_context(|| format!("a second reply to {xid:#x}"))?;
    if let Err(wrong) = script.settle(pending.template, &mut slot.stamp, record) {
        bail!("wrong reply to call {}: {}", pending.template, wrong.0);
    }
    let units = script.templates[pending.template].units;
    Ok(Reply { slot: number, units, sent: pending.sent })
}
