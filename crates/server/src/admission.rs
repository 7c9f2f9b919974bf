//! Limits on connections, altogether and by address.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_credential::ChannelKind;
use comity_rpc::network_of;

use crate::counters::{Counter, PeerStats};
use crate::limits::RESERVED_FOR_LISTED;
use crate::memory_budget::{Account, MemoryBudget};

/// Counts connections, altogether and by address.
pub(crate) struct Admission {
    total_max: usize,
    per_address_max: usize,
    budget: Arc<MemoryBudget>,
    counts: Mutex<PeerCounts>,
}

#[derive(Default)]
struct PeerCounts {
    total: usize,
    /// Connections of peers to which nothing is offered.
    unlisted: usize,
    by_channel: [usize; 3],
    by_address: HashMap<IpAddr, Peer>,
}

/// The connections of one address.
struct Peer {
    connections: usize,
    account: Arc<Account>,
    counters: Arc<PeerCounters>,
}

/// Counters of all connections of one address since the oldest that is still open.
#[derive(Debug, Default)]
pub(crate) struct PeerCounters {
    pub(crate) records: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) service_nanoseconds: Counter,
}

/// The treatment of the peer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// An export is offered to the peer. Connections are reserved for such peers.
    Listed,
    /// The peer is served like a listed one.
    Served,
    /// The peer is served only once a second, and for a short time.
    HeldBack,
}

/// The admission of a connection. Dropping it ends the count of the connection.
pub(crate) struct Permit {
    admission: Arc<Admission>,
    address: IpAddr,
    standing: Standing,
    channel: ChannelKind,
    /// The memory held for that address.
    pub(crate) account: Arc<Account>,
    /// The counters of that address.
    counters: Arc<PeerCounters>,
    /// The usage of this connection that is not in these counters yet.
    pub(crate) usage: Usage,
}

/// The usage of one connection. Each call adds to it, so it is not shared between threads.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    records: Cell<u64>,
    received_bytes: Cell<u64>,
    sent_bytes: Cell<u64>,
    service_nanoseconds: Cell<u64>,
}

impl Usage {
    #[inline]
    pub(crate) fn add_record(&self) {
        self.records.set(self.records.get() + 1);
    }

    #[inline]
    pub(crate) fn add_received(&self, bytes: u64) {
        self.received_bytes.set(self.received_bytes.get() + bytes);
    }

    /// Adds the time that calls took.
    #[inline]
    pub(crate) fn add_service(&self, nanoseconds: u64) {
        self.service_nanoseconds.set(self.service_nanoseconds.get() + nanoseconds);
    }

    #[inline]
    pub(crate) fn add_sent(&self, bytes: u64) {
        self.sent_bytes.set(self.sent_bytes.get() + bytes);
    }
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdmissionError {
    #[error("{0} connections are open, the most allowed")]
    Total(usize),
    #[error("{0} connections of hosts that no export is offered to are open, the most allowed")]
    Unlisted(usize),
    #[error("{0} connections of this address are open, the most allowed for one")]
    Address(usize),
}

impl Admission {
    pub(crate) fn new(total_max: usize, per_address_max: usize, budget: Arc<MemoryBudget>) -> Self {
        Self { total_max, per_address_max, budget, counts: Mutex::default() }
    }

    /// Admits one more connection of `address`. Part of the bound is reserved for listed
    /// peers.
    pub(crate) fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        standing: Standing,
    ) -> Result<Permit, AdmissionError> {
        let address = network_of(address);
        let mut counts = self.counts();
        if counts.total >= self.total_max {
            return Err(AdmissionError::Total(self.total_max));
        }
        let unlisted_max = self.total_max - self.total_max / RESERVED_FOR_LISTED;
        let is_unlisted = standing != Standing::Listed;
        if is_unlisted && counts.unlisted >= unlisted_max {
            return Err(AdmissionError::Unlisted(unlisted_max));
        }
        let peer = counts.by_address.entry(address);
        let peer = peer.or_insert_with(|| Peer::new(&self.budget));
        if peer.connections >= self.per_address_max {
            return Err(AdmissionError::Address(self.per_address_max));
        }
        peer.connections += 1;
        let (account, counters) = (Arc::clone(&peer.account), Arc::clone(&peer.counters));
        counts.total += 1;
        counts.unlisted += usize::from(is_unlisted);
        let channel = ChannelKind::Plain;
        *counts.of(channel) += 1;
        let (admission, usage) = (Arc::clone(self), Usage::default());
        Ok(Permit { admission, address, standing, channel, account, counters, usage })
    }

