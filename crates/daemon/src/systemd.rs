//! Notifies the service manager (systemd), if it started the server: see sd_notify(3).

use sd_notify::NotifyState;

/// The server is ready.
pub(crate) fn ready() {
    notify(&[NotifyState::Ready]);
}

/// The configuration is being read again.
pub(crate) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// The server ends.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
