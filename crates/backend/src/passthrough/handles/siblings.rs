use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::Handle;

use super::cache::HandleHasher;
use super::node::Ledger;
use crate::passthrough::Passthrough;
use crate::passthrough::leases::range_locks::RangeLocks;
use crate::passthrough::mounts::mount::{Mount, volume_id};

/// The state that the file systems of one process share, because they may have the same files: the
/// numbers of volumes, and the locked bytes of files.
#[derive(Debug, Clone, Default)]
pub struct Siblings(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    volumes: Mutex<VolumeTable>,
    holds: RangeLocks,
}

type Map<V> = HashMap<u64, V, BuildHasherDefault<HandleHasher>>;

#[derive(Debug, Default)]
struct VolumeTable {
    /// The devices on which each fsid was found.
    devices: Map<Vec<u64>>,
    /// The number of file systems whose root is on a volume.
    roots: Map<usize>,
}

impl Siblings {
    /// Returns the files with locked bytes.
    pub(crate) fn holds(&self) -> &RangeLocks {
        &self.0.holds
    }

    /// Counts a file system whose root is on this volume.
    pub(crate) fn join(&self, volume: u64) {
        *self.volumes().roots.entry(volume).or_default() += 1;
    }

    /// Returns the number of a volume: its fsid, which outlives restarts. A copy of a file system
    /// (a snapshot of a block device) has the fsid of its original and the same handles for other
    /// files, so that the second device with an fsid gets another number.
    fn number(&self, fsid: u64, device: u64) -> u64 {
        let mut volumes = self.volumes();
        let devices = volumes.devices.entry(fsid).or_default();
        if !devices.contains(&device) {
            devices.push(device);
        }
        if devices.first() == Some(&device) {
            return fsid;
        }
        let mut hasher = HandleHasher::default();
        hasher.write_u64(fsid);
        hasher.write_u64(device);
        hasher.finish()
    }

    /// Ends a file system whose root is on `volume`. Bytes that were locked through it stay locked
    /// while another file system has its root there.
    fn leave(&self, volume: u64, ledger: &Arc<Ledger>) {
        let mut volumes = self.volumes();
        let others = volumes.roots.get(&volume).map_or(0, |roots| roots - 1);
        if others == 0 {
            volumes.roots.remove(&volume);
        } else {
            volumes.roots.insert(volume, others);
        }
        let is_over = |of: u64, held_by: &Arc<Ledger>| {
            let is_mine = of == volume || Arc::ptr_eq(held_by, ledger);
            is_mine && !volumes.roots.contains_key(&of)
        };
        self.0.holds.end(is_over);
    }

    fn volumes(&self) -> MutexGuard<'_, VolumeTable> {
        self.0.volumes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passthrough {
    /// See [`comity_vfs::Fs::volume`].
    pub(crate) fn volume_number(&self, node: &Handle) -> u64 {
        let top = self.mounts.top();
        let Ok(id) = volume_id(node) else { return 0 };
        if id == top.id {
            return self.number_of(top);
        }
        // No object of an unmounted volume is used.
        self.mounts.get(id).map_or(0, |volume| self.number_of(&volume))
    }

    pub(crate) fn number_of(&self, volume: &Mount) -> u64 {
        *volume.number.get_or_init(|| self.siblings.number(volume.fsid, volume.device))
    }
}

impl Drop for Passthrough {
    fn drop(&mut self) {
        self.siblings.leave(self.number_of(self.mounts.top()), self.nodes.ledger());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_file_system_is_another_volume() {
        let siblings = Siblings::default();
        assert_eq!(siblings.number(77, 1), 77);
        assert_ne!(siblings.number(77, 2), 77);
        assert_eq!(siblings.number(77, 1), 77, "the first device keeps its number");
        assert_eq!(siblings.number(77, 2), siblings.number(77, 2));
        assert_ne!(siblings.number(77, 2), siblings.number(78, 2));
    }
}
