use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::MOUNTS_MAX;

/// The mounts that clients have reported since the server started. They may be wrong (RFC 1813,
/// 5.2.2), and no right depends on them.
#[derive(Default)]
pub(super) struct Mounts(Mutex<VecDeque<Mounted>>);

/// A mount by a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounted {
    /// The client's address.
    pub(super) client: IpAddr,
    /// The path, in plain form.
    pub(super) path: Vec<u8>,
}

impl Mounts {
    /// Adds a mount unless it is known; if there is no room, the oldest is dropped.
    pub(super) fn add(&self, client: IpAddr, path: Vec<u8>) {
        let mounted = Mounted { client: client.to_canonical(), path };
        let mut mounts = self.lock();
        mounts.retain(|other| *other != mounted);
        if mounts.len() >= MOUNTS_MAX {
            mounts.pop_front();
        }
        mounts.push_back(mounted);
    }

    /// Forgets a mount.
    pub(super) fn remove(&self, client: IpAddr, path: &[u8]) {
        let client = client.to_canonical();
        self.lock().retain(|other| other.client != client || other.path != path);
    }

    /// Forgets all mounts of a client.
    pub(super) fn remove_all(&self, client: IpAddr) {
        let client = client.to_canonical();
        self.lock().retain(|other| other.client != client);
    }

    /// Shows the mounts of a client, the oldest first.
    pub(super) fn of(&self, client: IpAddr, show: impl FnMut(&Mounted)) {
        let client = client.to_canonical();
        self.lock().iter().filter(|mounted| mounted.client == client).for_each(show);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Mounted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn paths(mounts: &Mounts) -> Vec<Vec<u8>> {
        let mut paths = Vec::new();
        mounts.of(CLIENT, |mounted| paths.push(mounted.path.clone()));
        paths
    }

    #[test]
    fn a_mount_is_noted_once_and_forgotten_by_its_client_only() {
        let mounts = Mounts::default();
        mounts.add(CLIENT, b"/a".to_vec());
        mounts.add(CLIENT, b"/a".to_vec());
        mounts.add(CLIENT, b"/b".to_vec());
        assert_eq!(paths(&mounts), [b"/a", b"/b"]);
        mounts.remove(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), b"/a");
        assert_eq!(paths(&mounts), [b"/a", b"/b"]);
        mounts.remove(CLIENT, b"/a");
        assert_eq!(paths(&mounts), [b"/b"]);
        let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
        mounts.remove_all(mapped);
        assert!(paths(&mounts).is_empty());
    }

    #[test]
    fn the_table_is_bounded_and_the_oldest_goes_first() {
        let mounts = Mounts::default();
        for number in 0..=MOUNTS_MAX {
            mounts.add(CLIENT, format!("/{number}").into_bytes());
        }
        let paths = paths(&mounts);
        assert_eq!(paths.len(), MOUNTS_MAX);
        assert_eq!(paths[0], b"/1");
    }
}
