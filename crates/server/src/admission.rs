//! Who may hold how many connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections, altogether and by address.
pub(crate) struct Admission {
    total_max: usize,
    per_address_max: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A connection's right to be there, given back when dropped.
pub(crate) struct Place {
    admission: Arc<Admission>,
    address: IpAddr,
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
    pub(crate) fn new(total_max: usize, per_address_max: usize) -> Self {
        Self { total_max, per_address_max, counts: Mutex::default() }
    }

    /// Lets one more connection of `address` in.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Place, Full> {
        let address = whose(address);
        let mut counts = self.counts();
        if counts.total >= self.total_max {
            return Err(Full::Total(self.total_max));
        }
        let of_address = counts.by_address.entry(address).or_default();
        if *of_address >= self.per_address_max {
            return Err(Full::Address(self.per_address_max));
        }
        *of_address += 1;
        counts.total += 1;
        Ok(Place { admission: Arc::clone(self), address })
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
        if let Some(count) = counts.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.by_address.remove(&self.address);
            }
        }
    }
}

/// The address that counts as one peer: of IPv6 the /64, since whoever has one address has that.
fn whose(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_by_address_and_altogether_and_come_back() {
        let admission = Arc::new(Admission::new(3, 2));
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

    #[test]
    fn one_network_of_ipv6_is_one_peer() {
        let [a, b] = ["2001:db8::1", "2001:db8::2:3"].map(|a| whose(a.parse().unwrap()));
        assert_eq!(a, b);
        assert_ne!(a, whose("2001:db8:0:1::1".parse().unwrap()));
        assert_eq!(
            whose("::ffff:10.0.0.1".parse().unwrap()),
            "10.0.0.1".parse::<IpAddr>().unwrap()
        );
    }
}
