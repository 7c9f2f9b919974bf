use std::time::Duration;

/// A server that can wait for its clients for a moment.
pub trait WaitForClients: Send + Sync {
    /// Lets calls to clients go out at the time `now`, and `moment` pass, while other threads serve
    /// what this one would; returns false if it cannot wait.
    fn wait_for_clients(&self, now: Duration, moment: Duration) -> bool;
}
