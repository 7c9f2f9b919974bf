//! Hosts of NLM: whether they are still there.
//!
//! A host renews no lease. One that holds something and is silent is asked instead (NLM NULL).

use std::sync::Arc;
use std::time::Duration;

use crate::limits::HOST_ASK_PAUSE;
use crate::sync::atomic::Ordering;
use crate::{Client, ClientProtocol, Effect, Engine};

impl Engine {
    /// A host was asked whether it is there ([`Effect::Probe`]), and answered or did not.
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

    /// Asks the hosts that hold something and are silent.
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

    /// Returns whether it is time to ask a host. One that has just locked for the first time is
    /// asked at once, so that it is known whether it answers at all.
    fn is_due(&self, now: Duration, host: &Client) -> bool {
        let (asked, pause) = (&host.asked, HOST_ASK_PAUSE);
        let is_silent = now >= host.renewed().saturating_add(pause);
        let rests = !asked.at().is_zero() && now < asked.at().saturating_add(pause);
        let waits = rests || asked.under_way.load(Ordering::Relaxed);
        (is_silent || !host.has_callbacks()) && !waits
    }

    fn ask_host(&self, now: Duration, host: &Arc<Client>) {
        // It has called since it was asked last.
        if host.asked.at() < host.renewed() {
            host.asked.unanswered.store(0, Ordering::Relaxed);
        }
        host.asked.begin(now);
        self.effect_queue.push(Effect::Probe { client: Arc::clone(host) });
    }
}
