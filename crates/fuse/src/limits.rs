//! The bounds of this crate.

use std::time::Duration;

/// Most bytes that one READ or WRITE of the kernel carries: what Linux allows by default (256
/// pages), and what one call of NFS carries at most.
pub(crate) const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Most objects that the kernel may know by number before it is asked to forget the oldest: about
/// 180 bytes each, 24 MiB together.
pub(crate) const NODES_MAX: usize = 131_072;

/// Most objects whatever the kernel forgets: files that are in use cannot be forgotten. Beyond it
/// names are not found any more (ENFILE).
pub(crate) const NODES_IN_USE_MAX: usize = 8 * NODES_MAX;

/// Objects looked at for each one that comes above [`NODES_MAX`]: so the table shrinks faster than
/// it grows.
pub(crate) const NODES_FORGOTTEN_AT_ONCE: usize = 4;

/// Most files and directories open at a time: four times what a process may have by default, for
/// each of some hundred processes. Beyond it opens are refused (ENFILE).
pub(crate) const OPENS_MAX: usize = 1 << 19;

/// Most callers whose groups are remembered.
pub(crate) const CALLERS_MAX: usize = 1_024;

/// Time for which the groups of a process are remembered: long enough that many calls of one
/// program share one look, and so short that nobody notices when a process gives up a group.
pub(crate) const CALLER_LIFE: Duration = Duration::from_millis(100);

/// Most bytes read of a process's status: 65,536 groups of ten digits.
pub(crate) const STATUS_BYTES_MAX: u64 = 1 << 20;

/// Most invalidations of our own that wait for their thread; more are dropped, and what they were
/// about stays until its time is over. Those of the layer below wait there.
pub(crate) const INVALIDATIONS_MAX: usize = 4_096;

/// Longest wait for an event of the layer below before the thread that waits looks whether the
/// mount has ended.
pub(crate) const EVENT_PATIENCE: Duration = Duration::from_millis(500);

/// Time for which the kernel keeps the attributes of a delegated file: they are good until the
/// recall, which tells the kernel to forget them.
pub(crate) const DELEGATED_KEEP: Duration = Duration::from_secs(86_400);

/// First pause before a verb that was answered DELAY is tried again; it doubles.
pub(crate) const DELAY_FIRST: Duration = Duration::from_millis(5);

/// Longest pause before a verb that was answered DELAY is tried again.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(1);

/// Longest time that passes before a waiting request notices a signal of its process.
pub(crate) const INTERRUPT_PAUSE: Duration = Duration::from_millis(50);

/// Most requests for locks that wait at a time, for each takes a thread. Beyond it they are refused
/// (ENOLCK).
pub(crate) const LOCK_WAITERS_MAX: usize = 512;

/// Threads that answer the kernel, unless the caller of this crate chooses: enough for what the
/// kernel sends in the background (its queue has 64 places) to wait for a server side by side.
pub(crate) const THREADS: usize = 16;

/// Requests that the kernel may have under way in the background: read-ahead and the like.
pub(crate) const BACKGROUND_MAX: u16 = 64;

/// Most bytes copied by one copy_file_range(2): a program that wants more asks again, and can be
/// interrupted in between.
pub(crate) const COPY_BYTES_MAX: u64 = 128 << 20;
