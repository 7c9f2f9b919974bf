use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Hook, Verb};
use crate::{Handle, Result, SplitMix64, Status};

/// The calls that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Every call.
    Always,
    /// One call of the verb, counted from 1.
    Once(u64),
    /// One call of the verb, counted from 1, and all later ones.
    From(u64),
    /// This many calls in a thousand, chosen by the seeded generator.
    PerMille(u32),
}

/// Injects faults: verbs fail without doing anything, and writes are cut short. The generator is
/// seeded: the same calls in the same order have the same faults.
#[derive(Debug)]
pub struct Faults {
    rules: Vec<Rule>,
    short_writes_per_mille: u32,
    rng: SharedRng,
    active: AtomicBool,
}

#[derive(Debug)]
struct Rule {
    verb: Verb,
    status: Status,
    when: When,
    calls: AtomicU64,
}

impl Faults {
    /// Makes a hook without faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let rng = SharedRng { seed, rolls: AtomicU64::new(0) };
        let active = AtomicBool::new(true);
        Self { rules: Vec::new(), short_writes_per_mille: 0, rng, active }
    }

    /// Makes `verb` fail with `status`. If several rules match a call, the first one counts.
    #[must_use]
    pub fn fail(mut self, verb: Verb, status: Status, when: When) -> Self {
        self.rules.push(Rule { verb, status, when, calls: AtomicU64::new(0) });
        self
    }

    /// Cuts short this many in a thousand of the writes that are longer than one byte; at least one
    /// byte is written.
    #[must_use]
    pub fn short_writes(self, per_mille: u32) -> Self {
        Self { short_writes_per_mille: per_mille, ..self }
    }

    /// Enables or disables the faults; calls are counted in both cases.
    pub fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::SeqCst);
    }

    fn strikes(&self, rule: &Rule) -> bool {
        let call = rule.calls.fetch_add(1, Ordering::Relaxed) + 1;
        match rule.when {
            When::Always => true,
            When::Once(number) => call == number,
            When::From(number) => call >= number,
            When::PerMille(share) => self.rng.roll(1_000) < share.into(),
        }
    }
}

impl Hook for Faults {
    fn around<T>(&self, verb: Verb, _node: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut rules = self.rules.iter().filter(|rule| rule.verb == verb);
        match rules.find(|rule| self.strikes(rule)) {
            Some(rule) if self.active.load(Ordering::SeqCst) => Err(rule.status),
            _ => work(),
        }
    }

    fn write_bytes(&self, length: usize) -> usize {
        let short = length > 1 && self.rng.roll(1_000) < self.short_writes_per_mille.into();
        if short && self.active.load(Ordering::SeqCst) {
            1 + self.rng.roll(length as u64 - 1) as usize
        } else {
            length
        }
    }
}

/// Pseudorandom numbers that threads share.
#[derive(Debug)]
struct SharedRng {
    seed: u64,
    rolls: AtomicU64,
}

impl SharedRng {
    /// A number below `sides`, which is not 0.
    fn roll(&self, sides: u64) -> u64 {
        SplitMix64::at(self.seed, self.rolls.fetch_add(1, Ordering::Relaxed)) % sides
    }
}
