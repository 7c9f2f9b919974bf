//! The policies by which the server delegates directories, and the record of their use.

use std::collections::HashMap;
use std::time::Duration;

use comity_state::{Adaptive, Always, DirectoryPolicy, DirectoryUse, Never, SecondAsk};

/// A client and a directory, by their numbers.
pub(super) type Asker = (u32, u32);

/// The policies by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PolicyName {
    /// Nothing is delegated; the client asks now and then, and is refused
    Never,
    /// Everything is delegated, as in the simulation of CITI (2006)
    Always,
    /// A directory that is asked for twice within a minute; rested after a recall, longer each time
    SecondAsk,
    /// At first the same; then at once, as long as delegations save more calls than they cause
    Adaptive,
}

impl PolicyName {
    fn policy(self) -> &'static dyn DirectoryPolicy {
        match self {
            Self::Never => &Never,
            Self::Always => &Always,
            Self::SecondAsk => &SecondAsk,
            Self::Adaptive => &Adaptive,
        }
    }
}

/// A policy of the server, by the server's own code, with the record of use so far.
pub(super) struct Policy {
    policy: &'static dyn DirectoryPolicy,
    uses: HashMap<Asker, DirectoryUse>,
}

impl Policy {
    /// A policy with an empty record.
    pub(super) fn new(name: PolicyName) -> Self {
        Self { policy: name.policy(), uses: HashMap::new() }
    }

    /// Returns whether the directory is delegated to the client, which asks for it now.
    pub(super) fn grants(&mut self, now_microseconds: u64, asker: Asker) -> bool {
        let (now, known) = (time(now_microseconds), self.uses.entry(asker).or_default());
        known.ask(now);
        let grants = self.policy.grants(now, known);
        if grants {
            known.grant(now);
        }
        grants
    }

    /// Notes that a client looks into a directory.
    pub(super) fn looked(&mut self, now_microseconds: u64, asker: Asker) {
        self.uses.entry(asker).or_default().ask(time(now_microseconds));
    }

    /// Notes that a client was notified of changes; returns whether it keeps the delegation.
    pub(super) fn keeps(&mut self, now_microseconds: u64, asker: Asker) -> bool {
        let known = self.uses.entry(asker).or_default();
        known.notify();
        self.policy.keeps(time(now_microseconds), known)
    }

    /// Notes that a client has returned a delegation.
    pub(super) fn returned(&mut self, asker: Asker) {
        self.uses.entry(asker).or_default().end();
    }

    /// Notes that a delegation was recalled.
    pub(super) fn recalled(&mut self, now_microseconds: u64, asker: Asker) {
        self.uses.entry(asker).or_default().recall(time(now_microseconds));
    }
}

const fn time(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}
