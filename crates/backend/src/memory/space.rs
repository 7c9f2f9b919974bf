use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_vfs::{Result, Space, Status};

/// The space of a file system, total and used.
#[derive(Debug)]
pub(super) struct Account {
    bytes_max: u64,
    nodes_max: u64,
    bytes: AtomicU64,
    nodes: AtomicU64,
}

impl Account {
    pub(super) fn new(bytes_max: u64, nodes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max, nodes_max, bytes: AtomicU64::new(0), nodes: AtomicU64::new(0) })
    }

    /// Counts a new object, which takes no space yet.
    pub(super) fn open(self: &Arc<Self>) -> Result<Charge> {
        take(&self.nodes, 1, self.nodes_max)?;
        Ok(Charge { account: Arc::clone(self), bytes: 0 })
    }

    pub(super) fn space(&self) -> Space {
        let bytes_free = self.bytes_max.saturating_sub(self.bytes.load(Ordering::Relaxed));
        let files_free = self.nodes_max.saturating_sub(self.nodes.load(Ordering::Relaxed));
        Space {
            bytes_total: self.bytes_max,
            bytes_free,
            bytes_available: bytes_free,
            files_total: self.nodes_max,
            files_free,
            files_available: files_free,
        }
    }
}

/// The part of an [`Account`] that one object uses; it is returned when the object is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    account: Arc<Account>,
    bytes: u64,
}

impl Charge {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes all of `bytes`, or fails with [`Status::NoSpc`] and takes none.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<()> {
        take(&self.account.bytes, bytes, self.account.bytes_max)?;
        self.bytes += bytes;
        Ok(())
    }

    pub(super) fn shrink(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.bytes, "gives back {bytes} of {}", self.bytes);
        self.bytes -= bytes;
        self.account.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.nodes.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take(used: &AtomicU64, more: u64, max: u64) -> Result<()> {
    let fits = |used: u64| used.checked_add(more).filter(|sum| *sum <= max);
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
        .map(drop)
        .map_err(|_| Status::NoSpc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_of_a_dropped_object_is_given_back() {
        let account = Account::new(10, 1);
        let mut charge = account.open().unwrap();
        assert!(matches!(account.open(), Err(Status::NoSpc)), "one object only");
        assert_eq!(charge.grow(11), Err(Status::NoSpc));
        assert_eq!(charge.grow(10), Ok(()));
        charge.shrink(3);
        assert_eq!(account.space().bytes_free, 3);
        drop(charge);
        assert_eq!(account.space().bytes_free, 10);
        assert_eq!(account.space().files_free, 1);
    }
}
