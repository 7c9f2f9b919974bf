//! Who may hold how many connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_rpc::network_of;

use crate::budget::{Account, Budget};

/// Counts connections, altogether and by address.
pub(crate) struct Admission {
    total_max: usize,
    per_address_max: usize,
    budget: Arc<Budget>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    total: usize,
    by_address: HashMap<IpAddr, Peer>,
}

/// One address.
struct Peer {
    connections: usize,
    account: Arc<Account>,
}

/// A connection's right to be there, given back when dropped.
pub(crate) struct Place {
    admission: Arc<Admission>,
    address: IpAddr,
    /// What is held for that address.
    pub(crate) account: Arc<Account>,
}

/// Why a connection is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error("{0} connections are open, the most allowed")]
    Total(usize),
    #[error("{0} connections of this address are open, the most allowed for one")]
    Address(usize),
}

impl Admission {
    pub(crate) fn new(total_max: usize, per_address_max: usize, budget: Arc<Budget>) -> Self {
        Self { total_max, per_address_max, budget, counts: Mutex::default() }
    }

    /// Lets one more connection of `address` in.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Place, Full> {
        let address = network_of(address);
        let mut counts = self.counts();
        if counts.total >= self.total_max {
            return Err(Full::Total(self.total_max));
        }
        let peer = counts.by_address.entry(address);
        let peer = peer
            .or_insert_with(|| Peer { connections: 0, account: Arc::new(self.budget.account()) });
        if peer.connections >= self.per_address_max {
            return Err(Full::Address(self.per_address_max));
        }
        peer.connections += 1;
        let account = Arc::clone(&peer.account);
        counts.total += 1;
        Ok(Place { admission: Arc::clone(self), address, account })
    }

    /// Connections that are open.
    pub(crate) fn total(&self) -> usize {
        self.counts().total
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.admission.counts();
        counts.total -= 1;
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
        let admission = Arc::new(Admission::new(3, 2, Arc::new(Budget::new(0))));
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|a| a.parse().unwrap());
        let places = [admission.admit(a), admission.admit(a)].map(Result::unwrap);
        assert_eq!(admission.admit(a).err(), Some(Full::Address(2)));
        let _other = admission.admit(b).unwrap();
        assert_eq!(admission.admit(c).err(), Some(Full::Total(3)));
        drop(places);
        assert!(admission.admit(c).is_ok());
        assert_eq!(admission.total(), 1);
        assert_eq!(admission.counts().by_address.len(), 1);
    }
}
