//! Every bound of this module, with its reason.

use std::time::Duration;

/// Most files that stay open. Each has a few hundred bytes here and in libcephfs; a file that is
/// open for writing also keeps other clients of Ceph from caching it.
pub(super) const OPEN_FILES_MAX: usize = 1_024;

/// Time after which a file that is not used is closed, so that Ceph need not ask for it back when
/// another client uses it.
pub(super) const IDLE: Duration = Duration::from_secs(5);

/// Counters of changes: so many that changes of different objects rarely meet at one.
pub(super) const CHANGE_SLOTS: usize = 256;

/// Most files with byte-range locks, each of which is open.
pub(super) const LOCKED_FILES_MAX: usize = 65_536;

/// Most files held against other clients: half of those that stay open, so that others can be
/// opened and closed beside them.
pub(super) const HELD_FILES_MAX: usize = OPEN_FILES_MAX / 2;

/// Longest time for which another client of Ceph may wait for a held file: as long as Linux lets a
/// program wait for a leased one.
pub(super) const HOLD_WAIT_MAX: Duration = Duration::from_secs(45);

/// Shortest such time. Clients must have several seconds to return a delegation.
pub(super) const HOLD_WAIT_MIN: Duration = Duration::from_secs(10);

/// Time between giving a file back and the moment when libcephfs would end the mount: files that
/// are late are looked for once a second.
pub(super) const HOLD_RESERVE: Duration = Duration::from_secs(3);

/// Longest name of an extended attribute in bytes, as in Linux.
pub(super) const XATTR_NAME_BYTES_MAX: usize = 255;

/// The last offset of a file that Ceph can count to.
pub(super) const FILE_SIZE_MAX: u64 = i64::MAX as u64;

/// Most objects that clients are told to be free: more than anybody makes.
pub(super) const FILES_FREE_MAX: u64 = 1 << 40;

/// Seconds that Ceph can keep as a time of an object: 32 bits, from 1970 on.
pub(super) const SECONDS_MAX: i64 = u32::MAX as i64;