    /// Returns the number of open connections.
    pub(crate) fn total(&self) -> usize {
        self.counts().total
    }

    /// Returns the number of open connections by channel, in the order of [`ChannelKind::ALL`].
    pub(crate) fn by_channel(&self) -> [usize; 3] {
        self.counts().by_channel
    }

    /// Returns the counters of each address that has a connection.
    pub(crate) fn peers(&self) -> Vec<PeerStats> {
        let counts = self.counts();
        counts.by_address.iter().map(|(address, peer)| peer.stats(*address)).collect()
    }

    fn counts(&self) -> MutexGuard<'_, PeerCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    fn new(budget: &Arc<MemoryBudget>) -> Self {
        let (account, counters) = (Arc::new(budget.account()), Arc::default());
        Self { connections: 0, account, counters }
    }

    fn stats(&self, address: IpAddr) -> PeerStats {
        PeerStats {
            address,
            connections: self.connections as u64,
            records: self.counters.records.get(),
            received_bytes: self.counters.received_bytes.get(),
            sent_bytes: self.counters.sent_bytes.get(),
            service_nanoseconds: self.counters.service_nanoseconds.get(),
        }
    }
}

impl PeerCounts {
    fn of(&mut self, channel: ChannelKind) -> &mut usize {
        let [plain, tls, mutual_tls] = &mut self.by_channel;
        match channel {
            ChannelKind::Plain => plain,
            ChannelKind::Tls => tls,
            ChannelKind::MutualTls => mutual_tls,
        }
    }
}

impl Permit {
    /// Returns the counters of the address.
    pub(crate) fn peer_counters(&self) -> Arc<PeerCounters> {
        Arc::clone(&self.counters)
    }

    /// Returns whether an export is offered to the peer.
    pub(crate) fn is_listed(&self) -> bool {
        self.standing == Standing::Listed
    }

    /// Returns whether the peer is served only once a second, and for a short time.
    pub(crate) fn is_held_back(&self) -> bool {
        self.standing == Standing::HeldBack
    }

    /// Adds the usage of the connection to the counters of its address. It must be called each
    /// second.
    pub(crate) fn report(&self) {
        let Usage { records, received_bytes, sent_bytes, service_nanoseconds } = &self.usage;
        for (counter, part) in [
            (&self.counters.records, records),
            (&self.counters.received_bytes, received_bytes),
            (&self.counters.sent_bytes, sent_bytes),
            (&self.counters.service_nanoseconds, service_nanoseconds),
        ] {
            counter.add(part.take());
        }
    }

    /// Counts the connection under another channel from now on.
    pub(crate) fn secured(&mut self, channel: ChannelKind) {
        let mut counts = self.admission.counts();
        *counts.of(std::mem::replace(&mut self.channel, channel)) -= 1;
        *counts.of(channel) += 1;
    }

