//! Probes of hosts of NLM.
//!
//! A host renews no lease. A silent host with locks is probed by NLM NULL instead.

use std::sync::Arc;
use std::time::Duration;

use crate::limits::HOST_ASK_PAUSE;
use crate::sync::atomic::Ordering;
use crate::{Client, ClientProtocol, Effect, Engine};

impl Engine {
    /// Notes whether a host answered its probe ([`Effect::Probe`]).
    pub fn host_answered(&self, now: Duration, host: &Client, answered: bool) {
        host.asked.under_way.store(false, Ordering::Relaxed);
        if answered {
            host.asked.unanswered.store(0, Ordering::Relaxed);
            host.set_callbacks(true);
            host.renew(now);
        } else {
            host.asked.unanswered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Probes the hosts that have locks and are silent.
    pub(crate) fn ask_hosts(&self, now: Duration) {
        // During grace no client gets the state of another.
        if self.is_in_grace() {
            return;
        }
        for host in
            self.clients.all().iter().filter(|client| client.protocol == ClientProtocol::Nlm)
        {
            if self.is_due(now, host) && host.state().has_state() {
                self.ask_host(now, host);
            }
        }
    }

    /// Returns whether a host must be probed now. A host is probed right after its first lock, so
    /// that it is known whether it answers probes at all.
    fn is_due(&self, now: Duration, host: &Client) -> bool {
        let (asked, pause) = (&host.asked, HOST_ASK_PAUSE);
        let is_silent = now >= host.renewed().saturating_add(pause);
        let rests = !asked.at().is_zero() && now < asked.at().saturating_add(pause);
        let waits = rests || asked.under_way.load(Ordering::Relaxed);
        (is_silent || !host.has_callbacks()) && !waits
    }

    fn ask_host(&self, now: Duration, host: &Arc<Client>) {
        // The host has called since the last probe.
        if host.asked.at() < host.renewed() {
            host.asked.unanswered.store(0, Ordering::Relaxed);
        }
        host.asked.begin(now);
        self.effect_queue.push(Effect::Probe { client: Arc::clone(host) });
    }
}
