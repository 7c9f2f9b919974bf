//! Notifies the service manager (systemd), if it started the server: see sd_notify(3).

use sd_notify::NotifyState;

/// Reports that the server is ready.
pub(crate) fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports that the configuration is being reloaded.
pub(crate) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// Reports that the server is stopping.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot notify the service manager");
    }
}
