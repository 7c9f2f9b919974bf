use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::connection::Next;
use super::{Client, LATENCY_NANOSECONDS_MAX, LoadOutcome, wait_for};
use crate::call_templates::CallTemplates;
use crate::limits::{DEPTH_MAX, SILENCE_SECONDS_MAX};
use crate::rng::Rng;
use hdrhistogram::Histogram;

/// Longest time that an overloaded server is measured, in multiples of the time of the load.
const OVERTIME: u32 = 2;

/// Calls that are made when they are due, whether or not those before have been answered. Latencies
/// count from when a call was due. They contain the waits that a slow answer causes for later
/// calls, which a closed loop leaves out (coordinated omission).
#[derive(Debug, Clone, Copy)]
pub struct OpenLoad {
    /// Calls a second in the mean; the gaps between them are exponential, as of many clients.
    pub rate: f64,
    /// The duration.
    pub time: Duration,
    /// Most calls outstanding on each connection. A call that finds no room waits, and its latency
    /// grows.
    pub depth: usize,
    /// The seed of the gaps.
    pub seed: u64,
}

struct Run<'a> {
    client: &'a mut Client,
    script: &'a CallTemplates,
    load: OpenLoad,
    rng: Rng,
    started: Instant,
    /// The time at which the next call is due.
    due: Instant,
    issued: u64,
    /// Connection and slot of calls that could be made.
    free: VecDeque<(usize, usize)>,
    outcome: LoadOutcome,
}

impl Client {
    /// Makes calls at a rate, and waits for all answers. A load that lasts twice its time is ended:
    /// the rate in the outcome is then below the one asked for.
    ///
    /// # Errors
    /// As for [`Client::run`].
    pub fn run_open(&mut self, script: &CallTemplates, load: OpenLoad) -> Result<LoadOutcome> {
        ensure!((1..DEPTH_MAX).contains(&load.depth), "depth must be 1 to {DEPTH_MAX}");
        ensure!(load.rate > 0.0, "a rate must be above 0");
        let mut free = VecDeque::new();
        for slot in 0..load.depth {
            free.extend((0..self.connections.len()).map(|place| (place, slot)));
        }
        self.connections.iter_mut().for_each(|connection| connection.resize(load.depth));
        let latency = Histogram::new_with_bounds(1, LATENCY_NANOSECONDS_MAX, 3)?;
        let outcome = LoadOutcome { calls: 0, units: 0, seconds: 0.0, latency };
        let (started, rng) = (Instant::now(), Rng::new(load.seed));
        let due = started;
        Run { client: self, script, load, rng, started, due, issued: 0, free, outcome }.finish()
    }
}

impl Run<'_> {
    fn finish(mut self) -> Result<LoadOutcome> {
        let mut events = Vec::with_capacity(self.client.connections.len());
        loop {
            let now = Instant::now();
            self.issue(now)?;
            if self.outcome.calls == self.issued && self.is_over(now) {
                self.outcome.seconds = self.started.elapsed().as_secs_f64();
                return Ok(self.outcome);
            }
            wait_for(&self.client.epoll, &mut events, self.patience(now))?;
            for event in &events {
                self.serve(event.data.u64() as usize)?;
            }
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        let overtime = now - self.started >= self.load.time * OVERTIME;
        self.due - self.started >= self.load.time || overtime
    }

    /// The time until the next call is due; `None` if all slots are in use.
    fn patience(&self, now: Instant) -> Option<Duration> {
        let waits_for_room = self.free.is_empty() || self.is_over(now);
        (!waits_for_room).then(|| self.due.saturating_duration_since(now))
    }

    /// Makes the calls that are due.
    fn issue(&mut self, now: Instant) -> Result<()> {
        let mut touched = Vec::new();
        while self.due <= now && !self.is_over(now) {
            let Some((place, slot)) = self.free.pop_front() else { break };
            let places = self.client.connections.len() as u64;
            let serial = self.client.serial;
            let next = Next { slot, place: place as u64, places, serial, now: self.due };
            self.client.serial += 1;
            self.issued += 1;
            self.client.connections[place].issue(self.script, next);
            touched.push(place);
            let gap = -(1.0 - self.rng.unit()).ln() / self.load.rate;
            self.due += Duration::from_secs_f64(gap);
        }
        touched.dedup();
        for place in touched {
            self.client.connections[place].flush(self.script)?;
        }
        Ok(())
    }

    fn serve(&mut self, place: usize) -> Result<()> {
        let connection = &mut self.client.connections[place];
        if connection.is_choked() {
            connection.flush(self.script)?;
        }
        loop {
            let more = connection.receive()?;
            let now = Instant::now();
            while let Some(reply) = connection.next_reply(self.script)? {
                let latency = now.saturating_duration_since(reply.sent);
                self.outcome.latency.saturating_record(latency.as_nanos() as u64);
                self.outcome.calls += 1;
                self.outcome.units += u64::from(reply.units);
                self.free.push_back((place, reply.slot));
            }
            if !more {
                return Ok(());
            }
        }
    }
}

/// Longest wait for an event while no call is due.
pub(super) const SILENCE: Duration = Duration::from_secs(SILENCE_SECONDS_MAX as u64);
