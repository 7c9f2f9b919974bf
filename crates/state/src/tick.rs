//! Deadlines: changes that happen because time has passed.

use std::time::Duration;

use crate::Engine;

impl Engine {
    /// Processes all deadlines: leases, recalls, waits and grace end, and slots and delegations are
    /// recalled if they are scarce. The shell calls it about once a second.
    pub fn tick(&self, now: Duration) {
        self.end_grace_if_due(now);
        self.expire_clients(now);
        self.end_courtesy(now);
        self.forget_lapsed(now);
        self.ask_hosts(now);
        self.watch_files(now);
        self.notify_children(now);
        self.waiting.forget(now);
        self.recall_slots(now);
        self.recall_any(now);
    }

    /// Processes the deadlines of all files that have one.
    pub(crate) fn watch_files(&self, now: Duration) {
        for file in self.files.watched() {
            self.expire_waits(now, &file);
            self.revoke_overdue(now, &file);
            self.take_overdue_layouts(now, &file);
            self.files.unwatch(&file);
            self.files.let_go(now, &file);
        }
    }
}
