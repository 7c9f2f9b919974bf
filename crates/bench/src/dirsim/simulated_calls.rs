use serde::Serialize;

/// The number of calls by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallCounts {
    /// LOOKUP.
    pub lookups: u64,
    /// GETATTR of a directory, to see whether it has changed.
    pub getattrs: u64,
    /// ACCESS of a directory, before its first listing.
    pub accesses: u64,
    /// GET_DIR_DELEGATION, which also returns the attributes.
    pub requests: u64,
    /// READDIR; a whole listing counts as one.
    pub readdirs: u64,
    /// Changes. The server lets them wait while holders answer, so none is sent again.
    pub changes: u64,
    /// CB_RECALL.
    pub recalls: u64,
    /// DELEGRETURN.
    pub returns: u64,
    /// CB_NOTIFY.
    pub notifications: u64,
}

impl CallCounts {
    /// Returns the number of all calls.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let asked = self.lookups + self.getattrs + self.accesses + self.requests + self.readdirs;
        asked + self.changes + self.recalls + self.returns + self.notifications
    }
}

/// The number of requests of programs by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Look-ups of names.
    pub lookups: u64,
    /// Listings of directories.
    pub listings: u64,
    /// Attributes of directories.
    pub stats: u64,
    /// Changes; a rename counts as two.
    pub changes: u64,
}

/// The outcome of a simulation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SimulatedCalls {
    /// The requests of programs.
    pub asked: Asked,
    /// The calls that the requests caused.
    pub calls: CallCounts,
    /// Changes of which holders were notified.
    pub notified: u64,
    /// Delegations granted.
    pub grants: u64,
    /// Most delegations that were held at one time.
    pub held_max: u64,
    /// Look-ups that a client answered wrongly from its cache.
    pub stale_answers: u64,
}

impl SimulatedCalls {
    /// Counts a grant, after which `held` delegations exist.
    pub(super) fn granted(&mut self, held: usize) {
        self.grants += 1;
        self.held_max = self.held_max.max(held as u64);
    }

    /// The fraction of the calls of `before` that this simulation saves; negative if it makes more.
    #[must_use]
    pub fn saved(&self, before: &Self) -> f64 {
        1.0 - self.calls.total() as f64 / before.calls.total().max(1) as f64
    }
}