    /// Counts the peer as listed from now on, since an export is offered to it.
    pub(crate) fn list(&mut self) {
        if std::mem::replace(&mut self.standing, Standing::Listed) != Standing::Listed {
            self.admission.counts().unlisted -= 1;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.report();
        let mut counts = self.admission.counts();
        counts.total -= 1;
        counts.unlisted -= usize::from(!self.is_listed());
        *counts.of(self.channel) -= 1;
        if let Some(peer) = counts.by_address.get_mut(&self.address) {
            peer.connections -= 1;
            if peer.connections == 0 {
                counts.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_by_address_and_altogether_and_come_back() {
        let admission = Arc::new(Admission::new(3, 2, Arc::new(MemoryBudget::new(0))));
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|a| a.parse().unwrap());
        let places = [admission.admit(a, Standing::Listed), admission.admit(a, Standing::Listed)]
            .map(Result::unwrap);
        assert_eq!(admission.admit(a, Standing::Listed).err(), Some(AdmissionError::Address(2)));
        let _other = admission.admit(b, Standing::Listed).unwrap();
        assert_eq!(admission.admit(c, Standing::Listed).err(), Some(AdmissionError::Total(3)));
        drop(places);
        assert!(admission.admit(c, Standing::Listed).is_ok());
        assert_eq!(admission.total(), 1);
        assert_eq!(admission.counts().by_address.len(), 1);
    }

    #[test]
    fn a_part_of_all_places_is_kept_for_listed_peers() {
        let admission = Arc::new(Admission::new(8, 8, Arc::new(MemoryBudget::new(0))));
        let [stranger, listed] = ["10.0.0.1", "10.0.0.2"].map(|a| a.parse().unwrap());
        let mut strangers: Vec<_> =
            (0..6).map(|_| admission.admit(stranger, Standing::HeldBack).unwrap()).collect();
        assert_eq!(
            admission.admit(stranger, Standing::HeldBack).err(),
            Some(AdmissionError::Unlisted(6))
        );
        let places = [(); 2].map(|()| admission.admit(listed, Standing::Listed).unwrap());
        assert_eq!(admission.admit(listed, Standing::Listed).err(), Some(AdmissionError::Total(8)));
        drop(places);
        // A connection that turns out to be listed makes room for another unlisted one.
        strangers[0].list();
        strangers[0].list();
        assert!(strangers[0].is_listed());
        let seventh = admission.admit(stranger, Standing::HeldBack).unwrap();
        assert_eq!(
            admission.admit(stranger, Standing::HeldBack).err(),
            Some(AdmissionError::Unlisted(6))
        );
        drop((strangers, seventh));
        let counts = admission.counts();
        assert_eq!((counts.total, counts.unlisted), (0, 0));
    }

    #[test]
    fn counters_belong_to_an_address_and_end_with_its_last_connection() {
        let admission = Arc::new(Admission::new(8, 8, Arc::new(MemoryBudget::new(0))));
        let [a, b] = ["10.0.0.1", "10.0.0.2"].map(|a| a.parse().unwrap());
        let places = [(); 2].map(|()| admission.admit(a, Standing::Listed).unwrap());
        for place in &places {
            place.usage.records.set(3);
            place.report();
            place.report();
        }
        let _other = admission.admit(b, Standing::Listed).unwrap();
        let mut peers = admission.peers();
        peers.sort_by_key(|peer| peer.address);
        let shown: Vec<_> =
            peers.iter().map(|peer| (peer.address, peer.connections, peer.records)).collect();
        assert_eq!(shown, [(a, 2, 6), (b, 1, 0)]);
        drop(places);
        assert_eq!(admission.peers().len(), 1);
        let _again = admission.admit(a, Standing::Listed).unwrap();
        assert!(admission.peers().iter().all(|peer| peer.records == 0));
    }

    #[test]
    fn connections_are_counted_by_channel() {
        let admission = Arc::new(Admission::new(8, 8, Arc::new(MemoryBudget::new(0))));
        let mut places =
            [(); 3].map(|()| admission.admit([10, 0, 0, 1].into(), Standing::Listed).unwrap());
        places[0].secured(ChannelKind::Tls);
        places[1].secured(ChannelKind::MutualTls);
        assert_eq!(admission.by_channel(), [1, 1, 1]);
        drop(places);
        assert_eq!(admission.by_channel(), [0, 0, 0]);
    }
}
