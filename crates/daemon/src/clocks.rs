//! Clocks of the kernel that the standard library does not show.

use nix::time::clock_gettime;

pub(crate) use nix::time::ClockId;

/// Returns the time of a clock in milliseconds; 0 if the kernel does not have the clock.
///
/// The C library asks for it: rustix panics on a kernel whose vDSO lacks a function (user-mode
/// Linux 7.2).
pub(crate) fn milliseconds(clock: ClockId) -> u64 {
    let Ok(now) = clock_gettime(clock) else { return 0 };
    let (seconds, nanoseconds) = (now.tv_sec().max(0) as u64, now.tv_nsec().max(0) as u64);
    seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000)
}
