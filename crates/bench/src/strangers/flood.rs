use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use comity_proto::portmap;

use super::calls::Call;
use super::source::{Stage, address};

/// Strangers that send one call over and over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flood {
    pub(super) call: Call,
    /// Calls a second of all of them; none is as fast as one processor sends them.
    pub(super) rate: Option<u32>,
}

/// Strangers, each with one connection.
const STRANGERS: usize = 8;
/// Calls that one sends at once when it sends as fast as it can.
const BATCH: usize = 16;
/// A stranger waits at most so long for an answer; one that stays out is none.
const ANSWER_SECONDS_MAX: u64 = 5;

impl Flood {
    /// Floods until it is over; tells how many calls a second were sent.
    pub(super) fn pour(self, stage: &Stage) -> Result<f64> {
        let portmap = SocketAddr::new(stage.server.ip(), portmap::PORT);
        let server = if self.call.is_of_portmapper() { portmap } else { stage.server };
        let stage_there = stage.at(server);
        match self.call {
            Call::DumpByUdp => self.pour_datagrams(&stage_there, server),
            _ => self.pour_records(&stage_there),
        }
    }

    fn pour_records(self, stage: &Stage) -> Result<f64> {
        let streams: Result<Vec<_>> = (0..STRANGERS).map(|number| connect(stage, number)).collect();
        let (streams, record) = (streams?, self.call.record());
        stage.begin();
        let mut pace = Pace::new(self.rate);
        while !stage.is_over() {
            let batch = pace.next_batch(STRANGERS * BATCH);
            let share = |number: usize| (batch + number) / STRANGERS;
            for (number, mut stream) in streams.iter().enumerate() {
                stream.write_all(&record.repeat(share(number)))?;
            }
            for (number, stream) in streams.iter().enumerate() {
                (0..share(number)).try_for_each(|_| take_reply(stream))?;
            }
        }
        Ok(pace.rate())
    }

    /// Datagrams that are not answered, or late, are not waited for.
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
        Ok(pace.rate())
    }
}

fn connect(stage: &Stage, number: usize) -> Result<TcpStream> {
    let stream = stage.connect(number)?;
    stream.set_read_timeout(Some(Duration::from_secs(ANSWER_SECONDS_MAX)))?;
    Ok(stream)
}

fn datagrams(server: SocketAddr, number: usize) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(address(number))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Reads one reply, whatever it says.
fn take_reply(mut stream: &TcpStream) -> Result<()> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).context("a stranger got no answer")?;
    let length = u64::from(u32::from_be_bytes(mark) & !(1 << 31));
    std::io::copy(&mut stream.take(length), &mut std::io::sink())?;
    Ok(())
}

/// Holds a rate.
struct Pace {
    rate: Option<u32>,
    started: Instant,
    sent: usize,
}

impl Pace {
    fn new(rate: Option<u32>) -> Self {
        Self { rate, started: Instant::now(), sent: 0 }
    }

    /// Waits until calls are due; tells how many, `most` of them at most.
    fn next_batch(&mut self, most: usize) -> usize {
        let batch = match self.rate {
            None => most,
            Some(rate) => self.wait(f64::from(rate)).min(most),
        };
        self.sent += batch;
        batch
    }

    fn wait(&self, rate: f64) -> usize {
        sleep(Duration::from_millis(1));
        let due = (self.started.elapsed().as_secs_f64() * rate) as usize;
        due.saturating_sub(self.sent)
    }

    fn rate(&self) -> f64 {
        self.sent as f64 / self.started.elapsed().as_secs_f64()
    }
}
