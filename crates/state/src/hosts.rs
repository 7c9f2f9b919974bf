//! Hosts of NLM: whether they are still there, and how many of them are remembered.
//!
//! A host renews no lease. One that holds something and is silent is asked instead (NLM NULL).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Names;
use crate::effect::Effect;
use crate::limits::{HOST_ASK_PAUSE, HOST_GONE_AFTER, HOST_QUESTIONS_MIN, Limits};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::table::lock;
use crate::{Client, Desk, Engine, Result};

/// What came of asking a host whether it is there.
#[derive(Default)]
pub(crate) struct Asked {
    /// When it was asked last; 0 if never.
    at_nanoseconds: AtomicU64,
    under_way: AtomicBool,
    /// Questions in a row that were not answered.
    unanswered: AtomicU32,
}

impl Asked {
    fn at(&self) -> Duration {
        Duration::from_nanos(self.at_nanoseconds.load(Ordering::Relaxed))
    }

    fn begin(&self, now: Duration) {
        self.at_nanoseconds.store(now.as_nanos() as u64, Ordering::Relaxed);
        self.under_way.store(true, Ordering::Relaxed);
    }
}

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

    /// How long a client may be silent until others may have what it holds.
    ///
    /// A host that never answered may be behind a firewall, so that its silence says little.
    pub(crate) fn silence_max(&self, client: &Client) -> Duration {
        let unanswered = client.asked.unanswered.load(Ordering::Relaxed);
        match client.desk {
            Desk::Setclientid | Desk::ExchangeId => self.settings.lease,
            Desk::Nlm if client.has_callbacks() && unanswered >= HOST_QUESTIONS_MIN => {
                HOST_GONE_AFTER
            }
            Desk::Nlm => self.settings.courtesy,
        }
    }

    /// Asks the hosts that hold something and are silent.
    pub(crate) fn ask_hosts(&self, now: Duration) {
        // While grace lasts nobody gets what another had.
        if self.is_in_grace() {
            return;
        }
        for host in self.clients.all().iter().filter(|client| client.desk == Desk::Nlm) {
            if self.is_due(now, host) && host.state().has_state() {
                self.ask_host(now, host);
            }
        }
    }

    /// Whether it is time to ask a host. One that has just locked for the first time is asked at
    /// once, so that it is known whether it answers at all.
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
        self.outbox.push(Effect::Probe { client: Arc::clone(host) });
    }

    /// Sees to it that a host of this name can be let in: where there are too many hosts, or too
    /// many of its network, some of them go that nobody would miss.
    ///
    /// # Errors
    /// [`crate::Error::Delay`].
    pub(crate) fn make_room_for_host(
        &self,
        now: Duration,
        names: &mut Names,
        name: &[u8],
    ) -> Result<()> {
        let crowd = self.clients.hosts.crowd(name, &self.settings.limits);
        if let Some(crowd) = crowd {
            let is_among =
                |host: &Client| crowd == Crowd::All || network(&host.owner) == network(name);
            let mut hosts = self.clients.all();
            hosts.retain(|client| client.desk == Desk::Nlm && is_among(client));
            self.discard_some(now, names, &hosts)?;
        }
        self.make_room(now, names)
    }
}

/// How many hosts there are, in all and of each network.
#[derive(Default)]
pub(crate) struct Hosts(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    all: usize,
    networks: HashMap<Box<[u8]>, usize>,
}

impl Hosts {
    /// A host has come.
    pub(crate) fn add(&self, name: &[u8]) {
        let mut counts = lock(&self.0);
        counts.all += 1;
        *counts.networks.entry(network(name)).or_default() += 1;
    }

    /// A host has gone.
    pub(crate) fn remove(&self, name: &[u8]) {
        let (mut counts, network) = (lock(&self.0), network(name));
        counts.all = counts.all.saturating_sub(1);
        let Some(count) = counts.networks.get_mut(&network) else { return };
        *count -= 1;
        if *count == 0 {
            counts.networks.remove(&network);
        }
    }

    /// Of which hosts there are too many for another of this name: half of the table is left for
    /// clients of NFSv4, and three quarters of the rest for other networks.
    fn crowd(&self, name: &[u8], limits: &Limits) -> Option<Crowd> {
        let counts = lock(&self.0);
        let of_network = counts.networks.get(&network(name)).copied().unwrap_or_default();
        if of_network >= (limits.clients / 8).max(1) {
            return Some(Crowd::Network);
        }
        (counts.all >= (limits.clients / 2).max(1)).then_some(Crowd::All)
    }
}

/// Hosts of which there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crowd {
    /// Those of one network.
    Network,
    /// Those of all networks.
    All,
}

/// The network of a host: of IPv6 its /64, in which one machine can have any address.
fn network(name: &[u8]) -> Box<[u8]> {
    let address = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    match address {
        Some(IpAddr::V6(address)) => (address.to_bits() >> 64).to_be_bytes().into(),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_counted_by_network_and_in_all() {
        let (hosts, limits) = (Hosts::default(), Limits { clients: 16, ..Limits::DEFAULT });
        let crowd = |name: &str| hosts.crowd(name.as_bytes(), &limits);
        hosts.add(b"2001:db8::1");
        hosts.add(b"2001:db8::2");
        assert_eq!(crowd("2001:db8::3"), Some(Crowd::Network), "two of a /64 are an eighth of 16");
        assert_eq!((crowd("2001:db8:0:1::1"), crowd("192.0.2.1")), (None, None));
        hosts.remove(b"2001:db8::1");
        assert_eq!(crowd("2001:db8::3"), None);
        (0..7_u8).for_each(|number| hosts.add(format!("192.0.2.{number}").as_bytes()));
        assert_eq!(crowd("198.51.100.1"), Some(Crowd::All), "eight are half of 16");
    }
}
