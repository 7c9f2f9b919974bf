use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comity_proto::portmap;

use super::calls::Call;
use super::source::{Stage, address};

/// Strangers that send one call over and over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flood {
    pub(super) call: Call,
    /// Calls a second of all strangers together; `None` for as many as one processor can send.
    pub(super) rate: Option<u32>,
}

/// Strangers, each with one connection.
const STRANGERS: usize = 8;
/// Calls that one sends at once when it sends as fast as it can.
const BATCH: usize = 16;

impl Flood {
    /// Sends calls until the measurement ends. Returns the number of calls a second that were sent.
    pub(super) fn pour(self, stage: &Stage) -> Result<f64> {
        let portmap = SocketAddr::new(stage.server.ip(), portmap::PORT);
        let server = if self.call.is_of_portmapper() { portmap } else { stage.server };
        let stage_there = stage.at(server);
        match self.call {
            Call::DumpByUdp => self.pour_datagrams(&stage_there, server),
            _ => self.pour_records(&stage_there),
        }
    }

    /// Sends as fast as the server receives, without waiting for replies.
    fn pour_records(self, stage: &Stage) -> Result<f64> {
        let connect = |number| Stranger::connect(stage, number, self.call.record());
        let mut strangers = (0..STRANGERS).map(connect).collect::<Result<Vec<_>>>()?;
        stage.begin();
        let mut pace = Pace::new(self.rate);
        while !stage.is_over() {
            let batch = pace.next_batch(STRANGERS * BATCH);
            for (number, stranger) in strangers.iter_mut().enumerate() {
                stranger.send((batch + number) / STRANGERS)?;
                stranger.take_replies()?;
            }
        }
        let sent: usize = strangers.iter().map(|stranger| stranger.sent).sum();
        Ok(pace.rate_of(sent))
    }

    /// Sends datagrams. Replies that are missing or late are not waited for.
    fn pour_datagrams(self, stage: &Stage, server: SocketAddr) -> Result<f64> {
        let sockets: Result<Vec<_>> =
            (0..STRANGERS).map(|number| datagrams(server, number)).collect();
        let (sockets, record) = (sockets?, self.call.record());
        // Datagrams have no record mark.
        let call = &record[4..];
        stage.begin();
        let mut pace = Pace::new(self.rate);
        while !stage.is_over() {
            for number in 0..pace.next_batch(STRANGERS) {
                let socket = &sockets[number % STRANGERS];
                let _ = socket.send(call);
                while socket.recv(&mut [0; 4096]).is_ok() {}
            }
        }
        Ok(pace.rate_of(pace.due))
    }
}

/// A connection that sends one record over and over.
struct Stranger {
    stream: TcpStream,
    record: Vec<u8>,
    /// Bytes of the record that were sent since the last whole one.
    begun_bytes: usize,
    /// Whole records sent.
    sent: usize,
}

impl Stranger {
    fn connect(stage: &Stage, number: usize, record: Vec<u8>) -> Result<Self> {
        let stream = stage.connect(number)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, record, begun_bytes: 0, sent: 0 })
    }

    /// Sends `records` records, or as many as fit into the socket.
    fn send(&mut self, records: usize) -> Result<()> {
        let bytes = self.record.repeat(records + 1);
        let due = self.begun_bytes..records * self.record.len();
        let Some(due) = bytes.get(due).filter(|due| !due.is_empty()) else { return Ok(()) };
        let taken = unless_blocked(self.stream.write(due)).context("a stranger cannot send")?;
        let through = self.begun_bytes + taken.unwrap_or(0);
        self.sent += through / self.record.len();
        self.begun_bytes = through % self.record.len();
        Ok(())
    }

    /// Reads and drops the replies that have arrived.
    fn take_replies(&mut self) -> Result<()> {
        let mut replies = [0; 1 << 16];
        while let Some(bytes) = unless_blocked(self.stream.read(&mut replies))? {
            ensure!(bytes > 0, "the server has closed a stranger's connection");
        }
        Ok(())
    }
}

/// Returns the bytes that a socket sent or received, or `None` if it would have blocked.
fn unless_blocked(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

fn datagrams(server: SocketAddr, number: usize) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(address(number))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Limits the rate of calls.
struct Pace {
    rate: Option<u32>,
    started: Instant,
    due: usize,
}

impl Pace {
    fn new(rate: Option<u32>) -> Self {
        Self { rate, started: Instant::now(), due: 0 }
    }

    /// Waits until calls are due, and returns their number, at most `most`.
    fn next_batch(&mut self, most: usize) -> usize {
        let batch = match self.rate {
            None => most,
            Some(rate) => self.wait(f64::from(rate)).min(most),
        };
        self.due += batch;
        batch
    }

    fn wait(&self, rate: f64) -> usize {
        sleep(Duration::from_millis(1));
        let due = (self.started.elapsed().as_secs_f64() * rate) as usize;
        due.saturating_sub(self.due)
    }

    /// Returns the rate since the start, in calls a second, if `sent` calls were sent.
    fn rate_of(&self, sent: usize) -> f64 {
        sent as f64 / self.started.elapsed().as_secs_f64()
    }
}
