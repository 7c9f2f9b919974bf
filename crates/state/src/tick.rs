//! Deadlines: changes that happen only because time passes.

use std::time::Duration;

use crate::Engine;

impl Engine {
    /// Lets time pass: leases, recalls, waits and grace end, and scarce slots and delegations are
    /// recalled. The shell calls it about once a second.
    pub fn tick(&self, now: Duration) {
        self.end_grace_if_due(now);
        self.expire_clients(now);
        self.end_courtesy(now);
        self.ask_hosts(now);
        self.watch_files(now);
        self.recall_slots(now);
        self.recall_any(now);
    }

    /// Lets time pass in all files that wait for it.
    pub(crate) fn watch_files(&self, now: Duration) {
        for file in self.files.watched() {
            self.expire_waits(now, &file);
            self.revoke_overdue(now, &file);
            self.files.unwatch(&file);
            self.files.let_go(now, &file);
        }
    }
}
