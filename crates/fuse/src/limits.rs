//! The bounds of this crate.

use std::time::Duration;

/// Most bytes that one READ or WRITE of the kernel carries: what Linux allows by default (256
/// pages), and what one call of NFS carries at most.
pub(crate) const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Most objects that the kernel may know before it is asked to forget the oldest: about 180 bytes
/// each, 24 MiB together.
pub(crate) const NODES_MAX: usize = 131_072;

/// Most objects in any case, because the kernel cannot forget files in use. Beyond it, lookups of
/// further objects fail (ENFILE).
pub(crate) const NODES_IN_USE_MAX: usize = 8 * NODES_MAX;

/// Number of the oldest objects that the kernel is asked to forget for each object above
/// [`NODES_MAX`]: so the table shrinks faster than it grows.
pub(crate) const NODES_FORGOTTEN_AT_ONCE: usize = 4;

/// Most open files and directories: four times the default limit of a process, for some hundred
/// processes. Beyond it opens fail (ENFILE).
pub(crate) const OPENS_MAX: usize = 1 << 19;

/// Most callers whose groups are cached.
pub(crate) const CALLERS_MAX: usize = 1_024;

/// Time for which the groups of a process are cached: long enough that many calls of one program
/// share one read of proc(5), and short enough that a process which gives up a group loses its
/// rights soon.
pub(crate) const CALLER_LIFE: Duration = Duration::from_millis(100);

/// Most bytes read of a process's status: 65,536 groups of ten digits.
pub(crate) const STATUS_BYTES_MAX: u64 = 1 << 20;

/// Most invalidations that wait for their thread. Further ones are dropped, and the kernel keeps
/// the names and attributes until they expire. Events of the layer below wait in its own queue.
pub(crate) const INVALIDATIONS_MAX: usize = 4_096;

/// Longest wait for an event of the layer below, before its thread checks whether the mount has
/// ended.
pub(crate) const EVENT_PATIENCE: Duration = Duration::from_millis(500);

/// Time for which the kernel caches the attributes of a delegated file: they are valid until the
/// recall, which invalidates them.
pub(crate) const DELEGATED_KEEP: Duration = Duration::from_secs(86_400);

/// First pause before a verb that returned DELAY is retried; it doubles.
pub(crate) const DELAY_FIRST: Duration = Duration::from_millis(5);

/// Longest pause before a verb that returned DELAY is retried.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(1);

/// Longest time until a waiting request notices a signal of its process.
pub(crate) const INTERRUPT_PAUSE: Duration = Duration::from_millis(50);

/// Most lock requests that wait at a time, because each occupies a thread. Beyond it they fail
/// (ENOLCK).
pub(crate) const LOCK_WAITERS_MAX: usize = 512;

/// Threads that answer the kernel, by default: enough that a quarter of the kernel's background
/// requests ([`BACKGROUND_MAX`]) can wait for a server at the same time.
pub(crate) const THREADS: usize = 16;

/// Most background requests of the kernel under way, such as read-ahead.
pub(crate) const BACKGROUND_MAX: u16 = 64;

/// Most bytes copied by one copy_file_range(2): the program calls again for the rest, and can be
/// interrupted in between.
pub(crate) const COPY_BYTES_MAX: u64 = 128 << 20;

/// Time within which the kernel repeats an open that was refused because of its name.
pub(crate) const STALE_OPEN_TIME: Duration = Duration::from_secs(1);

/// Most threads that are remembered because the kernel will repeat their opens.
pub(crate) const STALE_OPENS_MAX: usize = 4_096;
