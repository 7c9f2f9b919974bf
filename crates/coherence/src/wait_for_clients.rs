use std::time::Duration;

/// A server that can wait a moment for its clients.
pub trait WaitForClients: Send + Sync {
    /// Sends calls to clients that are due at the time `now`, and waits for `moment` while other
    /// threads do this thread's other work; returns false if it cannot wait.
    fn wait_for_clients(&self, now: Duration, moment: Duration) -> bool;
}
