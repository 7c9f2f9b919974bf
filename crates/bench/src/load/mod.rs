//! The load generator: several connections, several calls outstanding on each, one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::time::Timespec;

use crate::call_templates::CallTemplates;
use crate::limits::{DEPTH_MAX, SILENCE_SECONDS_MAX};
use connection::{Connection, Next};

mod connection;
mod open;
mod send_queue;

pub use open::OpenLoad;

/// The longest latency that is recorded exactly: far above the silence that ends a run.
const LATENCY_NANOSECONDS_MAX: u64 = 100_000_000_000;

/// Connections to one server, kept open between loads.
#[derive(Debug)]
pub struct Client {
    connections: Vec<Connection>,
    epoll: OwnedFd,
    /// The number of the next call; never used twice.
    serial: u64,
}

/// The number of calls outstanding on each connection, and the end of the load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Calls outstanding on each connection.
    pub depth: usize,
    /// The time at which no more calls are made; replies to outstanding calls are still awaited.
    pub stop: Stop,
}

/// The end of a load.
#[derive(Debug, Clone, Copy)]
pub enum Stop {
    /// The load ends after a time.
    After(Duration),
    /// The load ends after this many calls.
    Calls(u64),
}

/// The result of a load.
#[derive(Debug)]
pub struct LoadOutcome {
    /// Calls answered.
    pub calls: u64,
    /// Units: calls, or entries of directories.
    pub units: u64,
    /// Time from the first call to the last reply.
    pub seconds: f64,
    /// Times from a call's encoding to its reply, in nanoseconds.
    pub latency: Histogram<u64>,
}

/// A load in progress.
struct Run<'a> {
    client: &'a mut Client,
    script: &'a CallTemplates,
    load: Load,
    started: Instant,
    now: Instant,
    issued: u64,
    outcome: LoadOutcome,
}

impl Client {
    /// Opens connections.
    ///
    /// # Errors
    /// The server does not answer, or we run out of descriptors.
    pub fn connect(address: SocketAddr, connections: usize) -> Result<Self> {
        Self::of((0..connections).map(|_| Connection::open(address)).collect::<Result<_>>()?)
    }

    /// Opens a connection for each of these sessions of NFS 4.1, none of which has been used. A
    /// connection uses the slots of its session, which must have as many as the depth of the load.
    ///
    /// # Errors
    /// As for [`Self::connect`].
    pub fn connect_sessions(address: SocketAddr, sessions: &[[u8; 16]]) -> Result<Self> {
        let open = |session: &[u8; 16]| Ok(Connection::open(address)?.in_session(*session));
        Self::of(sessions.iter().map(open).collect::<Result<_>>()?)
    }

    fn of(connections: Vec<Connection>) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll_create")?;
        for (place, connection) in connections.iter().enumerate() {
            let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            let data = epoll::EventData::new_u64(place as u64);
            epoll::add(&epoll, connection.stream(), data, flags).context("epoll_ctl")?;
        }
        Ok(Self { connections, epoll, serial: 0 })
    }

    /// Makes calls until the load is over and all are answered.
    ///
    /// # Errors
    /// A wrong reply, a closed connection, or a server that is silent for [`SILENCE_SECONDS_MAX`]
    /// seconds.
    pub fn run(&mut self, script: &CallTemplates, load: Load) -> Result<LoadOutcome> {
        ensure!((1..DEPTH_MAX).contains(&load.depth), "depth must be 1 to {DEPTH_MAX}");
        let started = Instant::now();
        let latency = Histogram::new_with_bounds(1, LATENCY_NANOSECONDS_MAX, 3)?;
        let outcome = LoadOutcome { calls: 0, units: 0, seconds: 0.0, latency };
        Run { client: self, script, load, started, now: started, issued: 0, outcome }.finish()
    }
}

impl Run<'_> {
    fn finish(mut self) -> Result<LoadOutcome> {
        self.fill()?;
        let mut events = Vec::with_capacity(self.client.connections.len());
        while self.outcome.calls < self.issued {
            wait(&self.client.epoll, &mut events)?;
            self.now = Instant::now();
            for event in &events {
                self.serve(event.data.u64() as usize)?;
            }
        }
        self.outcome.seconds = self.started.elapsed().as_secs_f64();
        Ok(self.outcome)
    }

    fn fill(&mut self) -> Result<()> {
        for place in 0..self.client.connections.len() {
            self.client.connections[place].resize(self.load.depth);
            for slot in 0..self.load.depth {
                self.issue(place, slot);
            }
            self.client.connections[place].flush(self.script)?;
        }
        Ok(())
    }

    fn issue(&mut self, place: usize, slot: usize) {
        let over = match self.load.stop {
            Stop::After(time) => self.now - self.started >= time,
            Stop::Calls(most) => self.issued >= most,
        };
        if over {
            return;
        }
        let places = self.client.connections.len() as u64;
        let serial = self.client.serial;
        let next = Next { slot, place: place as u64, places, serial, now: self.now };
        self.client.serial += 1;
        self.issued += 1;
        self.client.connections[place].issue(self.script, next);
    }

    /// Takes the replies that have arrived and makes a new call for each.
    fn serve(&mut self, place: usize) -> Result<()> {
        if self.client.connections[place].is_choked() {
            self.client.connections[place].flush(self.script)?;
        }
        loop {
            let more = self.client.connections[place].receive()?;
            while let Some(reply) = self.client.connections[place].next_reply(self.script)? {
                let latency = (self.now - reply.sent).as_nanos() as u64;
                self.outcome.latency.saturating_record(latency);
                self.outcome.calls += 1;
                self.outcome.units += u64::from(reply.units);
                self.issue(place, reply.slot);
            }
            self.client.connections[place].flush(self.script)?;
            if !more {
                return Ok(());
            }
        }
    }
}

/// Waits for events; fails if none come for too long.
fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>) -> Result<()> {
    wait_for(epoll, events, None)
}

/// Waits for events, for at most `most`.
fn wait_for(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, most: Option<Duration>) -> Result<()> {
    let time = most.unwrap_or(open::SILENCE);
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    events.clear();
    loop {
        match epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&time)) {
            Ok(0) if most.is_none() => bail!("the server said nothing for {SILENCE_SECONDS_MAX} s"),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll_wait"),
        }
    }
}
