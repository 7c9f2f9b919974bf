use serde::Serialize;

/// The calls that were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallCounts {
    /// LOOKUP.
    pub lookups: u64,
    /// GETATTR of a directory, to see whether it has changed.
    pub getattrs: u64,
    /// READDIR, a listing counted as one.
    pub readdirs: u64,
    /// Changes, and those that had to be sent again because a delegation was recalled.
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
        let asked = self.lookups + self.getattrs + self.readdirs + self.changes;
        asked + self.recalls + self.returns + self.notifications
    }
}

/// The requests of programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Look-ups of names.
    pub lookups: u64,
    /// Listings.
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
    /// The calls that it took.
    pub calls: CallCounts,
    /// Changes of which holders were notified.
    pub notified: u64,
    /// Delegations granted.
    pub grants: u64,
    /// Most delegations that were held at one time.
    pub held_max: u64,
    /// Look-ups that were answered otherwise than the server would have answered them.
    pub stale_answers: u64,
}

impl SimulatedCalls {
    /// Notes a grant, after which so many delegations are held.
    pub(super) fn granted(&mut self, held: usize) {
        self.grants += 1;
        self.held_max = self.held_max.max(held as u64);
    }

    /// The part of the calls of `before` that this saves; negative if it takes more.
    #[must_use]
    pub fn saved(&self, before: &Self) -> f64 {
        1.0 - self.calls.total() as f64 / before.calls.total().max(1) as f64
    }
}
