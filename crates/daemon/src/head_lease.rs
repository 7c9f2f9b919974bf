//! The lease of this head. When it is over the process ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use comity_server::LogRateLimit;
use comity_store::etcd::Etcd;

use crate::clocks::{ClockId, milliseconds};

/// The exit code of a head that has lost its lease: systemd starts the server again.
const EXIT_CODE: i32 = 1;

/// Time for the last message in the log. The process ends then, whether it is written or not.
const LOG_TIME_MAX: Duration = Duration::from_millis(200);

/// The time until which this head may answer calls.
#[derive(Debug)]
pub(crate) struct HeadLease {
    /// Milliseconds since the machine was booted, the time included in which it slept.
    until_milliseconds: AtomicU64,
    /// The lease in etcd.
    pub(crate) id: i64,
    /// The time for which etcd grants it.
    length: Duration,
}

/// Returns the time since the machine was booted.
fn now_milliseconds() -> u64 {
    milliseconds(ClockId::CLOCK_BOOTTIME)
}

impl HeadLease {
    /// Asks etcd for a lease.
    ///
    /// # Errors
    /// etcd grants none.
    pub(crate) fn ask(etcd: &Etcd, seconds: u32) -> Result<Self> {
        let (asked, length) = (now_milliseconds(), Duration::from_secs(seconds.into()));
        let id = etcd.grant_lease(seconds).context("etcd grants no lease")?;
        let lease = Self { until_milliseconds: AtomicU64::new(0), id, length };
        lease.renewed(asked);
        Ok(lease)
    }

    /// Returns the time for which the lease is used after each renewal. A quarter is left for calls
    /// that are under way when it ends.
    pub(crate) fn usable(&self) -> Duration {
        self.length - self.length / 4
    }

    /// Notes that etcd has renewed the lease when it was asked at this time.
    fn renewed(&self, asked: u64) {
        let until = asked + self.usable().as_millis() as u64;
        self.until_milliseconds.fetch_max(until, Ordering::AcqRel);
    }

    /// Asks etcd to renew the lease.
    ///
    /// # Errors
    /// etcd does not answer, or the lease is over.
    pub(crate) fn renew(&self, etcd: &Etcd) -> Result<()> {
        let asked = now_milliseconds();
        if etcd.renew_lease(self.id)? {
            self.renewed(asked);
        } else {
            end_process("etcd has ended the lease of this head");
        }
        Ok(())
    }

    /// Returns the time that is left.
    pub(crate) fn left(&self) -> Duration {
        let until = self.until_milliseconds.load(Ordering::Acquire);
        Duration::from_millis(until.saturating_sub(now_milliseconds()))
    }

    /// Ends the process if the lease is over. It is called before each call is performed: the
    /// machine may have slept until now.
    #[inline]
    pub(crate) fn check(&self) {
        if now_milliseconds() >= self.until_milliseconds.load(Ordering::Acquire) {
            end_process("etcd could not be reached in time to renew the lease of this head");
        }
    }

    /// Starts the threads that renew the lease, and that end the process when it is over.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn keep(self: &Arc<Self>, etcd: &Arc<Etcd>) -> Result<()> {
        let (lease, etcd, pause) = (Arc::clone(self), Arc::clone(etcd), self.length / 6);
        let renew = move || {
            static LOG: LogRateLimit = LogRateLimit::new();
            loop {
                thread::sleep(pause);
                if let Err(error) = lease.renew(&etcd) {
                    let left = lease.left().as_secs();
                    LOG.say(|suppressed| {
                        tracing::warn!(
                            suppressed,
                            "the lease of this head is not renewed, and ends in {left} s: {error:#}"
                        );
                    });
                }
            }
        };
        let lease = Arc::clone(self);
        let watch = move || loop {
            lease.check();
            thread::sleep(lease.left());
        };
        let failed = "cannot start the threads of the lease";
        thread::Builder::new().name("head lease".to_owned()).spawn(renew).context(failed)?;
        thread::Builder::new().name("head watch".to_owned()).spawn(watch).context(failed)?;
        Ok(())
    }
}

/// Ends the process, so that it answers nothing more, although the log may accept nothing. Other
/// threads that call this wait for the end.
#[cold]
fn end_process(why: &'static str) {
    static END: Once = Once::new();
    END.call_once(|| {
        let (sender, logged) = mpsc::channel();
        let log = move || {
            tracing::error!("{why}: the server ends, and another head serves its exports");
            // The process may end at any time.
            let _ = sender.send(());
        };
        let thread = thread::Builder::new().name("last words".to_owned()).spawn(log);
        if thread.is_ok() {
            let _ = logged.recv_timeout(LOG_TIME_MAX);
        }
        std::process::exit(EXIT_CODE);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_usable_for_less_time_than_etcd_grants() {
        let lease = HeadLease {
            until_milliseconds: AtomicU64::new(0),
            id: 1,
            length: Duration::from_secs(8),
        };
        assert_eq!(lease.left(), Duration::ZERO);
        lease.renewed(now_milliseconds());
        assert!(lease.left() > Duration::from_secs(5) && lease.left() <= Duration::from_secs(6));
        lease.check();
    }
}
